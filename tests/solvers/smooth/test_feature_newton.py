"""Newton's method in features: optimality at every penalty, whatever the rows look like."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from buttress.losses import LeakyHockeyStick
from buttress.solvers.smooth import _feature_hessian, _feature_space, _wide_space
from buttress.solvers.smooth._feature_hessian import SMALLEST_RIDGE
from buttress.solvers.smooth.geometry import ScaledGeometry, from_gram, from_rows
from buttress.solvers.smooth.newton import NewtonTask, newton, small_steps
from buttress.solvers.smooth.problems import Problems
from buttress.solvers.smooth.spectral import solve_problems

LAMBDAS = 10.0 ** np.linspace(0, -6, 30)


# Doors to functions that are for compiled code.
@numba.njit
def add_products(left, right, first, width, size, unit, H):
    _feature_hessian.add_products(left, right, first, width, size, unit, H)


@numba.njit
def set_products(Z, v, panel, H):
    _feature_hessian.set_products(Z, v, panel, H)


@numba.njit
def change_products(Z, omega, kappa, used, changed, panel, rows, H):
    _feature_hessian.change_products(Z, omega, kappa, used, changed, panel, rows, H)


@numba.njit
def factorise(space, lam, n_penalised):
    return _feature_space.factorise(space, lam, n_penalised)


@numba.njit
def common_change(kappa, used):
    return _wide_space._common_change(kappa, used)


@numba.njit
def lost_curvature(space, omega, kappa):
    return _feature_space._lost_curvature(space, omega, kappa)


def problem(n, p, seed, *, noise=0.7, share=0.5):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, p)) / np.sqrt(p)
    score = Phi[:, 0] * np.sqrt(p) + noise * rng.normal(size=n)
    y = np.where(score > np.quantile(score, 1 - share), 1.0, -1.0)
    return Phi, y, np.full(n, 1.0 / n)


def solve(
    Phi,
    y,
    omega,
    r=np.inf,
    *,
    lambdas=LAMBDAS,
    intercept=True,
    tol=1e-9,
    start=None,
    signs_only=False,
):
    geometry = ScaledGeometry(Phi, False, 1.0)
    return newton(
        NewtonTask(
            geometry,
            y,
            omega,
            lambdas,
            LeakyHockeyStick(r),
            intercept,
            tol,
            1000,
            start,
            signs_only,
        )
    )


def errors(Phi, y, omega, r, lambdas, found, intercept=True):
    """The worst violation of ``2 lambda beta = sum_i w_i t_i y_i x_i`` and of balance."""
    coef, b = found.coefs[0], found.intercept[0]
    t = -LeakyHockeyStick(r).derivative(y * (coef @ Phi.T + b[:, None]))
    pull = (omega * y * t) @ Phi
    size = np.abs(omega * t) @ np.abs(Phi) + 1e-300
    worst = np.max(np.abs(2 * lambdas[:, None] * coef - pull) / size)
    if intercept:
        worst = max(worst, np.max(np.abs((t * y) @ omega)))
    assert np.all(found.converged)
    return worst


@pytest.mark.parametrize("r", [np.inf, 1.5, 5.0])
@pytest.mark.parametrize("p", [1, 4, 15, 16, 40])
def test_all_penalties_are_optimal_for_few_and_many_features(p, r):
    # from fifteen features and the intercept on the Hessian is in float32
    Phi, y, omega = problem(150, p, p, share=0.4)
    assert errors(Phi, y, omega, r, LAMBDAS, solve(Phi, y, omega, r)) < 1e-8


@pytest.mark.parametrize("intercept", [True, False])
def test_held_out_rows_are_predicted_only_and_weights_count(intercept):
    Phi, y, omega = problem(120, 5, 0, share=0.3)
    omega = omega * np.random.default_rng(1).uniform(0.1, 2.0, size=120)
    omega[::4] = 0.0
    omega /= omega.sum()
    found = solve(Phi, y, omega, intercept=intercept)
    assert errors(Phi, y, omega, np.inf, LAMBDAS, found, intercept) < 1e-8
    kept = omega > 0
    alone = solve(np.ascontiguousarray(Phi[kept]), y[kept], omega[kept], intercept=intercept)
    np.testing.assert_array_equal(found.coefs[0], alone.coefs[0])
    np.testing.assert_array_equal(found.intercept[0], alone.intercept[0])


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_features_of_very_different_sizes(scale):
    Phi, y, omega = problem(200, 20, 3)
    Phi[:, ::3] *= scale
    with np.errstate(over="raise", invalid="raise"):
        found = solve(Phi, y, omega)
    assert errors(Phi, y, omega, np.inf, LAMBDAS, found) < 1e-8


@pytest.mark.parametrize("r", [np.inf, 2.0])
def test_scaling_tail_of_separable_rows(r):
    Phi, y, omega = problem(60, 3, 5, noise=0.0)
    found = solve(Phi, y, omega, r)
    assert errors(Phi, y, omega, r, LAMBDAS, found) < 1e-8
    assert found.iterations[0][0] > 0
    assert found.iterations[0][-1] == 0


@pytest.mark.parametrize("share", [0.5, 0.1])
@pytest.mark.parametrize("lam", [1.0, 1e-3, 1e-6])
def test_one_penalty_from_a_start_far_away(share, lam):
    Phi, y, omega = problem(100, 4, 7, share=share)
    lambdas = np.array([lam])
    cold = solve(Phi, y, omega, lambdas=lambdas)
    for size, b in ((1e3, -50.0), (-1e3, 50.0), (0.0, 0.0), (0.0, 1e4)):
        start = np.full(4, size), b
        found = solve(Phi, y, omega, lambdas=lambdas, start=start)
        np.testing.assert_allclose(found.coefs[0], cold.coefs[0], rtol=1e-7, atol=1e-9)
        if np.ptp(cold.interval[0]) == 0:  # the intercept is unique
            np.testing.assert_allclose(found.intercept[0], cold.intercept[0], rtol=1e-6, atol=1e-7)


def test_intercept_interval_of_balanced_classes():
    Phi, y, omega = problem(80, 3, 9)
    assert y.sum() == 0
    found = solve(Phi, y, omega, lambdas=10.0 ** np.linspace(2, -4, 25))
    low, high = found.interval[0].T
    assert low[0] < high[0]
    assert low[-1] == high[-1]
    np.testing.assert_allclose(found.intercept[0], (low + high) / 2)


@pytest.mark.parametrize("r", [np.inf, 1.05])
def test_few_steps_where_hardly_a_row_is_curved(r):
    # Classes of equal weight just below the penalties at which the intercept is an interval.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Phi, y = rng.normal(size=(22, 1)), np.where(np.arange(22) % 2, 1.0, -1.0)
        omega = np.full(22, 1 / 22)
        for lam in 10.0 ** np.linspace(0, -2, 21):
            found = solve(Phi, y, omega, r, lambdas=np.array([lam]))
            assert errors(Phi, y, omega, r, np.array([lam]), found) < 1e-8
            assert found.iterations[0][0] < 40


@pytest.mark.parametrize("r", [np.inf, 1.2, 5.0])
@pytest.mark.parametrize(
    ("n", "p", "noise", "share"), [(190, 18, 0.7, 0.5), (60, 2, 0.0, 0.3), (300, 5, 3.0, 0.15)]
)
def test_signs_are_those_of_the_exact_solution_with_less_work(n, p, noise, share, r):
    for seed in range(4):
        Phi, y, omega = problem(n, p, seed, noise=noise, share=share)
        omega[seed::5] = 0.0
        omega /= omega.sum()
        out = Phi[omega == 0.0]
        found = solve(Phi, y, omega, r, tol=1e-6, signs_only=True)
        exact = solve(Phi, y, omega, r, tol=1e-12)
        pairs = [(one.coefs[0], one.intercept[0]) for one in (found, exact)]
        signs = [coef @ out.T + b[:, None] > 0 for coef, b in pairs]
        np.testing.assert_array_equal(*signs)
        assert found.iterations[0].sum() < exact.iterations[0].sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", range(1, 9))
def test_products_by_tiles(size, dtype):
    rng = np.random.default_rng(size)
    left = rng.normal(size=(size, 50)).astype(dtype)
    right = rng.normal(size=(size, 90)).astype(dtype)
    H = np.zeros((size + 2, size + 2))
    add_products(left, right, 20, 41, size, 2.0, H)
    expected = 2.0 * left[:, :41].astype(float) @ right[:, 20:61].T
    found = H[:size, :size]
    np.testing.assert_allclose(np.tril(found), np.tril(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-3), (np.float64, 1e-10)])
def test_products_follow_the_rows_that_change(dtype, atol):
    rng = np.random.default_rng(0)
    size, m = 20, 700
    Z = rng.normal(size=(size, m)).astype(dtype)
    omega, used = rng.random(m), rng.random(m)
    panel, rows = np.zeros((2, size, 512), dtype=dtype)
    H = np.zeros((size + 2, size + 2))
    set_products(Z, omega * used, panel, H)
    for changed in (np.arange(m), np.arange(0, m, 7), np.array([3]), np.array([], dtype=int)):
        kappa = used.copy()
        kappa[changed] = rng.random(len(changed)) * (rng.random(len(changed)) < 0.8)
        change_products(Z, omega, kappa, used, changed, panel, rows, H)
        np.testing.assert_array_equal(used, kappa)
        expected = (Z * omega * kappa) @ Z.T.astype(float)
        np.testing.assert_allclose(np.tril(H[:size, :size]), np.tril(expected), atol=atol)


def test_the_common_change_of_curvatures():
    used = np.linspace(0.0, 1.0, 1000)
    kappa = 0.8 * used
    kappa[::10] = 0.0
    assert common_change(kappa, used) == pytest.approx(0.8)
    assert common_change(np.zeros(1000), used) == 1.0
    assert common_change(np.array([2.0]), np.array([1.0])) == 2.0


@pytest.mark.parametrize("n", [60, 300])
def test_scores_are_those_of_the_coefficients(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    geometry = from_rows(X, None, fit_intercept=True)
    omega = np.zeros((2, n))
    omega[0, ::2], omega[1] = 2.0 / n, 1.0 / n
    paths = solve_problems(
        Problems.at(geometry, np.tile(y, (2, 1)), omega, LAMBDAS, LeakyHockeyStick()),
        method="newton",
    )
    expected = (np.stack(paths.coefs) @ geometry.back.T) @ (X - X.mean(axis=0)).T
    np.testing.assert_allclose(paths.scores, expected, atol=1e-10)
    np.testing.assert_allclose(paths.scores_at(0, [3, 7]), expected[0][:, [3, 7]], atol=1e-10)


@pytest.mark.parametrize("signs_only", [True, False])
def test_a_path_that_stands_still(signs_only):
    # No feature tells anything: every step is exactly zero.
    Phi, y = np.zeros((40, 16)), np.where(np.arange(40) % 4, 1.0, -1.0)
    omega = np.full(40, 1 / 30)
    omega[30:] = 0.0
    found = solve(Phi, y, omega, signs_only=signs_only)
    np.testing.assert_array_equal(found.coefs[0], 0.0)
    np.testing.assert_allclose(found.intercept[0], found.intercept[0][0])
    assert np.all(found.converged)


def test_correlated_features_converge_at_every_penalty():
    # At some of these penalties the float32 guess of the start hides the way downhill.
    rng = np.random.default_rng(128)
    n = int(10 ** rng.uniform(1.6, 3))
    rng.choice(11)
    X = rng.normal(size=(n, 36))
    rng.integers(6)
    X = X @ rng.normal(size=(36, 36))
    score = ((X - X.mean(axis=0)) / X.std(axis=0)) @ (rng.normal(size=36) * (rng.random(36) < 0.5))
    score = score / score.std() + rng.choice([0.0, 0.1, 0.5, 2.0]) * rng.normal(size=n)
    y = np.where(score > np.quantile(score, 1 - rng.choice([0.5, 0.3, 0.1])), 1.0, -1.0)
    geometry = from_rows(X, None, fit_intercept=True)
    omega = np.full((1, n), 1.0 / n)
    for r in (np.inf, 3.0, 1.2):
        for penalties in (30, 100):
            alphas = 10.0 ** np.linspace(0, -7, penalties)
            loss = LeakyHockeyStick(r)
            paths = solve_problems(
                Problems.at(geometry, y[None], omega, alphas, loss, tol=1e-6, max_iter=1000)
            )
            assert paths.converged.all()


@pytest.mark.parametrize("p", [4, 17])
def test_curvature_lost_is_the_leverage_of_rows_that_became_flat(p):
    random = np.random.default_rng(0)
    m, lam = 40, 0.1
    X, y = random.standard_normal((m, p)), np.where(np.arange(m) % 2, 1.0, -1.0)
    omega, used = np.full(m, 1.0 / m), random.uniform(0.1, 1.0, m)
    kappa = np.where(np.arange(m) % 10 == 3, 0.0, used)
    every = np.arange(m)
    space = _feature_space.feature_space(X, y, every, every[:0], True)
    space.curvature[:] = used
    space.H[: p + 1, : p + 1] = (space.Z * (omega * used)) @ space.Z.T
    assert factorise(space, lam, p) == SMALLEST_RIDGE
    penalised = space.H[: p + 1, : p + 1] + 2.0 * lam * np.diag([1.0] * p + [0.0])
    flat = space.Z[:, 3::10]
    leverage = omega[0] * used[3::10] * np.sum(flat * np.linalg.solve(penalised, flat), axis=0)
    assert lost_curvature(space, omega, kappa) == pytest.approx(leverage.sum(), rel=1e-9)


@pytest.mark.parametrize("kernel_form", [True, False])
def test_penalties_that_lead_to_the_one_wanted_take_fewer_steps_to_the_same_solution(kernel_form):
    Phi, y, omega = problem(150, 5, 3, share=0.4)
    K = np.exp(-0.3 * ((Phi[:, None] - Phi) ** 2).sum(axis=2))
    geometry = ScaledGeometry(K, True, 1.0) if kernel_form else ScaledGeometry(Phi, False, 1.0)
    ladder, wanted = small_steps(np.array([1e-5]))
    given = (geometry, y, omega, ladder, LeakyHockeyStick(), True, 1e-9, 1000)
    all_solved, one_wanted = newton(NewtonTask(*given)), newton(NewtonTask(*given, wanted=wanted))
    assert one_wanted.iterations.sum() < all_solved.iterations.sum()
    some, every = one_wanted.at(wanted), all_solved.at(wanted)
    for part in ("coefs", "intercept", "interval"):
        np.testing.assert_allclose(getattr(some, part), getattr(every, part), rtol=1e-6, atol=1e-8)
    assert some.converged.all()


@pytest.mark.parametrize("kind", ["rows", "gram"])
def test_a_path_that_is_cut_for_two_threads_is_the_same(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, 1.0, -1.0)
    geometry = (
        from_rows(X, None, fit_intercept=True)
        if kind == "rows"
        else from_gram(np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)))
    )
    omega = np.ones((3, 120))
    for fold in range(3):
        omega[fold, fold::3] = 0.0
    omega /= omega.sum(axis=1, keepdims=True)
    penalties, done = 10.0 ** np.linspace(0, -7, 100), []
    whole, cut = (
        solve_problems(
            Problems.at(
                geometry, np.tile(y, (3, 1)), omega, penalties, LeakyHockeyStick(), tol=1e-11
            ),
            method="newton",
            n_threads=threads,
            advance=done.append,
        )
        for threads in (1, 2)
    )
    assert sum(done) == 6
    assert cut.converged.all()
    np.testing.assert_allclose(cut.scores, whole.scores, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(cut.intercept, whole.intercept, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(cut.interval, whole.interval, rtol=1e-6, atol=1e-7)
