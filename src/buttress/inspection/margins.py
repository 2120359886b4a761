"""Two separating lines of one data set: largest product of margins, largest smallest margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from buttress.inspection._axes import new_axes
from buttress.theory import MarginDirections


class MarginDisplay:
    """Rows in the plane with the boundaries of both margins (the LHS paper's Figure 2).

    Parameters
    ----------
    directions : MarginDirections
        What `buttress.theory.margin_directions` returned for two columns, or for two columns
        and one of ones.
    bayes_rule : callable, optional
        Scores of rows of the plane; its zero line is drawn when given.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    points_ : list of matplotlib artists
        The rows of both classes.
    lines_ : dict
        The boundaries by name, "product of margins" and "smallest margin".

    Examples
    --------
    >>> import numpy as np
    >>> from buttress.theory import margin_directions
    >>> X = np.array([[2.0, 0.0], [0.5, 1.0], [-1.0, -0.5]])
    >>> display = MarginDisplay(margin_directions(X, [1, 1, -1])).plot()
    >>> sorted(display.lines_)
    ['product of margins', 'smallest margin']
    """

    def __init__(self, directions: MarginDirections, bayes_rule: Any = None) -> None:
        p = directions.X.shape[1]
        if p != 2 and not (p == 3 and np.all(directions.X[:, 2] == 1.0)):
            raise ValueError(
                "MarginDisplay needs two columns, or two and a third of ones; "
                f"the data have {p} columns."
            )
        self.directions = directions
        self.bayes_rule = bayes_rule

    def plot(self, ax: Any = None, **line_kwargs: Any) -> MarginDisplay:
        """Draw into `ax`, or into a new figure; `line_kwargs` go to both boundaries."""
        ax = new_axes(ax)
        directions = self.directions
        plane = directions.X[:, :2]
        reach = 1.15 * float(np.abs(plane).max())
        self.points_ = [
            ax.scatter(
                *plane[directions.y == label].T, s=18, color=colour, label=f"class {label:+d}"
            )
            for label, colour in ((-1, "C0"), (1, "C1"))
        ]
        styles = {
            "product of margins": (directions.product, "-."),
            "smallest margin": (directions.smallest, "--"),
        }
        self.lines_ = {}
        for (name, (w, dash)), colour in zip(styles.items(), ("C2", "C3"), strict=True):
            offset = w[2] if len(w) == 3 else 0.0
            normal = w[:2]
            foot = -offset * normal / (normal @ normal)
            along = np.array([-normal[1], normal[0]]) / np.sqrt(normal @ normal)
            ends = foot[:, None] + along[:, None] * np.array([-3.0, 3.0]) * reach
            style = {"linestyle": dash, "color": colour, "label": name} | line_kwargs
            (self.lines_[name],) = ax.plot(*ends, **style)
        if self.bayes_rule is not None:
            side = np.linspace(-reach, reach, 201)
            grid = np.stack(np.meshgrid(side, side), axis=-1)
            score = np.asarray(self.bayes_rule(grid.reshape(-1, 2))).reshape(201, 201)
            ax.contour(side, side, score, levels=[0.0], colors="black", linewidths=1.0)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach))
        ax.set_aspect("equal")
        ax.legend()
        self.ax_ = ax
        return self
