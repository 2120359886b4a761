"""Certificates of leaky hockey stick models whatever the scales, and however they are computed."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification

from buttress import LeakyHockeyStickClassifier
from buttress.classifiers.leaky_path import make_problem
from buttress.losses import LeakyHockeyStick


@pytest.mark.parametrize("shape", [(40, 5), (20, 60), (30, 30)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("alpha", [1e-2, 1e-7])
def test_linear_problems_of_any_scale_and_shape(shape, scale, alpha):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    X[:, 0] = 3.0  # a constant column
    y = np.where(X[:, 1] + rng.normal(size=shape[0]) > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LeakyHockeyStickClassifier(alpha, kernel="linear").fit(scale * X, y)
    assert model.duality_gap_ <= 1e-7 * (1 + abs(model.objective_))
    assert np.isfinite(model.coef_).all()
    # the same problem in other units
    same = LeakyHockeyStickClassifier(alpha / scale**2, kernel="linear").fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(scale * X), same.decision_function(X), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("shape", [(120, 8), (60, 100), (50, 50)])
@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("every", [2, 1000])
def test_features_of_different_scales_keep_the_certificate(shape, scale, every):
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape)
    y = np.where(X[:, :3].sum(axis=1) + rng.normal(size=shape[0]) > 0, 1, -1)
    X[:, ::every] *= scale
    for alpha in (1.0, 1e-3, 1e-7):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LeakyHockeyStickClassifier(alpha, kernel="linear").fit(X, y)
        assert model.duality_gap_ <= 1e-8 * (1 + abs(model.objective_))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_certificates_divided_among_threads_are_those_of_one(kernel):
    X, y = make_classification(700, 5, flip_y=0.1, random_state=0)
    model = LeakyHockeyStickClassifier(kernel=kernel, gamma=0.5, n_jobs=1)
    data = model._training_set(X, y, None)
    problem = make_problem(model, data, model._make_kernel(data), LeakyHockeyStick())
    target, alphas = data.targets.T, np.logspace(0, -5, 100)
    paths = problem.solve(target, problem.omega[None], alphas)
    one = problem.certified(target[0], alphas, paths, 0)
    two = replace(problem, n_jobs=2).certified(target[0], alphas, paths, 0)
    for name, value in vars(one).items():
        if value is None:
            assert getattr(two, name) is None
        else:
            assert len(value) == 100
            np.testing.assert_allclose(getattr(two, name), value, rtol=1e-9, atol=1e-11)
