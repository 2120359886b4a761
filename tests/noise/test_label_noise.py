"""The noise model: rates, probabilities and intervals against brute force and known truths."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import expit

from buttress.noise import Estimate, LabelNoiseWarning, fit_label_noise


def simulated(n, rates, seed, spread=1.5, distance=2.0):
    """Scores of two normal classes, true labels, and labels with the given rates of noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    scores = spread * rng.standard_normal(n) + np.where(truth == 1, distance, -distance)
    flipped = rng.random(n) < np.asarray(rates)[truth]
    return scores, truth, np.where(flipped, 1 - truth, truth)


def brute_force(scores, y, n_rates=40, n_side=40):
    """Posterior means on a full grid over rate, slope and intercept, with the model's priors."""
    z = (scores - scores.mean()) / scores.std()
    rates = (np.arange(n_rates) + 0.5) / n_rates * 0.49
    slopes, intercepts = np.linspace(0.0, 20.0, n_side), np.linspace(-8.0, 8.0, n_side)
    r, w, b = (part.ravel()[:, None] for part in np.meshgrid(rates, slopes, intercepts))
    eta = expit(w * z + b)
    one = r + (1 - 2 * r) * eta
    log = 0.6 * np.log(np.where(y == 1, one, 1 - one)).sum(axis=1)
    log += (2 * np.log(1 - r) - w**2 / 100 - b**2 / 200)[:, 0]
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    own, other = np.where(y == 1, eta, 1 - eta), np.where(y == 1, 1 - eta, eta)
    wrong = r * other / (r * other + (1 - r) * own)
    return weight @ eta, weight @ wrong, float(weight @ r[:, 0])


def test_probabilities_are_the_posterior_means_of_a_full_grid():
    scores, _, y = simulated(80, (0.15, 0.15), 3)
    noise = fit_label_noise(scores, y, rates="uniform")
    clean, wrong, rate = brute_force(scores, y)
    assert noise.rates_[0] == pytest.approx(rate, abs=0.015)
    np.testing.assert_allclose(noise.clean_proba(scores)[:, 1], clean, atol=0.03)
    np.testing.assert_allclose(noise.wrong_proba(scores, y), wrong, atol=0.06)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_one_rate_is_found(rate):
    scores, truth, y = simulated(1200, (rate, rate), 1)
    noise = fit_label_noise(scores, y)
    assert noise.kind == "uniform"
    assert noise.rates_[0] == pytest.approx((y != truth).mean(), abs=0.04)
    assert noise.rates_[1].low <= rate <= noise.rates_[1].high
    assert noise.p_value > 1e-3


def test_rates_that_differ_are_told_apart():
    scores, truth, y = simulated(800, (0.0, 0.3), 2)
    noise = fit_label_noise(scores, y)
    assert noise.kind == "per_class"
    assert noise.log_bayes_factor > 3
    assert noise.rates_[0] < 0.05
    assert noise.rates_[1] == pytest.approx(0.3, abs=0.08)
    # the clean decision is the true boundary, the given labels' own lies at a higher score
    grid = np.linspace(-6, 6, 1201)
    boundary = grid[np.argmin(abs(noise.clean_proba(grid)[:, 1] - 0.5))]
    assert abs(boundary) < 0.5
    suggested = noise.suggested(scores, y)
    assert (suggested == truth).mean() > (y == truth).mean()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_kinds_of_noise_are_weighed_by_their_evidence(seed):
    scores, _, y = simulated(120, (0.05, 0.3), seed)
    noise = fit_label_noise(scores, y)
    share = expit(noise.log_bayes_factor - np.log(5.0))
    assert noise.kind == ("per_class" if share > 0.5 else "uniform")
    one, two = (fit_label_noise(scores, y, rates=kind) for kind in ("uniform", "per_class"))
    for ask in (lambda n: n.clean_proba(scores)[:, 1], lambda n: n.wrong_proba(scores, y)):
        wanted = share * ask(two) + (1.0 - share) * ask(one)
        # 200 draws, of which each kind gives its part
        np.testing.assert_allclose(ask(noise), wanted, atol=0.05)
    for k in (0, 1):
        parts = sorted([one.rates_[k], two.rates_[k]])
        assert parts[0] - 0.02 <= noise.rates_[k] <= parts[1] + 0.02
        assert noise.rates_[k].low <= noise.rates_[k] <= noise.rates_[k].high


def test_probabilities_of_wrong_labels_are_calibrated():
    scores, truth, y = simulated(6000, (0.15, 0.15), 4)
    proba = fit_label_noise(scores, y, rates="uniform").wrong_proba(scores, y)
    wrong = y != truth
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        rows = (proba >= low) & (proba < low + 0.2)
        assert wrong[rows].mean() == pytest.approx(proba[rows].mean(), abs=0.08)


def test_large_data_narrow_the_interval():
    small = fit_label_noise(*simulated(500, (0.2, 0.2), 5)[::2], rates="uniform").rates_[0]
    large = fit_label_noise(*simulated(12000, (0.2, 0.2), 5)[::2], rates="uniform").rates_[0]
    assert large.high - large.low < 0.35 * (small.high - small.low)
    assert large.low < 0.2 < large.high


def test_integer_weights_are_copies():
    scores, _, y = simulated(150, (0.1, 0.1), 6)
    weight = np.random.default_rng(0).integers(0, 4, 150)
    weighted = fit_label_noise(scores, y, sample_weight=weight)
    copied = fit_label_noise(np.repeat(scores, weight), np.repeat(y, weight))
    assert weighted.rates_[0] == pytest.approx(copied.rates_[0], abs=1e-6)
    assert weighted.loglik == pytest.approx(copied.loglik, abs=1e-6)
    np.testing.assert_allclose(weighted.clean_proba(scores), copied.clean_proba(scores), atol=1e-6)


def test_a_second_witness_helps_and_a_useless_one_does_not_hurt():
    scores, truth, y = simulated(800, (0.1, 0.1), 7)
    rng = np.random.default_rng(1)
    second = 1.5 * rng.standard_normal(800) + np.where(truth == 1, 2.0, -2.0)
    wrong = y != truth

    def brier(columns):
        return np.mean(
            (fit_label_noise(columns, y, rates="uniform").wrong_proba(columns, y) - wrong) ** 2
        )

    one, two = brier(scores), brier(np.column_stack([scores, second]))
    useless = brier(np.column_stack([scores, rng.standard_normal(800)]))
    assert two < 0.9 * one
    assert useless < 1.1 * one


def three_classes(n, transition, seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    scores = 1.2 * rng.standard_normal((n, 3)) + 3.0 * np.eye(3)[truth]
    y = np.array([rng.choice(3, p=transition[k]) for k in truth])
    return scores, truth, y


def test_three_classes_share_a_rate():
    transition = np.full((3, 3), 0.1)
    np.fill_diagonal(transition, 0.8)
    scores, truth, y = three_classes(600, transition, 0)
    noise = fit_label_noise(scores, y)
    assert noise.kind == "uniform"
    np.testing.assert_allclose(noise.transition_, transition, atol=0.07)
    assert (noise.suggested(scores, y) == truth).mean() > (y == truth).mean() + 0.1
    np.testing.assert_allclose(noise.clean_proba(scores).sum(axis=1), 1.0)


def test_a_free_transition_matrix_is_found():
    transition = np.array([[1.0, 0.0, 0.0], [0.35, 0.65, 0.0], [0.0, 0.05, 0.95]])
    scores, _, y = three_classes(600, transition, 1)
    noise = fit_label_noise(scores, np.array(["a", "b", "c"])[y])
    assert noise.kind == "per_class"
    np.testing.assert_allclose(noise.transition_, transition, atol=0.1)
    assert noise.rates_["b"].low < 0.35 < noise.rates_["b"].high


# -- bad input -------------------------------------------------------------------------------------


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="only one class"):
        fit_label_noise(np.arange(30.0), np.zeros(30, dtype=int))


def test_few_rows_of_a_class_are_refused_with_their_number():
    with pytest.raises(ValueError, match=r"^Class 1 has 4 rows; noise rates need at least 10"):
        fit_label_noise(np.arange(30.0), np.r_[np.zeros(26, dtype=int), np.ones(4, dtype=int)])


def test_constant_scores_are_refused():
    with pytest.raises(ValueError, match="constant"):
        fit_label_noise(np.full(40, 2.0), np.arange(40) % 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sample_weight": np.zeros(60)}, "All values of sample_weight are zero"),
        ({"sample_weight": -np.ones(60)}, "not negative"),
        ({"sample_weight": np.ones(3)}, "expected"),
        ({"prior": (0.0, 1.0)}, "two positive numbers"),
        ({"prior": (np.inf, 1.0)}, "two positive numbers.*at most"),
        ({"rates": "some"}, "not accepted"),
        ({"rates": np.array(["auto"])}, "rates="),
        ({"level": 1.0}, "level=1.0"),
        ({"level": np.nan}, "level=nan"),
        ({"level": "0.9"}, "level='0.9'"),
        ({"y": np.r_[np.nan, np.ones(59)]}, "NaN"),
        ({"y": np.array([1, "a"] * 30, dtype=object)}, "label type"),
        ({"scores": 1.0}, "scores=1.0"),
        ({"y": np.zeros(3)}, "a label per row"),
        ({"scores": np.full(60, np.nan)}, "held-out"),
        ({"scores": np.zeros((60, 2, 5))}, "does not fit"),
    ],
)
def test_bad_arguments_are_named(change, message):
    scores, _, y = simulated(60, (0.1, 0.1), 0)
    arguments = {"scores": scores, "y": y} | change
    with pytest.raises(ValueError, match=message):
        fit_label_noise(**arguments)


@pytest.mark.parametrize("prior", [(500.0, 4500.0), (3e5, 7e5), (2000.0, 2000.0)])
def test_a_prior_worth_thousands_of_rows_sets_the_rate(prior):
    scores, _, y = simulated(200, (0.1, 0.1), 0)
    noise = fit_label_noise(scores, y, prior=prior, rates="uniform")
    expected = min(prior[0] / sum(prior), 0.48)
    assert abs(noise.rates_[0] - expected) < 0.01


def test_labels_that_the_model_does_not_know_are_named():
    scores, _, y = simulated(100, (0.1, 0.1), 0)
    noise = fit_label_noise(scores, y)
    with pytest.raises(ValueError, match=r"the labels \[7\]"):
        noise.wrong_proba(scores, np.full(100, 7))
    with pytest.raises(ValueError, match="witnesses"):
        noise.clean_proba(np.zeros((5, 3)))


def test_scores_of_training_rows_are_noticed():
    _, truth, _ = simulated(200, (0.0, 0.0), 0)
    with pytest.warns(LabelNoiseWarning, match="trained on these rows"):
        fit_label_noise(np.where(truth == 1, 1.0, -1.0) + 0.1 * np.sin(np.arange(200)), truth)


def test_labels_that_scores_do_not_predict_put_the_rate_at_its_bound():
    rng = np.random.default_rng(0)
    with pytest.warns(LabelNoiseWarning, match="at its bound"):
        fit_label_noise(rng.standard_normal(400), rng.integers(0, 2, 400), prior=(5.0, 1.0))


def test_noise_that_depends_on_the_row_is_noticed():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-4, 4, 1000)
    # labels are right except in one stretch of the scores, where all are wrong
    y = ((scores > 0) ^ ((scores > 2) & (scores < 3))).astype(int)
    with pytest.warns(LabelNoiseWarning, match="does not describe"):
        fit_label_noise(scores, y)


def test_estimates_keep_their_interval_in_files():
    rate = pickle.loads(pickle.dumps(Estimate(0.1, 0.05, 0.2, 0.8)))
    assert (rate, rate.interval, rate.level) == (0.1, (0.05, 0.2), 0.8)


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(0.1, 0.1), (0.2, 0.2), (0.0, 0.3)])
def test_ninety_percent_intervals_cover(rates):
    covered = []
    for seed in range(150):
        scores, _, y = simulated(400, rates, 100 + seed)
        found = fit_label_noise(scores, y).rates_
        covered += [found[k].low <= rates[k] <= found[k].high for k in (0, 1)]
    assert np.mean(covered) >= 0.85


def test_weights_that_cannot_be_added_up_are_refused():
    scores = np.linspace(-3.0, 3.0, 60)
    with pytest.raises(ValueError, match="sample_weight holds numbers up to 1e\\+200"):
        fit_label_noise(scores, scores > 0, sample_weight=np.full(60, 1e200))
