"""Pictures of experiments: one style, drawn without a screen, as SVG and as PNG."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._files import replacing
from buttress.experiments._model import Experiment, Runs
from buttress.experiments._reports import values_of
from buttress.experiments._statistics import AGREES, BETTER, CANNOT_TELL, DIFFERS, UNKNOWN, WORSE

# Okabe and Ito's colours, told apart with every common kind of colour blindness; the yellow one,
# which is faint on white, is left out. Lines differ by their dashes and points by their markers
# too, so that a picture survives a black and white printer.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
GREY = "#6E6E6E"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (8, 2)), "-.")
MARKERS = ("o", "^", "s", "D", "v", "P")
FORMATS = (".png", ".svg")
_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "lines.linewidth": 1.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    # the same file from the same numbers
    "svg.hashsalt": "buttress",
    "svg.fonttype": "none",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the papers' common style."""
    from matplotlib import rc_context

    settings: Any = _STYLE
    with rc_context(settings):
        yield


def line_style(k: int) -> dict[str, Any]:
    """Colour and dashes of the line at this place of a legend.

    Examples
    --------
    >>> line_style(0)["color"]
    '#0072B2'
    """
    return {"color": COLOURS[k % len(COLOURS)], "ls": DASHES[k % len(DASHES)]}


def marked_line(k: int) -> dict[str, Any]:
    """The same with a marker at every point."""
    return line_style(k) | {"marker": MARKERS[k % len(MARKERS)]}


def draw_curves(axis: Any, values: Runs, x: str, names: Iterable[str]) -> None:
    """A line for every name, over the values of `x`."""
    for k, name in enumerate(names):
        axis.plot(values[x][0], values[name][0], label=name, **line_style(k))


def panels(
    figure: Any,
    shown: Sequence[Any],
    ylabel: str = "",
    *,
    legend_in: int = 0,
    loc: str = "best",
    letters: bool = False,
    **sharing: bool,
) -> Iterator[tuple[Any, Any]]:
    """A panel in one row for everything that is shown, with it; one legend when all are drawn.

    Parameters
    ----------
    figure : matplotlib figure
    shown : sequence
    ylabel : str
        Of the first panel.
    legend_in : int
        The panel with the legend.
    loc : str
        Where in it.
    letters : bool
        Whether the panels are (a), (b), ... .
    **sharing : bool
        ``sharex``, ``sharey``.
    """
    axes = figure.subplots(1, len(shown), squeeze=False, **sharing)[0]
    yield from zip(axes, shown, strict=True)
    axes[0].set_ylabel(ylabel)
    axes[legend_in].legend(loc=loc)
    if letters:
        lettered(axes)


def plot_means(
    axis: Any,
    runs: Runs,
    keys: Mapping[Any, str],
    style: Mapping[str, Any],
    *,
    scale: float = 1.0,
    least: float = -np.inf,
    errors: bool = False,
) -> None:
    """A line through the means of the keys that were run, with two standard errors if asked."""
    shown = {x: scale * np.array(runs[key], float) for x, key in keys.items() if key in runs}
    means = np.maximum([values.mean() for values in shown.values()], least)
    if errors:
        axis.errorbar(list(shown), means, yerr=two_errors(shown.values()), **style)
    else:
        axis.plot(list(shown), means, **style)


def two_errors(runs: Iterable[NDArray[Any]]) -> list[float]:
    """Two standard errors of the mean of each array, 0 for one run.

    Examples
    --------
    >>> two_errors([np.array([1.0, 3.0]), np.array([5.0])])
    [2.0, 0.0]
    """
    return [float(2 * r.std(ddof=1) / np.sqrt(len(r))) if len(r) > 1 else 0.0 for r in runs]


def lettered(axes: Any) -> None:
    """Put (a), (b), ... before the titles of the panels, as the papers refer to them."""
    for letter, axis in zip("abcdefghijklmnop", np.ravel(axes), strict=False):
        title = axis.get_title()
        axis.set_title("")
        axis.set_title(f"({letter}) {title}".rstrip(), loc="left")


def pictures_of(stem: Path) -> list[Path]:
    """The pictures of a report that are there."""
    paths = [stem.with_name(stem.name + ending) for ending in FORMATS]
    return [path for path in paths if path.exists()]


def save_figures(experiment: Experiment, report: Mapping[str, Any], stem: Path) -> list[Path]:
    """Draw the picture of a report; nothing when matplotlib or anything to draw is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return []
    if report["tasks"] == 0:
        return []
    with style():
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        FigureCanvasAgg(figure)
        if experiment.draw is not None:
            experiment.draw(figure, values_of(report))
        elif not draw_comparison(figure, report):
            return []
        written = []
        for ending in FORMATS:
            written.append(stem.with_name(stem.name + ending))
            drawn = io.BytesIO()
            facts = {"Software": None} if ending == ".png" else {"Date": None, "Creator": None}
            figure.savefig(drawn, format=ending[1:], dpi=130, metadata=facts)
            with replacing(written[-1], "wb") as file:
                file.write(drawn.getvalue())
    return written


# What a point in the picture of a table says: (verdicts, label, colour, marker)
_KINDS = (
    ((UNKNOWN,), "protocol unknown", GREY, "x"),
    ((CANNOT_TELL,), "cannot tell", COLOURS[4], "s"),
    ((AGREES,), "agrees", COLOURS[0], "o"),
    ((BETTER, WORSE, DIFFERS), "disagrees", COLOURS[1], "^"),
)


def draw_comparison(figure: Any, report: Mapping[str, Any]) -> bool:
    """Our means against the printed numbers, one panel per unit, with two standard errors."""
    cells = [c for c in report["cells"] if c["paper"] not in (None, "NA") and c["runs"]]
    cells = [c for c in cells if c["mean"] is not None and c["mean"] == c["mean"]]
    units = list(dict.fromkeys(cell["unit"] for cell in cells))
    if not cells:
        return False
    # Facts about the data differ in scale; one panel says no less than six.
    rows = 1 if len(units) <= 3 else 2
    figure.set_size_inches(8, 4.5 if rows == 1 else 6.5)
    axes = figure.subplots(rows, -(-len(units) // rows), squeeze=False).ravel()
    for axis, unit in zip(axes, units, strict=False):
        _draw_unit(axis, [cell for cell in cells if cell["unit"] == unit], unit)
    for axis in axes[len(units) :]:
        axis.remove()
    return True


def _draw_unit(axis: Any, shown: list[Mapping[str, Any]], unit: str) -> None:
    others = [cell for cell in shown if not any(cell["verdict"] in kind[0] for kind in _KINDS)]
    for verdicts, label, colour, marker in _KINDS:
        chosen = [cell for cell in shown if cell["verdict"] in verdicts]
        _points(axis, chosen, label, colour, marker)
    _points(axis, others, "shown, not judged", GREY, "D")
    numbers = [float(cell["paper"]) for cell in shown] + [cell["mean"] for cell in shown]
    ends = [min(numbers), max(numbers)]
    axis.plot(ends, ends, color=GREY, lw=0.8, zorder=0)
    axis.set(xlabel=f"printed: {unit}", ylabel=f"ours: {unit}")
    if ends[0] > 0 and ends[1] / ends[0] > 100:
        axis.set(xscale="log", yscale="log")
    axis.legend(loc="upper left", handletextpad=0.2)


def _points(
    axis: Any, chosen: list[Mapping[str, Any]], label: str, colour: str, marker: str
) -> None:
    if not chosen:
        return
    errors = np.nan_to_num(2 * np.array([cell["se"] or 0.0 for cell in chosen], dtype=float))
    axis.errorbar(
        [float(cell["paper"]) for cell in chosen],
        [cell["mean"] for cell in chosen],
        yerr=errors,
        xerr=np.nan_to_num([2 * (cell["paper_se"] or 0.0) for cell in chosen]),
        fmt=marker,
        ms=4,
        lw=0.8,
        color=colour,
        label=label,
    )
