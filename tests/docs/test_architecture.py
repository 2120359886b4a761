"""The page for contributors names what is there, and its picture is of the sources."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.rst").read_text(encoding="utf-8")


def load_script(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(set(re.findall(r"``(buttress\.[\w.]+)``", PAGE))))
def test_every_module_and_name_on_the_page_exists(name):
    try:
        import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute)


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"``((?:src|tests|docs|tools|benchmarks)/[\w/.]*)``", PAGE)))
)
def test_every_path_on_the_page_exists(path):
    assert (ROOT / path).exists()


def test_the_picture_has_every_package_and_no_circle():
    rooms = load_script(ROOT / "docs" / "rooms.py")
    graph = rooms.room_graph()
    packages = {path.parent.name for path in (ROOT / "src" / "buttress").glob("*/__init__.py")}
    drawn = {room.split(".")[0] for room in graph}
    assert packages - {"solvers"} <= drawn
    assert "solvers.hinge" in graph
    levels = rooms.levels(graph)
    for room, targets in graph.items():
        assert all(levels[target] < levels[room] for target in targets), room
    picture = rooms.draw(graph)
    assert all(f">{room}</text>" in picture for room in graph)


def test_shortcuts_are_left_out():
    rooms = load_script(ROOT / "docs" / "rooms.py")
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert rooms.without_shortcuts(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}
