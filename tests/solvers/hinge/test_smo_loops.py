"""What the box solver does between its blocks: rows for the next block, and memory let go."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from buttress.solvers.hinge._double_ramp import DoubleRampMachine
from buttress.solvers.hinge._smo_loops import choose_rows, flat_minima
from buttress.solvers.hinge._smo_problem import BoxPoint, BoxProblem, BoxTerms
from buttress.solvers.hinge.kernel_rows import KernelMatrix


def some_problem(seed, n=300):
    """Two variables a row in two groups, at a random point of their box."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, 3))
    K = KernelMatrix(X @ X.T)
    in_a = np.concatenate([y > 0, y < 0])
    terms = BoxTerms(
        K, np.tile(y, 2), -np.ones(2 * n), np.tile(np.arange(n), 2), np.where(in_a, 0, 1)
    )
    problem = BoxProblem(terms, np.zeros(2 * n), np.ones(2 * n))
    b = terms.sign * rng.choice([0.0, 0.5, 1.0], size=2 * n, p=[0.45, 0.1, 0.45])
    c = problem.row_sums(b)
    state = BoxPoint(b, c, K.times(c))
    return problem, state, problem.survey(state)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [2, 20, 1000])
def test_a_block_holds_the_worst_violators_of_every_group(seed, share):
    problem, state, _ = some_problem(seed)
    n = problem.K.n
    rows = np.empty(150, dtype=np.intp)
    before = np.arange(0, n, 7)
    lines = (6, 2 * n + 1)
    room = (rows, np.zeros(n, bool), np.zeros(n, bool), np.empty(lines), np.empty(lines, np.intp))
    terms = (problem.q, problem.row, problem.group)
    count = choose_rows(state.b, problem.v, problem.best, problem.box, terms, before, share, room)
    chosen = rows[:count]
    assert len(np.unique(chosen)) == count
    if share == 1000:  # more violators than places
        assert count == 150
        return
    may_rise = state.b < problem.upper - problem.slack
    may_fall = state.b > problem.lower + problem.slack
    for k in range(2):
        for able, score in ((may_rise, problem.v), (may_fall, -problem.v)):
            members = np.flatnonzero(able & (problem.group == k))
            assert problem.row[members[np.argmax(score[members])]] in chosen
    # the last block stays, its free rows first
    free = np.unique(problem.row[may_rise & may_fall])
    assert np.isin(np.intersect1d(before, free), chosen).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_survey_is_what_the_definitions_say(seed):
    problem, state, seen = some_problem(seed)
    v = -(state.g[problem.row] + problem.q)
    np.testing.assert_allclose(problem.v, v)
    inside = (state.b > problem.lower) & (state.b < problem.upper)
    np.testing.assert_array_equal(seen.free, np.flatnonzero(inside))
    gaps = [
        v[(problem.group == k) & (state.b < problem.upper)].max()
        - v[(problem.group == k) & (state.b > problem.lower)].min()
        for k in range(2)
    ]
    assert seen.worst == pytest.approx(max(gaps))
    assert seen.norm == pytest.approx(np.linalg.norm(state.c))


@pytest.mark.parametrize("seed", range(20))
def test_flat_minima_are_where_no_value_is_smaller(seed):
    rng = np.random.default_rng(seed)
    kinks, jumps = rng.integers(-4, 5, size=12) * 0.5, rng.integers(1, 3, size=12) * 1.0
    group = rng.integers(0, 2, size=12)
    # between minus all jumps, where the function falls for ever, and none, where it rises
    total = np.bincount(group, weights=jumps, minlength=2)
    slopes = -np.round(rng.random(2) * total)
    ends = np.empty((2, 2))
    flat_minima(np.argsort(kinks), kinks, jumps, group, slopes.copy(), 1e-12, ends)
    at = np.linspace(-9.0, 9.0, 361)
    for k in range(2):
        mine = group == k
        bends = np.maximum(at[:, None] - kinks[mine], 0.0) @ jumps[mine]
        value = slopes[k] * at + bends
        best = at[value <= value.min() + 1e-9]
        low, high = np.clip(ends[k], at[0], at[-1])
        assert (best.min(), best.max()) == pytest.approx((low, high))


def test_a_machine_lets_its_block_of_the_kernel_go():
    problem, _, _ = some_problem(0)
    n = problem.K.n
    gc.disable()
    try:
        machine = DoubleRampMachine(
            problem.K, problem.sign[:n], 1.0, 1.0, np.full(n, 0.2), np.full(n, 0.8), True, None
        )
        machine.step(machine.initial_pattern(), None, 1e-6)
        alive = weakref.ref(machine)
        del machine
        assert alive() is None
    finally:
        gc.enable()
