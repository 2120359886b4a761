"""The house rules that a program can measure: functions and files a person can read.

Complexity is ruff's part (C901 in `pyproject.toml`). What is above a limit is listed here with
its size, which is its ceiling: it may shrink and not grow. Take off the list what is below.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import buttress

ROOT = Path(buttress.__file__).parent
FUNCTION_LINES = 80
FILE_LINES = 400

# Functions above the limit, with their lines.
LONG: dict[str, int] = {}


def functions() -> Iterator[tuple[str, int]]:
    """Every function of the package, as file and name, and its lines without the docstring."""
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                lines = node.end_lineno - node.lineno + 1
                first = node.body[0]
                if ast.get_docstring(node) is not None and first.end_lineno:
                    lines -= first.end_lineno - first.lineno + 1
                yield f"{file}::{node.name}", lines


def files() -> Iterator[tuple[str, int]]:
    """Every file of the package and its lines."""
    for path in sorted(ROOT.rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield path.relative_to(ROOT).as_posix(), len(lines)


@pytest.mark.parametrize(
    ("measured", "limit", "ceilings"),
    [(functions, FUNCTION_LINES, LONG), (files, FILE_LINES, {})],
    ids=["functions", "files"],
)
def test_nothing_is_longer_than_the_limit_or_its_ceiling(measured, limit, ceilings):
    largest: dict[str, int] = {}
    for name, lines in measured():
        largest[name] = max(lines, largest.get(name, 0))
    too_long = {name: lines for name, lines in largest.items() if lines > ceilings.get(name, limit)}
    assert not too_long, f"divide them: {too_long}"
