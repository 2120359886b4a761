"""Both classes' uncertainty sets, their nearest points, and the boundary between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize

from buttress._arrays import Array
from buttress._numbers import check_number
from buttress.inspection._axes import new_axes


class UncertaintySetDisplay:
    """Two sets in the plane with their nearest points and the line that bisects them.

    Parameters
    ----------
    sets : pair
        The positive and the negative set: objects with ``boundary(n)`` and ``support(d)``, such
        as `buttress.theory.UncertaintySet` and `buttress.theory.Ellipsoid`.
    nearest : pair of array-like of shape (2,), optional
        Their nearest points; found from the sets when not given.
    boundary : tuple (weights, bias), optional
        The decision boundary ``w.x + b = 0``; by default the perpendicular bisector of the
        nearest points.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    polygons_ : list of matplotlib artists
        The two sets.
    points_ : list of matplotlib artists
        The rows of the classes, where the sets know them.
    segment_ : matplotlib artist
        The line between the nearest points.
    line_ : matplotlib artist or None
        The decision boundary.

    See Also
    --------
    buttress.UncertaintySetClassifier : Its ``uncertainty_sets_``.

    Examples
    --------
    >>> from buttress.theory import convex_hull
    >>> left = np.array([[-2.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> display = UncertaintySetDisplay((convex_hull(-left), convex_hull(left))).plot()
    >>> [round(float(x), 3) for x in display.nearest[0]]
    [1.0, 0.0]
    """

    def __init__(
        self,
        sets: tuple[Any, Any],
        nearest: Sequence[Any] | None = None,
        boundary: tuple[Any, float] | None = None,
    ) -> None:
        self.sets = sets
        if nearest is None:
            nearest = _nearest_points(*sets)
        self.nearest = tuple(np.asarray(point, dtype=np.float64) for point in nearest)
        self.boundary = boundary

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, n: int = 180, problem: int = 0
    ) -> UncertaintySetDisplay:
        """Draw a fitted `UncertaintySetClassifier` on two features.

        Parameters
        ----------
        estimator : UncertaintySetClassifier or UncertaintySetClassifierCV
            Fitted on rows of two features. With a kernel other than the linear one the sets
            and points are those of the same weights in the plane, and no line is drawn.
        ax : matplotlib Axes, optional
        n : int
            Points of each set's boundary.
        problem : int
            Which of the one-against-rest problems, beyond two classes.
        """
        sets = estimator.uncertainty_sets_
        problems = sets if isinstance(sets, list) else [sets]
        check_number("problem", problem, f"[0, {len(problems) - 1}]", integer=True)
        sets = problems[problem]
        if sets[0].points.shape[1] != 2:
            raise ValueError(
                "UncertaintySetDisplay draws rows of two features; these have "
                f"{sets[0].points.shape[1]}."
            )
        linear = hasattr(estimator, "coef_")
        direction = np.zeros(2)
        if linear:
            direction = np.asarray(estimator.coef_[problem], dtype=np.float64)
        separate = linear and direction.any()
        nearest = (
            (sets[0].support(-direction)[1], sets[1].support(direction)[1]) if separate else None
        )
        line = (direction, float(estimator.intercept_[problem])) if separate else None
        display = cls(sets, nearest, line)
        return display.plot(ax=ax, n=n, draw_line=linear)

    def plot(
        self, ax: Any = None, *, n: int = 180, draw_line: bool = True
    ) -> UncertaintySetDisplay:
        """Draw into `ax`, or into a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        n : int
            Points of each set's boundary.
        draw_line : bool
            Whether to draw the decision boundary.

        Returns
        -------
        UncertaintySetDisplay
            The object itself.
        """
        ax = new_axes(ax)
        self.polygons_, self.points_ = [], []
        for shape, colour, name in zip(self.sets, ("C1", "C0"), ("+1", "-1"), strict=True):
            outline = shape.boundary(n)
            (polygon,) = ax.fill(*outline.T, color=colour, alpha=0.25, label=f"set of class {name}")
            self.polygons_.append(polygon)
            if hasattr(shape, "points"):
                self.points_.append(ax.scatter(*shape.points.T, s=12, color=colour))
        ends = np.array(self.nearest)
        (self.segment_,) = ax.plot(*ends.T, "o-", color="black", label="nearest points")
        self.line_ = None
        normal, bias = self._line()
        if draw_line and normal.any():
            # the picture stays as large as the sets make it
            ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
            foot = -bias * normal / float(normal @ normal)
            along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
            outlines = np.vstack([shape.boundary(16) for shape in self.sets])
            reach = 10.0 * float(np.ptp(outlines, axis=0).max())
            ends = foot[:, None] + along[:, None] * np.array([-reach, reach])
            (self.line_,) = ax.plot(*ends, "--", color="black", label="boundary")
        ax.set_aspect("equal", adjustable="datalim")
        ax.legend(fontsize="small")
        self.ax_ = ax
        return self

    def _line(self) -> tuple[Array, float]:
        """Weights and bias of the boundary."""
        if self.boundary is not None:
            return np.asarray(self.boundary[0], dtype=np.float64), float(self.boundary[1])
        normal = self.nearest[0] - self.nearest[1]
        return normal, -0.5 * float(normal @ (self.nearest[0] + self.nearest[1]))


def _nearest_points(positive: Any, negative: Any, n_iter: int = 2000) -> tuple[Array, Array]:
    """Nearest points of two sets known by their support functions.

    Wolfe's minimum-norm-point idea on the difference of the sets: keep the support points found
    so far, and take the nearest point of their hull, until no support point is nearer.
    """
    first = np.array([1.0, 0.0])
    vertices = [(positive.support(first)[1], negative.support(first)[1])]
    weights = np.ones(1)
    z = vertices[0][0] - vertices[0][1]
    for _ in range(n_iter):
        p, q = positive.support(-z)[1], negative.support(z)[1]
        if float(z @ (z - (p - q))) <= 1e-12 * max(float(z @ z), 1e-30):
            break
        candidates = [*vertices, (p, q)]
        differences = np.array([a - b for a, b in candidates])
        scale = max(float(np.abs(differences).max()), 1e-300)
        # weights of the hull's point of least norm; the last row asks for a sum of one
        system = np.vstack([differences.T / scale, np.full(len(candidates), 1e6)])
        candidate_weights, _ = optimize.nnls(system, np.array([0.0, 0.0, 1e6]))
        candidate_weights /= candidate_weights.sum()
        new = candidate_weights @ differences
        if np.linalg.norm(new) >= np.linalg.norm(z) * (1.0 - 1e-14):
            break
        kept = np.flatnonzero(candidate_weights > 1e-12)
        vertices = [candidates[k] for k in kept]
        weights, z = candidate_weights[kept] / candidate_weights[kept].sum(), new
    points = np.array([[a, b] for a, b in vertices])
    return np.asarray(weights @ points[:, 0]), np.asarray(weights @ points[:, 1])
