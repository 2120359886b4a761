"""The kernel machine among the default witnesses: least squares, exact leave-one-out scores.

One eigendecomposition per kernel width gives the fit and the leave-one-out scores of every
penalty; one matrix serves all folds, repeats and penalties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from buttress._arrays import Array, IntArray
from buttress._progress import progress
from buttress._threads import in_threads, own_threads, workers
from buttress.noise.core._witness import BaseWitness, equally_good, score_spread
from buttress.noise.core.copies import DistinctRows, differ_like_records, shared_places
from buttress.noise.core.crossfit import Folds

# Widths, as factors of 1 / (number of features x variance), and penalties. Chosen on the six
# development sets of benchmarks/noise.py; the average over good candidates makes a finer grid idle.
_FACTORS = (1.0 / 16.0, 0.25, 1.0, 4.0)
_PENALTIES = 10.0 ** np.arange(-2.0, 3.1, 0.5)
# Beyond so many rows, that many landmarks stand for the kernel.
_MOST_ROWS, _LANDMARKS = 4000, 1000
# Eigenvalues below this share of the largest are rounding.
_NO_VALUE = 1e-12
# Test rows are compared with the training rows in blocks of so many entries (64 MB).
_BLOCK_ENTRIES = 8_000_000


@dataclass(frozen=True, eq=False)
class _Width:
    """What one kernel width gives: an orthonormal basis, its spectrum, and how rows enter it."""

    gamma: float
    basis: Array
    spectrum: Array
    to_dual: Array


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What a row's score must not know of.

    Attributes
    ----------
    folds : list of index pairs or None
        Rows that are held out together; None: every row alone.
    share : array of shape (n,)
        Which share of its own weight, for a row that stands for several records one of them.
    shared : sequence of arrays
        Rows that are held out with others, without folds.
    """

    folds: Folds | None
    share: Array
    shared: Sequence[IntArray]


class KernelWitness(BaseWitness):
    """Average of regularised least-squares kernel machines that are about equally good.

    Parameters
    ----------
    random_state : int, RandomState or None, default=None
        For the landmarks beyond 4000 rows.
    verbose : int, default=0
        A progress bar on a terminal when positive.

    Attributes
    ----------
    classes_ : ndarray
    scaler_ : StandardScaler
    gammas_ : ndarray of shape (n_widths,)
        Widths in use.
    centers_ : array of shape (n_centers, n_features)
        Scaled training rows, or landmarks.
    duals_ : ndarray of shape (n_widths, n_centers, n_columns)
        Coefficients of the centers, summed over the penalties in use.
    offset_ : ndarray of shape (n_columns,)
    n_candidates_ : int
        Machines in the average.
    n_features_in_ : int

    Notes
    -----
    Every candidate minimises ``sum_i w_i (t_i - f(x_i))^2 + penalty ||f||^2`` with targets ±1 and
    kernel ``1 + exp(-gamma ||x - z||^2)`` on standardised features. With the hat matrix H the score
    of row i by a machine trained without it is ``(f_i - H_ii t_i) / (1 - H_ii)``; without a fold B
    it is ``t_B - (I - H_BB)^-1 (t_B - f_B)``. Equal rows are such a fold, unless their labels
    differ as those of different records do: of a row that stands for w records one is left out, and
    H_ii / w takes the place of H_ii. Candidates within one standard error of the best accuracy of
    these scores are averaged, each divided by the standard deviation of its scores.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = KernelWitness().fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(self, *, random_state: Any = None, verbose: int = 0) -> None:
        self.random_state = random_state
        self.verbose = verbose

    def _fit_distinct(
        self, rows: Any, codes: IntArray, kept: DistinctRows, folds: Folds | None
    ) -> Array:
        targets = _targets(codes, len(self.classes_))
        self.scaler_ = StandardScaler(with_mean=not sparse.issparse(rows))
        scaled = self.scaler_.fit_transform(rows, sample_weight=kept.weight)
        self.centers_ = self._chosen_centers(scaled)
        out = LeftOut(folds, np.ones(len(codes)), [])
        if folds is None and differ_like_records(kept, codes):
            out = LeftOut(None, 1.0 / kept.weight, [])
        elif folds is None:
            out = replace(out, shared=shared_places(kept.point))
        held, fitted = self._candidates(scaled, targets, kept.weight, out)
        return self._average(held, fitted, codes, kept.weight)

    def _scores(self, X: Any) -> Array:
        rows = self.scaler_.transform(X)
        scores = np.tile(self.offset_, (X.shape[0], 1))
        step = max(1, _BLOCK_ENTRIES // len(self.duals_[0]))
        for start in range(0, X.shape[0], step):
            block = rows[start : start + step]
            for gamma, dual in zip(self.gammas_, self.duals_, strict=True):
                scores[start : start + step] += rbf_kernel(block, self.centers_, gamma=gamma) @ dual
        return scores

    # -- the candidates --------------------------------------------------------------------

    def _chosen_centers(self, rows: Any) -> Any:
        n = rows.shape[0]
        if n <= _MOST_ROWS:
            return rows
        random = check_random_state(self.random_state)
        return rows[np.sort(random.choice(n, _LANDMARKS, replace=False))]

    def _candidates(
        self,
        rows: Any,
        targets: Array,
        weight: Array,
        out: LeftOut,
    ) -> tuple[Array, list[tuple[float, Array]]]:
        """Held-out scores (candidate, row, column) and the coefficients of every candidate."""
        scale = np.sqrt(weight)
        spread = 1.0
        if sparse.issparse(rows):
            squares = np.asarray(rows.power(2).mean(axis=1)).ravel()
            spread = max(float(weight @ squares / weight.sum()), 1e-12)
        with progress("kernel machines", len(_FACTORS), self.verbose) as advance:

            def of_width(factor: float) -> tuple[list[Array], list[tuple[float, Array]]]:
                width = self._width(rows, factor / (rows.shape[1] * spread), scale)
                image = width.basis.T @ (scale[:, None] * targets)
                shrink = width.spectrum[:, None] / (width.spectrum[:, None] + _PENALTIES)
                held = _held_out(width.basis, shrink, image, targets, scale, out)
                duals = [
                    (width.gamma, width.to_dual @ (image / (width.spectrum + penalty)[:, None]))
                    for penalty in _PENALTIES
                ]
                advance(1)
                return held, duals

            # an eigendecomposition gains little from a second BLAS thread, two of them do
            with own_threads():
                by_width = in_threads(of_width, _FACTORS, workers())
        held = [scores for scores_of_width, _ in by_width for scores in scores_of_width]
        return np.array(held), [dual for _, duals in by_width for dual in duals]

    def _width(self, rows: Any, gamma: float, scale: Array) -> _Width:
        """Eigenvectors of the weighted kernel ``k + 1``, exact or by landmarks."""
        if self.centers_ is rows:
            K = rbf_kernel(rows, gamma=gamma) + 1.0
            values, vectors = np.linalg.eigh(scale[:, None] * K * scale)
            kept = values > _NO_VALUE * values[-1]
            values, vectors = values[kept], vectors[:, kept]
            return _Width(gamma, vectors, values, scale[:, None] * vectors)
        # landmarks: phi = k(x, centers) C with C C' the inverse of the centers' own kernel
        inner = rbf_kernel(self.centers_, gamma=gamma) + 1.0
        values, vectors = np.linalg.eigh(inner)
        kept = values > 1e-10 * values[-1]
        root = vectors[:, kept] / np.sqrt(values[kept])
        phi = np.empty((rows.shape[0], root.shape[1]))
        step = max(1, _BLOCK_ENTRIES // len(root))
        for start in range(0, rows.shape[0], step):
            block = rbf_kernel(rows[start : start + step], self.centers_, gamma=gamma) + 1.0
            phi[start : start + step] = scale[start : start + step, None] * (block @ root)
        values, vectors = np.linalg.eigh(phi.T @ phi)
        kept = values > _NO_VALUE * values[-1]
        values, vectors = values[kept], vectors[:, kept]
        basis = phi @ (vectors / np.sqrt(values))
        return _Width(gamma, basis, values, root @ vectors * np.sqrt(values))

    def _average(
        self, held: Array, fitted: list[tuple[float, Array]], codes: IntArray, weight: Array
    ) -> Array:
        """Keep the good candidates; their mean held-out scores."""
        used = equally_good(held, codes, weight)
        spread = score_spread(held, weight)
        self.n_candidates_ = len(used)
        gammas = sorted({fitted[i][0] for i in used.tolist()})
        self.gammas_ = np.array(gammas)
        self.duals_ = np.array(
            [
                sum(fitted[i][1] / spread[i] for i in used.tolist() if fitted[i][0] == gamma)
                for gamma in gammas
            ]
        ) / len(used)
        # the kernel's constant term
        self.offset_ = self.duals_.sum(axis=(0, 1))
        return np.asarray((held[used] / spread[used, None, None]).mean(axis=0))


def _targets(codes: IntArray, n_classes: int) -> Array:
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def _held_out(
    basis: Array,
    shrink: Array,
    image: Array,
    targets: Array,
    scale: Array,
    out: LeftOut,
) -> list[Array]:
    """Scores of rows by machines trained without them, one table for every column of `shrink`."""
    n_penalties, columns = shrink.shape[1], targets.shape[1]
    goal = scale[:, None] * targets
    weights = (shrink[:, :, None] * image[:, None, :]).reshape(len(image), -1)
    fitted = (basis @ weights).reshape(len(basis), n_penalties, columns)
    if out.folds is None:
        leverage = np.empty((len(basis), n_penalties))
        step = max(1, _BLOCK_ENTRIES // len(shrink))
        for start in range(0, len(basis), step):
            leverage[start : start + step] = basis[start : start + step] ** 2 @ shrink
        leverage = np.minimum(out.share[:, None] * leverage, 1.0 - 1e-10)[:, :, None]
        scores = (fitted - leverage * goal[:, None]) / (1.0 - leverage)
        for groups in out.shared:
            scores[groups] = _without_places(basis, shrink, fitted, goal, groups)
    else:
        scores, seen = np.zeros_like(fitted), np.zeros(len(basis))
        for _, test in out.folds:
            block = basis[test]
            for k in range(n_penalties):
                hat = (block * shrink[:, k]) @ block.T
                gap = np.linalg.solve(np.eye(len(block)) - hat, goal[test] - fitted[test, k])
                scores[test, k] += goal[test] - gap
            seen[test] += 1
        scores /= seen[:, None, None]
    scores /= scale[:, None, None]
    return [scores[:, k] for k in range(n_penalties)]


def _without_places(
    basis: Array, shrink: Array, fitted: Array, goal: Array, groups: IntArray
) -> Array:
    """Scores (place, row, penalty, column) without any of the rows at a place."""
    n_places, size = groups.shape
    scores = np.empty((n_places, size, shrink.shape[1], goal.shape[1]))
    step = max(1, _BLOCK_ENTRIES // (size * len(shrink)))
    for start in range(0, n_places, step):
        rows = groups[start : start + step]
        block = basis[rows]
        for k in range(shrink.shape[1]):
            hat = (block * shrink[:, k]) @ block.transpose(0, 2, 1)
            gap = np.linalg.solve((1.0 + 1e-10) * np.eye(size) - hat, goal[rows] - fitted[rows, k])
            scores[start : start + step, :, k] = goal[rows] - gap
    return scores
