"""The house rules that a program can measure: functions, files and names a person can read.

Complexity is ruff's part (C901 in `pyproject.toml`), who may import whom import-linter's. No rule
here has an exception but two names of classes that users know. Of arguments commands and
constructors have as many as options.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
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

# Words that say nothing three screens later.
VAGUE = {
    "found", "here", "mine", "other", "own", "part", "parts", "place", "places", "rest", "thing",
}  # fmt: skip


# Names that users import, or read in model files, and that stay therefore: a number with its
# interval in `metrics` and in `noise`; the path of a fit in `classifiers`, and that of a report.
KNOWN_TWICE = {"Estimate", "RegularizationPath"}


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
    ("measured", "limit"),
    [(function_lines, FUNCTION_LINES), (file_lines, FILE_LINES), (arguments, ARGUMENTS)],
    ids=["functions", "files", "arguments"],
)
def test_nothing_is_larger_than_the_limit(
    measured: Callable[[], Iterator[tuple[str, int]]], limit: int
) -> None:
    too_large = [(name, size) for name, size in measured() if size > limit]
    assert not too_large, f"divide them: {too_large}"


def test_variables_say_what_they_hold() -> None:
    vague = []
    for file, tree in trees().items():
        for node in ast.walk(tree):
            stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            name = node.id if stored else node.arg if isinstance(node, ast.arg) else ""
            if name in VAGUE:
                vague.append((file, node.lineno, name))
    assert not vague, f"name what they are: {vague}"


def test_one_class_has_a_name() -> None:
    names = Counter(
        node.name
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    twice = {name for name, count in names.items() if count > 1}
    assert twice == KNOWN_TWICE, f"say which is which: {sorted(twice ^ KNOWN_TWICE)}"


def index_pages() -> Iterator[tuple[str, str]]:
    """The page of every package, by its folder."""
    for file, tree in trees().items():
        if Path(file).name == "__init__.py":
            yield Path(file).parent.as_posix(), ast.get_docstring(tree) or ""


def written_down(folder: str) -> set[str]:
    """The words of a package's `__init__` that are names: what it exports, and more."""
    page = trees()[f"{folder}/__init__.py"]
    constants = (node.value for node in ast.walk(page) if isinstance(node, ast.Constant))
    return {word for word in constants if isinstance(word, str)}


@cache
def imported_from_outside() -> dict[str, set[str]]:
    """The public modules of every package that files outside of it import, by its folder.

    A module of which they import only what the package's `__init__` exports does not count.
    """
    modules: dict[str, set[str]] = defaultdict(set)
    for file, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            source = (node.module or "").replace(".", "/").removeprefix(f"{ROOT.name}/")
            names = {alias.name for alias in node.names}
            of_module = [(f"{source}/{name}", {name}) for name in names]
            for path, wanted in [(source, names), *of_module]:
                folder, _, module = path.rpartition("/")
                inside = not folder or file.startswith(f"{folder}/")
                if inside or f"{path}.py" not in trees() or module.startswith("_"):
                    continue
                if not wanted <= written_down(folder):
                    modules[folder].add(module)
    return modules


@pytest.mark.parametrize(("folder", "page"), [*index_pages()], ids=[f for f, _ in index_pages()])
def test_every_package_is_an_index(folder: str, page: str) -> None:
    """What lives here, what a newcomer may touch, and what others may import."""
    assert len([line for line in page.splitlines() if line]) >= 3
    assert "newcomer" in page, "say what a newcomer may touch"
    assert re.search(r"[Oo]thers\s+import", page), "say what others may import"
    named = set(re.findall(r"`+([\w.]+)`+", page))
    named |= {name.partition(".")[0] for name in named}
    unnamed = imported_from_outside()[folder] - named
    assert not unnamed, f"others import these, so the page names them: {sorted(unnamed)}"


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


def test_of_scikit_learn_only_what_is_public_is_used() -> None:
    imported = [
        f"{file}: {node.module}.{alias.name}"
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sklearn"
        for alias in node.names
    ]
    assert len(imported) > 100
    assert [name for name in imported if "._" in name] == []


def test_tests_look_into_no_room_but_their_own() -> None:
    private = re.compile(r"^\s*from buttress\.([\w.]+?)(?:\._\w+ import| import \(?_\w+)", re.M)
    strangers = []
    for path in sorted(TESTS.rglob("*.py")):
        own_room = path.parent.relative_to(TESTS).as_posix()
        for package in private.findall(path.read_text(encoding="utf-8")):
            room = package.replace(".", "/")
            # the root's own underscored modules are the ground floor that all may use
            if not (package.startswith("_") or f"{room}/".startswith(f"{own_room}/")):
                strangers.append(f"{path.relative_to(TESTS).as_posix()}: {package}")
    assert not strangers, f"go through public names, or test in the room's own folder: {strangers}"
