"""Rounded hinges and ramps stay within their stated distance of the sharp ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.losses.smoothed import ClippingHinge, SmoothedHinge, SmoothedRamp

GRID = np.linspace(-5, 5, 4001)
widths = st.floats(0.005, 0.9)


@pytest.mark.smoke
@given(st.floats(-1, 2), st.floats(0.1, 5), widths)
def test_smoothed_hinge_is_close_convex_and_smooth(top: float, scale: float, width: float) -> None:
    loss = SmoothedHinge(top, scale, width)
    excess = loss.value(GRID) - scale * np.maximum(top - GRID, 0)
    assert excess.min() >= -1e-12
    assert excess.max() <= scale * width / 4 + 1e-12
    slope = loss.derivative(GRID)
    assert (np.diff(slope) >= -1e-12).all()
    assert np.abs(np.diff(slope)).max() <= loss.curvature_bound * (GRID[1] - GRID[0]) + 1e-9
    middle = (loss.value(GRID + 1e-5) - loss.value(GRID - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope, middle, atol=1e-3 * scale / width)


@given(st.floats(0.3, 3), widths, st.floats(0, 1))
def test_conjugate_is_the_supremum(scale: float, width: float, share: float) -> None:
    loss = SmoothedHinge(1.0, scale, width)
    s = -share * scale
    brute = np.max(s * GRID - loss.value(GRID))
    assert loss.conjugate(np.array(s)) == pytest.approx(brute, abs=2e-3 * scale / width)
    assert loss.conjugate(np.array(0.1)) == np.inf
    assert loss.conjugate(np.array(-1.1 * scale)) == np.inf


@given(st.floats(-2, 0), widths)
def test_ramp_is_the_sum_of_its_parts_and_bounded(floor: float, width: float) -> None:
    ramp = SmoothedRamp(1.0, floor, 2.0, width)
    np.testing.assert_allclose(
        ramp.value(GRID), ramp.convex_part(GRID) + ramp.concave_part(GRID), atol=1e-12
    )
    assert ramp.value(GRID).max() <= 2.0 * (1.0 - floor) + 1e-12
    sharp = 2.0 * np.minimum(np.maximum(1 - GRID, 0), 1 - floor)
    assert np.abs(ramp.value(GRID) - sharp).max() <= 2.0 * width / 4 + 1e-12
    np.testing.assert_allclose(
        ramp.derivative(GRID), ramp.convex.derivative(GRID) + ramp.concave.derivative(GRID)
    )


def test_no_floor_is_the_hinge() -> None:
    ramp = SmoothedRamp(1.0, -np.inf)
    np.testing.assert_array_equal(ramp.value(GRID), ramp.convex.value(GRID))
    assert not ClippingHinge(-np.inf).derivative(GRID).any()


def test_float32_stays_float32() -> None:
    u = GRID.astype(np.float32)
    loss = SmoothedHinge()
    assert {loss.value(u).dtype, loss.derivative(u).dtype, loss.curvature(u).dtype} == {
        np.dtype(np.float32)
    }


@pytest.mark.parametrize("bad", [{"width": 0.0}, {"scale": -1.0}])
def test_parameters_out_of_range_are_named(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        SmoothedHinge(**bad)
    with pytest.raises(ValueError, match="floor"):
        SmoothedRamp(top=0.0, floor=0.5)
