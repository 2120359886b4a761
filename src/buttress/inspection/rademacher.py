"""The Rademacher penalty against the norm, beside the bound it may not exceed."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress.inspection._axes import new_axes
from buttress.theory import RademacherCurve


class RademacherDisplay:
    """Mean centred penalty of the balls ``||w|| <= sqrt(W)``, its noise, and the trace bound.

    Parameters
    ----------
    curve : RademacherCurve
        What `buttress.theory.rademacher_penalty` returned.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    line_, band_, bound_ : matplotlib artists
        The mean, two standard errors around it (None with one draw), and the bound.
    jumps_ : matplotlib artist or None
        Marks under the norms that W(beta) leaps over in some draw.

    Examples
    --------
    >>> import numpy as np
    >>> from buttress.theory import rademacher_penalty
    >>> curve = rademacher_penalty(np.eye(6), [1, 1, 1, -1, -1, -1], n_draws=3, random_state=0)
    >>> display = RademacherDisplay(curve).plot()
    >>> display.ax_.get_xlabel()
    'squared norm W'
    """

    def __init__(self, curve: RademacherCurve) -> None:
        self.curve = curve

    def plot(self, ax: Any = None, *, n_points: int = 200, **line_kwargs: Any) -> RademacherDisplay:
        """Draw into `ax`, or into a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        n_points : int
            How many norms are evaluated.
        **line_kwargs
            Passed to ``Axes.plot`` for the mean.
        """
        ax = new_axes(ax)
        curve = self.curve
        seen = curve.norms[curve.norms > 0.0]
        low, high = (seen.min(), seen.max()) if seen.size else (1e-2, 1.0)
        W = np.geomspace(low, max(high, 1.0001 * low), n_points)
        mean, error, bound = curve.at(W)
        style = {"label": "mean of the centred penalty (a lower bound)"} | line_kwargs
        (self.line_,) = ax.plot(W, mean, **style)
        self.band_ = None
        if np.isfinite(error).all():
            self.band_ = ax.fill_between(
                W,
                mean - 2.0 * error,
                mean + 2.0 * error,
                alpha=0.2,
                color=self.line_.get_color(),
                linewidth=0,
                label="two standard errors",
            )
        (self.bound_,) = ax.plot(W, bound, linestyle="--", color="0.4", label="trace bound")
        self.jumps_ = None
        leaps = curve.norms[curve.jumps & (curve.norms > 0.0)]
        if leaps.size:
            floor = np.full_like(leaps, 0.0)
            (self.jumps_,) = ax.plot(
                leaps, floor, "|", color="C3", markersize=8, label="W(beta) leaps up to here"
            )
        ax.set(xscale="log", xlabel="squared norm W", ylabel="penalty")
        ax.set_ylim(bottom=0.0)
        ax.legend()
        self.ax_ = ax
        return self
