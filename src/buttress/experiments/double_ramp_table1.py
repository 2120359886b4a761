"""Table 1 of the double ramp paper: the two convex losses, and where they bound the 0-d-1 loss."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.experiments._figures import GREY, line_style, panels
from buttress.experiments._grids import grid
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values

_COSTS = (0.05, 0.1, 0.2, 0.3, 0.4)
_LOSSES = ("generalised hinge", "double hinge")
_ENDS = ("smallest rho", "largest rho")
_MARGINS = np.linspace(-6, 6, 2401)
_BANDS = np.round(np.arange(0, 4.0001, 0.001), 3)


def _entropy(d: float) -> float:
    return float(-d * np.log(d) - (1 - d) * np.log(1 - d))


def _stated(loss: str, d: float) -> tuple[float, float]:
    """The range of rho in which the paper says that the loss bounds the 0-d-1 loss."""
    if loss == "generalised hinge":
        return 0.0, 1 - d
    entropy = _entropy(d)
    return (1 - entropy) / (1 - d), (entropy - d) / d


def _printed_loss(loss: str, d: float, u: NDArray[Any]) -> NDArray[Any]:
    """The definitions of Table 1, as printed."""
    if loss == "generalised hinge":
        return np.where(u < 0, 1 - (1 - d) / d * u, np.where(u < 1, 1 - u, 0.0))
    entropy = _entropy(d)
    return np.maximum(np.maximum(entropy - (1 - d) * u, entropy - d * u), 0.0)


def _run(plan: Plan) -> Values:
    from buttress.losses import DoubleHinge, GeneralizedHinge

    values: Values = {"u": _MARGINS[::12]}
    for d in _COSTS:
        for loss, library_loss in (
            ("generalised hinge", GeneralizedHinge(d=d)),
            ("double hinge", DoubleHinge(d=d)),
        ):
            printed = _printed_loss(loss, d, _MARGINS)
            values[f"{d:g}/{loss}/difference"] = np.abs(
                library_loss.value(_MARGINS) - printed
            ).max()
            values[f"{d:g}/{loss}/values"] = printed[::12]
            low, high = _bounding(printed, d)
            # the grid can miss an end by one step
            stated = _stated(loss, d)
            for end, stated_end, searched_end in zip(_ENDS, stated, (low, high), strict=True):
                near = abs(searched_end - stated_end) <= 0.002
                values[f"{d:g}/{loss}/{end}"] = round(stated_end, 3) if near else searched_end
    return values


def _bounding(loss: NDArray[Any], d: float) -> tuple[float, float]:
    """The least and largest rho for which the loss is nowhere below the 0-d-1 loss."""
    at_most = np.interp(_BANDS, _MARGINS, loss)
    # a rejected row costs d, a wrong one 1: both losses fall, so the ends of the bands decide
    rejected = at_most >= d - 1e-9
    wrong = np.interp(-_BANDS, _MARGINS, loss) >= 1 - 1e-9
    good = _BANDS[rejected & wrong]
    return (float(good.min()), float(good.max())) if good.size else (np.nan, np.nan)


def _check(values: Runs) -> list[Check]:
    off = max(values[f"{d:g}/{loss}/difference"][0] for d, loss in product(_COSTS, _LOSSES))
    return [
        Check(
            "the library's losses are those of Table 1",
            off < 1e-12,
            f"largest difference {off:.1e} over five values of d and 2401 margins",
        )
    ]


def _draw(figure: Figure, values: Runs) -> None:
    u = np.array(values["u"][0])
    for axis, loss in panels(figure, _LOSSES, "loss", sharey=True):
        for k, d in enumerate(_COSTS[::2]):
            shown = np.array(values[f"{d:g}/{loss}/values"][0])
            axis.plot(u, shown, label=f"d = {d:g}", **line_style(k))
        axis.axhline(1, color=GREY, lw=0.6)
        axis.set(title=loss, xlabel="y f(x)", xlim=(-2, 3), ylim=(-0.1, 6))


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, Table 1: convex losses for the 0-d-1 loss",
    protocol=(
        "The two definitions as printed, evaluated on 2401 margins, against the library's losses.",
        "The paper states for which rho each is an upper bound of the 0-d-1 loss: rho < 1 - d "
        "(generalised hinge), (1 - H)/(1 - d) < rho < (H - d)/d (double hinge). The ends are found "
        "again by search over rho in steps of 0.001 and shown as the stated ones where they are "
        "within two steps.",
    ),
    cells=grid(
        {"d": _COSTS, "loss": _LOSSES, "quantity": _ENDS},
        group="{1}",
        printed={
            f"{d:g}/{loss}/{end}": (f"{rho:.3f}", None)
            for d, loss in product(_COSTS, _LOSSES)
            for end, rho in zip(_ENDS, _stated(loss, d), strict=True)
        },
        exact=True,
        unit="rho",
        better=None,
        remark="found on a grid of margins and of rho in steps of 0.001",
    ),
    tasks=lambda plan: [Task("losses", "generalised hinge")],
)
