"""Hinge machines whose tolerance is loose: they go on until what they promise holds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

from buttress import (
    DoubleHingeClassifier,
    DoubleRampClassifier,
    DoubleRampClassifierCV,
    GeneralizedHingeClassifier,
    RampClassifier,
)

MACHINES = {
    "double ramp": DoubleRampClassifier(),
    "narrow double ramp": DoubleRampClassifier(d=0.05, mu=0.5),
    "double hinge": DoubleHingeClassifier(),
    "generalised hinge": GeneralizedHingeClassifier(),
}


def sample(seed):
    """Moons or clusters with noise, 60 to 400 rows."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(60, 400))
    if seed % 2:
        return make_classification(n, 10, flip_y=0.2, random_state=seed)
    return make_moons(n, noise=rng.uniform(0.1, 0.5), random_state=seed)


def fitted_without_warning(machine, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return machine.fit(X, y)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("name", MACHINES)
def test_the_gap_is_no_larger_than_promised(name, tol, C, seed):
    X, y = sample(seed)
    machine = MACHINES[name].set_params(tol=tol, C=C, fit_intercept=seed < 5)
    model = fitted_without_warning(machine, X, y)
    assert model.duality_gap_ <= tol * (1.0 + model.objective_)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_more_digits_at_the_end_are_no_outer_step(tol, seed):
    X, y = sample(seed)
    model = DoubleRampClassifier(d=0.05, mu=0.5, C=1e4, tol=tol).fit(X, y)
    assert len(model.objective_path_) == model.n_iter_
    assert (np.diff(model.objective_path_) <= 1e-12 * model.objective_).all()
    assert model.objective_path_[-1] == pytest.approx(model.objective_, rel=1e-9)


def test_one_outer_step_is_enough_for_a_convex_machine_with_more_digits_at_the_end():
    X, y = sample(1)
    machine = RampClassifier(s=-np.inf, C=1e4, tol=1e-7, max_iter=1)
    assert fitted_without_warning(machine, X, y).n_iter_ == 1


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("C", [100.0, 1000.0])
def test_rows_of_single_precision_that_reach_their_tolerance_are_not_warned_about(C, seed):
    X, y = make_classification(150, 10, flip_y=0.1, random_state=seed)
    model = fitted_without_warning(RampClassifier(C=C), X.astype(np.float32), y)
    assert model.kkt_residual_ <= 2e-4


@pytest.mark.parametrize("radius", [1.0, 100.0, 1e4])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_the_gap_in_a_ball_is_that_of_the_mean_loss(tol, kernel, radius):
    X, y = sample(4)
    machine = RampClassifier(radius=radius, kernel=kernel, tol=tol)
    model = fitted_without_warning(machine, X, y)
    assert model.duality_gap_ <= 2.0 * max(tol, 1e-7)
    finer = RampClassifier(radius=radius, kernel=kernel, tol=1e-12).fit(X, y)
    if np.array_equal(finer.ignored_, model.ignored_):  # the same convex step
        assert model.objective_ - finer.objective_ <= model.duality_gap_ + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_model_a_search_chose_keeps_the_promise_too(seed):
    X, y = sample(seed)
    search = DoubleRampClassifierCV(Cs=[100.0, 1e4], cv=3, tol=1e-2)
    model = fitted_without_warning(search, X, y).best_estimator_
    assert model.duality_gap_ <= search.tol * (1.0 + model.objective_)
