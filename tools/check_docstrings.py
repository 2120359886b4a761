"""numpydoc's validation of every public name, with the checks that this project holds to.

    python tools/check_docstrings.py

Not asked for: "See Also" and extended summaries everywhere, examples in every method, types where
several parameters share a line. Methods may say what they do in one line; classes and functions
document every parameter.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass

from numpydoc.validate import validate

PACKAGES = (
    "buttress",
    "buttress.datasets",
    "buttress.inspection",
    "buttress.metrics",
    "buttress.noise",
    "buttress.persistence",
    "buttress.report",
    "buttress.review",
    "buttress.tables",
    "buttress.theory",
)
# Form of the docstring, of its summary, of parameters and of what is returned.
ALWAYS = {
    "GL02", "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10",
    "SS01", "SS02", "SS03", "SS04", "SS06",
    "PR02", "PR05", "PR06", "PR08", "PR09", "PR10", "RT02", "RT04", "RT05",
}  # fmt: skip
# Every parameter is documented; of classes and functions. Records list their attributes.
COMPLETE = {"PR01"}


def public_names() -> Iterator[tuple[str, bool]]:
    """Every public name, and whether all of its parameters must be documented."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            if name.startswith("_"):
                continue
            found = getattr(module, name)
            record = inspect.isclass(found) and (
                is_dataclass(found) or issubclass(found, (tuple, float))
            )
            yield f"{package}.{name}", not record
            if inspect.isclass(found):
                for method, value in vars(found).items():
                    if not method.startswith("_") and inspect.isfunction(value):
                        yield f"{package}.{name}.{method}", False


def main() -> int:
    complaints, checked = [], 0
    for name, in_full in public_names():
        wanted = ALWAYS | COMPLETE if in_full else ALWAYS
        checked += 1
        complaints += [
            f"{name}: {code} {message}"
            for code, message in validate(name)["errors"]
            if code in wanted
        ]
    print("\n".join([*complaints, f"{checked} docstrings, {len(complaints)} complaints"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    raise SystemExit(main())
