"""What approximate fits say of themselves: certificates, solvers, and warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification

from buttress import (
    DoubleRampClassifier,
    DoubleRampClassifierCV,
    LeakyHockeyStickClassifier,
    RampClassifier,
    RampClassifierCV,
    UncertaintySetClassifier,
    UncertaintySetClassifierCV,
)
from buttress.losses import LeakyHockeyStick

X, Y = make_classification(500, 6, flip_y=0.1, random_state=2)


class Squared:
    """A loss that does not know its conjugate."""

    curvature_bound = 2.0

    def value(self, u):
        return np.maximum(1 - u, 0) ** 2

    def derivative(self, u):
        return -2 * np.maximum(1 - u, 0)

    def curvature(self, u):
        return np.where(u < 1, 2.0, 0.0)


@pytest.mark.parametrize("radius", [1.0, 171.6546116431273, 1e5])
@pytest.mark.parametrize("loss", ["logistic", "truncated_quadratic"])
def test_a_gap_within_the_tolerance_is_no_reason_to_warn(loss, radius) -> None:
    model = UncertaintySetClassifier(loss, radius=radius, approximation="nystroem", n_components=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, Y)
    assert model.duality_gap_ <= 1e-7 * (1 + abs(model.objective_))


def test_rounding_of_the_norm_leaves_no_gap() -> None:
    rows, labels = make_classification(
        500, 6, n_informative=4, flip_y=0.1, random_state=1, n_classes=3
    )
    model = UncertaintySetClassifier(
        "logistic", nu=0.3, radius=1e5, approximation="fourier", n_components=50
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(rows, labels)
    assert (model.duality_gaps_ <= 1e-7 * (1 + np.abs(model.objective_))).all()


def test_held_out_rows_take_no_part_in_the_gaps_of_folds() -> None:
    model = UncertaintySetClassifierCV(loss="logistic", approximation="nystroem", n_components=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, Y)
    assert np.isfinite(model.cv_mean_).all()


@pytest.mark.parametrize(
    "model",
    [
        RampClassifier(),
        DoubleRampClassifier(),
        RampClassifierCV(Cs=[1.0], cv=2),
        DoubleRampClassifierCV(Cs=[1.0], cv=2),
    ],
    ids=lambda m: type(m).__name__,
)
def test_ramps_have_residuals_only_where_they_are_computed(model) -> None:
    model.set_params(n_components=20)
    for approximation in (None, "nystroem", "fourier", None):
        model.set_params(approximation=approximation).fit(X[:150], Y[:150])
        exact = approximation is None
        assert hasattr(model, "kkt_residual_") == hasattr(model, "kkt_residuals_") == exact
        assert hasattr(model, "smoothing_width_") != exact
        assert model.duality_gap_ == model.duality_gaps_.max()
        assert model.solver_ == "smo" if exact else model.solver_.startswith("reduction (")
        assert hasattr(model, "random_weights_") == (approximation == "fourier")


@pytest.mark.parametrize("machine", [RampClassifier, DoubleRampClassifier])
def test_ramps_on_single_precision_have_nothing_left_to_do(machine) -> None:
    rows, labels = make_classification(1000, 6, n_informative=4, flip_y=0.1, random_state=1)
    model = machine(C=10.0, approximation="nystroem", n_components=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(rows.astype(np.float32), labels)
    assert model.duality_gap_ <= 1e-4 * (1 + model.objective_)


def test_the_residual_of_a_loss_without_conjugate_is_a_gradient() -> None:
    options = {"alpha": 1e-2, "approximation": "nystroem", "n_components": 20}
    with pytest.warns(UserWarning, match="called from Python"):
        model = LeakyHockeyStickClassifier(loss=Squared(), tol=1e-3, **options).fit(X, Y)
    signs = 2.0 * Y - 1.0
    slopes = Squared().derivative(signs * model.decision_function(X))
    # that of the intercept is one of the gradient's entries
    assert 1e-9 < abs(np.mean(signs * slopes)) <= model.kkt_residual_ * (1 + 1e-6) < 1e-3
    assert not hasattr(model, "duality_gap_")
    with_conjugate = LeakyHockeyStickClassifier(loss=LeakyHockeyStick(2.0), **options).fit(X, Y)
    assert not hasattr(with_conjugate, "kkt_residual_")
