"""Pictures of uncertainty sets."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from buttress import UncertaintySetClassifier
from buttress.inspection import UncertaintySetDisplay
from buttress.losses import LogBarrier
from buttress.theory import Ellipsoid, UncertaintySet, convex_hull

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    matplotlib.pyplot.close("all")


def blobs():
    return make_blobs(40, centers=[[0, 0], [3, 1]], random_state=0)


def test_estimator_with_two_features():
    X, y = blobs()
    model = UncertaintySetClassifier(kernel="linear", bias="bisect", radius=2.0).fit(X, y)
    display = UncertaintySetDisplay.from_estimator(model, n=60)
    assert display.polygons_[0].get_xy().shape == (61, 2)
    z = [model.set_weights_[y == k] @ X[y == k] for k in (1, 0)]
    np.testing.assert_allclose(display.nearest, z, atol=1e-6)
    line = display.line_.get_xydata()
    np.testing.assert_allclose(line @ model.coef_[0] + model.intercept_[0], 0.0, atol=1e-6)
    assert len(display.points_) == 2


def test_kernel_model_has_no_line_and_more_classes_choose_a_problem():
    X, y = make_blobs(45, centers=3, random_state=0)
    model = UncertaintySetClassifier().fit(X, y)
    _, ax = matplotlib.pyplot.subplots()
    display = UncertaintySetDisplay.from_estimator(model, n=20, problem=2, ax=ax)
    assert display.line_ is None
    assert display.ax_ is ax
    assert display.sets[0].points.shape == (15, 2)
    for problem in (3, -1, 0.5, None):
        with pytest.raises(ValueError, match=r"problem=.*\[0, 2\]"):
            UncertaintySetDisplay.from_estimator(model, problem=problem)


def test_nearest_points_of_sets_known_by_support():
    left = Ellipsoid([-3.0, 0.0], [[1.0, 0.3], [0.3, 0.5]], 1.0)
    right = convex_hull([[1.0, -2.0], [1.0, 2.0], [3.0, 0.0]])
    display = UncertaintySetDisplay((right, left)).plot(n=24)
    z = display.nearest[0] - display.nearest[1]
    # optimality: neither set has a point further towards the other
    assert right.support(-z)[0] == pytest.approx(-z @ display.nearest[0], abs=1e-5)
    assert left.support(z)[0] == pytest.approx(z @ display.nearest[1], abs=1e-5)
    assert display.line_ is not None


def test_meeting_sets_have_no_line():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    display = UncertaintySetDisplay((convex_hull(square), convex_hull(square + 0.25)))
    assert np.linalg.norm(display.nearest[0] - display.nearest[1]) < 1e-6


def test_set_of_the_leaky_hockey_stick():
    X, _ = blobs()
    lowest = UncertaintySet(X, LogBarrier(), 1e3)
    shape = UncertaintySet(X, LogBarrier(), lowest.minimum_level() + 0.2)
    outline = shape.boundary(30)
    assert all(convex_hull(X).contains(point) for point in outline[::6])


def test_more_features_are_refused():
    X, y = make_blobs(30, centers=2, n_features=3, random_state=0)
    model = UncertaintySetClassifier(kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match="two features"):
        UncertaintySetDisplay.from_estimator(model)
