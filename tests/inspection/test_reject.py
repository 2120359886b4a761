"""Pictures of rejection."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from buttress import ChowRejector, DoubleHingeClassifier, DoubleRampClassifier
from buttress.inspection import RejectRegionDisplay, RiskCoverageDisplay
from buttress.metrics import area_under_risk_coverage

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def moons():
    return make_moons(80, noise=0.35, random_state=0)


def test_region_shows_boundary_band_points_and_support(moons):
    X, y = moons
    model = DoubleRampClassifier(d=0.1, C=10.0).fit(X, y)
    _, ax = plt.subplots()
    display = RejectRegionDisplay.from_estimator(model, X, y, grid_resolution=30, ax=ax)
    assert display.ax_ is ax
    assert display.boundary_ is not None
    assert display.band_ is not None
    drawn = sum(len(p.get_offsets()) for p in display.points_)
    hollow = sum(len(p.get_offsets()) for p in display.rejected_points_)
    assert hollow == model.reject(X).sum()
    assert drawn + hollow == len(X)
    assert len(display.support_points_.get_offsets()) == len(model.support_)
    assert (display.region == -1).mean() > 0
    grid = np.column_stack([part.ravel() for part in np.meshgrid(display.x, display.y)])
    assert np.array_equal(display.region.ravel() == -1, model.reject(grid))


def test_region_of_three_classes_pipelines_and_plain_classifiers(moons):
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), DoubleRampClassifier(d=0.1, C=5.0)).fit(X[:, :2], y)
    display = RejectRegionDisplay.from_estimator(model, X[:, :2], y, grid_resolution=20)
    assert display.boundary_ is None
    assert len(display.points_) == 3
    tree = DecisionTreeClassifier(max_depth=2).fit(*moons)
    display = RejectRegionDisplay.from_estimator(tree, moons[0], grid_resolution=20)
    assert display.support_points_ is None
    assert (display.region >= 0).all()


def test_region_keeps_the_names_of_a_data_frame(moons):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(moons[0], columns=["width", "length"])
    model = ChowRejector(LogisticRegression(), d=0.3).fit(frame, moons[1])
    display = RejectRegionDisplay.from_estimator(model, frame, moons[1], grid_resolution=20)
    assert display.ax_.get_xlabel() == "width"


def test_region_needs_two_features():
    with pytest.raises(ValueError, match="two features"):
        RejectRegionDisplay.from_estimator(None, np.zeros((3, 4)))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (80, {"grid_resolution": 1}, "grid_resolution=1"),
        (80, {"grid_resolution": 2.5}, "grid_resolution=2.5"),
        (80, {"margin": None}, "margin=None"),
        (80, {"y": np.full(80, 0.5)}, r"labels \[0.5\]"),
        (80, {"y": np.zeros(79, dtype=int)}, "inconsistent"),
        (5, {}, "training rows, or support=False"),
    ],
)
def test_region_names_what_it_cannot_draw(moons, rows, options, message):
    X, y = moons
    model = DoubleRampClassifier(d=0.1, C=10.0).fit(X, y)
    given = {"y": y[:rows]} | options
    with pytest.raises(ValueError, match=message):
        RejectRegionDisplay.from_estimator(model, X[:rows], **given)


def test_curve_of_an_estimator_is_that_of_its_confidence(moons):
    X, y = moons
    model = DoubleRampClassifier(C=5.0).fit(X, y)
    display = RiskCoverageDisplay.from_estimator(model, X, y, color="red")
    score = np.abs(model.decision_function(X))
    assert display.area == pytest.approx(area_under_risk_coverage(y, model.predict(X), score))
    assert display.coverage[-1] == 1.0
    assert "DoubleRampClassifier" in display.line_.get_label()
    again = RiskCoverageDisplay(display.coverage, display.risk).plot()
    assert again.ax_.get_legend() is None


def test_several_models_share_axes_and_have_bands():
    X, y = make_moons(200, noise=0.35, random_state=0)
    models = {C: DoubleHingeClassifier(C=C).fit(X[:100], y[:100]) for C in (0.1, 10.0)}
    drawn = RiskCoverageDisplay.compare(models, X[100:], y[100:], confidence=0.8)
    assert drawn[0].ax_ is drawn[1].ax_
    assert [one.band_ is not None for one in drawn] == [True, True]
    plain = RiskCoverageDisplay.compare(list(models.values()), X, y, confidence=None)
    assert plain[0].band_ is None
    names = [text.get_text() for text in plain[0].ax_.get_legend().get_texts()]
    assert names[0].startswith("DoubleHingeClassifier 1, area")
    with pytest.raises(ValueError, match="estimators is empty"):
        RiskCoverageDisplay.compare({}, X, y)
