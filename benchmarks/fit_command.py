"""``buttress fit --report`` from 1000 to 1,000,000 rows: seconds, memory, and the error it reaches.

A fifth of the rows is kept out of the file; the saved model's error on it is compared with that
of every kind of model fitted on its own (``--model KIND``) to the same file. Every command runs
in a process of its own, so that start-up counts and memory is its own.

    python benchmarks/fit_command.py [--sizes 1000 20000] [--alone] [--docs] [--costs]

``--alone`` also fits every kind on its own, for the column "best alone", with ten minutes for each;
``--costs`` measures the searches that `buttress.model_selection.planning` predicts instead.
Finished commands are kept, so that the sizes can be run one by one; ``--fresh`` forgets them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification

import buttress
from _common import Cells, report
from buttress.datasets import load_dataset
from buttress.model_selection.candidates import make_candidate, settled
from buttress.model_selection.cost_model import Size, machine_factor, search_seconds
from buttress.model_selection.titles import ANSWERING

SIZES = {1000: "qsar_biodeg", 20_000: "magic", 1_000_000: "generated"}
AIMS = {1000: (10, None), 20_000: (60, 2000), 1_000_000: (600, None)}

RUN = """
import json, resource, sys
from buttress.cli import main
sys.argv[0] = "buttress"
code = main()
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"megabytes": used.ru_maxrss / 1024}), file=sys.stderr)
sys.exit(code)
"""


def rows_of(size: int) -> pd.DataFrame:
    """A set of about that size; the million is generated: two curved classes, 10 % flipped."""
    if size < 1_000_000:
        bunch = load_dataset(SIZES[size])
        frame = pd.DataFrame(bunch.X).add_prefix("x")
        frame["label"] = np.where(bunch.y == bunch.y.max(), "p", "n")
        return frame
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size, 20)).astype(np.float64)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5 + X[:, 4]
    frame = pd.DataFrame(X).add_prefix("x")
    flipped = rng.random(size) < 0.1
    frame["label"] = np.where((score > 0) ^ flipped, "p", "n")
    return frame


def write(frame: pd.DataFrame, path: Path) -> Path:
    """As Parquet when it is large, else as CSV."""
    if len(frame) > 100_000:
        frame.to_parquet(path.with_suffix(".parquet"), index=False)
        return path.with_suffix(".parquet")
    frame.to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


def run_fit(data: Path, folder: Path, *words: str) -> dict[str, float]:
    """One ``buttress fit``: wall time, processor time, peak memory, and its own JSON."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    command = ["fit", str(data), "-t", "label", "-o", str(folder / "m.skops"), "--json", *words]
    # as installed: what Python compiles of the sources is kept, like what Numba does
    as_users = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *command],
        capture_output=True,
        text=True,
        check=True,
        env=as_users,
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = json.loads(done.stdout)
    return said | {
        "seconds": seconds,
        "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "megabytes": json.loads(done.stderr.splitlines()[-1])["megabytes"],
    }


def error_of(folder: Path, test: pd.DataFrame) -> float:
    """Error of the saved model on rows that were not in the file."""
    model = buttress.load(folder / "m.skops")
    return float((model.predict(test.drop(columns="label")) != test["label"]).mean())


def run_cell(size: int, kind: str) -> dict[str, float]:
    """One command on one file; kind "auto" with a report, every other alone."""
    frame = rows_of(size).sample(frac=1.0, random_state=0)
    n_test = min(len(frame) // 5, 50_000)
    test, train = frame.iloc[:n_test], frame.iloc[n_test:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = write(train, folder / "train")
        words = ["--model", kind]
        if kind == "auto":
            words += ["--report", str(folder / "r.html")]
            words += ["--time", "7m"] if size >= 1_000_000 else []
        else:
            words += ["--time", "10m"]
        said = run_fit(data, folder, *words)
        return {
            "rows": len(train),
            "seconds": round(said["seconds"], 1),
            "processor s": round(said["processor"], 1),
            "MB": round(said["megabytes"]),
            "chosen": said["chosen"],
            "compared on": said["rows_compared"],
            "fitted to": said["rows_fitted"],
            "landmarks": said["landmarks"],
            "error": error_of(folder, test),
        }


def measure(size: int, alone: bool, cells: Cells) -> dict[str, object]:
    """One row of the table."""
    seconds, megabytes = AIMS[size]
    aim = f"{seconds} s" + (f", {megabytes} MB" if megabytes else "")
    row: dict[str, object] = {"data": SIZES[size], "aim": aim} | cells.get((size, "auto"), run_cell)
    if alone:
        errors = {kind: cells.get((size, kind), run_cell)["error"] for kind in ANSWERING}
        best = min(errors, key=errors.__getitem__)
        row |= {"best alone": best, "its error": errors[best]}
    return row


def costs() -> list[dict[str, object]]:
    """Seconds of searches and fits on one core, beside what planning predicts."""
    rows: list[dict[str, object]] = []
    for kind in ("leaky", "ramp", "reject", "uncertainty", "online"):
        for n, p, k in (
            (250, 10, 2), (500, 10, 2), (1000, 10, 2), (2000, 10, 2), (1000, 40, 2), (1000, 10, 4),
        ):  # fmt: skip
            X, y = make_classification(
                n, p, n_informative=8, n_redundant=0, n_classes=k, flip_y=0.1, random_state=1
            )
            X = (X - X.mean(axis=0)) / X.std(axis=0)
            make_candidate(kind).fit(X[:120], y[:120])
            start = time.process_time()
            search = make_candidate(kind).fit(X, y)
            middle = time.process_time()
            settled(search).fit(X, y)
            end = time.process_time()
            predicted = search_seconds(kind, n, Size(n, p, k))
            rows.append(
                {
                    "kind": kind,
                    "rows": n,
                    "features": p,
                    "classes": k,
                    "search": middle - start,
                    "predicted": predicted,
                    "ratio": (middle - start) / predicted,
                    "one fit": end - middle,
                }
            )
    return rows


def main() -> None:
    """Run and write the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", choices=list(SIZES), default=list(SIZES))
    options.add_argument("--alone", action="store_true")
    options.add_argument("--costs", action="store_true")
    options.add_argument("--docs", action="store_true")
    options.add_argument("--fresh", action="store_true", help="forget finished commands")
    chosen = options.parse_args()
    if chosen.costs:
        report("fit_costs", costs(), machine_factor=machine_factor())
        return
    cells = Cells("fit_command", chosen.fresh)
    rows = [measure(size, chosen.alone, cells) for size in chosen.sizes]
    report("fit_command", rows, docs=chosen.docs, command=" ".join(sys.argv))


if __name__ == "__main__":
    main()
