"""What to do with one support vector too many: merge two, project one, or forget one.

Every policy looks at the loss ``sum_p |f_p - f_p'|²`` it causes. With ``B`` vectors of ``p``
features, one update beyond the budget costs O(B p) ("merge"), O(B² + B p) ("project") or
O(B) ("forget", "forget_oldest").
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from buttress._arrays import Array
from buttress._compile import compiled
from buttress.solvers.stream.similarity import RbfSource, Source
from buttress.solvers.stream.store import VectorStore

POLICIES = ("merge", "project", "forget", "forget_oldest")

# Points tried between two vectors that may be merged; a golden section refines the best of them.
_LINE_POINTS = 21
# Added to the Gram matrix in "project", relative to its diagonal: bounds the coefficients when
# vectors nearly coincide.
_PROJECTION_RIDGE = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-4}
# The inverse is updated, not recomputed, between two of these.
_UPDATES_PER_INVERSE = 200


class Budget:
    """Keeps the number of vectors at `size`."""

    def __init__(self, size: int, policy: str, source: Source) -> None:
        self.size = size
        self.policy = policy
        self.source = source
        self.inverse: Array | None = None
        self.age = 0

    def shrink(self, store: VectorStore) -> tuple[int, int | None]:
        """Remove one vector.

        Returns
        -------
        removed : int
            Its index; the last vector has taken that place.
        moved : int or None
            Index (after the removal) of the vector that was replaced by a merged one.
        """
        if self.policy == "merge":
            return self._merge(store)
        if self.policy == "project":
            return self._project(store), None
        if self.policy == "forget":
            removed = _lightest(store)
        else:
            removed = int(np.argmin(store.position[: store.n]))
        store.remove(removed)
        return removed, None

    # -- merge -----------------------------------------------------------------------------

    def _merge(self, store: VectorStore) -> tuple[int, int | None]:
        n = store.n
        light = _lightest(store)
        prepared = self.source.prepare(store.vectors()[light : light + 1])
        k = np.empty((1, n), dtype=store.rows.array.dtype)
        self.source.against(prepared, store, k)
        coef = np.ascontiguousarray(store.coef[:, :n])
        if not isinstance(self.source, RbfSource):
            return self._absorb(store, light, k[0]), None
        partner, h = best_merge(np.minimum(k[0].astype(np.float64), 1.0), coef, light)
        vectors = store.vectors()
        value = float(k[0, partner])
        between = h * vectors[light] + (1.0 - h) * vectors[partner]
        augmented = self.source.augmented(self.source.prepare(between[None]))
        store.replace(partner, between, augmented)
        store.coef[:, partner] = _merged(coef[:, light], coef[:, partner], value, h)
        store.remove(light)
        return light, light if partner == n - 1 else partner

    def _absorb(self, store: VectorStore, light: int, k: Array) -> int:
        """Other kernels have no point between two: one vector takes over the other's part."""
        diagonal = store.kxx[: store.n]
        usable = diagonal > 0
        usable[light] = False
        gain = np.where(usable, k.astype(np.float64) ** 2 / np.where(usable, diagonal, 1.0), -1.0)
        partner = int(np.argmax(gain))
        if gain[partner] > 0:
            share = float(k[partner]) / diagonal[partner]
            store.coef[:, partner] += share * store.coef[:, light]
        store.remove(light)
        return light

    # -- project ---------------------------------------------------------------------------

    def _project(self, store: VectorStore) -> int:
        """Remove the vector whose projection onto the others loses least.

        With ``M = (K + ridge I)^-1`` the projection of vector r has coefficients
        ``-M[:, r] / M[r, r]`` and squared residual ``1 / M[r, r]``.
        """
        n = store.n
        M = self._inverse_with_last(store)
        loss = (store.coef[:, :n] ** 2).sum(axis=0) / np.diagonal(M)
        removed = int(np.argmin(loss))
        share = -M[:, removed] / M[removed, removed]
        share[removed] = 0.0
        store.coef[:, :n] += np.outer(store.coef[:, removed], share)
        M = M - np.outer(M[:, removed], M[removed] / M[removed, removed])
        last = n - 1
        if removed != last:
            M[removed] = M[last]
            M[:, removed] = M[:, last]
        self.inverse = M[:last, :last]
        store.remove(removed)
        return removed

    def _inverse_with_last(self, store: VectorStore) -> Array:
        n = store.n
        vectors = store.vectors()
        self.age += 1
        known = self.inverse
        if known is None or len(known) != n - 1 or self.age >= _UPDATES_PER_INVERSE:
            self.age = 0
            return self._fresh_inverse(store)
        prepared = self.source.prepare(vectors[n - 1 : n])
        row = np.empty((1, n), dtype=store.rows.array.dtype)
        self.source.against(prepared, store, row)
        b = row[0, : n - 1].astype(np.float64)
        v = known @ b
        ridge = _PROJECTION_RIDGE[row.dtype]
        diagonal = float(store.kxx[n - 1]) * (1.0 + ridge)
        residual = diagonal - float(b @ v)
        if residual <= 0.5 * ridge * diagonal:
            self.age = 0
            return self._fresh_inverse(store)
        M = np.empty((n, n))
        M[: n - 1, : n - 1] = known + np.outer(v, v / residual)
        M[n - 1, : n - 1] = M[: n - 1, n - 1] = -v / residual
        M[n - 1, n - 1] = 1.0 / residual
        return M

    def _fresh_inverse(self, store: VectorStore) -> Array:
        n = store.n
        prepared = self.source.prepare(store.vectors())
        K = np.empty((n, n), dtype=store.rows.array.dtype)
        self.source.against(prepared, store, K)
        K = K.astype(np.float64)
        diagonal = store.kxx[:n]
        ridge = _PROJECTION_RIDGE[store.rows.array.dtype]
        floor = float(np.max(np.abs(diagonal), initial=0.0)) or 1.0
        K[np.diag_indices(n)] = diagonal * (1.0 + ridge) + 1e-3 * ridge * floor
        try:
            factor = linalg.cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
            return np.asarray(linalg.cho_solve(factor, np.eye(n), check_finite=False))
        except linalg.LinAlgError:
            raise ValueError(
                "budget_policy='project' needs a positive semidefinite kernel; use 'forget' "
                "with this one."
            ) from None


def _lightest(store: VectorStore) -> int:
    """The vector of smallest coefficients; the oldest among equals."""
    weight = np.abs(store.coef[:, : store.n]).sum(axis=0)
    candidates = np.flatnonzero(weight == weight.min())
    return int(candidates[np.argmin(store.position[candidates])])


def _merged(a: Array, b: Array, k: float, h: float) -> Array:
    """Best coefficients of the point ``h x + (1-h) z`` in place of ``a k(x,.) + b k(z,.)``."""
    return np.asarray(a * k ** ((1.0 - h) ** 2) + b * k ** (h * h))


@compiled()
def _kept(k: float, coef: Array, i: int, j: int, h: float) -> float:
    """Squared norm that survives the merge, summed over the problems."""
    to_i = k ** ((1.0 - h) ** 2)
    to_j = k ** (h * h)
    total = 0.0
    for p in range(coef.shape[0]):
        a = coef[p, i] * to_i + coef[p, j] * to_j
        total += a * a
    return total


@compiled()
def best_merge(k: Array, coef: Array, light: int) -> tuple[int, float]:
    """The partner and the place on the line between the two that lose least norm.

    For Gaussian kernels; `k` are the kernel values of vector `light` with all. A grid picks
    the partner, a golden section finds the place.
    """
    n = coef.shape[1]
    best, partner, start = np.inf, -1, 0.0
    for j in range(n):
        if j == light:
            continue
        norm = 0.0
        for p in range(coef.shape[0]):
            norm += coef[p, light] ** 2 + coef[p, j] ** 2
            norm += 2.0 * coef[p, light] * coef[p, j] * k[j]
        # Far apart, only the ends of the line can be best.
        points = 2 if k[j] < 1e-3 else _LINE_POINTS
        for g in range(points):
            h = g / (points - 1.0)
            loss = norm - _kept(k[j], coef, light, j, h)
            if loss < best:
                best, partner, start = loss, j, h
    low = max(0.0, start - 1.0 / (_LINE_POINTS - 1.0))
    high = min(1.0, start + 1.0 / (_LINE_POINTS - 1.0))
    ratio = 0.6180339887498949
    for _ in range(30):
        left = high - ratio * (high - low)
        right = low + ratio * (high - low)
        if _kept(k[partner], coef, light, partner, left) > _kept(
            k[partner], coef, light, partner, right
        ):
            high = right
        else:
            low = left
    h = 0.5 * (low + high)
    if _kept(k[partner], coef, light, partner, start) >= _kept(k[partner], coef, light, partner, h):
        h = start
    return partner, h
