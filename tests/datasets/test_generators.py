"""Generators: the sample follows the distribution they claim."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from buttress.datasets import (
    make_banana,
    make_mixture,
    make_noisy_band,
    make_reject_synthetic,
    make_ringnorm,
    make_skewed_gaussians,
    make_twonorm,
    make_waveform,
)

GENERATORS = [
    make_mixture,
    make_reject_synthetic,
    make_noisy_band,
    make_skewed_gaussians,
    make_ringnorm,
    make_twonorm,
    make_waveform,
    make_banana,
]


@pytest.mark.parametrize("make", GENERATORS)
def test_bayes_rule_makes_the_stated_error_on_a_large_sample(make):
    n = 20_000
    sample = make(n, random_state=3)
    error = np.mean(sample.bayes_rule(sample.X) != sample.y)
    spread = np.sqrt(sample.bayes_error * (1 - sample.bayes_error) / n)
    assert abs(error - sample.bayes_error) < 4 * spread + 0.001


@pytest.mark.parametrize("make", GENERATORS)
def test_eta_is_calibrated_in_every_tenth(make):
    sample = make(20_000, random_state=5)
    eta = sample.eta(sample.X)
    assert eta.min() >= 0
    assert eta.max() <= 1
    positive = sample.y == 1
    for low in np.arange(0, 1, 0.1):
        rows = (eta >= low) & (eta <= low + 0.1)
        if rows.sum() >= 50:
            gap = abs(positive[rows].mean() - eta[rows].mean())
            assert gap < 4 * 0.5 / np.sqrt(rows.sum())


@pytest.mark.smoke
@pytest.mark.parametrize("make", GENERATORS)
def test_same_seed_same_sample_and_labels_are_plus_minus_one(make):
    one, two = make(80, random_state=7), make(80, random_state=7)
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    assert set(one.y) == {-1, 1}
    assert one.bayes_error == two.bayes_error


@pytest.mark.parametrize("make", GENERATORS)
def test_bad_size_and_bad_rows_are_refused(make):
    with pytest.raises(ValueError, match="n_samples"):
        make(0)
    with pytest.raises(ValueError, match="shape"):
        make(10, random_state=0).eta(np.zeros((3, 99)))


def test_skewed_gaussians_have_the_bayes_errors_of_the_quadrature():
    assert make_skewed_gaussians(10, positive_rate=0.2).bayes_error == pytest.approx(
        0.147, abs=1e-3
    )
    assert make_skewed_gaussians(10, positive_rate=0.5).bayes_error == pytest.approx(
        0.241, abs=1e-3
    )


def test_skewed_gaussians_have_the_stated_covariance():
    sample = make_skewed_gaussians(40_000, positive_rate=0.3, random_state=0)
    covariance = np.cov(sample.X[sample.y == -1].T)
    np.testing.assert_allclose(covariance, [[1.75, 0.866], [0.866, 0.75]], atol=0.05)
    assert np.mean(sample.y == 1) == pytest.approx(0.3, abs=0.02)


def test_mixture_uses_given_centres_and_the_corrected_third_example():
    first = make_mixture(20, example=3, random_state=0)
    assert first.X.shape == (20, 30)
    assert 0.08 < first.bayes_error < 0.2
    again = make_mixture(20, example=3, centers=first.centers, random_state=1)
    assert again.bayes_error == first.bayes_error


def test_mixture_puts_two_thirds_of_the_centres_on_the_own_side():
    signs = []
    for seed in range(200):
        positive, _ = make_mixture(5, example=2, random_state=seed).centers
        signs.append(positive @ [1, -1] > 0)
    share = np.mean(signs, axis=0)
    assert np.all(share[:6] > 0.8)
    assert np.all(share[6:] < 0.2)


def test_mixture_bayes_error_agrees_with_a_grid():
    sample = make_mixture(5, example=1, random_state=4)
    positive, negative = sample.centers
    axis = np.arange(-8, 8, 0.02)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    density = sum(
        np.exp(-((grid - c) ** 2).sum(axis=1) / 0.2) / (0.2 * np.pi) / 6
        for c in (*positive, *negative)
    )
    eta = sample.eta(grid)
    exact = np.sum(density * np.minimum(eta, 1 - eta)) * 0.02**2
    assert sample.bayes_error == pytest.approx(exact, abs=1.5e-3)


def test_reject_synthetic_flips_exactly_a_tenth_and_stays_in_its_boxes():
    sample = make_reject_synthetic(300, random_state=1)
    assert np.sum(sample.y != sample.y_clean) == 30
    assert np.all((sample.X[:, 0] > 0) == (sample.y_clean == 1))
    assert np.all(np.abs(sample.X) <= [10, 5])


def test_noisy_band_flips_only_inside_the_band():
    sample = make_noisy_band(400, random_state=2)
    wrong = sample.y != sample.y_clean
    assert wrong.sum() == 80
    distance = np.abs(sample.X[:, 1] - sample.X[:, 0]) / np.sqrt(2)
    assert distance[wrong].max() <= 0.1125
    few = make_noisy_band(50, width=0.01, n_flips=50, random_state=0)
    assert np.sum(few.y != few.y_clean) < 50


def test_ringnorm_error_agrees_with_one_dimensional_integral():
    # with one feature the error is an integral over the line
    sample = make_ringnorm(10, n_features=1)

    def smaller(x):
        wide = np.exp(-(x**2) / 8) / np.sqrt(8 * np.pi)
        narrow = np.exp(-((x - 1) ** 2) / 2) / np.sqrt(2 * np.pi)
        return min(wide, narrow) / 2

    exact = quad(smaller, -20, 20, limit=400)[0]
    assert sample.bayes_error == pytest.approx(exact, abs=1e-6)


def test_waveform_posterior_agrees_with_direct_integration():
    sample = make_waveform(5, random_state=0)
    place = np.arange(1, 22)
    first, second, third = (np.maximum(6 - np.abs(place - peak), 0) for peak in (11, 15, 7))

    def density(x, a, b):
        return quad(lambda u: np.exp(-0.5 * np.sum((x - u * a - (1 - u) * b) ** 2)), 0, 1)[0]

    for x, eta in zip(sample.X, sample.eta(sample.X), strict=True):
        positive = density(x, first, third)
        total = positive + density(x, first, second) + density(x, second, third)
        assert eta == pytest.approx(positive / total, abs=1e-6)


def test_waveform_posterior_is_finite_far_away():
    eta = make_waveform(5, random_state=0).eta(np.full((1, 21), 60.0) * np.arange(21))
    assert 0 <= eta[0] <= 1


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: make_mixture(example=4), "example"),
        (lambda: make_mixture(centers=([[0.0]], [[1.0]])), "centers"),
        (lambda: make_skewed_gaussians(positive_rate=1.0), "positive_rate"),
        (lambda: make_reject_synthetic(noise=0.7), "noise"),
        (lambda: make_noisy_band(width=2.0), "width"),
        (lambda: make_noisy_band(n_flips=1000), "n_flips"),
        (lambda: make_banana(radius=0.0), "radius"),
        (lambda: make_banana(scale=-1.0), "scale"),
        (lambda: make_twonorm(n_features=0), "n_features"),
    ],
)
def test_bad_parameters_are_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()
