"""Wrong labels: the list, its share of false alarms, and what the object can show."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from buttress import LabelAudit, RampClassifier
from buttress.noise import ForestWitness, KernelWitness, LabelNoiseWarning, fit_label_noise
from buttress.noise.core.suspects import disagreement, judge_labels, list_caution


def noisy_moons(n, rate, seed, noise=0.2, one_sided=False):
    rng = np.random.default_rng(seed)
    X, y = make_moons(n, noise=noise, random_state=seed)
    pool = np.flatnonzero(y == 1) if one_sided else np.arange(n)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.choice(pool, round(rate * len(pool)), replace=False)] = True
    return X, np.where(wrong, 1 - y, y), wrong


def light(**options):
    """An audit whose forest is small, for speed."""
    witnesses = [KernelWitness(), ForestWitness(n_estimators=30, random_state=0)]
    return LabelAudit(witnesses, random_state=0, **options)


@pytest.fixture(scope="module")
def audited():
    X, y, wrong = noisy_moons(300, 0.15, 0)
    return X, y, wrong, light().audit(X, y)


def test_flips_are_found_with_few_false_alarms(audited):
    _, _, wrong, found = audited
    assert average_precision_score(wrong, found.scores) > 0.85
    assert found.noise_rate == pytest.approx(0.15, abs=0.05)
    assert found.expected_errors == pytest.approx(wrong.sum(), rel=0.1)
    assert 0.5 * wrong.sum() < len(found.selected)
    assert (~wrong[found.selected]).mean() <= 0.15
    assert found.fdr <= 0.1
    np.testing.assert_array_equal(np.flatnonzero(found.mask), np.sort(found.selected))
    assert (found.suggested[found.selected] != found.given[found.selected]).all()


def test_nine_in_ten_intervals_of_the_number_of_errors_hold_it():
    held = []
    for seed in range(12):
        X, y, wrong = noisy_moons(300, 0.15, seed)
        errors = light().audit(X, y).expected_errors
        held.append(errors.low <= wrong.sum() <= errors.high)
    # eight or fewer of twelve happen to such intervals three times in a hundred
    assert sum(held) >= 9


def test_the_list_is_the_longest_with_the_wanted_share(audited):
    _, y, _, found = audited
    scores, order, count = found.held_out_scores, found.order, len(found.selected)
    assert found.fdr == pytest.approx(1 - found.probabilities[found.selected].mean(), abs=1e-9)

    def bound(k):
        mean, deviation = found.noise.false_shares(scores[order[:k]], y[order[:k]])
        return mean[-1] + list_caution(found.noise) * deviation[-1]

    assert bound(count) <= 0.1
    longer = [k for k in range(count + 1, count + 5) if found.probabilities[order[k - 1]] > 0.5]
    assert all(bound(k) > 0.1 for k in longer)


def test_top_and_next(audited):
    _, _, _, found = audited
    np.testing.assert_array_equal(found.top(7), np.argsort(-found.probabilities)[:7])
    np.testing.assert_array_equal(found.next(7), found.top(7))
    seen = found.top(5)
    assert not set(found.next(10, exclude=seen)) & set(seen)
    value = found.next(20, strategy="value")
    worth = found.probabilities * found.influence
    assert worth[value].min() >= np.delete(worth, value).max()
    with pytest.raises(ValueError, match="strategy='most'"):
        found.next(3, strategy="most")
    with pytest.raises(ValueError, match="k=-1"):
        found.top(-1)


def test_the_repr_is_a_short_table(audited):
    _, _, _, found = audited
    text = repr(found)
    assert "P(wrong)" in text
    assert len(text.splitlines()) <= 9
    assert found.why_empty() == ""


def test_frames_keep_columns_and_index(audited):
    X, y, _, _ = audited
    frame = pd.DataFrame(X, columns=["a", "given"], index=[f"row {i}" for i in range(len(y))])
    found = light().audit(frame, y)
    table = found.to_frame()
    assert list(table.columns) == [
        "a", "given", "label_given", "suggested", "wrong_probability", "selected",
    ]  # fmt: skip
    assert list(table.index) == list(frame.index)
    named = found.to_frame(only_selected=True)
    assert list(named.index) == [f"row {i}" for i in found.selected]
    other = light().audit(pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}), y).to_frame()
    assert isinstance(other, pl.DataFrame)
    assert other.columns[:3] == ["a", "b", "given"]
    assert light().audit(X, y).to_frame().columns[0] == "x0"


def test_clean_labels_raise_no_alarm_and_say_why():
    X, y = make_blobs(300, centers=[[-2, 0], [2, 0]], cluster_std=0.7, random_state=0)
    with pytest.warns(LabelNoiseWarning):
        found = light().audit(X, y)
    assert len(found.selected) == 0
    assert found.fdr == 0.0
    assert found.noise_rate < 0.03
    assert "top(k)" in repr(found)


def test_any_classifiers_are_witnesses():
    X, y, wrong = noisy_moons(120, 0.1, 1, noise=0.1)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    found = LabelAudit([pipeline, LinearSVC()], random_state=0, n_repeats=1).audit(X, y)
    assert found.held_out_scores.shape == (120, 2, 1)
    assert average_precision_score(wrong, found.scores) > 0.4
    named = LabelAudit([("ramp", RampClassifier(C=3.0))], n_repeats=1, random_state=0).audit(X, y)
    assert average_precision_score(wrong, named.scores) > 0.8


def test_ramp_machines_share_the_implementation():
    X, y, _ = noisy_moons(150, 0.1, 2)
    folds = list(StratifiedKFold(3).split(X, y))
    audit = LabelAudit(RampClassifier(C=3.0), cv=folds).audit(X, y)
    own = RampClassifier(C=3.0).suspects(X, y, cv=folds)
    np.testing.assert_allclose(audit.probabilities, own.probabilities, atol=1e-9)
    # one Gram matrix for all folds: a width fixed from all rows
    gamma = 1.0 / (X.shape[1] * X.var())
    fixed = RampClassifier(C=3.0, gamma=gamma).suspects(X, y, cv=folds)
    np.testing.assert_allclose(own.held_out_scores, fixed.held_out_scores, atol=1e-6)


def test_precomputed_kernel():
    X, y, _ = noisy_moons(80, 0.1, 2)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    given = RampClassifier(kernel="precomputed", random_state=0).suspects(K, y)
    plain = RampClassifier(gamma=1.0, random_state=0).suspects(X, y)
    np.testing.assert_allclose(given.scores, plain.scores, atol=1e-5)


def test_every_row_is_scored_by_models_that_have_not_seen_it():
    """A far row alone with its label: seen, it is fitted; unseen, it follows its neighbours."""
    X, y, _ = noisy_moons(100, 0.0, 1)
    y = y.copy()
    y[0] = 1 - y[0]
    model = RampClassifier(C=1e4, s=-np.inf, gamma=50.0, random_state=0)
    assert model.fit(X, y).suspect_scores_[0] < 0
    held_out = model.suspects(X, y, cv=4).held_out_scores
    assert disagreement(held_out[:, 0], y)[0] > 0


def test_groups_stay_together():
    X, y, _ = noisy_moons(120, 0.1, 3)
    groups = np.arange(120) // 4
    found = LabelAudit(KernelWitness(), groups=groups, n_repeats=1, random_state=0).audit(X, y)
    folds = list(GroupKFold(5).split(X, y, groups))
    custom = LabelAudit(KernelWitness(), cv=GroupKFold(5), groups=groups).audit(X, y)
    ready = LabelAudit(KernelWitness(), cv=folds).audit(X, y)
    np.testing.assert_allclose(custom.scores, ready.scores)
    assert found.probabilities.shape == (120,)
    with pytest.raises(ValueError, match="a group per row"):
        LabelAudit(groups=groups[:5]).audit(X, y)


def test_one_sided_noise_is_recognised():
    X, y, _ = noisy_moons(500, 0.3, 3, one_sided=True)
    found = light().audit(X, y)
    assert found.noise_rates[1] > 0.2
    assert found.noise_rates[0] < 0.1
    assert set(y[found.selected]) <= {0}


def test_three_classes():
    rng = np.random.default_rng(0)
    X, y = make_blobs(300, centers=[[-4, 0], [4, 0], [0, 6]], cluster_std=1.0, random_state=5)
    wrong = np.zeros(300, dtype=bool)
    wrong[rng.choice(300, 45, replace=False)] = True
    labels = np.array(["a", "b", "c"])[np.where(wrong, (y + rng.integers(1, 3, 300)) % 3, y)]
    found = light().audit(X, labels)
    assert average_precision_score(wrong, found.scores) > 0.9
    assert (~wrong[found.selected]).sum() <= 0.15 * max(len(found.selected), 7)
    truth = np.array(["a", "b", "c"])[y]
    assert (found.suggested[found.selected] == truth[found.selected]).mean() > 0.85


def test_rows_of_weight_zero_take_no_part():
    X, y, _ = noisy_moons(120, 0.1, 4)
    weight = np.ones(120)
    weight[::4] = 0.0
    found = LabelAudit(KernelWitness()).audit(X, y, sample_weight=weight)
    alone = LabelAudit(KernelWitness()).audit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(found.probabilities[weight > 0], alone.probabilities, atol=1e-8)
    assert (found.probabilities[::4] == 0).all()
    assert not set(found.selected) & set(range(0, 120, 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fdr": 0.0}, "fdr=0.0"),
        ({"cv": 1}, "cv=1"),
        ({"n_repeats": 0}, "n_repeats=0"),
        ({"estimators": []}, "empty"),
        ({"estimators": "all"}, "estimators='all'"),
        ({"estimators": [StandardScaler()]}, "not a classifier"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_arguments_are_named(options, message):
    X, y, _ = noisy_moons(40, 0.1, 0)
    with pytest.raises(ValueError, match=message):
        LabelAudit(**options).audit(X, y)


@pytest.mark.parametrize("witness", [KernelWitness(), ForestWitness()], ids=repr)
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.r_[-1.0, np.ones(39)], "not negative"),
        (np.r_[np.inf, np.ones(39)], "finite"),
        (np.zeros(40), "All values of sample_weight are zero"),
        (np.ones((40, 1)), "expected \\(40,\\)"),
    ],
    ids=["negative", "infinite", "zero", "column"],
)
def test_a_witness_refuses_weights_that_are_none(witness, weight, message):
    X, y, _ = noisy_moons(40, 0.1, 0)
    with pytest.raises(ValueError, match=message):
        clone(witness).fit(X, y, sample_weight=weight)


def test_one_weight_counts_for_all_rows_of_a_witness():
    X, y, _ = noisy_moons(40, 0.1, 0)
    whole, single = (KernelWitness(random_state=0).fit(X, y, w) for w in (np.full(40, 2.0), 2))
    np.testing.assert_array_equal(single.decision_function(X), whole.decision_function(X))


def test_bad_labels_are_named():
    X, y, _ = noisy_moons(60, 0.1, 0)
    with pytest.raises(ValueError, match="only one class"):
        LabelAudit().audit(X, np.zeros(60, dtype=int))
    rare = np.r_[np.zeros(57, dtype=int), np.ones(3, dtype=int)]
    with pytest.raises(ValueError, match="has 3 rows, fewer than the 5 folds"):
        LabelAudit().audit(X, rare)
    folds = list(StratifiedKFold(4).split(X, y))
    with pytest.raises(ValueError, match="without a held-out score"):
        RampClassifier().suspects(X, y, cv=folds[:2])


def test_evidence_of_several_scores():
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    np.testing.assert_allclose(disagreement(scores, np.array([0, 0])), [-0.5, 1.5])


def test_lists_of_nine_are_possible():
    """No false alarm is added to what is expected: a few sure rows make a list."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    scores = np.where(truth == 1, 1.0, -1.0) * rng.uniform(0.2, 3.0, 300)
    y = truth.copy()
    y[:9] = 1 - y[:9]
    found = judge_labels(scores, y, fit_label_noise(scores, y), fdr=0.1)
    assert 1 <= len(found.selected) <= 9
    assert set(found.selected) <= set(range(9))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3])
def test_false_discovery_rate_is_controlled_on_average(rate):
    shares, named = [], []
    for seed in range(30):
        X, y, wrong = noisy_moons(400, rate, seed, noise=0.25)
        found = LabelAudit(KernelWitness(), fdr=0.1).audit(X, y)
        shares.append(float((~wrong[found.selected]).mean()) if len(found.selected) else 0.0)
        named.append(len(found.selected))
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / np.sqrt(30)
    assert np.mean(named) > 0.2 * 400 * rate
