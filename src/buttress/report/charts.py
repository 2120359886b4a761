"""One chart per section of the report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup, escape

from buttress._arrays import Array
from buttress.report._svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, ticks
from buttress.report.sections import (
    Comparison,
    Coverage,
    NoiseComparison,
    Picture,
    RegularizationPath,
)

# The style sheet has this many colours for lines and for classes.
N_COLOURS = 6
_MOST_POINTS = 1500


def comparison_chart(comparison: Comparison) -> Markup:
    """A dot and a whisker for every model, the best at the top."""
    order = np.argsort(comparison.values, kind="stable")
    finite = [high for high in comparison.highs if np.isfinite(high)]
    top = max([*finite, max(comparison.values), 1e-3]) * 1.05
    row, label_width = 34, 216
    bottom = 12 + row * len(order)
    chart = Chart((0.0, 1.0), (0.0, 1.0))

    def px(value: float) -> float:
        return round(label_width + value / top * (WIDTH - label_width - 24), 2)

    for value in ticks(0.0, top):
        x = px(value)
        chart.add(f'<line class="grid" x1="{x}" x2="{x}" y1="6" y2="{bottom}"/>')
        chart.add(
            f'<text class="tick" x="{x}" y="{bottom + 18}" text-anchor="middle">'
            f"{100 * value:g} %</text>"
        )
    for position, index in enumerate(order):
        y = 12 + row * (position + 0.5)
        name = comparison.names[index]
        css = "chosen" if name == comparison.chosen else "plain"
        low, high = comparison.lows[index], comparison.highs[index]
        chart.add(
            f'<text class="label {css}" x="{label_width - 10}" y="{y + 4}" text-anchor="end">'
            f"{escape(name)}</text>"
        )
        if np.isfinite(low) and np.isfinite(high):
            chart.add(
                f'<line class="whisker {css}" x1="{px(max(low, 0.0))}" x2="{px(min(high, top))}" '
                f'y1="{y}" y2="{y}"/>'
            )
        chart.add(
            f'<circle class="dot {css}" cx="{px(comparison.values[index])}" cy="{y}" r="5">'
            f"<title>{escape(name)}: {100 * comparison.values[index]:.2f} %</title></circle>"
        )
    title = f"{comparison.measure} of {len(order)} models with 95 % confidence intervals"
    return chart.svg(title, height=bottom + 28)


def noise_chart(noise: NoiseComparison) -> Markup:
    """A line for every model over the share of flipped labels."""
    flat = [value for line in noise.highs for value in line if np.isfinite(value)]
    flat += [value for line in noise.values for value in line]
    chart = Chart((min(noise.rates), max(noise.rates)), (0.0, max([*flat, 1e-3]) * 1.05))
    chart.axes("share of flipped training labels", noise.measure, percent_y=True)
    for index in range(len(noise.names)):
        css = f"line c{index % N_COLOURS} dash{index // N_COLOURS % 2}"
        for rate, low, high in zip(noise.rates, noise.lows[index], noise.highs[index], strict=True):
            if np.isfinite(low) and np.isfinite(high):
                x = chart.px(rate)
                chart.add(
                    f'<line class="whisker thin c{index % N_COLOURS}" x1="{x}" x2="{x}" '
                    f'y1="{chart.py(max(low, 0.0))}" y2="{chart.py(high)}"/>'
                )
        chart.line(noise.rates, noise.values[index], css)
    return chart.svg(f"{noise.measure} of {len(noise.names)} models against label noise")


def path_chart(path: RegularizationPath) -> Markup:
    """The cross-validation curve with its band and both choices."""
    errors, spread = np.asarray(path.errors), np.asarray(path.deviations)
    low, high = errors - spread, errors + spread
    edge = 0.06 * (float(high.max() - low.min()) or 0.1)
    bottom = max(0.0, float(low.min()) - edge)
    chart = Chart(
        (min(path.penalties), max(path.penalties)), (bottom, float(high.max()) + edge), log_x=True
    )
    chart.axes(f"penalty {path.name}", "cross-validated error", percent_y=True)
    chart.band(path.penalties, np.maximum(low, bottom).tolist(), high.tolist(), "band")
    chart.line(path.penalties, path.errors, "line c0")
    chart.vertical(path.best, "mark", "smallest error")
    if path.one_se is not None and path.one_se != path.best:
        chart.vertical(path.one_se, "mark faint", "within one standard error", row=1)
    return chart.svg(f"cross-validated error against {path.name}")


def coverage_chart(coverage: Coverage) -> Markup:
    """Error among the answered rows against the share answered; the slider moves the mark."""
    accepted = coverage.accepted[1:]
    share = accepted / coverage.n_rows
    risk = coverage.errors[1:] / accepted
    chart = Chart((0.0, 1.0), (0.0, max(float(risk.max()) * 1.05, 0.01)))
    chart.axes("share of rows answered", "error among them", percent_y=True)
    chart.line(share.tolist(), risk.tolist(), "line c0")
    chart.add('<line id="coverage-rule" class="mark" x1="0" x2="0" y1="0" y2="0"/>')
    chart.add('<circle id="coverage-mark" class="dot chosen" r="6" cx="-20" cy="-20"/>')
    return chart.svg("error among answered rows against coverage", element_id="coverage-chart")


def coverage_geometry(coverage: Coverage) -> dict[str, float]:
    """Where the chart of `coverage_chart` lies, for the script that moves the mark."""
    top = max(float((coverage.errors[1:] / coverage.accepted[1:]).max()) * 1.05, 0.01)
    return {
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
        "highest": top,
    }


def picture_chart(picture: Picture, seed: int = 0) -> Markup:
    """Points coloured by class; suspected labels ringed; regions of the model behind."""
    if picture.regions is not None:
        x_range, y_range = picture.extent[:2], picture.extent[2:]
    else:
        x_range, y_range = _range(picture.x), _range(picture.y)
    chart = Chart((x_range[0], x_range[1]), (y_range[0], y_range[1]))
    if picture.regions is not None:
        _add_regions(chart, picture)
    chart.axes(*picture.axes)
    for index in _shown_points(picture, seed):
        code = int(picture.codes[index])
        css = f"point k{code % N_COLOURS}"
        data = ""
        if picture.confidence is not None:
            data = f' data-confidence="{picture.confidence[index]:.6g}"'
        x, y = chart.px(float(picture.x[index])), chart.py(float(picture.y[index]))
        chart.add(f'<circle class="{css}"{data} cx="{x}" cy="{y}" r="3.2"/>')
        if picture.suspects is not None and picture.suspects[index]:
            chart.add(f'<circle class="ring" cx="{x}" cy="{y}" r="6.5"/>')
    return chart.svg(
        f"{len(picture.x)} rows in the plane of {picture.axes[0]} and {picture.axes[1]}",
        element_id="picture-chart",
    )


def _range(values: Array) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    edge = 0.04 * (high - low)
    return low - edge, high + edge


def _shown_points(picture: Picture, seed: int) -> Sequence[int]:
    n = len(picture.x)
    if n <= _MOST_POINTS:
        return range(n)
    chosen = np.random.default_rng(seed).choice(n, _MOST_POINTS, replace=False)
    if picture.suspects is not None:
        chosen = np.union1d(chosen, np.flatnonzero(picture.suspects)[:_MOST_POINTS])
    return [int(index) for index in np.sort(chosen)]


def _add_regions(chart: Chart, picture: Picture) -> None:
    assert picture.regions is not None
    n_rows, n_columns = picture.regions.shape
    xs = np.linspace(picture.extent[0], picture.extent[1], n_columns + 1)
    ys = np.linspace(picture.extent[2], picture.extent[3], n_rows + 1)
    for i in range(n_rows):
        y, height = chart.py(ys[i + 1]), chart.py(ys[i]) - chart.py(ys[i + 1])
        start = 0
        for j in range(1, n_columns + 1):
            # One rectangle for every run of equal cells keeps the file small.
            if j < n_columns and picture.regions[i, j] == picture.regions[i, start]:
                continue
            code = int(picture.regions[i, start])
            css = "abstain" if code < 0 else f"k{code % N_COLOURS}"
            x, width = chart.px(xs[start]), chart.px(xs[j]) - chart.px(xs[start])
            chart.add(
                f'<rect class="region {css}" x="{x}" y="{y}" '
                f'width="{width + 0.3:.2f}" height="{height + 0.3:.2f}"/>'
            )
            start = j
