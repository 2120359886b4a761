"""Losses of the margin fall and losses of uncertainty sets rise; the other kind is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from buttress import (
    LeakyHockeyStickClassifier,
    LeakyHockeyStickClassifierCV,
    UncertaintySetClassifier,
    UncertaintySetClassifierCV,
)
from buttress.losses import (
    EllipsoidError,
    Exponential,
    HardMargin,
    LeakyHockeyStick,
    LogBarrier,
    Logistic,
    NuHinge,
    OfNegative,
    ScalarLoss,
    TruncatedQuadratic,
    require_falling,
    require_rising,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(80, 2))
Y = np.where(X[:, 0] + 0.2 * X[:, 1] > 0, 1, 0)
RISING = [
    EllipsoidError(),
    Exponential(),
    HardMargin(),
    LogBarrier(),
    Logistic(),
    NuHinge(0.5),
    TruncatedQuadratic(),
]


class Slopes:
    """A loss of which only the derivative matters."""

    curvature_bound = 1.0

    def __init__(self, derivative):
        self.derivative = derivative

    def value(self, u):
        return np.zeros_like(u)

    curvature = conjugate = value


@pytest.mark.parametrize("loss", RISING, ids=repr)
def test_every_set_loss_rises_and_falls_of_the_negative(loss):
    require_rising(loss)
    require_falling(OfNegative(loss))
    for refuse, given in ((require_falling, loss), (require_rising, OfNegative(loss))):
        with pytest.raises(ValueError, match=r"^loss=.*OfNegative\(loss\)"):
            refuse(given)


@pytest.mark.parametrize("r", [1.001, 2.0, np.inf])
def test_the_leaky_family_falls(r):
    require_falling(LeakyHockeyStick(r))
    with pytest.raises(ValueError, match="must rise with z; this one falls"):
        require_rising(LeakyHockeyStick(r))


def test_the_remedy_is_not_named_where_it_would_not_help():
    with pytest.raises(ValueError, match=r"OfNegative\(loss\) is at most 1, .* need one above 2"):
        UncertaintySetClassifier(loss=LeakyHockeyStick(2.0)).fit(X, Y)
    # said of a loss that turns round one of a bounded slope, as of one that knows its bound
    for options in ({}, {"approximation": "nystroem", "n_components": 10}):
        with pytest.raises(ValueError, match=r"bounded by 1|at most 1"):
            UncertaintySetClassifier(loss=OfNegative(LeakyHockeyStick(2.0)), **options).fit(X, Y)


def test_a_loss_that_is_turned_round_has_a_conjugate_if_it_had_one():
    reversed_ = ScalarLoss(
        lambda z: max(0.0, 1.0 + z) ** 2,
        lambda z: 2.0 * max(0.0, 1.0 + z),
        lambda z: 2.0 if z > -1.0 else 0.0,
        2.0,
    )
    turned = OfNegative(reversed_)
    assert not hasattr(turned, "conjugate")
    assert not hasattr(pickle.loads(pickle.dumps(OfNegative(Exponential()))), "scalars")
    assert hasattr(copy.deepcopy(OfNegative(Logistic())), "conjugate")
    model = LeakyHockeyStickClassifier(loss=turned, alpha=0.01, gamma=0.5).fit(X, Y)
    usual = LeakyHockeyStickClassifier(loss=OfNegative(TruncatedQuadratic()), alpha=0.01, gamma=0.5)
    expected = usual.fit(X, Y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)
    with pytest.raises(ValueError, match="a set loss with value, derivative, curvature and conj"):
        UncertaintySetClassifier(loss=OfNegative(turned)).fit(X, Y)


def test_rounding_is_no_slope():
    require_falling(Slopes(lambda u: np.where(u > 20, 1e-14, -1.0)))


@pytest.mark.parametrize(
    ("derivative", "wrong"),
    [(lambda u: 2.0 * (u - 1.0), "rises at 2"), (lambda u: 0.0 * u, "flat from -30 to 30")],
)
def test_a_loss_that_rises_somewhere_or_is_flat_is_refused_with_the_place(derivative, wrong):
    with pytest.raises(ValueError, match=rf"must fall with the margin; this one .*{wrong}"):
        require_falling(Slopes(derivative))


@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem", "n_components": 10}])
@pytest.mark.parametrize("estimator", [LeakyHockeyStickClassifier, LeakyHockeyStickClassifierCV])
def test_margin_machines_refuse_a_loss_that_would_turn_them_round(estimator, options):
    rising = ScalarLoss(lambda u: u, lambda u: 1.0, lambda u: 0.0, curvature_bound=1.0)
    for loss in (Logistic(), rising):
        with pytest.raises(ValueError, match=r"^loss=.*fall with the margin.*OfNegative"):
            estimator(loss=loss, **options).fit(X, Y)
    model = LeakyHockeyStickClassifier(loss=OfNegative(Logistic()), **options).fit(X, Y)
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem", "n_components": 10}])
@pytest.mark.parametrize("estimator", [UncertaintySetClassifier, UncertaintySetClassifierCV])
def test_set_machines_refuse_a_loss_of_the_margin(estimator, options):
    for loss in (LeakyHockeyStick(), OfNegative(TruncatedQuadratic())):
        with pytest.raises(ValueError, match=r"^loss=.*rise with z.*OfNegative"):
            estimator(loss=loss, **options).fit(X, Y)
    twice = OfNegative(OfNegative(TruncatedQuadratic()))
    model = UncertaintySetClassifier(loss=twice, **options).fit(X, Y)
    assert model.score(X, Y) > 0.8
