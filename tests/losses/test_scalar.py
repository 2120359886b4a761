"""A loss of one's own: compiled like the package's, or interpreted with a word about it."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from buttress import LeakyHockeyStickClassifier, LeakyHockeyStickClassifierCV
from buttress.losses import LeakyHockeyStick, ScalarLoss
from buttress.solvers.smooth.margins import compiled_loss, set_slopes


def value(u):
    return 1.0 - u if u <= 1.0 else -math.log(u)


def derivative(u):
    return -1.0 if u <= 1.0 else -1.0 / u


def curvature(u):
    return 0.0 if u <= 1.0 else 1.0 / (u * u)


def conjugate(s):
    return -1.0 - math.log(-s) if -1.0 <= s < 0.0 else math.inf


def copy_of_leaky(**options):
    return ScalarLoss(value, derivative, curvature, curvature_bound=1.0, **options)


class Arrays:
    """The same loss as an object whose methods take arrays."""

    curvature_bound = 1.0

    def __init__(self):
        self.loss = LeakyHockeyStick()

    def value(self, u):
        return self.loss.value(u)

    def derivative(self, u):
        return self.loss.derivative(u)

    def curvature(self, u):
        return self.loss.curvature(u)


def rows(n, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return X, np.where(X[:, 0] + 0.7 * random.normal(size=n) > 0.2, 1, -1)


def test_functions_of_numbers_become_functions_of_arrays():
    loss, leaky = copy_of_leaky(conjugate_at=conjugate), LeakyHockeyStick()
    u = np.linspace(-2, 5, 36).reshape(4, 9)
    for name in ("value", "derivative", "curvature"):
        np.testing.assert_allclose(getattr(loss, name)(u), getattr(leaky, name)(u), rtol=1e-14)
    s = np.array([-1.5, -1.0, -0.3, 0.0])
    np.testing.assert_allclose(loss.conjugate(s), leaky.conjugate(s))
    assert not hasattr(copy_of_leaky(), "conjugate")


@pytest.mark.parametrize(
    "options", [{"curvature_bound": 0.0}, {"curvature_bound": 1.0, "tail": 1.0}]
)
def test_senseless_numbers_are_refused(options):
    with pytest.raises(ValueError, match="out of range"):
        ScalarLoss(value, derivative, curvature, **options)


def test_every_loss_has_its_own_compiled_code():
    one = ScalarLoss(lambda u: -u, lambda u: -1.0, lambda u: 0.5, curvature_bound=1.0)
    two = ScalarLoss(lambda u: -2.0 * u, lambda u: -2.0, lambda u: 0.25, curvature_bound=1.0)
    compiled = numba.njit(lambda loss, u, t, kappa: set_slopes(loss, u, t, kappa))
    for loss, slope, bend in ((one, 1.0, 0.5), (two, 2.0, 0.25)):
        u, t, kappa = np.ones((3, 4))
        compiled(loss.scalars, u, t, kappa)
        assert t.tolist() == [slope] * 4
        assert kappa.tolist() == [bend] * 4


# What is compiled for a loss of one's own is not kept on disk: seconds for each of these.
@pytest.mark.parametrize(
    ("n", "kernel", "solver", "tail"),
    [
        (90, "rbf", "newton", 0.5),
        pytest.param(90, "rbf", "newton", 0.0, marks=pytest.mark.slow),
        pytest.param(90, "linear", "newton", 0.5, marks=pytest.mark.slow),
        pytest.param(300, "rbf", "batched", 0.5, marks=pytest.mark.slow),
        pytest.param(300, "rbf", "batched", 0.0, marks=pytest.mark.slow),
    ],
)
def test_a_copy_of_a_loss_gives_its_path(n, kernel, solver, tail):
    X, y = rows(n)
    options = {"alphas": 25, "cv": 3, "kernel": kernel}
    own = LeakyHockeyStickClassifierCV(
        loss=copy_of_leaky(conjugate_at=conjugate, tail=tail), **options
    ).fit(X, y)
    built_in = LeakyHockeyStickClassifierCV(**options).fit(X, y)
    assert own.solver_ == built_in.solver_ == solver
    np.testing.assert_array_equal(own.cv_mean_, built_in.cv_mean_)
    np.testing.assert_allclose(own.path_.objectives, built_in.path_.objectives, atol=1e-5)
    np.testing.assert_allclose(
        own.decision_function(X), built_in.decision_function(X), rtol=1e-5, atol=1e-5
    )
    assert own.duality_gap_ <= 1e-8


@pytest.mark.slow
def test_a_loss_that_is_flat_beyond_a_margin_is_solved_by_columns_too():
    X, y = rows(300)
    loss = ScalarLoss(
        lambda u: max(0.0, 1.0 - u) ** 2,
        lambda u: -2.0 * max(0.0, 1.0 - u),
        lambda u: 2.0 if u < 1.0 else 0.0,
        curvature_bound=2.0,
        conjugate_at=lambda s: s + 0.25 * s * s if s <= 0.0 else math.inf,
    )
    alphas = 10.0 ** np.linspace(0, -4, 25)
    batched = LeakyHockeyStickClassifierCV(alphas, cv=3, loss=loss, solver="batched").fit(X, y)
    newton = LeakyHockeyStickClassifierCV(alphas, cv=3, loss=loss, solver="newton").fit(X, y)
    np.testing.assert_array_equal(batched.cv_mean_, newton.cv_mean_)
    np.testing.assert_allclose(batched.path_.objectives, newton.path_.objectives, atol=1e-6)
    assert newton.path_.gaps.max() <= 1e-6
    assert batched.duality_gap_ <= 1e-8


def test_a_loss_that_takes_arrays_is_solved_in_numpy_and_says_so_once():
    X, y = rows(80)
    options = {"alphas": 25, "cv": 3}
    with pytest.warns(UserWarning, match=r"Arrays is called from Python.*ScalarLoss") as told:
        own = LeakyHockeyStickClassifierCV(loss=Arrays(), **options).fit(X, y)
    assert len([one for one in told if "called from Python" in str(one.message)]) == 1
    built_in = LeakyHockeyStickClassifierCV(**options).fit(X, y)
    np.testing.assert_array_equal(own.cv_mean_, built_in.cv_mean_)
    with pytest.raises(ValueError, match="needs a compiled loss"):
        LeakyHockeyStickClassifierCV(loss=Arrays(), solver="batched").fit(X, y)


def test_functions_that_cannot_be_compiled_run_interpreted_and_say_why():
    def strange(u):
        return -1.0 if str(object()) and u <= 1.0 else -1.0 / max(u, 1.0)

    loss = ScalarLoss(value, strange, curvature, curvature_bound=1.0)
    with pytest.warns(UserWarning, match="strange cannot be compiled and runs interpreted") as told:
        assert compiled_loss(loss) is None
    assert len(told) == 1
    X, y = rows(60)
    own = LeakyHockeyStickClassifier(loss=loss).fit(X, y)
    built_in = LeakyHockeyStickClassifier().fit(X, y)
    np.testing.assert_allclose(own.decision_function(X), built_in.decision_function(X), atol=1e-7)
