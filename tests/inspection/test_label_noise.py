"""The picture of label noise shows what the audit found."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import make_moons

from buttress import LabelAudit
from buttress.inspection import LabelNoiseDisplay
from buttress.noise import KernelWitness


@pytest.fixture(scope="module")
def audited():
    X, y = make_moons(200, noise=0.2, random_state=0)
    wrong = np.zeros(200, dtype=bool)
    wrong[:25] = True
    return wrong, LabelAudit(KernelWitness()).audit(X, np.where(wrong, 1 - y, y))


def test_curve_and_asymptotes_are_those_of_the_model(audited):
    _, found = audited
    display = LabelNoiseDisplay.from_suspects(found)
    rates = found.noise_rates
    assert display.asymptotes == pytest.approx((rates[0], 1 - rates[1]))
    low, high = display.curve[1][[0, -1]]
    assert display.asymptotes[0] < low < high < display.asymptotes[1]
    # the bins scatter around the curve
    at_bins = np.interp(display.position, *display.curve)
    assert np.mean(np.abs(display.share - at_bins) < 3 * display.deviation) > 0.9
    assert display.reviewed_line_ is None
    plt.close(display.figure_)


def test_reviewed_labels_come_in(audited):
    wrong, found = audited
    rows = found.top(10)
    display = LabelNoiseDisplay.from_suspects(found, reviewed={int(i): wrong[i] for i in rows})
    np.testing.assert_allclose(
        display.reviewed_line_.get_ydata(), np.cumsum(wrong[rows]) / np.arange(1, 11)
    )
    same = LabelNoiseDisplay.from_suspects(found, reviewed=wrong[rows], label=0)
    np.testing.assert_allclose(same.reviewed, display.reviewed)
    np.testing.assert_allclose(
        display.expected_line_.get_ydata()[9], found.probabilities[rows].mean()
    )
    with pytest.raises(ValueError, match="label='z'"):
        LabelNoiseDisplay.from_suspects(found, label="z")
    for strange in ([4, 17], "x", np.zeros(len(wrong) + 1), wrong[:, None]):
        with pytest.raises(ValueError, match="up to 200 booleans in the order"):
            LabelNoiseDisplay.from_suspects(found, reviewed=strange)
    plt.close("all")
