"""Hard radii: the interior point of the ellipsoid loss, hulls that meet, far thresholds."""

import numpy as np
import pytest

from buttress.losses import EllipsoidError, Exponential, Logistic, NuHinge, TruncatedQuadratic
from buttress.solvers.sets._central_path import follow_central_path
from buttress.solvers.sets._hulls import hull_weights
from buttress.solvers.sets._path_factor import PathSystem
from buttress.solvers.sets._search import Search
from buttress.solvers.sets._spaces import FeatureFunctions, LabelledRows
from buttress.solvers.sets.distance import CentredGeometry, distance_path, solve_distance
from buttress.solvers.sets.thresholds import class_threshold


class _Disguised:
    """A loss without its type: thresholds by the general code."""

    def __init__(self, loss):
        self.derivative, self.curvature = loss.derivative, loss.curvature


def noisy_rows(n=60, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, rng


@pytest.mark.parametrize("spread", [0.1, 5.0, 1000.0])
@pytest.mark.parametrize("guess", [0.0, 50.0, -5000.0])
def test_logistic_thresholds_are_those_of_the_general_search(spread, guess):
    rng = np.random.default_rng(0)
    loss = Logistic(slope=4.0)
    for share in (0.3, 0.7, 0.95):
        s, w = spread * rng.normal(size=40), rng.uniform(0.5, 2.0, 40)
        target = 4.0 * share * w.sum()
        found = class_threshold(loss, s, w, target, guess)
        assert w @ loss.derivative(found - s) == pytest.approx(target, rel=1e-11)
        general = class_threshold(_Disguised(loss), s, w, target, guess)
        # between far rows the sum is flat and thresholds are known to no more digits
        if w @ loss.curvature(found - s) > 1e-3:
            assert found == pytest.approx(general, rel=1e-9, abs=1e-9)


FOLLOWED = [
    EllipsoidError(h=0.0, omega=0.4),
    EllipsoidError(h=0.3, omega=0.4),
    EllipsoidError(h=2.0, omega=0.4),
    TruncatedQuadratic(),
    TruncatedQuadratic(b1=0.5, b2=2.0),
    Exponential(),
    Logistic(slope=4.0),
]


@pytest.mark.parametrize("loss", FOLLOWED, ids=repr)
@pytest.mark.parametrize("radius", [1.0, 30.0, 1000.0])
def test_the_central_path_ends_at_the_solution(loss, radius):
    X, y, rng = noisy_rows()
    w = rng.uniform(0.5, 2.0, len(y))
    rows = LabelledRows(y, w)
    centred = X - X.mean(axis=0)
    found = follow_central_path(PathSystem(centred, rows), loss, radius, 0.1)
    # feasible for both problems
    assert np.linalg.norm(found.v) <= radius * (1.0 + 1e-6)
    beta = found.weights
    assert (beta >= 0.0).all()
    for mask in rows.masks:
        assert beta[mask].sum() == pytest.approx(rows.total, rel=1e-9)
    # and their values agree
    r = np.where(y > 0, found.r[0], found.r[1])
    primal = w @ loss.value(r - y * (centred @ found.v)) / rows.total - found.r.sum()
    distance = np.linalg.norm(centred.T @ (y * beta)) / rows.total
    dual = w @ loss.conjugate(beta / w) / rows.total + radius * distance
    assert primal == pytest.approx(-dual, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("h", [0.0, 0.5])
def test_wide_radii_of_a_loss_with_a_linear_piece_are_solved(seed, h):
    X, y, _ = noisy_rows(80, 4, seed)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4)
    loss = EllipsoidError(h=h, omega=0.3 if h == 0.0 else 0.1)
    found = solve_distance(CentredGeometry(K), y, loss, 300.0, max_iter=300)
    assert found.norm <= 300.0 * (1.0 + 1e-12)
    conic = pytest.importorskip("clarabel") and solve_distance(
        CentredGeometry(K), y, loss, 300.0, method="conic"
    )
    assert found.objective == pytest.approx(conic.objective, rel=1e-4, abs=1e-4)
    assert found.gap <= 1e-4 * max(1.0, abs(found.objective))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", [Exponential(), Logistic(slope=6.0)], ids=repr)
def test_wide_radii_of_exponential_tails_are_solved(seed, loss):
    X, y, _ = noisy_rows(70, 4, seed)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4)
    for radius in (100.0, 3000.0):
        found = solve_distance(CentredGeometry(K), y, loss, radius)
        assert found.converged
        assert found.norm <= radius * (1.0 + 1e-12)
        conic = pytest.importorskip("clarabel") and solve_distance(
            CentredGeometry(K), y, loss, radius, method="conic"
        )
        # neither may be better than the other's bound
        rounding = 2e-8 * radius + 1e-6
        assert conic.objective >= found.dual_objective - rounding
        assert found.objective >= conic.dual_objective - rounding


@pytest.mark.parametrize("mu", [1.0, 1e-4, 1e-9])
def test_the_systems_of_the_path_are_solved_by_products_and_by_points(mu):
    X, y, rng = noisy_rows(40, 60, 1)
    centred = X - X.mean(axis=0)
    rows, curvature = LabelledRows(y, np.ones(len(y))), rng.uniform(0.0, 2.0, len(y))
    H = 2.0 * mu * np.eye(60)
    for mask in rows.masks:
        d = curvature[mask]
        apart = centred[mask] - d @ centred[mask] / d.sum()
        H += (apart.T * d) @ apart / rows.total
    right = centred.T @ rng.normal(size=len(y))
    for K in (None, centred @ centred.T):
        solution = PathSystem(centred, rows, K).factor(mu, curvature).solve(right)
        assert np.linalg.norm(H @ solution - right) <= 1e-6 * np.linalg.norm(right)


def test_a_distance_below_the_digits_of_its_square_is_known():
    X, _, rng = noisy_rows(30, 2)
    points = np.r_[X, X]
    K = np.exp(-((points[:, None] - points) ** 2).sum(axis=2))
    weights = rng.dirichlet(np.ones(30))
    _, distance = CentredGeometry(K).difference(np.r_[weights, -weights])
    assert distance <= 1e-12
    moved = np.r_[weights, -weights]
    moved[0] += 1e-10
    moved[1] -= 1e-10
    _, distance = CentredGeometry(K).difference(moved)
    apart = 1e-10 * np.sqrt(K[0, 0] + K[1, 1] - 2.0 * K[0, 1])
    assert distance == pytest.approx(apart, rel=1e-3)


def test_hulls_with_copied_rows_are_certified():
    X, y, _ = noisy_rows(60, 2)
    X = np.round(X)
    loss = NuHinge(nu=0.5)
    for radius in (0.1, 10.0):
        found = solve_distance(CentredGeometry(features=X), y, loss, radius)
        assert found.converged
        for sign in (-1.0, 1.0):
            assert found.alpha[y == sign].sum() == pytest.approx(1.0, abs=1e-12)


def test_the_distance_of_hulls_that_meet_is_left_small():
    X, y, rng = noisy_rows(200, 2, seed=3)
    y = rng.permutation(y)
    geometry, rows = CentredGeometry(features=X), LabelledRows(y, np.ones(len(y)))
    cap = np.full(len(y), 2.0 / len(y) * 1.5)
    alpha, _ = hull_weights(geometry, rows, cap, 200, enough=1e-12)
    assert geometry.difference(y * alpha)[1] <= 1e-9
    assert (alpha >= 0.0).all()
    assert (alpha <= cap * (1.0 + 1e-12)).all()


def test_a_path_over_radii_of_sets_that_meet_is_certified_at_all_of_them():
    X, y, rng = noisy_rows(100, 2, seed=3)
    y = rng.permutation(y)
    path = distance_path(CentredGeometry(features=X), y, NuHinge(nu=0.9), [0.1, 10.0, 1000.0])
    assert all(each.converged for each in path)


def test_a_bound_that_is_not_active_is_left_alone():
    """Rows that occur with both labels: the optimum lies well inside the ball."""
    x = (np.arange(60) + 0.5) / 60
    eta = 0.5 + 0.4 * np.sin(2 * np.pi * x)
    place = np.tile(np.arange(60), 2)
    y = np.repeat([1.0, -1.0], 60)
    weight = np.concatenate([eta, 1 - eta]) / 60
    K = np.exp(-20.0 * (x[:, None] - x) ** 2)
    values, vectors = np.linalg.eigh(K)
    features = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, values > 1e-12 * values[-1]]
    loss = TruncatedQuadratic()
    for radius in (4.0, 32.0):
        options = {"sample_weight": weight}
        kernel = solve_distance(
            CentredGeometry(K[np.ix_(place, place)]), y, loss, radius, **options
        )
        linear = solve_distance(
            CentredGeometry(features=features[place]), y, loss, radius, **options
        )
        assert kernel.norm < radius
        assert kernel.objective == pytest.approx(linear.objective, abs=1e-6)


def test_the_zero_function_moves_no_multiplier():
    X, y, _ = noisy_rows()
    search = Search(
        FeatureFunctions(X), LabelledRows(y, np.ones(len(y))), EllipsoidError(), 100, 1e-10
    )
    point = search.start(0.3)
    tangent = (np.ones(X.shape[1]), X @ np.ones(X.shape[1]))
    search._move_multiplier(point, tangent, 0.0, 10.0, 0.0, 1.0, 1e-12)
    assert point.mu == 0.3
