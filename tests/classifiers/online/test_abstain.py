"""Online learners that refuse: the band holds its target, also under drift."""

from __future__ import annotations

import numpy as np
import pytest

from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier
from buttress.classifiers.online.abstain import ALLOWANCE, CREEP, STEP, BandTracker, new_band
from buttress.classifiers.online.recent_errors import BINS, LOOKS_BACK, RecentErrors
from buttress.metrics import reject_risk

LEARNERS = [PARampClassifier, KernelPegasos, Norma, KernelPerceptron]


def drifting(n, seed=0):
    """Two overlapping classes whose centres turn once around."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    angle = np.linspace(0.0, 2.0 * np.pi, n)
    centre = np.column_stack([np.cos(angle), np.sin(angle)])
    return rng.normal(size=(n, 2)) * 0.8 + centre * (2 * y - 1)[:, None], y


@pytest.mark.parametrize("target", [0.3, 0.7, 0.95])
def test_the_share_of_answers_obeys_its_bound_whatever_the_confidences(target):
    rng = np.random.default_rng(0)
    n = 4000
    nothing = np.zeros(n, dtype=bool)
    spiteful = np.where(np.arange(n) % 2 == 0, 1e-9, 1e9)
    for confidence in (rng.uniform(size=n), np.geomspace(1e-3, 1e3, n), spiteful, np.zeros(n)):
        tracker = BandTracker("coverage", target)
        refused = tracker.run(confidence, nothing, ~nothing)
        bound = (1 + 2 * STEP) / (STEP * n)
        assert abs((1 - refused.mean()) - target) <= bound + 1e-12
        assert tracker.n_answered == (~refused).sum()


@pytest.mark.long
def test_the_error_among_the_answers_obeys_its_bound():
    rng = np.random.default_rng(1)
    n, target = 20000, 0.1
    confidence = rng.uniform(size=n)
    for slope in (0.3, 0.6):
        wrong = rng.uniform(size=n) < slope * (1 - confidence)
        tracker = new_band("risk", target)
        refused = tracker.run(confidence, wrong, np.ones(n, dtype=bool))
        error = wrong[~refused].mean()
        assert abs(error - target) < 0.02
        assert (~refused).mean() > 0.2  # the ideal shares are .67 and .33
        assert tracker.n_wrong == wrong[~refused].sum()
    # an error that stays below the target needs no refusals
    harmless = new_band("risk", target)
    refused = harmless.run(confidence, wrong & (confidence > 2), np.ones(n, bool))
    assert not refused[2000:].any()


def test_the_error_is_bounded_whatever_the_stream_does():
    rng = np.random.default_rng(3)
    n, target = 6000, 0.1
    confidence = rng.uniform(size=n)
    turning = rng.uniform(size=n) < np.where(np.arange(n) % 1500 < 750, 0.0, 0.9)
    # right until it is trusted, then wrong; and surest where it is wrong
    spiteful = np.arange(n) >= 400
    upside_down = rng.uniform(size=n) < confidence
    for wrong in (turning, spiteful, upside_down, np.ones(n, dtype=bool)):
        tracker = new_band("risk", target)
        refused = tracker.run(confidence, wrong, np.ones(n, dtype=bool))
        kept = ~refused
        allowed = ALLOWANCE + target * (np.cumsum(kept) + CREEP * np.cumsum(refused))
        assert (np.cumsum(wrong & kept) <= allowed + 1e-9).all()
        assert tracker.n_wrong <= ALLOWANCE + target * (kept.sum() + CREEP * tracker.n_waiting)


def test_recent_errors_are_a_discounted_count():
    rng = np.random.default_rng(4)
    n = 7000
    u, wrong = rng.uniform(size=n), rng.uniform(size=n) < 0.3
    recent = RecentErrors()
    for one, is_wrong in zip(u.tolist(), wrong.tolist(), strict=True):
        recent.add(one, is_wrong)
    weight = (1.0 - 1.0 / LOOKS_BACK) ** np.arange(n)[::-1]
    place = np.minimum(np.ceil(u * BINS).astype(int) - 1, BINS - 1)
    for counts, part in ((recent.rows, weight), (recent.wrong, weight * wrong)):
        expected = np.bincount(place, weights=part, minlength=BINS)
        assert np.allclose(np.array(counts) / recent.unit, expected)
    # thresholds by brute force
    rows, errors = (
        np.bincount(place, weights=part, minlength=BINS) for part in (weight, weight * wrong)
    )
    paid = [errors[k:].sum() + 0.25 * rows[:k].sum() for k in range(BINS + 1)]
    assert recent.threshold_for_cost(0.25) == int(np.argmin(paid)) / BINS
    for aim in (0.01, 0.2, 0.27, 0.3, 0.33, 0.5):
        fits = [k for k in range(BINS) if errors[k:].sum() + 1 <= aim * rows[k:].sum()]
        assert recent.threshold_for_error(aim) == min(fits, default=BINS) / BINS
    assert recent.threshold_for_error(0.01) == 1.0
    assert recent.threshold_for_error(0.5) == 0.0


def test_a_band_that_refuses_everything_opens_again():
    n = 60000
    confidence, wrong = np.full(n, 1.0), np.arange(n) < 5000
    tracker = new_band("risk", 0.1)
    refused = tracker.run(confidence, wrong, np.ones(n, dtype=bool))
    assert refused[3000:5000].mean() > 0.9
    assert refused[-1000:].mean() < 0.6


def test_a_cost_is_chows_rule():
    """The error at confidence u is (1 - u) / 2: refuse below u = 1 - 2 d."""
    rng = np.random.default_rng(2)
    n, d = 30000, 0.2
    confidence = rng.uniform(size=n)
    wrong = rng.uniform(size=n) < 0.5 * (1 - confidence)
    tracker = new_band("cost", d)
    tracker.run(confidence, wrong, np.ones(n, dtype=bool))
    assert tracker.width == pytest.approx(0.6, abs=0.1)


@pytest.mark.long
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_keeps_its_coverage_under_drift(learner):
    X, y = drifting(3000)
    model = learner(gamma=1.0, budget=60, target_coverage=0.7)
    answers = model.answer_or_refuse(X, y, classes=[0, 1])
    assert abs((1 - answers.mask.mean()) - 0.7) <= 1.02 / (STEP * 3000)
    assert model.coverage_ == pytest.approx(1 - answers.mask.mean())
    kept = ~answers.mask
    assert (answers.data[kept] != y[kept]).mean() < (answers.data != y).mean()
    assert model.answered_error_ == pytest.approx((answers.data[kept] != y[kept]).mean())
    # the interface of every classifier that may refuse
    rejected = model.reject(X[:50])
    assert np.array_equal(rejected, np.abs(model.decision_function(X[:50])) <= model.thresholds_[1])
    assert (model.predict_or_reject(X[:50], reject_label=-1)[rejected] == -1).all()


@pytest.mark.long
def test_an_error_and_a_cost_in_a_stream():
    X, y = drifting(6000, seed=1)
    model = KernelPegasos(gamma=1.0, budget=60, target_risk=0.1)
    model.partial_fit(X, y, classes=[0, 1])
    assert model.answered_error_ < 0.12 < model.progressive_error_
    cheap = KernelPegasos(gamma=1.0, budget=60, d=0.1)
    found = cheap.answer_or_refuse(X, y, classes=[0, 1])
    assert reject_risk(y, found, None, 0.1) < min(0.1, cheap.progressive_error_)


@pytest.mark.parametrize("asked", [{"target_coverage": 0.8}, {"target_risk": 0.1}, {"d": 0.2}])
def test_blocks_and_checkpoints_do_not_change_the_band(tmp_path, asked):
    X, y = drifting(600)
    whole = PARampClassifier(gamma=1.0, **asked)
    expected = whole.answer_or_refuse(X, y, classes=[0, 1]).mask
    assert 0 < expected.mean() < 1
    half = PARampClassifier(gamma=1.0, **asked)
    first = half.answer_or_refuse(X[:250], y[:250], classes=[0, 1]).mask
    half.save_checkpoint(tmp_path / "half.ckpt")
    again = PARampClassifier.load_checkpoint(tmp_path / "half.ckpt")
    second = again.answer_or_refuse(X[250:], y[250:]).mask
    assert np.array_equal(np.concatenate([first, second]), expected)
    assert again.thresholds_ == pytest.approx(whole.thresholds_)


def test_nothing_is_refused_unless_asked():
    X, y = drifting(200)
    model = PARampClassifier(gamma=1.0).partial_fit(X, y, classes=[0, 1])
    assert not model.reject(X).any()
    assert model.coverage_ == 1.0
    assert model.answered_error_ == model.progressive_error_


def test_rows_without_labels_are_answered_or_refused_and_not_judged():
    X, y = drifting(400)
    some = [label if k % 2 else None for k, label in enumerate(y.tolist())]
    model = Norma(gamma=1.0, target_coverage=0.6).partial_fit(X, some, classes=[0, 1])
    assert model._band.n_rows == 400
    assert model._band.n_judged <= 200


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"d": 0.2, "target_risk": 0.1}, "d=0.2 and target_risk=0.1 cannot both"),
        ({"target_coverage": 1.0}, "target_coverage=1.0"),
        ({"d": 0.7}, "d=0.7"),
    ],
)
def test_impossible_requests_are_named(params, message):
    X, y = drifting(20)
    with pytest.raises(ValueError, match=message):
        PARampClassifier(**params).fit(X, y)
