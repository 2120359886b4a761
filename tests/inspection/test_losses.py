"""Losses side by side."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.inspection import LossDisplay
from buttress.losses import DoubleRamp, Hinge

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


class Barrier:
    def value(self, t):
        return np.where(t > 0, 1.0, np.inf)

    def derivative(self, t):
        return np.zeros_like(t)


def test_curves_are_the_losses_and_infinity_is_a_gap():
    display = LossDisplay.from_losses({"hinge": Hinge(), "barrier": Barrier()}, t=(-1.0, 1.0))
    assert np.allclose(display.curves["hinge"], 1 - display.t)
    assert np.isnan(display.curves["barrier"][display.t <= 0]).all()
    assert [line.get_label() for line in display.lines_] == ["hinge", "barrier"]


def test_the_loss_that_is_bounded_can_be_drawn_too():
    _, ax = plt.subplots()
    loss = DoubleRamp(d=0.2, mu=1.0, rho=2.0)
    display = LossDisplay.from_losses([loss], t=np.linspace(-4, 4, 81), rejection=(0.2, 2.0), ax=ax)
    assert (display.lines_[0].get_ydata() >= display.lines_[1].get_ydata() - 1e-12).all()
    assert display.ax_ is ax


def test_derivatives():
    display = LossDisplay.from_losses([Hinge()], quantity="derivative", rejection=(0.2, 1.0))
    assert set(display.curves["Hinge()"]) == {-1.0, 0.0}
    assert len(display.lines_) == 1


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="quantity='slope'"):
        LossDisplay.from_losses([Hinge()], quantity="slope")
    with pytest.raises(ValueError, match="losses is empty"):
        LossDisplay.from_losses([])
