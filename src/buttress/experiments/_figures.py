"""Pictures of experiments, drawn without a screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from buttress.experiments._model import Experiment
from buttress.experiments._statistics import UNKNOWN

# Categorical colours with enough contrast on white, told apart by the colour-blind too.
COLOURS = ("#1f5fa8", "#c8552b", "#3a8f4d", "#8a4fa3", "#7a7a7a")


def save_figure(experiment: Experiment, report: Mapping[str, Any], path: Path) -> bool:
    """Draw the picture of a report; False when matplotlib or anything to draw is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    values = dict(report["series"])
    values |= {cell["id"]: cell["values"] for cell in report["cells"]}
    if report["tasks"] == 0:
        return False
    if experiment.draw is not None:
        experiment.draw(figure, values)
    elif not draw_comparison(figure, report):
        return False
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return True


def draw_comparison(figure: Any, report: Mapping[str, Any]) -> bool:
    """Our means against the printed numbers, one panel per unit, with two standard errors.

    Grey where the paper's protocol is unknown.
    """
    cells = [c for c in report["cells"] if c["paper"] not in (None, "NA") and c["runs"]]
    cells = [c for c in cells if c["mean"] is not None and c["mean"] == c["mean"]]
    units = list(dict.fromkeys(cell["unit"] for cell in cells))
    if not cells:
        return False
    axes = figure.subplots(1, len(units), squeeze=False)[0]
    for axis, unit in zip(axes, units, strict=True):
        shown = [cell for cell in cells if cell["unit"] == unit]
        for known, colour in ((False, COLOURS[4]), (True, COLOURS[0])):
            chosen = [cell for cell in shown if (cell["verdict"] != UNKNOWN) == known]
            own = 2 * np.array([cell["se"] or 0.0 for cell in chosen], dtype=float)
            axis.errorbar(
                [float(cell["paper"]) for cell in chosen],
                [cell["mean"] for cell in chosen],
                yerr=np.nan_to_num(own),
                xerr=[2 * cell["paper_se"] for cell in chosen],
                fmt="o",
                ms=4,
                lw=0.8,
                color=colour,
            )
        numbers = [float(cell["paper"]) for cell in shown] + [cell["mean"] for cell in shown]
        ends = [min(numbers), max(numbers)]
        axis.plot(ends, ends, color=COLOURS[4], lw=0.8, zorder=0)
        axis.set(xlabel=f"printed {unit}", ylabel=f"ours {unit}")
        if ends[0] > 0 and ends[1] / ends[0] > 100:
            axis.set(xscale="log", yscale="log")
    return True
