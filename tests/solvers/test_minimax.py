"""Solvers of the minimax machines on given moments."""

import numpy as np
import pytest

from buttress.solvers.minimax import (
    Moments,
    class_moments,
    solve_maximum_margin,
    solve_minimax,
)


def moments(seed, shift=2.0, p=4):
    rng = np.random.default_rng(seed)
    return [
        class_moments(rng.normal(size=(30, p)) * rng.uniform(0.5, 2, p) + k * shift, np.ones(30), 0)
        for k in (1, 0)
    ]


@pytest.mark.smoke
def test_no_direction_beats_the_minimax_one():
    positive, negative = moments(0)
    found = solve_minimax(positive, negative)
    delta = positive.mean - negative.mean
    for w in np.random.default_rng(1).normal(size=(200, 4)):
        kappa = (w @ delta) / (positive.deviation(w) + negative.deviation(w))
        assert kappa <= found.kappa + 1e-12
    assert found.gap <= 1e-12
    assert found.objective == pytest.approx(1.0 / found.kappa)


def test_maximum_margin_approaches_the_minimax_direction():
    positive, negative = moments(2)
    plain = solve_minimax(positive, negative)
    near = solve_maximum_margin(positive, negative, 0.999 * plain.kappa)
    w, v = plain.weight_vector, near.weight_vector
    assert w @ v / np.linalg.norm(w) / np.linalg.norm(v) > 0.999
    with pytest.raises(ValueError, match="infeasible"):
        solve_maximum_margin(positive, negative, plain.kappa)


def test_scaled_classes_need_damped_steps():
    positive, negative = moments(3, shift=0.3)
    stretch = np.diag([100.0, 1.0, 1.0, 0.01])
    a, b = (
        Moments(stretch @ m.mean, stretch @ m.covariance @ stretch) for m in (positive, negative)
    )
    limit = solve_minimax(a, b).kappa
    found = solve_maximum_margin(a, b, 0.9 * limit)
    assert found.gap <= 1e-8 * found.objective
    s = a.deviation(found.weight_vector)
    margin = found.weight_vector @ a.mean + found.intercept - 0.9 * limit * s
    assert margin == pytest.approx(1.0, rel=1e-6)


def test_degenerate_moments_are_explained():
    positive, negative = moments(4)
    with pytest.raises(ValueError, match="coincide"):
        solve_minimax(positive, Moments(positive.mean, negative.covariance))
    flat = np.zeros((4, 4))
    with pytest.raises(ValueError, match="singular"):
        solve_minimax(Moments(positive.mean, flat), Moments(negative.mean, flat))
    line = np.diag([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="singular"):
        solve_minimax(Moments(positive.mean, line), Moments(negative.mean, line))
