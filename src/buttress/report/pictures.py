"""The rows of a table as points of a plane, with the regions of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray
from buttress.metrics.scorer import confidence_scores
from buttress.report.sections import Picture
from buttress.tables import Table, TableClassifier

_GRID = 60


def picture(
    fitted: TableClassifier,
    table: Table,
    encoded: Array,
    labels: NDArray[Any],
    flagged: BoolArray | None = None,
) -> Picture:
    """Two numeric columns as they are, with the model's regions; a projection otherwise.

    Parameters
    ----------
    fitted : TableClassifier
    table : Table
        The rows to draw.
    encoded : array
        The same rows as the model's estimator sees them.
    labels : array
        Their labels.
    flagged : array of bool, optional
        Rows to ring.
    """
    codes = np.searchsorted(fitted.classes_, labels)
    classes = [str(label) for label in fitted.classes_]
    confidence = confidence_scores(fitted.estimator_, encoded)
    if table.shape[1] == 2 and not fitted.encoder_.categories_:
        first, second = table.names
        x, y = table[first], table[second]
        filled = ~(np.isnan(x) | np.isnan(y))
        extent = (*_widened(x[filled]), *_widened(y[filled]))
        return Picture(
            x[filled],
            y[filled],
            codes[filled],
            classes,
            (first, second),
            None if flagged is None else flagged[filled],
            confidence[filled],
            _regions(fitted, first, second, extent),
            extent,
            "The two columns, and the model's answer everywhere; grey is no answer.",
        )
    centred = encoded - encoded.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    if len(singular) == 1:
        directions = np.vstack([directions, np.zeros_like(directions)])
        singular = np.append(singular, 0.0)
    plane = centred @ directions[:2].T
    total = float(np.sum(singular**2)) or 1.0
    share = 100 * float(np.sum(singular[:2] ** 2)) / total
    return Picture(
        plane[:, 0],
        plane[:, 1],
        codes,
        classes,
        ("first principal component", "second principal component"),
        flagged,
        confidence,
        how=f"The plane of the two principal components, which keeps {share:.0f} % of the "
        "variance of the encoded columns.",
    )


def _widened(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    edge = 0.05 * (high - low) or 0.5
    return low - edge, high + edge


def _regions(
    fitted: TableClassifier, first: str, second: str, extent: tuple[float, ...]
) -> NDArray[np.int64]:
    def middles(low: float, high: float, count: int) -> Array:
        edges = np.linspace(low, high, count + 1)
        return np.asarray(0.5 * (edges[1:] + edges[:-1]))

    xs, ys = middles(extent[0], extent[1], _GRID), middles(extent[2], extent[3], _GRID)
    across, up = np.meshgrid(xs, ys)
    grid = Table({first: across.ravel(), second: up.ravel()})
    codes = np.searchsorted(fitted.classes_, fitted.predict(grid))
    codes[fitted.reject(grid)] = -1
    return np.asarray(codes.reshape(_GRID, _GRID))
