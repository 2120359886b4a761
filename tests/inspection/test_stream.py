"""The picture of a stream shows what the learners recorded."""

from __future__ import annotations

import numpy as np
import pytest

from buttress import KernelPerceptron, PARampClassifier
from buttress.inspection import StreamDisplay

pytest.importorskip("matplotlib")


def learners() -> tuple[PARampClassifier, KernelPerceptron]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(640, 2))
    y = X[:, 0] * X[:, 1] > 0
    return PARampClassifier(gamma=1.0).fit(X, y), KernelPerceptron(gamma=1.0).fit(X, y)


def test_lines_end_at_the_final_numbers() -> None:
    ramp, perceptron = learners()
    display = StreamDisplay.from_estimators({"ramp": ramp, "perceptron": perceptron})
    for name, model in (("ramp", ramp), ("perceptron", perceptron)):
        error, vectors = display.lines_[name]
        assert error.get_ydata()[-1] == pytest.approx(100 * model.progressive_error_)
        assert vectors.get_ydata()[-1] == len(model.support_)
        assert error.get_xdata()[-1] == 640
    assert display.figure_ is display.axes_[0].figure


def test_a_window_forgets_and_names_are_made_unique() -> None:
    ramp, _ = learners()
    display = StreamDisplay.from_estimators([ramp, ramp], window=2)
    assert list(display.lines_) == ["PARampClassifier 1", "PARampClassifier 2"]
    history = ramp.history_
    last = history["mistakes"][-2:].sum() / history["labelled"][-2:].sum()
    error = display.lines_["PARampClassifier 1"][0]
    assert error.get_ydata()[-1] == pytest.approx(100 * last)
    again = StreamDisplay.from_estimator(ramp, name="x", axes=display.axes_)
    assert list(again.lines_) == ["x"]
    assert list(StreamDisplay.from_estimator(ramp).lines_) == ["PARampClassifier"]


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ValueError, match="estimators is empty"):
        StreamDisplay.from_estimators([])


@pytest.mark.parametrize("window", [0, -1, 1.5, "x"])
def test_a_window_is_a_number_of_entries(window: object) -> None:
    with pytest.raises(ValueError, match=r"window=.*whole number in \[1, inf\)"):
        StreamDisplay.from_estimator(learners()[0], window=window)
