"""Set losses as losses of the margin, in NumPy and in compiled loops."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from buttress import LeakyHockeyStickClassifierCV
from buttress.losses import Exponential, Logistic, OfNegative, TruncatedQuadratic
from buttress.solvers.smooth.margins import compiled_loss, set_slopes

LOSSES = [Logistic(), Logistic(slope=4.0), TruncatedQuadratic(), TruncatedQuadratic(-0.3, 2.0)]


@numba.njit(error_model="numpy")
def slopes(loss, u, t, kappa):
    set_slopes(loss, u, t, kappa)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_loss_of_the_margin_falls_as_the_set_loss_rises(loss):
    own, u = OfNegative(loss), np.linspace(-4, 4, 33)
    np.testing.assert_allclose(own.value(u), loss.value(-u))
    assert np.all(np.diff(own.value(u)) <= 0)
    for point in u + 0.01:
        assert check_grad(lambda v: own.value(v)[0], own.derivative, [point]) < 1e-5
    s = own.derivative(u)
    np.testing.assert_allclose(own.conjugate(s), s * u - own.value(u), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_compiled_loops_see_the_same_loss(loss, dtype):
    own, scalars = OfNegative(loss), compiled_loss(OfNegative(loss))
    u = np.concatenate([np.linspace(-3, 3, 41), [-700.0, 700.0]]).astype(dtype)
    t, kappa = np.empty((2, len(u)), dtype)
    slopes(scalars, u, t, kappa)
    near = {"rtol": 1e-5 if dtype == np.float32 else 1e-13, "atol": 1e-30}
    np.testing.assert_allclose(t, -own.derivative(u), **near)
    np.testing.assert_allclose(kappa, own.curvature(u), **near)
    values = [scalars.value(float(one)) for one in u]
    np.testing.assert_allclose(values, own.value(u.astype(float)), rtol=1e-13, atol=1e-30)


def test_a_loss_without_scalars_says_that_it_runs_interpreted():
    assert not hasattr(OfNegative(Exponential()), "scalars")
    assert hasattr(OfNegative(Logistic()), "scalars")


def rows(n):
    random = np.random.default_rng(3)
    X = random.normal(size=(n, 4))
    return X, np.where(X[:, 0] + 0.7 * random.normal(size=n) > 0.2, 1, 0)


@pytest.mark.slow
def test_the_compiled_path_of_the_logistic_loss_is_that_of_logistic_regression():
    X, y = rows(200)
    alphas = 10.0 ** np.linspace(0, -4, 30)
    loss = OfNegative(Logistic())
    model = LeakyHockeyStickClassifierCV(alphas, kernel="linear", cv=3, loss=loss).fit(X, y)
    peer = LogisticRegression(C=1 / (2 * model.alpha_ * 200), tol=1e-12, max_iter=10_000)
    np.testing.assert_allclose(model.coef_, peer.fit(X, y).coef_, atol=1e-5)
    assert model.duality_gap_ <= 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["newton", "batched"])
def test_the_compiled_path_of_the_squared_hinge_is_that_of_the_linear_machine(solver):
    X, y = rows(200)
    alphas = 10.0 ** np.linspace(0, -4, 30)
    options = {"fit_intercept": False, "loss": OfNegative(TruncatedQuadratic())}
    model = LeakyHockeyStickClassifierCV(alphas, kernel="linear", solver=solver, cv=3, **options)
    model.fit(X, y)
    C = 1 / (2 * model.alpha_ * 200)
    peer = LinearSVC(C=C, fit_intercept=False, tol=1e-10, max_iter=200_000, random_state=0)
    np.testing.assert_allclose(model.coef_, peer.fit(X, y).coef_, atol=1e-5)
