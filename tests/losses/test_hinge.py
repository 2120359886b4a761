"""Hinge-shaped losses against their definitions, numerical conjugates and the 0-d-1 loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.losses import DoubleHinge, GeneralizedHinge, Hinge

U = np.linspace(-6, 8, 2801)
COSTS = [0.05, 0.2, 0.35, 0.5]
LOSSES = [Hinge(), *(GeneralizedHinge(d) for d in COSTS), *(DoubleHinge(d) for d in COSTS)]


@pytest.mark.smoke
def test_hinge_is_its_formula():
    np.testing.assert_array_equal(Hinge().value(U), np.maximum(1 - U, 0))


@pytest.mark.parametrize("d", COSTS)
def test_generalized_hinge_is_its_formula(d):
    expected = np.where(U < 0, 1 - U * (1 - d) / d, np.maximum(1 - U, 0))
    np.testing.assert_allclose(GeneralizedHinge(d).value(U), expected, atol=1e-12)


@pytest.mark.parametrize("d", COSTS)
def test_double_hinge_is_its_formula(d):
    H = -d * np.log(d) - (1 - d) * np.log(1 - d)
    expected = np.maximum(np.maximum(H - (1 - d) * U, H - d * U), 0)
    np.testing.assert_allclose(DoubleHinge(d).value(U), expected, atol=1e-12)


@given(st.floats(0.01, 0.5), st.floats(-10, 10))
def test_double_hinge_is_the_generalized_one_in_other_units(d, u):
    loss = DoubleHinge(d)
    scaled = loss.entropy * GeneralizedHinge(d).value(np.asarray(u * d / loss.entropy))
    assert loss.value(np.asarray(u)) == pytest.approx(float(scaled), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_derivative_is_the_slope_between_kinks(loss):
    kinks = np.array([m for _, m in loss.terms])
    smooth = U[np.abs(U[:, None] - kinks).min(axis=1) > 1e-3]
    slope = (loss.value(smooth + 1e-6) - loss.value(smooth - 1e-6)) / 2e-6
    np.testing.assert_allclose(loss.derivative(smooth), slope, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_conjugate_is_the_supremum(loss):
    u = np.linspace(-200, 200, 400_001)
    total = sum(w for w, _ in loss.terms)
    for s in -total * np.linspace(0, 1, 9):
        brute = np.max(s * u - loss.value(u))
        assert float(loss.conjugate(np.asarray(s))) == pytest.approx(brute, abs=2e-2 * total)
    outside = np.array([0.1, -total * 1.01 - 0.01])
    assert np.isinf(loss.conjugate(outside)).all()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_fenchel_young_holds_with_equality_at_the_derivative(loss):
    s = loss.derivative(U)
    np.testing.assert_allclose(loss.value(U) + loss.conjugate(s), s * U, atol=1e-9)


@given(st.floats(0.01, 0.49), st.floats(0.0, 1.0))
def test_convex_losses_bound_the_rejection_loss_in_their_ranges(d, share):
    loss_gh, loss_dh = GeneralizedHinge(d), DoubleHinge(d)
    H = loss_dh.entropy
    for loss, rho in (
        (loss_gh, share * (1 - d)),
        (loss_dh, (1 - H) / (1 - d) + share * ((H - d) / d - (1 - H) / (1 - d))),
    ):
        if rho < 0 or (loss is loss_dh and (H - d) / d < (1 - H) / (1 - d)):
            continue  # near d = 1/2 the double hinge's range is empty
        zero_d_one = (-rho > U) + d * ((-rho <= U) & (rho >= U))
        assert (loss.value(U) >= zero_d_one - 1e-9).all()


@pytest.mark.parametrize("loss", [GeneralizedHinge, DoubleHinge])
@pytest.mark.parametrize("d", [0.0, -0.1, 0.51, float("nan")])
def test_rejection_cost_out_of_range_is_named(loss, d):
    with pytest.raises(ValueError, match=r"d=.*\(0, 0\.5\]"):
        loss(d)
