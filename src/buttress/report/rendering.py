"""From a `Report` to one HTML file."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from buttress._files import replacing
from buttress._version import __version__
from buttress.report import charts
from buttress.report.sections import Coverage, Report


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report as one self-contained HTML file.

    Parameters
    ----------
    report : Report
    path : path-like
        Replaced only when the whole report was written.
    """
    page = render(report)
    with replacing(path, "w") as file:
        file.write(page)


def render(report: Report) -> str:
    """The report as HTML text: styles, scripts, charts and data inside, no link outside.

    Parameters
    ----------
    report : Report

    Examples
    --------
    >>> page = render(Report("My data", summary=["All is well."]))
    >>> "All is well." in page, "://" in page
    (True, False)
    """
    environment = Environment(
        loader=PackageLoader("buttress.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(charts=charts, N_COLOURS=charts.N_COLOURS)
    environment.filters["percent"] = _percent
    page = environment.get_template("report.html.j2").render(
        report=report,
        data=_script_data(report),
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    # No line ends between a number and its sign.
    return re.sub(r"(?<=[0-9]) %", "\u00a0%", page)


def _percent(value: float, digits: int = 1) -> str:
    return "–" if value != value else f"{100 * value:.{digits}f} %"


def _script_data(report: Report) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if report.coverage is not None:
        data["coverage"] = _coverage_data(report.coverage)
    if report.suspects is not None:
        data["suspects"] = {
            "columns": list(report.suspects.columns),
            "rows": [[_cell(cell) for cell in row] for row in report.suspects.rows],
        }
    return data


def _cell(cell: Any) -> Any:
    return cell.item() if hasattr(cell, "item") else cell


def _coverage_data(coverage: Coverage) -> dict[str, Any]:
    return {
        "n": coverage.n_rows,
        "accepted": coverage.accepted.tolist(),
        "errors": coverage.errors.tolist(),
        # JSON has no infinity: the first level, which answers nothing, has no threshold.
        "thresholds": [None, *coverage.thresholds[1:].tolist()],
        "geometry": charts.coverage_geometry(coverage),
    }
