"""Wrong labels: cross-fitted scores, noise rates and the share of false alarms."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold

from buttress import RampClassifier
from buttress.classifiers.label_noise import NoiseRates, noise_rates
from buttress.classifiers.suspects import disagreement, judge_labels, predictions


def noisy_moons(n, rate, seed, noise=0.2, one_sided=False):
    rng = np.random.default_rng(seed)
    X, y = make_moons(n, noise=noise, random_state=seed)
    pool = np.flatnonzero(y == 1) if one_sided else np.arange(n)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.choice(pool, round(rate * len(pool)), replace=False)] = True
    return X, np.where(wrong, 1 - y, y), wrong


def test_flips_are_found_with_few_false_alarms():
    X, y, wrong = noisy_moons(400, 0.15, 0)
    found = RampClassifier(C=10.0, random_state=0).suspects(X, y)
    assert average_precision_score(wrong, found.scores) > 0.85
    assert found.noise_rate == pytest.approx(0.15, abs=0.05)
    assert 0.5 * wrong.sum() < len(found.selected)
    assert (~wrong[found.selected]).mean() <= 0.15
    assert found.fdr <= 0.1
    np.testing.assert_array_equal(np.flatnonzero(found.mask), np.sort(found.selected))


def test_every_row_is_scored_by_models_that_have_not_seen_it():
    """A far row alone with its label: seen, it is fitted; unseen, it follows its neighbours."""
    X, y, _ = noisy_moons(100, 0.0, 1)
    y = y.copy()
    y[0] = 1 - y[0]
    model = RampClassifier(C=1e4, s=-np.inf, gamma=50.0, random_state=0)
    assert model.fit(X, y).suspect_scores_[0] < 0
    assert model.suspects(X, y, cv=4).scores[0] > 0


def test_folds_may_be_given():
    X, y, _ = noisy_moons(80, 0.1, 2)
    model = RampClassifier(C=3.0)
    folds = list(StratifiedKFold(4).split(X, y))
    np.testing.assert_allclose(
        model.suspects(X, y, cv=folds).scores,
        model.suspects(X, y, cv=StratifiedKFold(4)).scores,
    )
    with pytest.raises(ValueError, match="without a held-out score"):
        model.suspects(X, y, cv=folds[:2])


def test_precomputed_kernel():
    X, y, _ = noisy_moons(80, 0.1, 2)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    given = RampClassifier(kernel="precomputed", random_state=0).suspects(K, y)
    plain = RampClassifier(gamma=1.0, random_state=0).suspects(X, y)
    np.testing.assert_allclose(given.scores, plain.scores, atol=1e-6)


def test_one_sided_noise_is_recognised():
    X, y, wrong = noisy_moons(500, 0.3, 3, one_sided=True)
    found = RampClassifier(C=10.0, random_state=0).suspects(X, y)
    assert found.noise_rates[1] > 0.2
    assert found.noise_rates[0] < 0.1
    assert set(y[found.selected]) <= {0}
    symmetric = RampClassifier(C=10.0).fit(X, y).suspect_scores_
    assert average_precision_score(wrong, found.scores) > average_precision_score(wrong, symmetric)


def test_clean_labels_raise_no_alarm():
    X, y = make_blobs(300, centers=[[-2, 0], [2, 0]], cluster_std=0.7, random_state=0)
    found = RampClassifier(random_state=0).suspects(X, y)
    assert len(found.selected) == 0
    assert found.fdr == 0.0
    assert found.noise_rate < 0.02


def test_three_classes():
    rng = np.random.default_rng(0)
    X, y = make_blobs(300, centers=[[-4, 0], [4, 0], [0, 6]], cluster_std=1.0, random_state=5)
    wrong = np.zeros(300, dtype=bool)
    wrong[rng.choice(300, 45, replace=False)] = True
    labels = np.array(["a", "b", "c"])[np.where(wrong, (y + rng.integers(1, 3, 300)) % 3, y)]
    found = RampClassifier(random_state=0).suspects(X, labels)
    assert average_precision_score(wrong, found.scores) > 0.9
    assert (~wrong[found.selected]).sum() <= 0.15 * max(len(found.selected), 7)
    assert set(found.noise_rates) == {"a", "b", "c"}


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3])
def test_false_discovery_rate_is_controlled_on_average(rate):
    shares, named = [], []
    for seed in range(30):
        X, y, wrong = noisy_moons(400, rate, seed, noise=0.25)
        found = RampClassifier(C=3.0, random_state=0).suspects(X, y, fdr=0.1)
        shares.append(float((~wrong[found.selected]).mean()) if len(found.selected) else 0.0)
        named.append(len(found.selected))
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / np.sqrt(30)
    assert np.mean(named) > 0.2 * 400 * rate


@pytest.mark.parametrize(("fdr", "cv"), [(0.0, 5), (1.0, 5), (0.1, 1)])
def test_bad_arguments_are_named(fdr, cv):
    X, y, _ = noisy_moons(40, 0.1, 0)
    with pytest.raises(ValueError, match="out of range"):
        RampClassifier().suspects(X, y, cv=cv, fdr=fdr)


def test_evidence_of_several_scores():
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    np.testing.assert_allclose(disagreement(scores, np.array([0, 0])), [-0.5, 1.5])
    favoured, confidence = predictions(scores)
    np.testing.assert_array_equal(favoured, [0, 2])
    np.testing.assert_allclose(confidence, [0.5, 1.0])


def test_noise_rates_of_empty_and_tiny_classes():
    found = noise_rates(np.ones(3), np.zeros(3, dtype=int), np.array([0, 0, 1]), 2)
    assert found.rates.shape == (2,)
    assert found.rates[1] == 0.0
    assert not found.one_sided
    np.testing.assert_array_equal(found.factors, 1.0)
    # enough for an order of the suspects, too little to move the boundary
    near = NoiseRates(np.array([0.19, 0.36]), np.array([0.054, 0.049]))
    assert near.one_sided
    assert near.factors.tolist() == [1.0, 1.0]
    far = NoiseRates(np.array([0.02, 0.36]), np.array([0.02, 0.049]))
    assert far.factors.tolist() == pytest.approx([0.66, 1.34])
    three = noise_rates(np.ones(3), np.arange(3), np.arange(3), 3)
    assert not three.one_sided


def test_probabilities_agree_with_bayes_in_a_known_mixture():
    """Well-separated scores and 20 % uniform flips: differing labels are wrong."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 2000)
    scores = np.where(truth == 1, 1.0, -1.0) * rng.uniform(0.5, 2.0, 2000)
    wrong = rng.random(2000) < 0.2
    found = judge_labels(scores[:, None], np.where(wrong, 1 - truth, truth), np.array([0, 1]), 0.2)
    assert found.probabilities[wrong].mean() > 0.7
    assert found.probabilities[~wrong].max() < 0.1
    assert wrong[found.selected].mean() >= 0.8
