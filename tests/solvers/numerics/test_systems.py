"""The matrix of Newton's method over a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.solvers.numerics.systems import one_plus_scaled


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [1, 63, 64, 65, 150])
def test_its_lower_triangle_is_that_of_the_formula(m, dtype):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(150, 4))
    K, scale = points @ points.T, rng.random(m)
    rows = np.sort(rng.choice(150, m, replace=False))
    out = np.full((m, m), np.nan, dtype=dtype)
    one_plus_scaled(K, rows, scale, out)
    expected = np.eye(m) + np.outer(scale, scale) * K[np.ix_(rows, rows)]
    rounding = 10 * np.finfo(dtype).eps
    np.testing.assert_allclose(np.tril(out), np.tril(expected), rtol=rounding, atol=rounding)
