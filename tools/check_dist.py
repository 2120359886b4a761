"""Try what was built: the right files inside, and a wheel that works in a fresh environment.

python tools/check_dist.py dist
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

FORBIDDEN = ("__pycache__", ".nbi", ".nbc", ".pyc", "benchmarks/results", ".npz", ".csv")
SMOKE = """
import numpy as np, buttress
X = np.random.default_rng(0).normal(size=(60, 2)); y = (X[:, 0] > 0).astype(int)
model = buttress.RampClassifier().fit(X, y)
assert model.score(X, y) > 0.9, model.score(X, y)
print("buttress", buttress.__version__, "works")
"""


def names_in(path: Path) -> list[str]:
    """The files inside a wheel or a source distribution."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


def check_contents(path: Path) -> None:
    """Stop at data, caches, or a missing type marker."""
    names = names_in(path)
    wrong = [name for name in names if any(part in name for part in FORBIDDEN)]
    if wrong:
        raise SystemExit(f"{path.name} holds what it should not: {', '.join(wrong[:5])}")
    if not any(name.endswith("buttress/py.typed") for name in names):
        raise SystemExit(f"{path.name} lacks buttress/py.typed")


def check_wheel(wheel: Path) -> None:
    """Install into a fresh environment, away from the sources, and fit something."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        pip = [str(scripts / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
        subprocess.run([*pip, "--disable-pip-version-check"], check=True)
        subprocess.run([str(scripts / "python"), "-c", SMOKE], check=True, cwd=folder)
        subprocess.run([str(scripts / "buttress"), "--version"], check=True, cwd=folder)


def main() -> None:
    """Check every file of the folder."""
    built = sorted(Path(sys.argv[1]).iterdir())
    for path in built:
        check_contents(path)
    for wheel in (path for path in built if path.suffix == ".whl"):
        check_wheel(wheel.resolve())
    print(f"{len(built)} files are as they should be")


if __name__ == "__main__":
    main()
