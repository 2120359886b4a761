"""The plane of two features with the region where no answer is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from buttress._arrays import Array, BoolArray, IntArray
from buttress._frames import columns_of, is_frame, like
from buttress._numbers import check_number
from buttress.inspection._axes import new_axes
from buttress.metrics.scorer import answers, final_step
from buttress.noise.core.estimate import encode

_COLOURS = ("#3b6ea8", "#c8553d", "#4c956c", "#8a6fb3", "#d9a441", "#6c757d")


@dataclass(eq=False, repr=False)
class RejectRegionDisplay:
    """The plane of a classifier with two features: boundary, rejection band and points.

    Made by `from_estimator`.

    Parameters
    ----------
    x, y : arrays of shape (m,)
        Grid lines.
    score : array of shape (m, m) or None
        Scores on the grid, for two classes.
    region : int array of shape (m, m)
        Index of the answer at every grid point, -1 where it is rejected.
    thresholds : array of shape (2,) or None
        Ends of the band, for two classes.
    points : array of shape (n, 2)
        Rows to draw.
    codes : int array of shape (n,) or None
        Index of their labels.
    rejected : array of bool of shape (n,)
        Which of them are rejected.
    support : int array
        Which of them are support vectors.
    classes : array
        The labels.
    names : pair of str
        Names of the features.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        Its figure.
    boundary_ : contour set or None
        The line ``f = 0`` (two classes).
    band_ : contour set or None
        The edges of the band (two classes with a band).
    surface_ : mesh
        The coloured regions; the rejected one is grey.
    points_ : list of path collections
        Accepted points, one collection per class.
    rejected_points_ : list of path collections
        Rejected points, hollow, one collection per class.
    support_points_ : path collection or None
        Rings around the support vectors.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from buttress import DoubleRampClassifier
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> model = DoubleRampClassifier(d=0.1, C=10.0).fit(X, y)
    >>> display = RejectRegionDisplay.from_estimator(model, X, y, grid_resolution=20)
    >>> len(display.points_)
    2
    """

    x: Array
    y: Array
    score: Array | None
    region: IntArray
    thresholds: Array | None
    points: Array
    codes: IntArray | None
    rejected: BoolArray
    support: IntArray
    classes: NDArray[Any]
    names: tuple[str, str] = ("feature 0", "feature 1")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        grid_resolution: int = 200,
        margin: float = 0.1,
        support: bool = True,
        ax: Any = None,
    ) -> RejectRegionDisplay:
        """Compute and draw the plane of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier with two features
            With the reject interface, or a pipeline or search that ends in one.
        X : array-like of shape (n_samples, 2)
            The training rows.
        y : array-like of shape (n_samples,), optional
            Labels; without, the points are coloured by the answers.
        grid_resolution : int, from 2
            Grid points per axis.
        margin : float in [0, inf)
            How far the picture reaches beyond the points, as a share of their range.
        support : bool
            Whether to ring the support vectors.
        ax : matplotlib Axes, optional

        Returns
        -------
        RejectRegionDisplay
        """
        check_number("grid_resolution", grid_resolution, "[2, inf)", integer=True)
        check_number("margin", margin, "[0, inf)")
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"RejectRegionDisplay draws two features; X has shape {points.shape}.")
        names = tuple(str(name) for name in getattr(X, "columns", ("feature 0", "feature 1")))
        low, high = points.min(axis=0), points.max(axis=0)
        room = margin * np.where(high > low, high - low, 1.0)
        x, v = (np.linspace(low[k] - room[k], high[k] + room[k], grid_resolution) for k in (0, 1))
        grid = np.column_stack([coordinate.ravel() for coordinate in np.meshgrid(x, v)])
        grid_rows, rows = (_like(X, grid), X)
        labels, rejected = answers(estimator, grid_rows)
        inner, last = final_step(estimator, grid_rows)
        classes = np.asarray(last.classes_)
        region = np.where(rejected, -1, np.searchsorted(classes, labels))
        score = thresholds = None
        if len(classes) == 2 and hasattr(last, "decision_function"):
            score = np.asarray(last.decision_function(inner)).reshape(len(v), len(x))
            thresholds = getattr(last, "thresholds_", None)
        predicted, points_rejected = answers(estimator, rows)
        codes = encode(predicted if y is None else column_or_1d(y), classes)
        check_consistent_length(points, codes)
        vectors = getattr(last, "support_", None) if support else None
        if vectors is not None and max(vectors, default=-1) >= len(points):
            raise ValueError(
                f"X has {len(points)} rows, and row {max(vectors)} of those trained on is a "
                "support vector: give the training rows, or support=False."
            )
        display = cls(
            x,
            v,
            score,
            region.reshape(len(v), len(x)),
            thresholds,
            points,
            codes,
            points_rejected,
            np.empty(0, dtype=int) if vectors is None else np.asarray(vectors),
            classes,
            (names[0], names[1]),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> RejectRegionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        ax = new_axes(ax)
        from matplotlib.colors import ListedColormap

        self.ax_, self.figure_ = ax, ax.figure
        colours = [_COLOURS[k % len(_COLOURS)] for k in range(len(self.classes))]
        palette = ListedColormap(["#9aa0a6", *colours])
        self.surface_ = ax.pcolormesh(
            self.x,
            self.y,
            self.region,
            cmap=palette,
            vmin=-1.5,
            vmax=len(self.classes) - 0.5,
            alpha=0.25,
            shading="nearest",
        )
        self.boundary_ = self.band_ = None
        if self.score is not None and self.score.min() < 0 < self.score.max():
            self.boundary_ = ax.contour(self.x, self.y, self.score, levels=[0.0], colors="black")
        if self.score is not None and self.thresholds is not None:
            low, high = float(self.thresholds[0]), float(self.thresholds[1])
            if low < high and self.score.min() < high and self.score.max() > low:
                self.band_ = ax.contour(
                    self.x, self.y, self.score, levels=[low, high], colors="black", linestyles="--"
                )
        self.points_, self.rejected_points_ = [], []
        for k, colour in enumerate(colours):
            of_class = np.ones(len(self.points), bool) if self.codes is None else self.codes == k
            kept, lost = (
                self.points[of_class & ~self.rejected],
                self.points[of_class & self.rejected],
            )
            label = str(self.classes[k])
            self.points_.append(ax.scatter(*kept.T, s=18, color=colour, label=label))
            self.rejected_points_.append(
                ax.scatter(*lost.T, s=18, facecolors="none", edgecolors=colour)
            )
        self.support_points_ = None
        if len(self.support):
            ringed = self.points[self.support]
            self.support_points_ = ax.scatter(
                *ringed.T, s=70, facecolors="none", edgecolors="black", linewidths=0.6
            )
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.legend(title="class (hollow: rejected)", loc="best")
        return self


def _like(X: Any, grid: Array) -> Any:
    """The grid as a data frame when `X` is one, so that feature names match."""
    if is_frame(X):
        names = columns_of(X) or {}
        return like(X, dict(zip(names, grid.T, strict=True)))
    return grid
