"""The examples of README and documentation as users' code, typed: pyright has no complaint.

    python tools/check_examples.py

Takes the doctests of every page, one module a page, and asks basedpyright (pyright's rules,
"standard"; it brings its own Node) whether this library's annotations let such code pass. What
scikit-learn and others lack in annotations is not counted.
"""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.rst"))]
# Lines of a shell's kind: an expression alone, several statements a line.
_PYRIGHT = {
    "typeCheckingMode": "standard",
    "reportMissingImports": False,
    "reportMissingModuleSource": False,
    "reportUnusedExpression": False,
    "reportMissingTypeStubs": False,
    # what can be guessed from the code of libraries without annotations is often wrong
    "useLibraryCodeForTypes": False,
    "pythonVersion": "3.11",
}


def write_modules(folder: Path) -> list[Path]:
    """The examples of every page that has some, as a module in `folder`."""
    written = []
    for page in PAGES:
        if "generated" in page.parts or "_build" in page.parts or page.parent.name == "examples":
            continue
        examples = doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8"))
        code = "".join(e.source for e in examples if e.exc_msg is None)
        if "buttress" in code:
            name = "_".join(page.relative_to(ROOT).with_suffix("").parts).lower()
            written.append(folder / f"page_{name}.py")
            written[-1].write_text(code, encoding="utf-8")
    return written


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        modules = write_modules(folder)
        settings = _PYRIGHT | {"extraPaths": [str(ROOT / "src")]}
        (folder / "pyrightconfig.json").write_text(json.dumps(settings))
        bin_folder = Path(sys.executable).parent
        pyright = subprocess.run(
            [bin_folder / "basedpyright", "--project", folder, "--pythonpath", sys.executable],
            capture_output=True, text=True,
        )  # fmt: skip
        print(pyright.stdout.replace(str(folder), "").strip().splitlines()[-1])
        failed = pyright.returncode
        if failed:
            print(pyright.stdout.replace(str(folder), ""), pyright.stderr)
        print(f"{len(modules)} pages with examples: {'see above' if failed else 'no complaint'}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
