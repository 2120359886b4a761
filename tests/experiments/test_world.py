"""The small world of the theorems: its risks are those of a simulation, its bounds are bounds."""

from __future__ import annotations

import numpy as np
import pytest

from buttress.experiments._world import slope, world
from buttress.experiments.uncertainty_bounds import least_risk, lemma2, lemma4, lemma5
from buttress.losses import Ramp


def test_errors_and_risks_are_those_of_a_large_sample():
    here = world()
    random = np.random.default_rng(0)
    rows = here.sample(400_000, random)
    f = np.cos(5 * here.points)
    seen = np.average(rows.label * f[rows.point] <= 0, weights=rows.weight)
    assert here.error(f) == pytest.approx(seen, abs=4e-3)
    loss = Ramp(s=-1.0)
    mean = np.average(loss.value(rows.label * f[rows.point]), weights=rows.weight)
    assert here.risk(loss, f) == pytest.approx(mean, abs=4e-3)
    assert here.bayes_error == pytest.approx(here.error(here.eta - 0.5))
    assert rows.weight.sum() == 400_000


def test_the_population_is_the_distribution():
    here = world()
    rows = here.population()
    assert rows.weight.sum() == pytest.approx(1.0)
    positive = rows.label > 0
    np.testing.assert_allclose(rows.weight[positive] * len(here.points), here.eta)


def test_both_ways_to_fit_give_the_same_function():
    from buttress.classifiers import UncertaintySetClassifier

    here = world()
    rows = here.sample(200, np.random.default_rng(1))
    options = {"loss": "truncated_quadratic", "radius": 1.5, "bias": "primal"}
    _, one = here.fitted(UncertaintySetClassifier(kernel="precomputed", **options), rows)
    _, two = here.fitted_linear(UncertaintySetClassifier(kernel="linear", **options), rows)
    np.testing.assert_allclose(one, two, atol=1e-4)


def test_the_least_risk_is_below_that_of_any_function():
    here = world()
    best = least_risk(here)
    random = np.random.default_rng(2)
    for _ in range(20):
        f, rho = random.standard_normal(len(here.points)), random.standard_normal()
        loss = [np.maximum(1 + rho - s * f, 0) ** 2 for s in (1, -1)]
        assert -2 * rho + (here.eta * loss[0] + (1 - here.eta) * loss[1]).mean() >= best - 1e-6
    assert best >= lemma2(here)[0]


def test_the_bound_of_lemma_5_falls_with_the_sample_and_rises_with_the_ball():
    here = world()
    assert lemma5(here, 1e6, 2.0, 0.5) < lemma5(here, 1e5, 2.0, 0.5)
    assert lemma5(here, 1e6, 2.0, 0.5) < lemma5(here, 1e6, 4.0, 0.5)
    assert lemma4(here, 4.0) - lemma4(here, 2.0) == pytest.approx(4.0)


def test_a_power_law_is_read_off():
    sizes = np.array([10, 100, 1000])
    rate, error = slope(sizes, 3 * sizes**-0.5)
    assert rate == pytest.approx(-0.5)
    assert error == pytest.approx(0.0, abs=1e-12)
