"""The house rules that a program can measure: functions, files and names a person can read.

Complexity is ruff's part (C901 in `pyproject.toml`), who may import whom import-linter's. What is
above a limit is listed here with its size, which is its ceiling: it may shrink and not grow. Take
off the list what is below.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import buttress

ROOT = Path(buttress.__file__).parent
TESTS = Path(__file__).parent
FUNCTION_LINES = 80
FILE_LINES = 400
ARGUMENTS = 11

# Functions above the limit, with their lines.
LONG: dict[str, int] = {}
# Functions that take more than they should; commands and estimators have as many as options.
MANY_ARGUMENTS = {
    "noise/witnesses.py::cross_fit": 12,
    "solvers/smooth/columns/_conjugate.py::_move": 14,
    "solvers/smooth/spectral.py::solve_problems": 13,
    "tables/automatic.py::choose_model": 13,
}
# Words that say nothing three screens later.
VAGUE = {
    "found", "here", "mine", "other", "own", "part", "parts", "place", "places", "rest", "thing",
}  # fmt: skip
# How many variables of every room have such a name; rooms that are not listed have none.
VAGUE_NAMES = {
    ".": 3,
    "classifiers": 2,
    "cli": 20,
    "metrics": 2,
    "model_selection": 13,
    "noise": 34,
    "persistence": 13,
    "report": 1,
    "review": 5,
    "serve": 1,
    "solvers/hinge": 11,
    "solvers/sets": 13,
    "solvers/smooth": 56,
    "tables": 8,
}
# Tests that look into a room other than their own.
STRANGERS = {
    "cli/test_bad_command_lines.py: persistence",
    "conftest.py: cli",
    "fuzz/test_model_files.py: persistence",
    "model_selection/test_deadline.py: tables",
    "model_selection/test_leaky_hockey_stick_cv.py: solvers.smooth.columns",
    "model_selection/test_preparing.py: cli",
    "report/test_card.py: cli",
}


@cache
def trees() -> dict[str, ast.Module]:
    """Every file of the package, parsed."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(ROOT.rglob("*.py"))
    }


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function of the package, by file and name."""
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file}::{node.name}", node


def function_lines() -> Iterator[tuple[str, int]]:
    """The lines of every function without its docstring."""
    for name, node in functions():
        lines = (node.end_lineno or 0) - node.lineno + 1
        first = node.body[0]
        if ast.get_docstring(node) is not None:
            lines -= (first.end_lineno or 0) - first.lineno + 1
        yield name, lines


def file_lines() -> Iterator[tuple[str, int]]:
    """The lines of every file, tests and benchmarks too."""
    for folder in (ROOT, TESTS, TESTS.parent / "benchmarks"):
        for path in sorted(folder.rglob("*.py")):
            lines = path.read_text(encoding="utf-8").splitlines()
            yield f"{folder.name}/{path.relative_to(folder).as_posix()}", len(lines)


def arguments() -> Iterator[tuple[str, int]]:
    """How many arguments every function takes that is neither a command nor a constructor."""
    for name, node in functions():
        command = any("command" in ast.unparse(decorator) for decorator in node.decorator_list)
        if not command and node.name != "__init__":
            given = node.args
            yield name, len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)


@pytest.mark.parametrize(
    ("measured", "limit", "ceilings"),
    [
        (function_lines, FUNCTION_LINES, LONG),
        (file_lines, FILE_LINES, {}),
        (arguments, ARGUMENTS, MANY_ARGUMENTS),
    ],
    ids=["functions", "files", "arguments"],
)
def test_nothing_is_larger_than_the_limit_or_its_ceiling(
    measured: Callable[[], Iterator[tuple[str, int]]], limit: int, ceilings: dict[str, int]
) -> None:
    largest: dict[str, int] = {}
    for name, size in measured():
        largest[name] = max(size, largest.get(name, 0))
    too_large = {name: size for name, size in largest.items() if size > ceilings.get(name, limit)}
    assert not too_large, f"divide them: {too_large}"


def room_of(file: str) -> str:
    """The room a file of the package stands in: solvers have one each.

    >>> room_of("solvers/hinge/smo.py"), room_of("noise/core/copies.py"), room_of("_files.py")
    ('solvers/hinge', 'noise', '.')
    """
    folders = Path(file).parts[:-1]
    depth = 2 if folders[:1] == ("solvers",) else 1
    return "/".join(folders[:depth]) or "."


def test_variables_say_what_they_hold() -> None:
    counts: Counter[str] = Counter()
    for file, tree in trees().items():
        for node in ast.walk(tree):
            stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = node.id if stored else node.arg if isinstance(node, ast.arg) else ""
            counts[room_of(file)] += name in VAGUE
    more = {room: n for room, n in counts.items() if n > VAGUE_NAMES.get(room, 0)}
    assert not more, f"variables called {sorted(VAGUE)}, by room: {more}"


def index_pages() -> Iterator[tuple[str, str]]:
    """The page of every package, by its folder."""
    for file, tree in trees().items():
        if Path(file).name == "__init__.py":
            yield Path(file).parent.as_posix(), ast.get_docstring(tree) or ""


def test_every_package_is_an_index() -> None:
    short = {
        folder
        for folder, page in index_pages()
        if len([line for line in page.splitlines() if line]) < 3
    }
    assert not short, "say what lives here and what a newcomer may touch"


@pytest.mark.parametrize(("folder", "page"), [*index_pages()], ids=[f for f, _ in index_pages()])
def test_an_index_names_what_is_there(folder: str, page: str) -> None:
    """What a page puts in single backticks is a module of the package, or a name in one."""
    modules = [tree for file, tree in trees().items() if file.startswith(f"{folder}/")]
    if folder == ".":
        modules = list(trees().values())
    known = {path.stem for path in (ROOT / folder).iterdir()}
    for tree in modules:
        known |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        known |= {
            node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)
        }
    named = set(re.findall(r"(?<!`)`(\w+)`(?!`)", page))
    assert named <= known, f"{folder}: {sorted(named - known)}"


def test_one_module_limits_threads() -> None:
    importing = {
        file
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "threadpoolctl"
    }
    assert importing == {"_threads.py"}


def test_one_module_makes_threads() -> None:
    making = {
        file
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ThreadPoolExecutor")
    }
    assert making == {"_threads.py"}


def test_tests_look_into_no_room_but_their_own() -> None:
    private = re.compile(r"^\s*from buttress\.([\w.]+?)(?:\._\w+ import| import \(?_\w+)", re.M)
    strangers = set()
    for path in sorted(TESTS.rglob("*.py")):
        own_room = path.parent.relative_to(TESTS).as_posix()
        for package in private.findall(path.read_text(encoding="utf-8")):
            room = package.replace(".", "/")
            # the root's own underscored modules are the ground floor that all may use
            if not (package.startswith("_") or f"{room}/".startswith(f"{own_room}/")):
                strangers.add(f"{path.relative_to(TESTS).as_posix()}: {package}")
    assert strangers <= STRANGERS, "go through public names, or test the room in its own folder"
