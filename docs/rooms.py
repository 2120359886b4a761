"""Draw the packages of Buttress from what they import, so that the picture cannot go stale.

    python docs/rooms.py docs/images/rooms.svg

An arrow from A to B means that A imports B; arrows that follow from others are left out. The
documentation runs this at every build.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "buttress"
# Packages whose rooms are boxes of their own, and those of them that have nothing else.
NESTED = {"solvers", "noise"}
EMPTY = {"solvers"}
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 132, 46, 26, 44, 24


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


def draw(graph: dict[str, set[str]]) -> str:
    """The picture as SVG: one row of boxes a level, the ground floor at the bottom."""
    height = levels(graph)
    rows: dict[int, list[str]] = defaultdict(list)
    for room, level in sorted(height.items()):
        rows[level].append(room)
    widest = max(len(row) for row in rows.values())
    total = widest * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    tall = len(rows) * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
    place: dict[str, tuple[float, float]] = {}
    for level, row in sorted(rows.items()):
        # over the middle of what they import, so that arrows are short
        row.sort(key=lambda room: _mean([place[t][0] for t in graph[room] if t in place], total))
        left = (total - len(row) * (WIDTH + GAP_X) + GAP_X) / 2
        for index, room in enumerate(row):
            place[room] = (
                left + index * (WIDTH + GAP_X),
                tall - MARGIN - HEIGHT - level * (HEIGHT + GAP_Y),
            )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {tall}" '
        f'font-family="sans-serif" role="img" aria-label="Packages and their imports">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#5b6b7a"/></marker></defs>',
        f'<rect width="{total}" height="{tall}" rx="8" fill="#fff"/>',
    ]
    for room, targets in sorted(without_shortcuts(graph).items()):
        for target in sorted(targets):
            (x0, y0), (x1, y1) = place[room], place[target]
            start, end = x0 + WIDTH / 2, x1 + WIDTH / 2
            bend = (y0 + HEIGHT + y1) / 2
            lines.append(
                f'<path d="M{start:.0f} {y0 + HEIGHT:.0f}C{start:.0f} {bend:.0f} {end:.0f} '
                f'{bend:.0f} {end:.0f} {y1 - 2:.0f}" fill="none" stroke="#5b6b7a" '
                'stroke-opacity=".55" marker-end="url(#tip)"/>'
            )
    for room, (x, y) in sorted(place.items()):
        inner = room.startswith("solvers.")
        fill, edge = ("#e8f1fb", "#2b6cb0") if inner else ("#f5f1e6", "#8a6d1d")
        lines.append(
            f"<g><title>{room}: {_escaped(purpose(room))}</title>"
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
            f'fill="{fill}" stroke="{edge}"/><text x="{x + WIDTH / 2:.0f}" '
            f'y="{y + HEIGHT / 2 + 5:.0f}" text-anchor="middle" font-size="14" '
            f'fill="#1a202c">{room}</text></g>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise / 2


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(room_graph()), encoding="utf-8")
