"""The first minute: processor seconds of a first use, without and with compiled code.

    python benchmarks/first_run.py [--only WORD] [--seconds 150] [--fresh]

Finished jobs are kept, so that the table can be made in several goes. Every job runs in a process
of its own, twice, with a cache of compiled code that is empty the first time. Counted are processor
seconds of the process and its children (user and system): what a user waits for on an idle machine,
and hardly changed by what else runs.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import Cells, report

FIT = """
import numpy as np, warnings
warnings.simplefilter("ignore")
random = np.random.default_rng(0)
X = random.normal(size=(300, 5)); y = (X[:, 0] + .5 * random.normal(size=300) > 0).astype(int)
import buttress
buttress.{estimator}.fit(X, y).predict(X)
"""
FAMILIES = {
    "leaky": "LeakyHockeyStickClassifier()",
    "leaky CV": "LeakyHockeyStickClassifierCV()",
    "leaky linear CV": "LeakyHockeyStickClassifierCV(kernel='linear')",
    "ramp": "RampClassifier()",
    "ramp CV": "RampClassifierCV()",
    "double ramp": "DoubleRampClassifier()",
    "PA-RAMP": "PARampClassifier()",
    "uncertainty set": "UncertaintySetClassifier()",
    "minimax": "MinimaxProbabilityMachine()",
    "noise-aware": "NoiseAwareClassifier()",
    "Rademacher": "RademacherSelector()",
}
# What any program pays that uses scikit-learn: the floor of every job below that predicts or fits.
FLOOR = "import numpy, scipy.linalg, sklearn.base"


def commands(folder: Path) -> dict[str, list[str]]:
    """The jobs as command lines; later ones use files that earlier ones wrote."""
    table = folder / "table.csv"
    heights = [(37 * i) % 101 for i in range(200)]
    rows = [f"{h},{(53 * h) % 89},{'yes' if h > 50 else 'no'}" for h in heights]
    table.write_text("\n".join(["height,weight,ill", *rows]) + "\n")
    python = [sys.executable, "-m", "buttress"]
    fit = [*python, "fit", str(table), "--target", "ill"]
    stream = [*python, "stream", str(table), "--target", "ill", "-o", str(folder / "lines.csv")]
    model = str(folder / "model.skops")
    return {
        "import numpy, scipy, scikit-learn": [sys.executable, "-c", FLOOR],
        "import": [sys.executable, "-c", "import buttress"],
        "buttress --help": [*python, "--help"],
        "fit, no such file": [*python, "fit", "nope.csv", "--target", "y"],
        "demo": [*python, "demo", "--out", str(folder / "report.html")],
        "fit --model ramp": [*fit, "--model", "ramp", "-o", model],
        "stream": stream,
        "predict": [*python, "predict", model, str(table), "-o", str(folder / "answers.csv")],
    } | {
        f"fit of {name}": [sys.executable, "-c", FIT.format(estimator=estimator)]
        for name, estimator in FAMILIES.items()
    }


def run(command: list[str], cache: str) -> float:
    """Processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its byte code
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode and "nope.csv" not in command:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr.strip()[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def job(name: str, folder: Path) -> dict[str, float]:
    """Both runs of one job."""
    table = commands(folder)
    if name == "predict":  # a model must be there
        run(table["fit --model ramp"], os.environ.get("NUMBA_CACHE_DIR", str(folder / "cache")))
    with tempfile.TemporaryDirectory() as cache:
        first, later = run(table[name], cache), run(table[name], cache)
    print(f"{name}: {first:.1f} s, later {later:.1f} s", flush=True)
    return {"first, processor s": round(first, 2), "later, processor s": round(later, 2)}


def main() -> None:
    """Run the jobs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only jobs whose name contains this")
    parser.add_argument("--fresh", action="store_true", help="forget finished jobs")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no job after this")
    options = parser.parse_args()
    cells = Cells("first_run", options.fresh)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        names = list(commands(Path(folder)))
        for name in names:
            if options.only in name and time.perf_counter() - start < options.seconds:
                cells.get((name,), lambda name: job(name, Path(folder)))
    rows = [{"job": name} | cells.scores[(name,)] for name in names if (name,) in cells.scores]
    report("first_run", rows, docs=len(rows) == len(names))


if __name__ == "__main__":
    main()
