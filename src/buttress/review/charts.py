"""Two small pictures of the review page: the curve of errors found, and the scale of risk."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 520, 150, 40, 24


def found_curve(curve: Sequence[int]) -> Markup:
    """Errors found against rows looked at, beside the line of a review without a miss.

    Examples
    --------
    >>> "<svg" in found_curve([0, 1, 2])
    True
    """
    n, top = max(len(curve), 1), max([*curve, 1])
    right, base = _WIDTH - 10, _HEIGHT - _BOTTOM

    def at(x: float, y: float) -> str:
        return f"{_LEFT + (right - _LEFT) * x / n:.1f},{base - (base - 12) * y / top:.1f}"

    step = max(1, len(curve) // 200)
    points = [at(0, 0), *(at(i + 1, curve[i]) for i in range(0, len(curve), step))]
    if curve:
        points.append(at(n, curve[-1]))
    ideal = f"{at(0, 0)} {at(min(top, n), top)}"
    n_errors = curve[-1] if curve else 0
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{n_errors} errors found in '
        f'{len(curve)} decisions"><line class="axis" x1="{_LEFT}" y1="{base}" x2="{right}" '
        f'y2="{base}"/><line class="axis" x1="{_LEFT}" y1="12" x2="{_LEFT}" y2="{base}"/>'
        f'<polyline class="ideal" points="{ideal}"/><polyline class="found" '
        f'points="{" ".join(points)}"/><text x="{_LEFT - 6}" y="18" text-anchor="end">{top}</text>'
        f'<text x="{_LEFT - 6}" y="{base}" text-anchor="end">0</text><text x="{right}" '
        f'y="{_HEIGHT - 6}" text-anchor="end">{len(curve)} decisions</text></svg>'
    )


def risk_scale(wrong: float) -> Markup:
    """How sure it is that the label is wrong, from 0 to 1.

    Examples
    --------
    >>> 'aria-label="probability that the label is wrong: 0.80"' in risk_scale(0.8)
    True
    """
    wrong = min(max(wrong, 0.0), 1.0)
    x = 10 + 300 * wrong
    return Markup(
        '<svg class="scale" viewBox="0 0 320 38" role="img" '
        f'aria-label="probability that the label is wrong: {wrong:.2f}">'
        '<rect class="rail" x="10" y="8" width="300" height="8" rx="4"/>'
        f'<rect class="fill" x="10" y="8" width="{300 * wrong:.1f}" height="8" rx="4"/>'
        f'<circle class="knob" cx="{x:.1f}" cy="12" r="7"/>'
        '<text x="10" y="32">right</text><text x="310" y="32" text-anchor="end">wrong</text></svg>'
    )


def margin_scale(margin: float, low: float, high: float) -> Markup:
    """Where a margin lies in the band of margins that are refused.

    Examples
    --------
    >>> 'aria-label="margin 0.1, refused from -0.5 to 0.5"' in margin_scale(0.1, -0.5, 0.5)
    True
    """
    middle, half = (low + high) / 2, max((high - low) / 2, abs(margin - (low + high) / 2), 1e-12)

    def at(value: float) -> float:
        return 160 + 100 * (value - middle) / half

    return Markup(
        '<svg class="scale" viewBox="0 0 320 38" role="img" '
        f'aria-label="margin {margin:.3g}, refused from {low:.3g} to {high:.3g}">'
        '<rect class="rail" x="10" y="8" width="300" height="8" rx="4"/>'
        f'<rect class="band" x="{at(low):.1f}" y="8" width="{at(high) - at(low):.1f}" height="8"/>'
        f'<circle class="knob" cx="{at(margin):.1f}" cy="12" r="7"/>'
        f'<text x="{at(low):.1f}" y="32" text-anchor="middle">{low:.3g}</text>'
        f'<text x="{at(high):.1f}" y="32" text-anchor="middle">{high:.3g}</text></svg>'
    )
