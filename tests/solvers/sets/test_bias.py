"""The bias of least error against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.solvers.sets.bias import error_rate_bias


def errors(b, s, y, w):
    return float(w @ (y * (s + b) <= 0))


@pytest.mark.smoke
@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=9),
    st.integers(0, 2**9 - 1),
    st.lists(st.integers(1, 3), min_size=9, max_size=9),
    st.floats(-5, 5),
)
def test_brute_force_finds_nothing_better(scores, labels, weights, reference):
    s = np.array(scores, dtype=float)
    y = np.array([1.0 if labels >> k & 1 else -1.0 for k in range(len(s))])
    w = np.array(weights[: len(s)], dtype=float)
    result = error_rate_bias(s, y, w, reference=reference)
    grid = np.r_[-s, np.unique(-s)[:-1] + 0.5, -s.min() + 1, -s.max() - 1, reference]
    least = min(errors(b, s, y, w) for b in grid)
    assert errors(result.bias, s, y, w) == result.errors == least
    low, high = result.interval
    assert low < result.bias < high
    if errors(reference, s, y, w) == least:
        assert result.bias == reference


def test_integer_weights_equal_copies():
    rng = np.random.default_rng(0)
    s, y, w = rng.normal(size=40), np.sign(rng.normal(size=40)), rng.integers(1, 4, 40)
    a = error_rate_bias(s, y, w.astype(float))
    b = error_rate_bias(np.repeat(s, w), np.repeat(y, w))
    assert a == b


def test_thresholds_that_differ_by_rounding_are_one():
    s = np.array([1.0, 1.0 + 1e-15, -1.0])
    y = np.array([1.0, -1.0, -1.0])
    assert error_rate_bias(s, y).errors == 1.0


def test_nearest_optimal_interval_and_its_midpoint():
    s, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, -1.0, 1.0, -1.0])
    assert error_rate_bias(s, y, reference=-0.9).errors == 2.0
    one_class = error_rate_bias(np.array([0.3, -0.2, 0.1]), np.ones(3))
    assert one_class.bias == pytest.approx(0.325)
    assert one_class.interval == (0.2, np.inf)
    assert error_rate_bias(np.array([1.0]), np.array([-1.0])).bias == pytest.approx(-1.5)


def test_reference_cases(oracle):
    arrays, cases = oracle("bias01")
    for name, case in cases.items():
        found = error_rate_bias(arrays[f"{name}_s"], arrays[f"{name}_y"])
        assert found.errors == case["err"]
        assert found.bias == pytest.approx(case["b_ref0"], abs=1e-12)
        assert found.interval == pytest.approx([float(end) for end in case["interval"]])
