"""What every benchmark shares: timing, a table on the screen, a JSON file beside it."""

from __future__ import annotations

import json
import os
import platform
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
