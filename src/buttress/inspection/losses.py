"""Losses side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.inspection._axes import new_axes
from buttress.losses.ramp import zero_d_one

_QUANTITIES = ("value", "derivative")


@dataclass(eq=False, repr=False)
class LossDisplay:
    """Curves of any losses over a range of margins.

    Parameters
    ----------
    t : array of shape (m,)
        Where the losses are evaluated: the margin ``y f(x)`` for margin losses.
    curves : mapping from name to array of shape (m,)
        Values (or derivatives) of every loss.
    quantity : {"value", "derivative"}
        What the curves are.
    rejection : (d, rho), optional
        Draws the 0-d-1 loss of cost d and half width rho as a dotted line.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        Its figure.
    lines_ : list of matplotlib Line2D
        One per loss, and the 0-d-1 loss last where asked.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from buttress.losses import DoubleRamp, Hinge
    >>> display = LossDisplay.from_losses([Hinge(), DoubleRamp(d=0.2, rho=2.0)])
    >>> [line.get_label() for line in display.lines_]
    ['Hinge()', 'DoubleRamp(d=0.2, mu=1.0, rho=2.0)']
    """

    t: Array
    curves: Mapping[str, Array]
    quantity: str = "value"
    rejection: tuple[float, float] | None = None

    @classmethod
    def from_losses(
        cls,
        losses: Mapping[str, Any] | Sequence[Any],
        t: Any = (-3.0, 3.0),
        *,
        quantity: str = "value",
        rejection: tuple[float, float] | None = None,
        ax: Any = None,
    ) -> LossDisplay:
        """Evaluate and draw losses.

        Parameters
        ----------
        losses : mapping from name to loss, or sequence of losses
            Objects with ``value`` and ``derivative``, as in `buttress.losses`.
        t : pair of floats, or array
            The range (601 points), or the points themselves.
        quantity : {"value", "derivative"}
        rejection : (d, rho), optional
            Draws the 0-d-1 loss too.
        ax : matplotlib Axes, optional

        Returns
        -------
        LossDisplay
        """
        if quantity not in _QUANTITIES:
            raise ValueError(
                f"quantity={quantity!r} is not accepted: expected one of {_QUANTITIES}."
            )
        points = np.asarray(t, dtype=np.float64)
        if points.shape == (2,):
            points = np.linspace(points[0], points[1], 601)
        named = losses if isinstance(losses, Mapping) else {repr(loss): loss for loss in losses}
        if not named:
            raise ValueError("losses is empty: at least one loss is needed.")
        curves = {name: _finite(getattr(loss, quantity)(points)) for name, loss in named.items()}
        return cls(points, curves, quantity, rejection).plot(ax=ax)

    def plot(self, ax: Any = None) -> LossDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        ax = new_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_ = [ax.plot(self.t, curve, label=name)[0] for name, curve in self.curves.items()]
        if self.rejection is not None and self.quantity == "value":
            d, rho = self.rejection
            label = f"0-d-1, d={d:g}, rho={rho:g}"
            steps = zero_d_one(self.t, d, rho)
            self.lines_ += ax.plot(self.t, steps, color="black", linestyle=":", label=label)
        ax.set(xlabel="margin", ylabel="loss" if self.quantity == "value" else "derivative")
        ax.legend(loc="best")
        return self


def _finite(values: Any) -> Array:
    """Infinite values as gaps."""
    curve: Array = np.array(values, dtype=np.float64)
    curve[~np.isfinite(curve)] = np.nan
    return curve
