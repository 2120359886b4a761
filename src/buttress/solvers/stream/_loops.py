"""The sequential parts of online learning, compiled.

Names follow the update rules: ``z = y f(x)`` with the model before the row, ``a`` the new
coefficient, ``t`` the number of labelled rows so far. `Y` holds ±1 for every binary problem
(columns) and 0 in rows without a label. `rule` holds the address of its decision, then the
smallest loss that is no rounding, the unit roundoff, `averaging`, `decay`, `smallest`, whether
the first row of a class is special, whether older coefficients shrink, and its own numbers
(`rules.compiled_rule`). F are the scores of an outcome.
"""

from __future__ import annotations

import math

import numpy as np

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import FAST, compiled, inner
from buttress.solvers.stream._decisions import decide
from buttress.solvers.stream._exp import power64

# Plain tuples: Numba takes a microsecond more to recognise a named one.

# What a loop is told of the learner: its rule, `t`, which sides of the problems were met, and
# bounds of the sums of the sizes of the terms of f.
Learner = tuple[Array, int, BoolArray, Array]
# The arrays of a `rules.Outcome`: scores, updated, refused, vectors.
Results = tuple[Array, BoolArray, BoolArray, IntArray]

GHOST, EPSILON, AVERAGING, DECAY, SMALLEST, FIRST, SHRINKS = 1, 2, 3, 4, 5, 6, 7


@inner()
def _divided(f: float, rule: Array, t: int) -> float:
    """The score that belongs to a sum of stored coefficients."""
    averaging = rule[AVERAGING]
    if averaging > 0.0:
        return f / (averaging * t) if t > 0 else 0.0
    return f


@inner()
def _learn_row(
    i: int, f: Array, Y: Array, kxx: float, learner: Learner, a: Array
) -> tuple[bool, bool]:
    """Apply the rule to row `i` in every problem; fill `a`, return (updated, refused)."""
    rule, _, seen, size = learner
    ghost, epsilon, first_of_class = rule[GHOST], rule[EPSILON], rule[FIRST] > 0.0
    updated, refused = False, False
    root = math.sqrt(kxx) if kxx > 0.0 else 0.0
    if not math.isfinite(kxx):
        # A step of length zero would pass for a row learned; a score that is none is an error.
        f[:] = math.nan
        a[:] = 0.0
        return updated, refused
    for p in range(len(f)):
        y = Y[i, p]
        side = 1 if y > 0 else 0
        first = first_of_class and not seen[p, side]
        if kxx > 0.0:
            seen[p, side] = True
        # What rounding leaves of 1 - z after an update at the same point is no loss: a fixed
        # floor, or one that grows with the size of the terms of f(x).
        tolerance = max(ghost, epsilon * root * size[p])
        decided = decide(y * f[p], y, kxx, tolerance, first, rule)
        skip = math.isnan(decided)
        a[p] = 0.0 if skip else decided
        refused |= skip
        if a[p] != 0.0:
            updated = True
            size[p] += abs(a[p]) * root
    return updated, refused


@compiled(allocates=True)
def learn_appending(
    K: Array, Y: Array, kxx: Array, learner: Learner, A: Array, out: Results
) -> int:
    """One block, for rules whose coefficients are never revised.

    The scores come in as the sums over the vectors stored before the block and go out as what
    each row had before it was learned; `K` is the block's own kernel matrix, `A` receives the
    new coefficients. Returns the new `t`. Cost: B²/2 products at most.
    """
    rule, t, _, _ = learner
    F, updated, refused, _ = out
    B, P = F.shape
    new = np.empty(B, dtype=np.int64)
    n_new = 0
    for i in range(B):
        for p in range(P):
            f = F[i, p]
            for q in range(n_new):
                j = new[q]
                f += A[j, p] * K[i, j]
            F[i, p] = _divided(f, rule, t)
        if Y[i, 0] == 0.0:
            continue
        t += 1
        updated[i], refused[i] = _learn_row(i, F[i], Y, kxx[i], learner, A[i])
        if updated[i]:
            new[n_new] = i
            n_new += 1
    return t


@inner(fastmath=FAST)
def _weighted_sum(K: Array, coef: Array, n: int) -> float:
    total = 0.0
    for j in range(n):
        total += K[j] * coef[j]
    return total


@inner()
def _count_alive(coef: Array, n: int) -> int:
    count = 0
    for j in range(n):
        for p in range(coef.shape[0]):
            if coef[p, j] != 0.0:
                count += 1
                break
    return count


@inner()
def _shrink(coef: Array, n: int, rule: Array) -> None:
    """Multiply all coefficients by the rule's decay; those too small become 0."""
    decay, smallest = rule[DECAY], rule[SMALLEST]
    for p in range(coef.shape[0]):
        for j in range(n):
            c = coef[p, j] * decay
            coef[p, j] = 0.0 if abs(c) < smallest else c


@compiled(allocates=True)
def learn_revising(
    span: tuple[int, int, int],
    K: Array,
    within: Array,
    coef: Array,
    Y: Array,
    kxx: Array,
    learner: Learner,
    out: Results,
) -> tuple[int, int, int]:
    """Rows of a block, for rules or budgets that change old coefficients.

    `span` is the first row, the number `n` of vectors and the largest allowed one. `K` holds the
    kernel of the block's rows with all vectors, and has room for the block's own. Stops after
    the row that makes one vector too many (its coefficients are in column n). Returns the next
    row, `n` and `t`. Cost: n products per row.
    """
    start, n, limit = span
    rule, t, _, _ = learner
    F, updated, refused, vectors = out
    B, P = F.shape
    shrinks = rule[SHRINKS] > 0.0
    a = np.zeros(P)
    alive = _count_alive(coef, n)
    for i in range(start, B):
        vectors[i] = alive
        for p in range(P):
            F[i, p] = _divided(_weighted_sum(K[i], coef[p], n), rule, t)
        if Y[i, 0] == 0.0:
            continue
        t += 1
        updated[i], refused[i] = _learn_row(i, F[i], Y, kxx[i], learner, a)
        if shrinks:
            _shrink(coef, n, rule)
            alive = _count_alive(coef, n)
        if updated[i]:
            for p in range(P):
                coef[p, n] = a[p]
            for r in range(i + 1, B):
                K[r, n] = within[r, i]
            n += 1
            alive += 1
        vectors[i] = alive
        if n > limit:
            return i + 1, n, t
    return B, n, t


@compiled()
def learn_linear(X: Array, Y: Array, W: Array, learner: Learner, A: Array, out: Results) -> int:
    """The linear kernel keeps ``w = sum a x``: 2p products per row, whatever came before."""
    rule, t, _, _ = learner
    F, updated, refused, _ = out
    B, P = Y.shape
    features = X.shape[1]
    for i in range(B):
        kxx = 0.0
        for k in range(features):
            kxx += np.float64(X[i, k]) * X[i, k]
        for p in range(P):
            f = 0.0
            for k in range(features):
                f += W[p, k] * X[i, k]
            F[i, p] = _divided(f, rule, t)
        if Y[i, 0] == 0.0:
            continue
        t += 1
        updated[i], refused[i] = _learn_row(i, F[i], Y, kxx, learner, A[i])
        if updated[i]:
            for p in range(P):
                for k in range(features):
                    W[p, k] += A[i, p] * X[i, k]
    return t


@compiled()
def learn_linear_sparse(
    entries: tuple[Array, IntArray, IntArray],
    Y: Array,
    W: Array,
    learner: Learner,
    A: Array,
    out: Results,
) -> int:
    """`learn_linear` for rows in compressed form: two products per stored entry."""
    data, indices, indptr = entries
    rule, t, _, _ = learner
    F, updated, refused, _ = out
    B, P = Y.shape
    for i in range(B):
        kxx = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            kxx += np.float64(data[e]) * data[e]
        for p in range(P):
            f = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                f += W[p, indices[e]] * data[e]
            F[i, p] = _divided(f, rule, t)
        if Y[i, 0] == 0.0:
            continue
        t += 1
        updated[i], refused[i] = _learn_row(i, F[i], Y, kxx, learner, A[i])
        if updated[i]:
            for p in range(P):
                for e in range(indptr[i], indptr[i + 1]):
                    W[p, indices[e]] += A[i, p] * data[e]
    return t


@compiled(fastmath={"contract"}, allocates=True)
def rbf_within(X: Array, gamma: float, K: Array) -> None:
    """The Gaussian kernel matrix of a few rows from differences, exact for equal rows.

    `gamma` belongs to base 2.
    """
    n, features = X.shape
    # two at a time, so that every sum is fetched half as often; of an odd number the last is zero
    columns = np.zeros((features + features % 2, n))
    for i in range(n):
        for k in range(features):
            columns[k, i] = X[i, k]
    for i in range(n):
        k_i = K[i]
        for j in range(i):
            k_i[j] = 0.0
        for k in range(0, features, 2):
            column, next_column = columns[k], columns[k + 1]
            x, next_x = column[i], next_column[i]
            for j in range(i):
                difference, next_difference = x - column[j], next_x - next_column[j]
                k_i[j] += difference * difference + next_difference * next_difference
        for j in range(i):
            k_i[j] = power64(-gamma * k_i[j])
        k_i[i] = 1.0
    # the other triangle in squares, so that no line of the cache is fetched twice
    for top in range(0, n, 16):
        for side in range(0, top + 1, 16):
            for i in range(top, min(top + 16, n)):
                for j in range(side, min(side + 16, i)):
                    K[j, i] = K[i, j]


@compiled()
def extend_rbf(X: Array, center: Array, gamma: float, left: Array, right: Array) -> None:
    """Centre rows and add the number that makes one product the whole exponent."""
    n, p = X.shape
    for i in range(n):
        total = 0.0
        for k in range(p):
            centred = X[i, k] - center[k]
            total += np.float64(centred) * centred
            left[i, k] = 2.0 * gamma * centred
            right[i, k] = centred
        left[i, p] = right[i, p] = -gamma * total
