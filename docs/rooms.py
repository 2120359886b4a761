"""Draw the packages of Buttress from what they import, so that the picture cannot go stale.

    python docs/rooms.py docs/images/rooms.svg

An arrow from A to B means that A imports B; arrows that follow from others are left out. No line
passes behind a box: on the way down a long one has a gap of its own in every row. The documentation
runs this at every build.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from itertools import combinations, pairwise
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "buttress"
# Packages whose rooms are boxes of their own, and those of them that have nothing else.
NESTED = {"solvers", "noise"}
EMPTY = {"solvers"}
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 132, 46, 26, 44, 24
# The width of a gap that lines pass through, and how often the rows are put in order.
PASSAGE, SWEEPS = 6, 24

# What stands in a row: a room, or the gap through which the lines to a room pass: (room, row).
Spot = str | tuple[str, int]


def room_of(module: str) -> str | None:
    """The box a module is drawn in; None for the root's own modules."""
    names = module.split(".")[1:]
    if not names or not (SOURCE / names[0]).is_dir():
        return None
    if names[0] in NESTED and len(names) > 1 and (SOURCE / names[0] / names[1]).is_dir():
        return ".".join(names[:2])
    return names[0]


def imports(path: Path) -> set[str]:
    """The modules of Buttress that a file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("buttress"):
            found.add(node.module or "")
            # "from buttress.solvers import hinge" names a room
            found.update(f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            found.update(name.name for name in node.names if name.name.startswith("buttress"))
    return found


def room_graph() -> dict[str, set[str]]:
    """From every room to the rooms it imports."""
    graph: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        module = "buttress." + ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        room = room_of(module)
        if room is None or path.parent.name in EMPTY:
            continue
        targets = {room_of(name) for name in imports(path)} - {None, room} - EMPTY
        graph[room] |= {target for target in targets if target is not None}
    return dict(graph)


def without_shortcuts(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without the arrows that longer ways imply."""

    def reachable(start: str, seen: set[str]) -> set[str]:
        for target in graph.get(start, set()):
            if target not in seen:
                seen.add(target)
                reachable(target, seen)
        return seen

    return {
        room: {
            target
            for target in targets
            if not any(target in reachable(other, set()) for other in targets - {target})
        }
        for room, targets in graph.items()
    }


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """How many rooms lie below a room, at the longest way down."""
    known: dict[str, int] = {}

    def level(room: str) -> int:
        if room not in known:
            known[room] = 0
            known[room] = 1 + max((level(target) for target in graph.get(room, ())), default=-1)
        return known[room]

    for room in graph:
        level(room)
    return known


def purpose(room: str) -> str:
    """The first words of the room's page."""
    text = (SOURCE / room.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]


def ways(arrows: dict[str, set[str]], height: dict[str, int]) -> list[list[Spot]]:
    """Every arrow as the spots that it goes through, from row to row downwards."""
    return [
        [room, *((target, row) for row in range(height[room] - 1, height[target], -1)), target]
        for room, targets in sorted(arrows.items())
        for target in sorted(targets)
    ]


def arranged(height: dict[str, int], lines: list[list[Spot]]) -> dict[Spot, float]:
    """The middle of every spot, in an order of the rows with few crossings."""
    rows: dict[int, list[Spot]] = defaultdict(list)
    for spot in dict.fromkeys([*sorted(height), *(spot for line in lines for spot in line)]):
        rows[spot[1] if isinstance(spot, tuple) else height[spot]].append(spot)
    steps = sorted({step for line in lines for step in pairwise(line)}, key=str)
    total = max(map(_width, rows.values()))
    middle = _middles(rows, total)
    best, fewest = middle, _crossings(steps, height, middle)
    for sweep in range(SWEEPS):
        # now towards what they import, now towards what imports them
        down = sweep % 2 == 0
        for row in sorted(rows, reverse=not down):
            beside: dict[Spot, list[float]] = defaultdict(list)
            for above, below in steps:
                spot, neighbour = (above, below) if down else (below, above)
                beside[spot].append(middle[neighbour])
            rows[row].sort(key=lambda spot: _mean(beside[spot], middle[spot]))
            middle = _middles(rows, total)
        crossings = _crossings(steps, height, middle)
        if crossings < fewest:
            best, fewest = middle, crossings
    return best


def _width(row: list[Spot]) -> int:
    return sum(PASSAGE if isinstance(spot, tuple) else WIDTH for spot in row) + (
        GAP_X * (len(row) - 1)
    )


def _middles(rows: dict[int, list[Spot]], total: int) -> dict[Spot, float]:
    middle: dict[Spot, float] = {}
    for row in rows.values():
        x = MARGIN + (total - _width(row)) / 2
        for spot in row:
            size = PASSAGE if isinstance(spot, tuple) else WIDTH
            middle[spot] = x + size / 2
            x += size + GAP_X
    return middle


def _crossings(
    steps: list[tuple[Spot, Spot]], height: dict[str, int], middle: dict[Spot, float]
) -> int:
    """How many pairs of lines cross between two rows."""
    ends = [
        (below[1] if isinstance(below, tuple) else height[below], middle[above], middle[below])
        for above, below in steps
    ]
    return sum(
        row == other and (above - beside) * (below - under) < 0
        for (row, above, below), (other, beside, under) in combinations(ends, 2)
    )


def draw(graph: dict[str, set[str]]) -> str:
    """The picture as SVG: one row of boxes a level, the ground floor at the bottom."""
    height = levels(graph)
    lines = ways(without_shortcuts(graph), height)
    middle = arranged(height, lines)
    wide = max(middle[room] for room in height) + WIDTH / 2 + MARGIN
    tall = (max(height.values()) + 1) * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN

    def top(spot: Spot) -> int:
        row = spot[1] if isinstance(spot, tuple) else height[spot]
        return tall - MARGIN - HEIGHT - row * (HEIGHT + GAP_Y)

    picture = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {tall}" '
        f'font-family="sans-serif" role="img" aria-label="Packages and their imports">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#5b6b7a"/></marker></defs>',
        f'<rect width="{wide:.0f}" height="{tall}" rx="8" fill="#fff"/>',
    ]
    for line in lines:
        path = f"M{middle[line[0]]:.0f} {top(line[0])}"
        for above, below in pairwise(line):
            x0, x1, y0, y1 = middle[above], middle[below], top(above) + HEIGHT, top(below)
            bend = (y0 + y1) / 2
            path += f"V{y0}C{x0:.0f} {bend:.0f} {x1:.0f} {bend:.0f} {x1:.0f} {y1 - 2}"
        picture.append(
            f'<path d="{path}" fill="none" stroke="#5b6b7a" stroke-opacity=".55" '
            'marker-end="url(#tip)"/>'
        )
    for room in sorted(height):
        x, y = middle[room], top(room)
        inner = room.startswith("solvers.")
        fill, edge = ("#e8f1fb", "#2b6cb0") if inner else ("#f5f1e6", "#8a6d1d")
        picture.append(
            f"<g><title>{room}: {_escaped(purpose(room))}</title>"
            f'<rect x="{x - WIDTH / 2:.0f}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
            f'fill="{fill}" stroke="{edge}"/><text x="{x:.0f}" '
            f'y="{y + HEIGHT / 2 + 5:.0f}" text-anchor="middle" font-size="14" '
            f'fill="#1a202c">{room}</text></g>'
        )
    return "\n".join([*picture, "</svg>", ""])


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(room_graph()), encoding="utf-8")
