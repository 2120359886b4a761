"""What every benchmark shares: timing, a table on the screen, a JSON file beside it."""

from __future__ import annotations

import json
import os
import platform
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import buttress

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs" / "benchmarks"
TOOLS = Path(__file__).parent.parent / "tools"


def seconds(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """The shortest wall time of `repeats` runs, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def report(
    name: str, rows: Sequence[dict[str, Any]], *, docs: bool = False, **settings: Any
) -> None:
    """Print `rows` as a table and write them, with the machine's description, as JSON.

    With `docs` the table is also written where the documentation includes it.
    """
    table = Table(title=name)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    Console(width=max(120, 14 * len(columns))).print(table)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(
        json.dumps({"machine": machine(), "settings": settings, "rows": list(rows)}, indent=1)
        + "\n"
    )
    print(f"written to {path.relative_to(Path(__file__).parent.parent)}")
    if docs:
        (DOCS / f"{name}.inc").write_text(_list_table(columns, rows))
        # README and the front page show some of these numbers too
        runpy.run_path(str(TOOLS / "measured.py"), run_name="__main__")


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "buttress": buttress.__version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
    }


def _list_table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    """The rows as a reStructuredText table."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for cells in [list(columns), *([_cell(row.get(name)) for name in columns] for row in rows)]:
        lines += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(cells)]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


class Cells:
    """Finished cells of a long benchmark, appended to a file one by one.

    Parameters
    ----------
    name : str
        The cells are kept in results/NAME_cells.jsonl.
    fresh : bool
        Forget the cells of earlier runs.
    """

    def __init__(self, name: str, fresh: bool) -> None:
        RESULTS.mkdir(exist_ok=True)
        self.path = RESULTS / f"{name}_cells.jsonl"
        if fresh:
            self.path.unlink(missing_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found = [json.loads(line) for line in lines]
        self.scores = {tuple(record["cell"]): record["scores"] for record in found}

    def get(self, key: tuple[Any, ...], work: Callable[..., dict[str, float]]) -> dict[str, float]:
        """The scores of the cell, by ``work(*key)`` if they are not known."""
        if key not in self.scores:
            self.scores[key] = work(*key)
            with self.path.open("a") as file:
                file.write(json.dumps({"cell": key, "scores": self.scores[key]}) + "\n")
        return self.scores[key]


def difference(cells: Sequence[dict[str, float]], ours: str, theirs: str) -> str:
    """The mean difference of two scores and its standard error over the cells."""
    gain = np.array([scores[ours] - scores[theirs] for scores in cells])
    return f"{gain.mean():+.4f} ± {gain.std() / np.sqrt(len(gain)):.4f}"
