"""The pictures of penalties and margins show the numbers they are given."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.inspection import MarginDisplay, RademacherDisplay
from buttress.theory import margin_directions, rademacher_penalty

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def test_the_curve_its_band_and_its_bound():
    K = np.eye(8) + 0.5
    curve = rademacher_penalty(K, np.tile([1, -1], 4), n_draws=4, random_state=0)
    display = curve.plot(color="C5")
    W, mean = display.line_.get_data()
    np.testing.assert_allclose(mean, curve.at(W).mean)
    np.testing.assert_allclose(display.bound_.get_ydata(), curve.at(W).trace_bound)
    assert display.line_.get_color() == "C5"
    assert display.band_ is not None
    assert (display.jumps_ is not None) == curve.jumps.any()


def test_one_draw_has_no_band_and_axes_can_be_given():
    _, ax = pyplot.subplots()
    curve = rademacher_penalty(np.eye(3), [1, -1, 1], n_draws=1, random_state=0)
    display = RademacherDisplay(curve).plot(ax, n_points=7)
    assert display.ax_ is ax
    assert display.band_ is None
    assert len(display.line_.get_xdata()) == 7
    empty = rademacher_penalty(np.zeros((2, 2)), [1, -1], n_draws=2, random_state=0)
    np.testing.assert_array_equal(RademacherDisplay(empty).plot().line_.get_ydata(), 0.0)


@pytest.mark.parametrize("intercept", [False, True])
def test_boundaries_are_where_the_scores_vanish(intercept):
    X = np.array([[2.0, 0.5], [1.0, 2.0], [-1.0, -0.5], [-2.0, 0.5]])
    X = np.column_stack([X, np.ones(4)]) if intercept else X
    found = margin_directions(X, [1, 1, -1, -1])
    display = found.plot()
    for name, w in (("product of margins", found.product), ("smallest margin", found.smallest)):
        points = np.array(display.lines_[name].get_data())
        score = w[:2] @ points + (w[2] if intercept else 0.0)
        np.testing.assert_allclose(score, 0.0, atol=1e-9)
    assert len(display.points_) == 2


def test_the_bayes_rule_is_drawn_and_other_dimensions_refused():
    X = np.array([[2.0, 0.5], [-1.0, -0.5]])
    display = MarginDisplay(margin_directions(X, [1, -1]), lambda x: x[:, 0] + x[:, 1]).plot()
    assert len(display.ax_.collections) >= 3
    with pytest.raises(ValueError, match="3 columns"):
        MarginDisplay(margin_directions(np.eye(3), [1, 1, -1]))
