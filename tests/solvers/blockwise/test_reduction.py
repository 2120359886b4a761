"""Linear models by sums over blocks equal independent solutions, however the rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from buttress.blocks.base import ArrayBlocks
from buttress.kernels import make_kernel
from buttress.kernels.approximate import LinearMap, nystroem_map, transform
from buttress.losses import LeakyHockeyStick
from buttress.losses.smooth import Exponential, TruncatedQuadratic
from buttress.losses.smoothed import SmoothedHinge, SmoothedRamp
from buttress.solvers.blockwise import _sample, reduction
from buttress.solvers.blockwise.certificate import duality_gaps
from buttress.solvers.blockwise.columns import (
    Folds,
    ProblemColumns,
    RowLoss,
    column_grid,
    margin_rows,
    reject_rows,
    set_rows,
)
from buttress.solvers.blockwise.objective import Objective, make_objective
from buttress.solvers.blockwise.reduction import METHODS, solve_columns
from buttress.solvers.blockwise.scan import scan


def data(n: int = 300, p: int = 4, seed: int = 0, classes: int = 2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.standard_normal(n)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes + 0.05))
    return X, y, rng.uniform(0.5, 2.0, n)


def problem(
    X,
    y,
    weight=None,
    *,
    rows: RowLoss,
    columns: ProblemColumns,
    folds: Folds | None = None,
    m=25,
    **kw,
) -> Objective:
    folds = folds or Folds()
    source = ArrayBlocks(X, y, weight, **kw)
    features = nystroem_map(make_kernel("rbf", gamma=0.2), X[:m])
    return make_objective(source, features, scan(source, folds), rows, columns, folds)


LEAKY = margin_rows(LeakyHockeyStick())


def by_hand(objective: Objective, X, y, weight, column: int, theta: np.ndarray) -> float:
    """The objective of one column, straight from its definition."""
    columns, rows = objective.columns, objective.rows
    phi = transform(objective.reader.features, X)
    n_classes = len(np.unique(y))
    target = np.where(y == (1 if n_classes == 2 else columns.problem[column]), 1.0, -1.0)
    inside = objective.reader.folds.train(np.arange(len(X)))[:, columns.fold[column]]
    s = (np.ones(len(X)) if weight is None else weight) * inside
    w, o = theta[: phi.shape[1]], theta[phi.shape[1] :]
    total = 0.0
    for term in rows.terms:
        above, below = (o[term.offset_above], o[term.offset_below]) if len(o) else (0.0, 0.0)
        offset = np.where(target > 0, above, below)
        cost = np.where(target > 0, term.cost_above, term.cost_below)
        total += (s * cost * rows.loss.value(target * (phi @ w + offset))).sum()
    value = total / s.sum() + columns.alpha[column] * w @ w + np.dot(rows.slope, o)
    if objective.linear is not None:
        value += objective.linear[:, column] @ theta
    return float(value)


@pytest.mark.parametrize(
    "rows",
    [
        LEAKY,
        margin_rows(LeakyHockeyStick(2.0), fit_intercept=False),
        reject_rows(SmoothedHinge(width=0.3), 0.2),
        set_rows(TruncatedQuadratic()),
    ],
    ids=["leaky", "no intercept", "reject", "sets"],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_value_gradient_and_hessian_are_those_of_the_definition(rows, classes: int) -> None:
    X, y, weight = data(80, classes=classes)
    n_problems = 1 if classes == 2 else classes
    columns = column_grid(n_problems, [0, 2], [0.1])
    folds = Folds(2, seed=3)
    plain = problem(X, y, weight, rows=rows, columns=columns, folds=folds, m=6, block_size=17)
    rng = np.random.default_rng(1)
    shape = (plain.n_parameters, len(columns))
    objective = plain.with_linear(rng.standard_normal(shape))
    theta = rng.standard_normal(shape)
    everything = np.arange(len(columns))
    value, gradient = objective(theta, everything)
    hessians = objective.hessians(theta, everything)
    for c in everything:
        assert value[c] == pytest.approx(by_hand(objective, X, y, weight, c, theta[:, c]))
        for j in range(shape[0]):
            step = np.zeros(shape[0])
            step[j] = 1e-5
            up, down = theta.copy(), theta.copy()
            up[:, c] += step
            down[:, c] -= step
            f_up = by_hand(objective, X, y, weight, c, up[:, c])
            f_down = by_hand(objective, X, y, weight, c, down[:, c])
            assert gradient[j, c] == pytest.approx((f_up - f_down) / 2e-5, abs=1e-5)
            slope = (objective(up, everything)[1] - objective(down, everything)[1])[:, c] / 2e-5
            np.testing.assert_allclose(hessians[c, j], slope, atol=1e-2)


@pytest.mark.smoke
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_minimum(method: str) -> None:
    X, y, weight = data()
    objective = problem(X, y, weight, rows=LEAKY, columns=column_grid(1, [0], [1e-1, 1e-3]))
    found = solve_columns(objective, tol=1e-13, method=method, max_passes=2000)
    assert found.converged.all()
    phi = transform(objective.reader.features, X)
    target = np.where(y == 1, 1.0, -1.0)
    for c, alpha in enumerate((1e-1, 1e-3)):

        def function(theta, alpha=alpha):
            u = target * (phi @ theta[:-1] + theta[-1])
            loss = LeakyHockeyStick()
            s = weight / weight.sum()
            slope = s * loss.derivative(u) * target
            gradient = np.append(phi.T @ slope + 2 * alpha * theta[:-1], slope.sum())
            return s @ loss.value(u) + alpha * theta[:-1] @ theta[:-1], gradient

        start = np.zeros(objective.n_parameters)
        reference = minimize(
            function, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-16, "gtol": 1e-10}
        )
        assert found.objective[c] == pytest.approx(reference.fun, abs=1e-9)
        np.testing.assert_allclose(function(found.theta[:, c])[1], 0.0, atol=1e-6)


@settings(max_examples=8)
@given(st.integers(1, 320), st.integers(1, 3), st.sampled_from([1e-1, 1e-3]))
def test_blocks_do_not_change_the_model(size: int, threads: int, alpha: float) -> None:
    X, y, weight = data()
    folds = Folds(2, seed=1)
    columns = column_grid(1, range(3), [alpha])
    options = {"rows": LEAKY, "columns": columns, "folds": folds}
    one = solve_columns(problem(X, y, weight, **options, block_size=300), tol=1e-21)
    cut = problem(X, y, weight, **options, block_size=max(size, 10), n_threads=threads)
    np.testing.assert_allclose(solve_columns(cut, tol=1e-21).theta, one.theta, atol=1e-8)


def test_a_fold_is_a_fit_without_its_rows() -> None:
    X, y, weight = data(classes=3)
    folds = Folds(3, seed=1)
    joint = problem(X, y, weight, rows=LEAKY, columns=column_grid(3, range(4), [1e-2]), folds=folds)
    together = solve_columns(joint, tol=1e-18)
    for c, (p, f) in enumerate(zip(joint.columns.problem, joint.columns.fold, strict=True)):
        kept = folds.train(np.arange(len(X)))[:, f]
        source = ArrayBlocks(X[kept], np.where(y[kept] == p, 1, 0), weight[kept])
        alone = make_objective(
            source,
            joint.reader.features,
            scan(source),
            LEAKY,
            column_grid(1, [0], [1e-2]),
            Folds(),
        )
        theta = solve_columns(alone, tol=1e-18).theta[:, 0]
        np.testing.assert_allclose(together.theta[:, c], theta, atol=1e-7)


def test_many_rows_start_from_a_sample_and_end_at_the_same_point(monkeypatch) -> None:
    monkeypatch.setattr(_sample, "_FEWEST_SAMPLE", 400)
    X, y, _ = data(3000)
    folds = Folds(2, seed=1)
    options = {"rows": LEAKY, "columns": column_grid(1, range(3), [1e-2, 1e-4]), "folds": folds}
    objective = problem(X, y, m=20, **options)
    sampled = solve_columns(objective, tol=1e-16)
    assert sampled.method.startswith("sample")
    exact = solve_columns(objective, tol=1e-16, method="newton")
    np.testing.assert_allclose(sampled.theta, exact.theta, atol=1e-5)
    np.testing.assert_allclose(sampled.objective, exact.objective, atol=1e-12)
    # A sample without one of the classes says nothing: the Gram matrix takes over.
    rare = np.zeros(len(X), dtype=int)
    rare[:6] = 1
    lone = problem(X, rare, rows=LEAKY, columns=column_grid(1, [0], [1e-2]), m=20)
    assert solve_columns(lone, tol=1e-10).method.startswith("fixed")


def test_more_columns_than_a_batch_and_more_components_than_a_square(monkeypatch) -> None:
    X, y, _ = data(200)
    objective = problem(X, y, rows=LEAKY, columns=column_grid(1, [0], np.logspace(-1, -3, 7)))
    expected = solve_columns(objective, tol=1e-14)
    monkeypatch.setattr(reduction, "_BATCH", 3)
    np.testing.assert_allclose(
        solve_columns(objective, tol=1e-14).objective, expected.objective, atol=1e-11
    )
    monkeypatch.setattr(reduction, "MOST_SQUARE", 10)
    many = solve_columns(objective, tol=1e-12, max_passes=1000)
    assert many.method == "lbfgs"
    np.testing.assert_allclose(many.objective, expected.objective, atol=1e-9)


def test_float32_rows_reach_single_precision() -> None:
    X, y, _ = data()
    columns = column_grid(1, [0], [1e-2])
    wide = solve_columns(problem(X, y, rows=LEAKY, columns=columns), tol=1e-14)
    narrow = problem(X.astype(np.float32), y, rows=LEAKY, columns=columns)
    found = solve_columns(narrow, tol=1e-14)
    assert found.converged.all()
    np.testing.assert_allclose(found.objective, wide.objective, atol=1e-5)


@pytest.mark.parametrize(
    "rows",
    [
        LEAKY,
        margin_rows(LeakyHockeyStick(3.0)),
        margin_rows(SmoothedHinge(width=0.1)),
        reject_rows(SmoothedHinge(width=0.1), 0.3),
        set_rows(TruncatedQuadratic()),
        set_rows(Exponential()),
    ],
)
def test_duality_gap_closes_at_the_minimum_and_bounds_it_elsewhere(rows) -> None:
    X, y, weight = data(120)
    objective = problem(X, y, weight, rows=rows, columns=column_grid(1, [0], [1e-2]), m=10)
    found = solve_columns(objective, tol=1e-18)
    gaps, values = duality_gaps(objective, found.theta)
    np.testing.assert_allclose(values, found.objective, atol=1e-12)
    assert gaps[0] < 1e-7
    near = found.theta + 1e-3 * np.random.default_rng(0).standard_normal(found.theta.shape)
    gap, value = duality_gaps(objective, near)
    assert value[0] - found.objective[0] <= gap[0] + 1e-12


def test_linear_terms_shift_the_minimum() -> None:
    X, y, _ = data(120)
    objective = problem(X, y, rows=LEAKY, columns=column_grid(1, [0], [0.1]), m=10)
    linear = 0.05 * np.random.default_rng(0).standard_normal((objective.n_parameters, 1))
    shifted = objective.with_linear(linear)
    found = solve_columns(shifted, tol=1e-16)
    np.testing.assert_allclose(shifted(found.theta, np.array([0]))[1], 0.0, atol=1e-6)
    assert duality_gaps(shifted, found.theta)[0][0] < 1e-8


def test_linear_kernel_needs_no_landmarks() -> None:
    X, y, _ = data()
    source = ArrayBlocks(X, y, block_size=70)
    columns = column_grid(1, [0], [1e-2])
    objective = make_objective(source, LinearMap(4), scan(source), LEAKY, columns, Folds())
    found = solve_columns(objective, tol=1e-16)
    np.testing.assert_allclose(objective(found.theta, np.array([0]))[1], 0.0, atol=1e-6)
    assert [c.converged for c in found.certificates()] == [True]


def test_a_loss_without_conjugate_has_no_gap_and_bad_methods_are_refused() -> None:
    class Squared:
        curvature_bound = 2.0

        def value(self, u):
            return (1 - u) ** 2

        def derivative(self, u):
            return 2 * (u - 1)

        def curvature(self, u):
            return np.full_like(u, 2.0)

    X, y, _ = data(60)
    objective = problem(X, y, rows=margin_rows(Squared()), columns=column_grid(1, [0], [0.1]), m=8)
    found = solve_columns(objective, tol=1e-14)
    assert found.converged.all()
    assert np.isnan(duality_gaps(objective, found.theta)[0]).all()
    with pytest.raises(ValueError, match="method='magic'"):
        solve_columns(objective, method="magic")
    ramp = problem(X, y, rows=margin_rows(SmoothedRamp()), columns=column_grid(1, [0], [0.1]), m=8)
    assert np.isnan(duality_gaps(ramp, np.zeros((9, 1)))[0]).all()


@pytest.mark.parametrize(("r", "dtype"), [(np.inf, float), (3.0, float), (np.inf, np.float32)])
def test_a_path_in_single_precision_is_as_near_to_the_minimum_as_was_asked(r, dtype) -> None:
    rng = np.random.default_rng(3)
    X = np.hstack([rng.normal(size=(900, 12)), 1e-3 * rng.normal(size=(900, 4))]).astype(dtype)
    # classes of nearly equal weight: whole intervals of offsets are nearly as good
    y = ((X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=900)) > 0.0).astype(int)
    source, folds = ArrayBlocks(X, y, keep=True), Folds(4, seed=1)
    columns = column_grid(1, range(5), np.logspace(0, -6, 30))
    rows = margin_rows(LeakyHockeyStick(r))
    problem = make_objective(source, LinearMap(16), scan(source, folds), rows, columns, folds)
    found = solve_columns(problem, tol=1e-7, max_passes=1000)
    wide = ArrayBlocks(X.astype(float), y)
    problem = make_objective(wide, LinearMap(16), scan(wide, folds), rows, columns, folds)
    exact = solve_columns(problem, tol=1e-14, max_passes=3000, method="newton")
    assert found.method.startswith("single")
    assert found.converged.all()
    value, _ = problem(found.theta, np.arange(len(columns)))
    excess = value - exact.objective
    assert excess.max() < 3e-6


def test_a_linear_term_of_ones_own_counts_from_a_cold_start() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    source = ArrayBlocks(X, (X[:, 0] + rng.normal(size=200) > 0).astype(int))
    columns = column_grid(1, [0], [0.1, 0.01])
    rows = margin_rows(LeakyHockeyStick())
    problem = make_objective(source, LinearMap(3), scan(source), rows, columns, Folds())
    linear = np.vstack([0.02 * rng.normal(size=(3, 2)), np.zeros((1, 2))])
    solver = reduction.ColumnSolver(problem, "auto", _sample.sample_of(problem))
    found = solver.solve(np.full(2, 1e-14), 500, linear=linear)
    _, gradient = problem.with_linear(linear)(found.theta, np.arange(2))
    assert found.converged.all()
    assert np.abs(gradient).max() < 1e-6
