"""The page for contributors names what is there, and its picture is of the sources."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_script(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


# Pages that a contributor reads, and what a page calls a module without the way to it.
PAGES = [
    *sorted((ROOT / "docs").glob("*.rst")),
    *sorted((ROOT / "docs").glob("[cfhm]*/*.rst")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
]
ROOMS = "blockwise|boxqp|hinge|numerics|sets|smooth|stream"


def named(pattern: str) -> list[str]:
    """What stands in backticks on one of the pages, once each."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    return sorted({name for text in texts for name in re.findall(f"`({pattern})`", text)})


@pytest.mark.parametrize("name", named(rf"(?:buttress|{ROOMS})\.[\w.]+\w"))
def test_every_module_and_name_on_a_page_exists(name):
    if not name.startswith("buttress."):
        name = f"buttress.solvers.{name}"
    try:
        import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute)


@pytest.mark.parametrize("path", named(r"(?:src|tests|docs|tools|benchmarks)/[\w/.]+"))
def test_every_path_on_a_page_exists(path):
    made_by_running = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert path in made_by_running or (ROOT / path).exists()


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


def test_no_line_of_the_picture_passes_behind_a_box():
    rooms = load_script(ROOT / "docs" / "rooms.py")
    graph = rooms.room_graph()
    height = rooms.levels(graph)
    lines = rooms.ways(rooms.without_shortcuts(graph), height)
    middle = rooms.arranged(height, lines)
    passages = {spot for line in lines for spot in line if isinstance(spot, tuple)}
    assert passages
    for passage in passages:
        boxes = [middle[room] for room in graph if height[room] == passage[1]]
        assert all(abs(middle[passage] - box) > rooms.WIDTH / 2 for box in boxes), passage


def test_shortcuts_are_left_out():
    rooms = load_script(ROOT / "docs" / "rooms.py")
    graph = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert rooms.without_shortcuts(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}
