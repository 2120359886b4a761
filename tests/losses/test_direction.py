"""Losses of the margin fall and losses of uncertainty sets rise; the other kind is refused."""

from __future__ import annotations

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
        with pytest.raises(ValueError, match=r"^loss=.*Pass buttress\.losses\.OfNegative\(loss\)"):
            refuse(given)


@pytest.mark.parametrize("r", [1.001, 2.0, np.inf])
def test_the_leaky_family_falls(r):
    require_falling(LeakyHockeyStick(r))
    with pytest.raises(ValueError, match="must rise with z; this one falls"):
        require_rising(LeakyHockeyStick(r))


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
