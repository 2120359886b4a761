"""From bound to bound: the minimum over free variables whose Newton step leaves the box.

With a nearly singular system the minimum lies far outside the box, and a step cut at its first
bound would change next to nothing; after as many bounds as the system has directions without
curvature it is inside. The inverse of the system is formed once. A variable that meets its bound
is taken out of it by a change of rank one, so that a bound costs products of a matrix and a
vector instead of a factorisation.
"""

from __future__ import annotations

from buttress._arrays import Array, IntArray
from buttress._compile import FAST, compiled, inner

# The work ends when a whole step would gain less than this share of what was gained before, or
# after so many whole steps: the inverse has lost digits, and each corrects the last.
_FURTHER = 1e-12
_WHOLE_STEPS = 3


@inner(fastmath=FAST)
def _product(A: Array, x: Array, size: int, out: Array) -> None:
    """``out = A @ x`` for the leading rows and columns."""
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += A[i, j] * x[j]
        out[i] = total


@inner(fastmath=FAST)
def _dot(x: Array, y: Array, size: int) -> float:
    total = 0.0
    for i in range(size):
        total += x[i] * y[i]
    return total


@inner()
def _balance(way: Array, group: IntArray, size: int, n_groups: int) -> None:
    """Take from every group's steps their mean: the sums must not change."""
    for k in range(n_groups):
        total, count = 0.0, 0
        for j in range(size):
            if group[j] == k:
                total += way[j]
                count += 1
        if count > 0:
            for j in range(size):
                if group[j] == k:
                    way[j] -= total / count


@inner(fastmath=FAST)
def _take_out(H: Array, j: int, size: int, column: Array) -> None:
    """The inverse with variable j held: ``H - H e_j e_j' H / H_jj``."""
    pivot = H[j, j]
    if not pivot > 0.0:
        return
    for i in range(size):
        column[i] = H[i, j]
    for i in range(size):
        share = column[i] / pivot
        for l in range(size):
            H[i, l] -= share * column[l]


@inner()
def _swap(A: Array, j: int, last: int, size: int) -> None:
    """Exchange two variables of a symmetric matrix."""
    for l in range(size):
        A[j, l], A[last, l] = A[last, l], A[j, l]
    for l in range(size):
        A[l, j], A[l, last] = A[l, last], A[l, j]


@compiled()
def slide(
    K: Array,
    H: Array,
    group: IntArray,
    n_groups: int,
    vectors: Array,
    order: IntArray,
    most: int,
) -> tuple[float, int]:
    """Go towards the minimum of ``1/2 d'Kd - v'd``, held at every bound that is met.

    Parameters
    ----------
    K : array of shape (m, m)
        Overwritten.
    H : array of shape (m, m)
        The inverse of K on the steps that keep the group sums; overwritten.
    group : integer array of shape (m,)
        Overwritten.
    n_groups : int
    vectors : array of shape (7, m)
        The force ``v``, the lower and the upper end of the box (``lower <= 0 <= upper``), zeros
        that become the step; the rest is room to work in.
    order : integer array of shape (m,)
        Becomes the variable that every entry of `vectors` belongs to.
    most : int
        Bounds to go to.

    Returns
    -------
    float
        By how much the objective fell.
    int
        Bounds met.
    """
    force, lower, upper, step, way, image, column = (
        vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5], vectors[6],
    )  # fmt: skip
    size = force.shape[0]
    for j in range(size):
        order[j] = j
    gained, met, whole = 0.0, 0, 0
    while size > 0 and met <= most:
        _product(H, force, size, way)
        _balance(way, group, size, n_groups)
        slope = _dot(force, way, size)
        _product(K, way, size, image)
        curvature = _dot(way, image, size)
        if not slope > 0.0:
            break
        length = slope / curvature if curvature > 0.0 else 1e300
        first = 1e300
        for j in range(size):
            if way[j] > 0.0:
                first = min(first, (upper[j] - step[j]) / way[j])
            elif way[j] < 0.0:
                first = min(first, (lower[j] - step[j]) / way[j])
        first = max(first, 0.0)
        t = min(first, length)
        if t >= 1e300:
            break
        gain = t * (slope - 0.5 * t * curvature)
        gained += gain
        for j in range(size):
            end = upper[j] if way[j] > 0.0 else lower[j]
            meets = way[j] != 0.0 and (end - step[j]) / way[j] <= t
            step[j] = end if meets else step[j] + t * way[j]
            force[j] -= t * image[j]
            image[j] = meets
        if first >= length:
            whole += 1
            if whole == _WHOLE_STEPS or gain <= _FURTHER * gained:
                break
            continue
        for j in range(size - 1, -1, -1):
            if image[j] > 0.0:
                _take_out(H, j, size, column)
                last = size - 1
                _swap(H, j, last, size)
                _swap(K, j, last, size)
                for q in range(6):
                    vectors[q, j], vectors[q, last] = vectors[q, last], vectors[q, j]
                group[j], group[last] = group[last], group[j]
                order[j], order[last] = order[last], order[j]
                size -= 1
                met += 1
    _close_sums(group, n_groups, vectors, size)
    return gained, met


@inner()
def _close_sums(group: IntArray, n_groups: int, vectors: Array, size: int) -> None:
    """What rounding left of the sums goes to the variables with most room."""
    lower, upper, step = vectors[1], vectors[2], vectors[3]
    for k in range(n_groups):
        total, most, chosen = 0.0, 0.0, -1
        for j in range(step.shape[0]):
            if group[j] == k:
                total += step[j]
                room = min(upper[j] - step[j], step[j] - lower[j])
                if j < size and room > most:
                    most, chosen = room, j
        if chosen >= 0:
            step[chosen] -= total


@compiled()
def spread_inverse(small: Array, keep: IntArray, pivot: IntArray, H: Array) -> None:
    """Fill H, zero so far, from the lower triangle of the inverse without the pivots.

    The pivot of a variable (-1: none) goes the opposite way.
    """
    for a in range(keep.shape[0]):
        i, p = keep[a], pivot[a]
        for b in range(keep.shape[0]):
            j, q = keep[b], pivot[b]
            value = small[a, b] if b <= a else small[b, a]
            H[i, j] = value
            if p >= 0:
                H[p, j] -= value
            if q >= 0:
                H[i, q] -= value
            if p >= 0 and q >= 0:
                H[p, q] += value
