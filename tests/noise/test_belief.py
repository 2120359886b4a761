"""Three explanations of the labels: their weights, and the probabilities they make."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from buttress.noise import fit_label_noise
from buttress.noise.core.belief import believed, chance_of_wrong_labels

IDENTITY = np.eye(2)


def labelled(n, wrong, seed, slope=2.0):
    """Standardised scores, and labels of a logistic curve of which a share is flipped.

    `wrong`: one share, or those of the classes 0 and 1.
    """
    rng = np.random.default_rng(seed)
    scores = rng.standard_normal(n)
    truth = rng.random(n) < expit(slope * scores)
    first, second = np.broadcast_to(wrong, 2)
    flipped = rng.random(n) < np.where(truth, second, first)
    return scores, (truth ^ flipped).astype(int)


def ending_at(*rates):
    """A curve of several classes that ends short by these rates."""
    rates = np.array(rates)
    matrix = np.repeat(rates[:, None], len(rates), axis=1) / (len(rates) - 1)
    np.fill_diagonal(matrix, 1.0 - rates)
    return matrix[None]


def shares(belief):
    """Posterior shares of: a whole curve, overlap, wrong labels."""
    overlap = (belief.overlap_draws != IDENTITY).any(axis=(1, 2))
    wrong = (belief.transition_draws != IDENTITY).any(axis=(1, 2))
    assert not (overlap & wrong).any()
    return np.array([(~overlap & ~wrong).mean(), overlap.mean(), wrong.mean()])


def weighed_by_brute_force(scores, y):
    """The same shares by sums over grids of rates, slope and intercept.

    Priors as documented: rates Beta(1, 3) below .49, one rate five times as likely as two; slope
    and intercept normal with standard deviations of about 7 and 10; every row counts 0.6. Wrong
    labels against overlap: Beta(1, 9) against a uniform density of the mean rate, and of two rates
    1 against twice their ratio.
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
    whole = expit(log_mean_likelihood(0.0, 0.0) - short - np.log(2.0))
    r, s = np.meshgrid(rates, rates, indexing="ij")
    odds = 0.49 * 9.0 * (1.0 - (r + s) / 2.0) ** 8
    chance = odds / (odds + 2.0 * np.minimum(r, s) / np.maximum(r, s))
    weight = np.exp(np.log(1 / 6) + table + np.log(np.outer(density, density)) - short)
    wrong = (weight * chance).sum()
    equal = np.diag(odds) / (np.diag(odds) + 1.0)
    of_one = np.log(density) + np.diag(table)
    wrong += (np.exp(np.log(5 / 6) + of_one - short) * equal).sum()
    return np.array([whole, (1.0 - whole) * (1.0 - wrong), (1.0 - whole) * wrong])


CASES = [
    (120, 0.0, 2.0),
    (120, 0.1, 6.0),
    (60, 0.2, 3.0),
    (200, (0.0, 0.3), 6.0),
    (200, (0.3, 0.05), 6.0),
]


@pytest.mark.parametrize(("n", "wrong", "slope"), CASES)
def test_the_weights_of_the_explanations_are_those_of_brute_force(n, wrong, slope):
    scores, y = labelled(n, wrong, seed=3, slope=slope)
    belief = believed(fit_label_noise(scores, y), scores, y)
    # Laplace's approximation of so few rows is not exact
    np.testing.assert_allclose(shares(belief), weighed_by_brute_force(scores, y), atol=0.08)


def test_labels_do_not_tell_overlap_from_noise_but_the_height_of_the_ends_does():
    heights = (0.01, 0.1, 0.2, 0.3, 0.4)
    wrong = [chance_of_wrong_labels(ending_at(rate, rate))[0] for rate in heights]
    assert np.all(np.diff(wrong) < 0)
    # densities of Beta(1, 9) against a uniform one up to .49
    assert wrong[1] == pytest.approx(9 * 0.9**8 / (9 * 0.9**8 + 1 / 0.49))
    scores, y = labelled(600, 0.1, seed=0, slope=8.0)
    noise = fit_label_noise(scores, y)
    parts = shares(believed(noise, scores, y))
    expected = chance_of_wrong_labels(noise.transition_draws).mean()
    assert parts[0] == 0.0
    assert parts[2] == pytest.approx(expected, abs=0.02)


def test_a_curve_with_one_clean_end_speaks_for_wrong_labels_whichever_end_it_is():
    cleaner = [(0.2, 0.2 - 1e-9), (0.25, 0.15), (0.3, 0.1), (0.35, 0.05), (0.4, 0.0)]
    chances = [chance_of_wrong_labels(ending_at(*ends))[0] for ends in cleaner]
    assert np.all(np.diff(chances) > 0)
    assert chances[-1] == 1.0
    swapped = [chance_of_wrong_labels(ending_at(*ends[::-1]))[0] for ends in cleaner]
    np.testing.assert_allclose(swapped, chances, rtol=1e-12)
    # nearly equal ends are twice as likely by overlap, one end for both says nothing of them
    odds = chances[0] / (1.0 - chances[0])
    equal = chance_of_wrong_labels(ending_at(0.2, 0.2))[0]
    assert odds == pytest.approx(0.5 * equal / (1.0 - equal), rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_unequal_ends_move_belief_between_overlap_and_noise_but_make_none(n_classes):
    # the odds of overlap, over those of the same mean, are a ratio of densities: their mean is 1
    ends = np.random.default_rng(0).uniform(0.0, 0.49, (20_000, n_classes))
    chances = chance_of_wrong_labels(np.concatenate([ending_at(*row) for row in ends]))
    density = 9.0 * (1.0 - ends.mean(axis=1)) ** 8
    ratio = (1.0 / chances - 1.0) * density * 0.49
    assert ratio.mean() == pytest.approx(1.0, abs=4.0 * ratio.std() / np.sqrt(len(ratio)))


def test_two_of_three_classes_may_overlap_but_one_alone_can_not():
    pair, alone = (
        chance_of_wrong_labels(ending_at(*ends))[0]
        for ends in ((0.3, 0.29, 0.01), (0.46, 0.07, 0.07))
    )
    assert pair < 0.5 < alone


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


@pytest.mark.parametrize("wrong", [0.1, (0.0, 0.3)])
def test_swapped_labels_swap_the_probabilities(wrong):
    scores, y = labelled(400, wrong, seed=2)
    rows = np.linspace(-3, 3, 9)
    there = believed(fit_label_noise(scores, y), scores, y).clean_proba(rows)
    back = believed(fit_label_noise(-scores, 1 - y), -scores, 1 - y).clean_proba(-rows)
    np.testing.assert_allclose(there, back[:, ::-1], atol=0.02)


@pytest.mark.parametrize("wrong", [0.1, (0.3, 0.0)])
def test_integer_weights_are_copies_and_weight_zero_is_absence(wrong):
    scores, y = labelled(200, wrong, seed=4)
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
