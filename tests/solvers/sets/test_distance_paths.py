"""Paths of the distance solver: older factors refined, thresholds in compiled code."""

import numpy as np
import pytest

from buttress.losses import EllipsoidError
from buttress.solvers.sets._refinement import RefinedFactor, serves
from buttress.solvers.sets._spaces import KernelFactor, LabelledRows
from buttress.solvers.sets.distance import distance_path, solve_distance
from buttress.solvers.sets.thresholds import class_threshold


class _Disguised:
    """The ellipsoid loss without its type: thresholds by the general code."""

    def __init__(self, loss):
        self.derivative, self.curvature = loss.derivative, loss.curvature


@pytest.mark.parametrize("h", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("guess", [0.0, 50.0, -50.0])
def test_compiled_thresholds_are_those_of_the_general_search(h, guess):
    rng = np.random.default_rng(0)
    loss = EllipsoidError(h=h, omega=0.7, scale=1.3)
    for share in (0.02, 0.3, 0.9):
        s, w = 5.0 * rng.normal(size=40), rng.uniform(0.5, 2.0, 40)
        target = w.sum() / share
        found = class_threshold(loss, s, w, target, guess)
        assert w @ loss.derivative(found - s) == pytest.approx(target, rel=1e-12)
        general = class_threshold(_Disguised(loss), s, w, target, guess)
        if w @ loss.curvature(found - s) > 0:
            assert found == pytest.approx(general, rel=1e-9, abs=1e-9)


def gaussian_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 6), y, rng


def test_refined_directions_are_those_of_a_fresh_factor():
    K, y, rng = gaussian_rows(150)
    rows = LabelledRows(y, rng.uniform(0.5, 2.0, len(y)))
    curvature = 0.5 * rows.w
    curvature[:20] = 0.0
    old = KernelFactor(K, 1e-2, curvature, rows)
    curvature = 0.5 * rows.w
    curvature[5:22] = 0.0
    x = rng.normal(size=(2, len(y)))
    functions = [(v, K @ v) for v in x]
    fresh = KernelFactor(K, 0.7e-2, curvature, rows).descent(*functions)
    refined = RefinedFactor(old, 0.7e-2, curvature, rows, (1e-3, 0.03)).descent(*functions)
    assert refined is not None
    for k, accuracy in enumerate((1e-2, 0.1)):
        error = np.linalg.norm(refined[k][1] - fresh[k][1])
        assert error <= accuracy * np.linalg.norm(fresh[k][1])
        np.testing.assert_allclose(K @ refined[k][0], refined[k][1], atol=1e-9)


def test_a_factor_of_another_problem_is_not_used_again():
    K, y, rng = gaussian_rows(150)
    rows = LabelledRows(y, np.ones(len(y)))
    old = KernelFactor(K, 10.0, rows.w, rows)
    function = rng.normal(size=len(y))
    refined = RefinedFactor(old, 1e-9, rows.w, rows, (1e-6, 0.1))
    assert refined.descent((function, K @ function)) is None
    assert not serves(old, 10.0)


@pytest.mark.parametrize("h", [0.0, 1.0])
def test_paths_of_many_rows_are_single_solutions(h):
    K, y, _ = gaussian_rows(320)
    radii = np.geomspace(0.5, 200.0, 9)
    loss = EllipsoidError(h=h)
    for radius, found in zip(radii, distance_path(K, y, loss, radii), strict=True):
        single = solve_distance(K, y, loss, radius)
        assert found.gap <= 1e-9 * max(1.0, abs(found.objective))
        np.testing.assert_allclose(found.values, single.values, atol=1e-6 * radius)
        assert found.intercept == pytest.approx(single.intercept, abs=1e-6 * radius)
