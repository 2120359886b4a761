"""What the box solver does between its blocks, as compiled loops over all variables.

They hold no lock of the interpreter, so that folds and classes in threads do not wait for each
other. `state` is the point ``(b, c, g)``, `box` the arrays ``(lower, upper, slack)``, `terms`
the arrays ``(q, row, group)``, all of them those of `buttress.solvers.hinge._smo_problem`.
"""

from __future__ import annotations

from typing import Any

from buttress._arrays import Array, BoolArray, IntArray
from buttress._compile import compiled, inner
from buttress.solvers.hinge._loops import NEVER

Arrays = tuple[Any, Any, Any]
# Of the range in which the cut between violators is looked for.
_HALVINGS = 20


@compiled()
def survey(
    state: Arrays, box: Arrays, terms: Arrays, v: Array, best: Array, free: IntArray
) -> tuple[float, int, float, float]:
    """Fill ``v = -(g + q)`` and, per group, the largest up and the smallest low score.

    `best` has one row per group and a last one for the variables without a group; `free` begins
    with the variables between their bounds. Returns the largest violation, the number of free
    variables, the largest ``|g|`` and the sum of ``c^2``.
    """
    b, c, g = state
    lower, upper, slack = box
    q, row, group = terms
    last = best.shape[0] - 1
    for k in range(last + 1):
        best[k, 0] = -NEVER
        best[k, 1] = NEVER
    n_free = 0
    for j in range(v.shape[0]):
        value = -(g[row[j]] + q[j])
        v[j] = value
        k = group[j] if group[j] >= 0 else last
        may_rise = b[j] < upper[j] - slack[j]
        may_fall = b[j] > lower[j] + slack[j]
        if may_rise and value > best[k, 0]:
            best[k, 0] = value
        if may_fall and value < best[k, 1]:
            best[k, 1] = value
        if may_rise and may_fall:
            free[n_free] = j
            n_free += 1
    worst = max(best[last, 0], -best[last, 1], 0.0)
    for k in range(last):
        if best[k, 0] > -NEVER and best[k, 1] < NEVER:
            worst = max(worst, best[k, 0] - best[k, 1])
    largest, square = 0.0, 0.0
    for i in range(c.shape[0]):
        largest = max(largest, abs(g[i]))
        square += c[i] * c[i]
    return worst, n_free, largest, square


@inner()
def _cut(x: Array, share: int) -> float:
    """A value that most of `share` entries of x reach, and no more than `share` (or the largest).

    By halving: passes that only count compile to vector instructions, a selection does not.
    """
    if x.shape[0] <= share:
        return 0.0
    low, high = 0.0, 0.0
    for value in x:
        high = max(high, value)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        count = 0
        for value in x:
            count += value >= middle
        if count > share:
            low = middle
        else:
            high = middle
            if 4 * count >= 3 * share:
                break
    return high


@inner()
def _add(row: int, rows: IntArray, taken: BoolArray, count: int) -> int:
    """Put a row at the end of the chosen ones unless it is there, or they are many enough."""
    if taken[row] or count == rows.shape[0]:
        return count
    taken[row] = True
    rows[count] = row
    return count + 1


@compiled()
def choose_rows(
    b: Array,
    v: Array,
    best: Array,
    box: Arrays,
    terms: Arrays,
    before: IntArray,
    share: int,
    room: tuple[Any, Any, Any, Any, Any],
) -> int:
    """Fill ``room[0]`` with the rows of the next block; returns their number.

    They are those of the worst violators, `share` for every group and direction, then the free
    ones of the last block `before`, the rest of it, and free ones of any other place. The other
    arrays of `room` are two of one False for every row, and two for numbers and rows, with one
    line for every group and direction and one more column than variables.
    """
    lower, upper, slack = box
    _, row, group = terms
    rows, taken, free, beyond, who = room
    last, count = best.shape[0] - 1, 0
    sizes = who[:, -1]
    sizes[:] = 0
    for j in range(v.shape[0]):
        k = group[j] if group[j] >= 0 else last
        may_rise, may_fall = b[j] < upper[j] - slack[j], b[j] > lower[j] + slack[j]
        # a riser is compared with the lowest that may fall, a faller with the highest
        for side in range(2):
            bound = best[k, 1 - side] if group[j] >= 0 else 0.0
            excess = v[j] - bound if side == 0 else bound - v[j]
            line, m = 2 * k + side, sizes[2 * k + side]
            beyond[line, m], who[line, m] = excess, row[j]
            # the line is kept by violators only
            sizes[line] += (may_rise if side == 0 else may_fall) and excess > 0.0
        free[row[j]] |= may_rise and may_fall
    for line in range(2 * (last + 1)):
        excesses = beyond[line, : sizes[line]]
        least, left = _cut(excesses, share), share
        for p in range(excesses.shape[0]):
            if excesses[p] >= least and left > 0:
                count = _add(who[line, p], rows, taken, count)
                left -= 1
    for i in before:
        if free[i]:
            count = _add(i, rows, taken, count)
    for i in before:
        count = _add(i, rows, taken, count)
    for i in range(taken.shape[0]):
        if free[i]:
            count = _add(i, rows, taken, count)
    return count


@compiled()
def enter_block(members: IntArray, b: Array, v: Array, box: Arrays, inside: Array) -> None:
    """Copy scores, point and box of the block's variables; without a variable, an empty box."""
    lower, upper, slack = box
    for q in range(members.shape[0]):
        for i in range(members.shape[1]):
            j = members[q, i]
            if j < b.shape[0]:
                inside[0, q, i] = v[j]
                inside[1, q, i] = b[j]
                inside[2, q, i] = lower[j]
                inside[3, q, i] = upper[j]
                inside[4, q, i] = slack[j]
            else:
                for k in range(5):
                    inside[k, q, i] = 0.0


@compiled()
def leave_block(
    rows: IntArray, members: IntArray, inside: Array, b: Array, c: Array, moved: tuple[Any, Any]
) -> int:
    """Copy the block's variables back and sum them per row.

    The rows whose sums changed, and by how much, are at the beginning of the two arrays `moved`;
    returns their number.
    """
    where, change = moved
    count = 0
    for i in range(rows.shape[0]):
        total = 0.0
        for q in range(members.shape[0]):
            j = members[q, i]
            if j < b.shape[0]:
                b[j] = inside[1, q, i]
                total += b[j]
        if total != c[rows[i]]:
            where[count] = rows[i]
            change[count] = total - c[rows[i]]
            c[rows[i]] = total
            count += 1
    return count


@compiled()
def balance(b: Array, box: Arrays, group: IntArray, excess: Array, order: IntArray) -> int:
    """Take the excess of every group's sum from the variables that gain most from it.

    `order` sorts the variables by their scores. Returns a group whose box is too small, or -1.
    """
    lower, upper, _ = box
    for k in range(excess.shape[0]):
        left = abs(excess[k])
        falling = excess[k] > 0.0
        for p in range(order.shape[0]):
            j = order[p] if falling else order[order.shape[0] - 1 - p]
            if group[j] != k:
                continue
            if left <= 0.0:
                break
            take = min(left, b[j] - lower[j] if falling else upper[j] - b[j])
            b[j] += -take if falling else take
            left -= take
        if left > 1e-9 * abs(excess[k]):
            return k
    return -1


@compiled()
def flat_minima(
    order: IntArray, kinks: Array, jumps: Array, group: IntArray, slopes: Array, flat: float,
    intervals: Array,
) -> None:  # fmt: skip
    """Where convex functions with these kinks, one for every group, are smallest.

    Parameters
    ----------
    order : array of shape (m,)
        Sorts the kinks.
    kinks, jumps : arrays of shape (m,)
        Where the slopes change, and by how much.
    group : array of shape (m,)
    slopes : array of shape (n_groups,)
        Slopes at -inf.
    flat : float
        Share of a group's jumps below which a slope is zero.
    intervals : array of shape (n_groups, 2)
        Overwritten with the ends; they are infinite where a function is flat to that side.
    """
    for k in range(slopes.shape[0]):
        total = 0.0
        for j in range(kinks.shape[0]):
            if group[j] == k:
                total += jumps[j]
        level, slope = flat * total, slopes[k]
        intervals[k, 0] = intervals[k, 1] = float("inf")
        begun = slope >= -level
        if begun:
            intervals[k, 0] = -float("inf")
        if slope > level:
            intervals[k, 1] = -float("inf")
            continue
        total = 0.0
        for j in order:
            if group[j] != k:
                continue
            total += jumps[j]
            if not begun and slope + total >= -level:
                begun = True
                intervals[k, 0] = kinks[j]
            if slope + total > level:
                intervals[k, 1] = kinks[j]
                break
