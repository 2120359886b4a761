"""What stands in for the inverse Hessian of every column during the descent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from buttress._arrays import Array, IntArray
from buttress.solvers.blockwise.objective import Objective
from buttress.solvers.blockwise.passes import GramPass

# A curvature below this share of the bound is no curvature: it would make endless steps.
_LEAST_CURVATURE = 1e-8
# Share of the curvature bound mixed into Hessians of a sample, against what it has not seen.
_MIXED = 1e-3
# Bytes of Hessians formed at a time.
_HESSIAN_BYTES = 2.0e8


@dataclass(frozen=True, eq=False)
class FixedCurvature:
    """The curvature bound times one Gram matrix, for all penalties and folds.

    In coordinates that make the Gram matrix diagonal every column's matrix is an arrow: a
    diagonal and a border of offsets. Held-out rows only lower a column's curvature, so the
    full Gram matrix bounds every fold.
    """

    diagonal: Array  # (components, columns)
    border: Array  # (columns, components, offsets)
    corner: Array  # (columns, offsets, offsets), inverse of the Schur complement

    def apply(self, gradient: Array, columns: IntArray) -> Array:
        m = self.diagonal.shape[0]
        diagonal, border = self.diagonal[:, columns], self.border[columns]
        out = np.empty_like(gradient)
        inner = gradient[:m] / diagonal
        if border.shape[2] == 0:
            out[:m] = inner
            return out
        remainder = gradient[m:].T - np.einsum("cmq,mc->cq", border, inner)
        offsets = np.einsum("cqr,cr->cq", self.corner[columns], remainder)
        out[m:] = offsets.T
        out[:m] = inner - np.einsum("cmq,cq->mc", border, offsets) / diagonal
        return out

    def refresh(self, theta: Array, columns: IntArray) -> bool:
        return False

    def only(self, columns: IntArray) -> FixedCurvature:
        """The matrices of some columns."""
        return FixedCurvature(self.diagonal[:, columns], self.border[columns], self.corner[columns])


def fixed_curvature(objective: Objective, eigenvalues: Array, class_sums: Array) -> FixedCurvature:
    """Make the matrix of `FixedCurvature`; `objective` is in the Gram matrix's eigenbasis.

    Parameters
    ----------
    objective : Objective
    eigenvalues : array of shape (components,)
        Of the weighted Gram matrix.
    class_sums : array of shape (n_classes, components)
        Weighted sums of the mapped rows, in the old coordinates rotated to the new ones.
    """
    rows, columns = objective.rows, objective.columns
    bound = curvature_bound(rows.loss)
    weight = objective.total_weight
    q, n_classes = rows.n_offsets, len(class_sums)
    totals = objective.class_weight
    heaviest = max(sum(t.cost_below for t in rows.terms), sum(t.cost_above for t in rows.terms))
    diagonal = bound * heaviest * eigenvalues[:, None] / weight + 2.0 * columns.alpha
    border = np.zeros((len(columns), len(eigenvalues), q))
    corner = np.zeros((len(columns), q))
    for c, problem in enumerate(columns.problem):
        above = 1 if n_classes == 2 else int(problem)
        sum_above, weight_above = class_sums[above], totals[above]
        sum_below, weight_below = class_sums.sum(axis=0) - sum_above, totals.sum() - weight_above
        for term in rows.terms if q else ():
            scale = bound / weight[c]
            border[c, :, term.offset_above] += scale * term.cost_above * sum_above
            border[c, :, term.offset_below] += scale * term.cost_below * sum_below
            corner[c, term.offset_above] += scale * term.cost_above * weight_above
            corner[c, term.offset_below] += scale * term.cost_below * weight_below
    schur = np.einsum("cmq,mc,cmr->cqr", border, 1.0 / diagonal, border)
    schur = np.einsum("cq,qr->cqr", corner, np.eye(q)) - schur
    schur += _LEAST_CURVATURE * np.einsum("cq,qr->cqr", corner, np.eye(q))
    return FixedCurvature(diagonal, border, np.linalg.inv(schur) if q else schur)


def curvature_bound(loss: object) -> float:
    """The loss's own bound; 1 where it has none (the line search then does the work)."""
    bound = float(getattr(loss, "curvature_bound", 1.0))
    return bound if np.isfinite(bound) and bound > 0 else 1.0


@dataclass(frozen=True, eq=False)
class DiagonalCurvature:
    """The diagonal of the curvature bound: for more components than a square matrix allows."""

    diagonal: Array  # (parameters, columns)

    def apply(self, gradient: Array, columns: IntArray) -> Array:
        return np.asarray(gradient / self.diagonal[:, columns])

    def refresh(self, theta: Array, columns: IntArray) -> bool:
        return False


def diagonal_curvature(objective: Objective) -> DiagonalCurvature:
    """Make the matrix of `DiagonalCurvature` in one pass."""
    task = GramPass(objective.reader, diagonal_only=True)
    squares, _ = objective.source.sum(task)
    if objective.basis is not None:
        # The diagonal in other coordinates is not known from this one; its mean serves.
        squares = np.full(objective.n_components, squares.mean())
    bound, weight = curvature_bound(objective.rows.loss), objective.total_weight
    inner = bound * squares[:, None] / weight + 2.0 * objective.columns.alpha
    offsets = np.full((objective.rows.n_offsets, len(weight)), bound)
    return DiagonalCurvature(np.vstack([inner, offsets]))


class SampledCurvature:
    """Hessians of a sample of the rows, shared by columns with nearly the same penalty."""

    def __init__(self, factors: list[Array], group: IntArray) -> None:
        self.factors, self.group = factors, group

    def apply(self, gradient: Array, columns: IntArray) -> Array:
        out = np.empty_like(gradient)
        group = self.group[columns]
        for g in np.unique(group):
            in_group = group == g
            out[:, in_group] = linalg.cho_solve(
                (self.factors[g], True), gradient[:, in_group], check_finite=False
            )
        return out

    def refresh(self, theta: Array, columns: IntArray) -> bool:
        return False

    def renewed(self, newer: SampledCurvature, columns: IntArray) -> SampledCurvature:
        """The matrices of `newer` for some columns, and these for the rest."""
        group = self.group.copy()
        group[columns] = newer.group + len(self.factors)
        used, group = np.unique(group, return_inverse=True)
        factors = [*self.factors, *newer.factors]
        return SampledCurvature([factors[k] for k in used], group)


class ExactCurvature(SampledCurvature):
    """The Hessian of all rows at the current point: Newton's method."""

    def __init__(self, objective: Objective) -> None:
        n = len(objective.columns)
        super().__init__([np.empty(0)] * n, np.arange(n))
        self.objective = objective

    def refresh(self, theta: Array, columns: IntArray) -> bool:
        for batch in hessian_batches(self.objective, columns):
            for c, H in zip(batch, self.objective.hessians(theta[:, batch], batch), strict=True):
                self.factors[c] = factor(H, self.objective)
        return True


def hessian_batches(objective: Objective, columns: IntArray) -> list[IntArray]:
    """Columns in groups whose Hessians fit in memory together, blocks in flight included."""
    each = 8.0 * max(objective.reader.features.n_raw, objective.n_parameters) ** 2
    size = max(1, int(_HESSIAN_BYTES // each))
    return [columns[i : i + size] for i in range(0, len(columns), size)]


def factor(H: Array, objective: Objective, mixed: Array | None = None) -> Array:
    """Cholesky factor of a Hessian, with the least curvature that a step needs."""
    H = H.copy()
    m = objective.n_components
    if mixed is not None:
        H[np.diag_indices_from(H)] += mixed
    bound = curvature_bound(objective.rows.loss)
    H[range(m, len(H)), range(m, len(H))] += _LEAST_CURVATURE * bound
    ridge = 0.0
    while True:
        try:
            return np.asarray(linalg.cholesky(H, lower=True, check_finite=False))
        except linalg.LinAlgError:
            # Rounding of a nearly singular Hessian: the ridge slows a step, it moves no minimum.
            ridge = max(10.0 * ridge, 1e-12 * float(np.trace(H)) / len(H))
            H[np.diag_indices_from(H)] += ridge


def sampled_curvature(
    objective: Objective, theta: Array, ratio: float, bound: Array | None
) -> SampledCurvature:
    """Hessians of an objective, most often a sample's, near its solution.

    Parameters
    ----------
    objective : Objective
    theta : array of shape (parameters, columns)
        Where the Hessians are formed.
    ratio : float
        Hessians are formed for penalties this far apart, for each binary problem; columns share
        the nearest.
    bound : array of shape (parameters,), or None
        Diagonal of the curvature bound, a share of which is mixed in against what a sample has
        not seen; None for all rows, whose Hessian may be much smaller than the bound and is mixed
        in the offsets only.
    """
    columns = objective.columns
    if bound is None:
        # Where no margin is bent an offset has no curvature, and half a step away it has.
        bound = np.zeros(objective.n_parameters)
        bound[objective.n_components :] = curvature_bound(objective.rows.loss)
    mixed = _MIXED * bound
    # Columns on all rows (the last fold) stand for the others with their penalty.
    order = np.lexsort((columns.fold, columns.alpha, columns.problem))
    same = (np.diff(columns.alpha[order]) == 0) & (np.diff(columns.problem[order]) == 0)
    last = order[np.append(~same, True)]
    factors: list[Array] = []
    group = np.empty(len(columns), dtype=int)
    for problem in np.unique(columns.problem):
        candidates = last[columns.problem[last] == problem]
        logs = np.log(columns.alpha[candidates])
        groups = int(np.ceil((logs[-1] - logs[0]) / np.log(ratio) - 1e-9)) + 1
        wanted = np.linspace(logs[0], logs[-1], groups)
        chosen = candidates[np.unique(np.abs(logs - wanted[:, None]).argmin(axis=1))]
        for batch in hessian_batches(objective, chosen):
            hessians = objective.hessians(theta[:, batch], batch)
            factors.extend(factor(H, objective, mixed) for H in hessians)
        of_problem = np.flatnonzero(columns.problem == problem)
        distance = np.abs(
            np.log(columns.alpha[of_problem])[:, None] - np.log(columns.alpha[chosen])
        )
        group[of_problem] = len(factors) - len(chosen) + distance.argmin(axis=1)
    return SampledCurvature(factors, group)
