"""Why a row was refused: unlike all training rows, among contradicting labels, or in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, column_or_1d

from buttress._arrays import Array, BoolArray, IntArray
from buttress._frames import collected
from buttress.classifiers.parameters import check_number
from buttress.metrics.scorer import answers

# Rows farther from their neighbours than this share of the training rows count as far.
_FAR = 0.99
# Neighbours that a majority of their own neighbours contradicts: from this share on the labels
# around a row are said to contradict each other. Half of them are expected where labels are coin
# tosses, few at a clean boundary.
_CONTRADICTED = 0.25


FAR_AWAY = "far from all training rows"
CONTRADICTING = "among rows whose labels contradict each other"
NEAR_BOUNDARY = "near the boundary"


@dataclass(frozen=True, eq=False)
class RefusalReason:
    """What stands around a refused row.

    Attributes
    ----------
    row : int
        Its number among the rows asked about.
    reason : str
        "far from all training rows", "among rows whose labels contradict each other" or "near the
        boundary".
    distance : float
        Mean distance to the nearest training rows, as a multiple of what is usual among these.
    agreement : float
        Share of the nearest training rows that have the most frequent label among them.
    nearest : dict from label to integer array
        The training rows of each class that are nearest, nearest first.
    """

    row: int
    reason: str
    distance: float
    agreement: float
    nearest: dict[Any, IntArray]


def explain_reject(
    estimator: Any,
    X: Any,
    X_train: Any,
    y_train: Any,
    *,
    n_neighbors: int = 10,
    n_nearest: int = 3,
) -> list[RefusalReason]:
    """Say of every refused row why it was refused, by the training rows around it.

    Parameters
    ----------
    estimator : fitted classifier with the reject interface
        Or a pipeline or search that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows to ask about.
    X_train : array-like of shape (n_training_rows, n_features)
        The training rows.
    y_train : array-like of shape (n_training_rows,)
        Their labels.
    n_neighbors : int, default=10
        Training rows that count as the surroundings of a row.
    n_nearest : int, default=3
        Training rows of each class to name.

    Returns
    -------
    list of RefusalReason
        One for every refused row, in order; answered rows have none.

    Notes
    -----
    Distances are Euclidean between standardised features, whatever the classifier uses. "Far"
    means farther from its neighbours than 99 in 100 training rows are from theirs. Labels
    contradict each other where at least a quarter of the neighbours has a label that the majority
    of *its* neighbours does not have: at a clean boundary most rows agree with their own
    surroundings, even if both classes are near.

    Examples
    --------
    >>> from buttress import ChowRejector
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = ChowRejector(LogisticRegression(), d=0.1, novelty=0.01).fit(X, y)
    >>> [one.reason for one in explain_reject(model, [[0.01, 0.0], [0.0, 90.0], [1.5, 0.0]], X, y)]
    ['near the boundary', 'far from all training rows']
    """
    _check_counts(n_neighbors, n_nearest)
    X = collected(X)
    reasons = RefusalReasons(X_train, y_train, int(n_neighbors))
    refused = np.flatnonzero(answers(estimator, X)[1])
    if len(refused) == 0:
        return []
    rows = check_array(X, dtype=np.float64)[refused]
    return reasons.of(rows, refused, int(n_nearest))


def explain_held_out(
    X: Any, y: Any, refused: Any, *, n_neighbors: int = 10, n_nearest: int = 3
) -> list[RefusalReason]:
    """`explain_reject` of training rows that were refused while they were held out.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    refused : array-like of bool of shape (n_samples,)
        Rows that models of the other rows gave no answer to, as those of cross-validation.
    n_neighbors, n_nearest : int
        As in `explain_reject`; a row is not its own neighbour.

    Returns
    -------
    list of RefusalReason
        One for every refused row, in order.

    Examples
    --------
    >>> X, y = [[0.0], [0.1], [0.2], [0.9], [1.0], [1.1]], [0, 0, 1, 1, 1, 1]
    >>> (one,) = explain_held_out(X, y, [False, False, True, False, False, False], n_neighbors=2)
    >>> one.row, one.nearest[0].tolist()
    (2, [1, 0])
    """
    _check_counts(n_neighbors, n_nearest)
    X = collected(X)
    reasons = RefusalReasons(X, y, int(n_neighbors))
    positions = np.flatnonzero(np.asarray(refused, dtype=bool))
    if len(positions) == 0:
        return []
    return reasons.of_own(check_array(X, dtype=np.float64)[positions], positions, int(n_nearest))


def _check_counts(n_neighbors: int, n_nearest: int) -> None:
    check_number("n_neighbors", n_neighbors, "[1, inf)", integer=True)
    check_number("n_nearest", n_nearest, "[1, inf)", integer=True)


class RefusalReasons:
    """Training rows and their labels, ready to say why rows were refused, again and again.

    Parameters
    ----------
    X_train, y_train : array-like
    n_neighbors : int
    """

    def __init__(self, X_train: Any, y_train: Any, n_neighbors: int = 10) -> None:
        self.labels: NDArray[Any] = column_or_1d(y_train)
        self.around = Surroundings(X_train, n_neighbors)
        if len(self.labels) != self.around.n_rows:
            raise ValueError(
                f"y_train has {len(self.labels)} entries, expected {self.around.n_rows}."
            )
        self.limit = float(np.quantile(self.around.own_distance, _FAR))
        self.usual = float(np.median(self.around.own_distance)) or 1.0
        self.contradicted = _contradicted(self.labels, self.around.own_neighbours)

    def of(self, X: Array, numbers: IntArray, n_nearest: int = 3) -> list[RefusalReason]:
        """The reasons of refused rows, called by their numbers."""
        distance, near = self.around.of(X)
        return self._found(numbers, distance, near, self._nearest(X, n_nearest))

    def of_own(self, X: Array, positions: IntArray, n_nearest: int = 3) -> list[RefusalReason]:
        """The reasons of training rows, none of which is its own neighbour."""
        nearest = {
            label: [
                row[row != position][:n_nearest]
                for row, position in zip(rows, positions, strict=True)
            ]
            for label, rows in self._nearest(X, n_nearest + 1).items()
        }
        surroundings = self.around.own_distance[positions], self.around.own_neighbours[positions]
        return self._found(positions, *surroundings, nearest)

    def _nearest(self, X: Array, n_nearest: int) -> dict[Any, Any]:
        y = self.labels
        return {label: self.around.nearest_of(X, y == label, n_nearest) for label in np.unique(y)}

    def _found(
        self, numbers: IntArray, distance: Array, near: IntArray, nearest: dict[Any, Any]
    ) -> list[RefusalReason]:
        reasons = []
        for k, number in enumerate(numbers.tolist()):
            counts = np.unique(self.labels[near[k]], return_counts=True)[1]
            reason = NEAR_BOUNDARY
            if distance[k] > self.limit:
                reason = FAR_AWAY
            elif self.contradicted[near[k]].mean() >= _CONTRADICTED:
                reason = CONTRADICTING
            reasons.append(
                RefusalReason(
                    number,
                    reason,
                    float(distance[k] / self.usual),
                    float(counts.max() / counts.sum()),
                    {_plain(label): rows_near[k] for label, rows_near in nearest.items()},
                )
            )
        return reasons


def _contradicted(y: NDArray[Any], neighbours: IntArray) -> BoolArray:
    """Training rows whose label most of their neighbours do not have."""
    return np.asarray((y[neighbours] == y[:, None]).mean(axis=1) < 0.5)


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label


def _search_tree(rows: Array, n_neighbors: int) -> Any:
    # Imported here because it brings linear models and support vector machines along, which
    # every prediction of a classifier that may refuse would wait for.
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=n_neighbors).fit(rows)


class Surroundings:
    """Training rows, ready to say how far others are from them.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
    n_neighbors : int
    """

    def __init__(self, X: Any, n_neighbors: int) -> None:
        X = check_array(collected(X), dtype=np.float64)
        self.n_rows = len(X)
        if self.n_rows < 2:
            raise ValueError("At least two training rows are needed to speak of distances.")
        self.scaler = StandardScaler().fit(X)
        self.rows = self.scaler.transform(X)
        self.n_neighbors = min(n_neighbors, self.n_rows - 1)
        self.index = _search_tree(self.rows, self.n_neighbors)
        # without X a training row is not its own neighbour
        distance, self.own_neighbours = self.index.kneighbors()
        self.own_distance: Array = distance.mean(axis=1)

    def of(self, X: Any) -> tuple[Array, IntArray]:
        """Mean distance of rows to their nearest training rows, and which these are."""
        rows = self.scaler.transform(check_array(X, dtype=np.float64))
        distance, near = self.index.kneighbors(rows)
        return distance.mean(axis=1), near

    def nearest_of(self, X: Any, chosen: BoolArray, n: int) -> IntArray:
        """For every row the nearest of the chosen training rows."""
        positions = np.flatnonzero(chosen)
        index = _search_tree(self.rows[positions], min(n, len(positions)))
        return np.asarray(positions[index.kneighbors(self.scaler.transform(X))[1]])
