"""Charts as SVG text; colours come from the page's style sheet, so they follow its theme."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 80, 16, 14, 50


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between `low` and `high`.

    Examples
    --------
    >>> ticks(0.0, 0.23)
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    raw = (high - low) / max(1, count)
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = magnitude * min((1, 2, 5, 10), key=lambda factor: abs(factor * magnitude - raw))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(step * index, 12) + 0.0 for index in range(first, last + 1)]


class Chart:
    """A chart in data coordinates.

    Parameters
    ----------
    x, y : (low, high)
        The range of either axis; widened when empty.
    log_x : bool
        A logarithmic horizontal axis.
    """

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], *, log_x: bool = False
    ) -> None:
        self.log_x = log_x
        self._x = (math.log10(x[0]), math.log10(x[1])) if log_x else x
        self._y = y
        if self._x[0] == self._x[1]:
            self._x = (self._x[0] - 0.5, self._x[1] + 0.5)
        if self._y[0] == self._y[1]:
            self._y = (self._y[0] - 0.5, self._y[1] + 0.5)
        self._parts: list[str] = []

    def px(self, value: float) -> float:
        """Horizontal position of a value."""
        value = math.log10(value) if self.log_x else value
        share = (value - self._x[0]) / (self._x[1] - self._x[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    def py(self, value: float) -> float:
        """Vertical position of a value."""
        share = (value - self._y[0]) / (self._y[1] - self._y[0])
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 2)

    def add(self, markup: str) -> None:
        """Add an element as it is."""
        self._parts.append(markup)

    def axes(self, x_label: str, y_label: str, *, percent_y: bool = False) -> None:
        """Grid lines, numbers and names of both axes."""
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        for value in ticks(*self._y):
            y = self.py(value)
            text = f"{100 * value:g} %" if percent_y else f"{value:g}"
            self.add(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
            self.add(
                f'<text class="tick" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{text}</text>'
            )
        for value, text in self._x_ticks():
            x = self.px(value)
            self.add(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>')
            self.add(
                f'<text class="tick" x="{x}" y="{bottom + 18}" text-anchor="middle">{text}</text>'
            )
        middle_x, middle_y = (LEFT + right) / 2, (TOP + bottom) / 2
        self.add(
            f'<text class="axis" x="{middle_x}" y="{HEIGHT - 8}" text-anchor="middle">'
            f"{escape(x_label)}</text>"
        )
        self.add(
            f'<text class="axis" transform="translate(16 {middle_y}) rotate(-90)" '
            f'text-anchor="middle">{escape(y_label)}</text>'
        )

    def _x_ticks(self) -> list[tuple[float, str]]:
        if not self.log_x:
            return [(value, f"{value:g}") for value in ticks(*self._x)]
        low, high = math.ceil(self._x[0] - 1e-9), math.floor(self._x[1] + 1e-9)
        step = max(1, round((high - low) / 7))
        return [
            (10.0**power, f'10<tspan dy="-5" class="small">{power}</tspan>')
            for power in range(low, high + 1, step)
        ]

    def line(self, xs: Sequence[float], ys: Sequence[float], css: str) -> None:
        """A line through the points."""
        points = " ".join(f"{self.px(x)},{self.py(y)}" for x, y in zip(xs, ys, strict=True))
        self.add(f'<polyline class="{css}" points="{points}"/>')

    def band(
        self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], css: str
    ) -> None:
        """The area between two lines."""
        there = [f"{self.px(x)},{self.py(y)}" for x, y in zip(xs, lows, strict=True)]
        back = [f"{self.px(x)},{self.py(y)}" for x, y in zip(xs, highs, strict=True)]
        self.add(f'<polygon class="{css}" points="{" ".join(there + back[::-1])}"/>')

    def vertical(self, x: float, css: str, label: str = "", row: int = 0) -> None:
        """A vertical line, named near its top; `row` keeps two names apart."""
        p = self.px(x)
        self.add(f'<line class="{css}" x1="{p}" x2="{p}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        if label:
            anchor, shift = ("end", -5) if p > WIDTH / 2 else ("start", 5)
            self.add(
                f'<text class="note" x="{p + shift}" y="{TOP + 12 + 18 * row}" '
                f'text-anchor="{anchor}">{escape(label)}</text>'
            )

    def svg(self, title: str, *, height: int = HEIGHT, element_id: str = "") -> Markup:
        """The whole chart; `title` is what a screen reader says."""
        name = f' id="{element_id}"' if element_id else ""
        return Markup(
            f'<svg{name} viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
            f"{''.join(self._parts)}</svg>"
        )
