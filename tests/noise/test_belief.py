"""Three explanations of the labels: their weights, and the probabilities they make."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from buttress.noise import fit_label_noise
from buttress.noise.core.belief import believed, chance_of_wrong_labels

IDENTITY = np.eye(2)


def labelled(n, wrong, seed, slope=2.0):
    """Standardised scores, and labels of a logistic curve of which a share is flipped."""
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(n)
    truth = rng.random(n) < expit(slope * scores)
    return scores, np.where(rng.random(n) < wrong, ~truth, truth).astype(int)


def shares(belief):
    """Posterior shares of: a whole curve, overlap, wrong labels."""
    overlap = (belief.overlap_draws != IDENTITY).any(axis=(1, 2))
    wrong = (belief.transition_draws != IDENTITY).any(axis=(1, 2))
    assert not (overlap & wrong).any()
    return np.array([(~overlap & ~wrong).mean(), overlap.mean(), wrong.mean()])


def weighed_by_brute_force(scores, y):
    """The same shares by sums over grids of rates, slope and intercept.

    Priors as documented: rates Beta(1, 3) below .49, one rate five times as likely as two; slope
    and intercept normal with standard deviations of about 7 and 10; every row counts 0.6.
    """
    z = (scores - scores.mean()) / scores.std()
    slopes, intercepts = np.linspace(-1.0, 14.0, 61), np.linspace(-5.5, 5.5, 45)
    w, b = (grid.ravel() for grid in np.meshgrid(slopes, intercepts, indexing="ij"))
    curve = np.clip(expit(np.outer(w, z) + b[:, None]), 1e-15, 1.0 - 1e-15)
    prior = -0.5 * (0.02 * w**2 + 0.01 * b**2)

    def log_mean_likelihood(first, second):
        given = first + (1.0 - first - second) * curve
        return logsumexp(prior + 0.6 * np.log(np.where(y == 1, given, 1.0 - given)).sum(axis=1))

    rates = 0.49 * (np.arange(24) + 0.5) / 24
    density = 3.0 * (1.0 - rates) ** 2
    density /= density.sum()
    one = logsumexp(np.log(density) + [log_mean_likelihood(rate, rate) for rate in rates])
    table = np.array([[log_mean_likelihood(r, s) for s in rates] for r in rates])
    two = logsumexp(table + np.log(np.outer(density, density)))
    short = np.logaddexp(np.log(5 / 6) + one, np.log(1 / 6) + two)
    return expit(log_mean_likelihood(0.0, 0.0) - short - np.log(2.0))


CASES = [(120, 0.0, 2.0), (120, 0.1, 6.0), (60, 0.2, 3.0)]


@pytest.mark.parametrize(("n", "wrong", "slope"), CASES)
def test_the_weight_of_a_whole_curve_is_that_of_brute_force(n, wrong, slope):
    scores, y = labelled(n, wrong, seed=3, slope=slope)
    belief = believed(fit_label_noise(scores, y), scores, y)
    # Laplace's approximation of so few rows is not exact
    assert shares(belief)[0] == pytest.approx(weighed_by_brute_force(scores, y), abs=0.08)


def test_labels_do_not_tell_overlap_from_noise_but_the_height_of_the_ends_does():
    def ending_at(rate):
        return np.array([[[1.0 - rate, rate], [rate, 1.0 - rate]]])

    wrong = [chance_of_wrong_labels(ending_at(rate))[0] for rate in (0.01, 0.1, 0.2, 0.3, 0.4)]
    assert np.all(np.diff(wrong) < 0)
    # densities of Beta(1, 9) against a uniform one up to .49
    assert wrong[1] == pytest.approx(9 * 0.9**8 / (9 * 0.9**8 + 1 / 0.49))
    scores, y = labelled(600, 0.1, seed=0, slope=8.0)
    noise = fit_label_noise(scores, y)
    parts = shares(believed(noise, scores, y))
    expected = chance_of_wrong_labels(noise.transition_draws).mean()
    assert parts[0] == 0.0
    assert parts[2] == pytest.approx(expected, abs=0.02)


def test_probabilities_are_the_mean_over_the_explanations():
    scores, y = labelled(300, 0.1, seed=1, slope=5.0)
    noise = fit_label_noise(scores, y)
    belief = believed(noise, scores, y)
    rows = np.linspace(-3, 3, 7)
    standard = (rows - noise.centre) / noise.scale
    slope, intercept = belief.coefficient_draws.T
    curve = expit(np.outer(slope, standard) + intercept[:, None])
    ends = belief.overlap_draws
    expected = (ends[:, 0, 1, None] * (1 - curve) + ends[:, 1, 1, None] * curve).mean(axis=0)
    np.testing.assert_allclose(belief.clean_proba(rows)[:, 1], expected, atol=1e-12)
    drawn = np.mean(list(belief.clean_proba_draws(rows)), axis=0)
    np.testing.assert_allclose(drawn[:, 1], expected, atol=1e-12)
    assert belief.rates_ == noise.rates_


def test_swapped_labels_swap_the_probabilities():
    scores, y = labelled(400, 0.1, seed=2)
    rows = np.linspace(-3, 3, 9)
    there = believed(fit_label_noise(scores, y), scores, y).clean_proba(rows)
    back = believed(fit_label_noise(-scores, 1 - y), -scores, 1 - y).clean_proba(-rows)
    np.testing.assert_allclose(there, back[:, ::-1], atol=0.02)


def test_integer_weights_are_copies_and_weight_zero_is_absence():
    scores, y = labelled(200, 0.1, seed=4)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    rows = np.linspace(-3, 3, 9)
    weighted = believed(fit_label_noise(scores, y, sample_weight=weight), scores, y, weight)
    scores, y = np.repeat(scores, weight), np.repeat(y, weight)
    copied = believed(fit_label_noise(scores, y), scores, y)
    np.testing.assert_allclose(weighted.clean_proba(rows), copied.clean_proba(rows), atol=1e-6)


def test_three_classes_whose_labels_are_flipped_are_neither_all_right_nor_all_wrong():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    scores = 6.0 * np.eye(3)[truth] + rng.standard_normal((600, 3))
    y = np.where(rng.random(600) < 0.15, (truth + rng.integers(1, 3, 600)) % 3, truth)
    noise = fit_label_noise(scores, y)
    belief = believed(noise, scores, y)
    proba = belief.clean_proba(scores)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    sure, given = noise.clean_proba(scores).max(axis=1).mean(), (y == scores.argmax(axis=1)).mean()
    assert given < proba.max(axis=1).mean() < sure
