"""Landmarks depend on row numbers and the seed, and find what uniform ones miss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.kernels import make_kernel
from buttress.kernels.approximate import nystroem_map, transform
from buttress.kernels.landmarks import (
    LANDMARK_RULES,
    candidate_rows,
    choose_landmarks,
    ridge_leverage_scores,
)

KERNEL = make_kernel("rbf", gamma=0.5)


@pytest.mark.smoke
@given(st.sampled_from(LANDMARK_RULES), st.integers(1, 60), st.integers(0, 3))
def test_landmarks_are_distinct_increasing_rows(rule: str, m: int, seed: int) -> None:
    X = np.random.default_rng(seed).standard_normal((50, 3))
    found = choose_landmarks(rule, KERNEL, X, m, seed)
    assert (np.diff(found) > 0).all()
    assert len(found) == min(m, 50)
    np.testing.assert_array_equal(found, choose_landmarks(rule, KERNEL, X, m, seed))


@given(st.sampled_from(LANDMARK_RULES), st.integers(1, 10**12), st.integers(1, 300))
def test_candidates_are_distinct_rows_of_the_data(rule: str, n: int, m: int) -> None:
    rows = candidate_rows(rule, n, m, seed=3)
    assert (np.diff(rows) > 0).all()
    assert rows[0] >= 0
    assert rows[-1] < n
    assert len(rows) >= min(m, n)


def test_kmeans_takes_one_row_of_every_cluster() -> None:
    centres = np.eye(8) * 50
    X = np.repeat(centres, 20, axis=0) + np.random.default_rng(0).normal(0, 1e-4, (160, 8))
    found = choose_landmarks("kmeans++", KERNEL, X, 8, seed=0)
    assert len(set(found // 20)) == 8


def test_kmeans_stops_when_all_rows_are_copies_of_landmarks() -> None:
    X = np.repeat(np.eye(3), 10, axis=0)
    assert len(choose_landmarks("kmeans++", KERNEL, X, 12, seed=0)) == 3


@pytest.mark.parametrize("rule", ["kmeans++", "leverage"])
def test_informed_rules_describe_a_rare_cluster_better_than_uniform(rule: str) -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 0.3, (390, 2)), rng.normal(8, 2.0, (10, 2))])
    exact = KERNEL(X)

    def error(name: str) -> float:
        errors = []
        for seed in range(5):
            chosen = choose_landmarks(name, KERNEL, X, 20, seed)
            mapped = transform(nystroem_map(KERNEL, X[chosen]), X)
            errors.append(np.trace(exact - mapped @ mapped.T))
        return float(np.mean(errors))

    assert error(rule) < error("uniform")


def test_leverage_scores_agree_with_the_exact_ones_when_the_pilot_is_all_rows() -> None:
    X = np.random.default_rng(0).standard_normal((40, 2))
    scores = ridge_leverage_scores(KERNEL, X, 40, np.random.default_rng(0))
    K = KERNEL(X)
    # The pilot explains everything, so the ridge is its floor.
    exact = np.diag(K @ np.linalg.inv(K + 1e-6 * np.eye(40)))
    np.testing.assert_allclose(scores, exact, atol=1e-3)


def test_rows_of_weight_zero_are_not_drawn_by_the_informed_rules() -> None:
    X = np.random.default_rng(0).standard_normal((60, 2))
    weight = np.repeat([0.0, 1.0], 30)
    for rule in ("kmeans++", "leverage"):
        assert choose_landmarks(rule, KERNEL, X, 20, 0, weight).min() >= 30


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValueError, match=r"landmarks='best'.*'uniform'"):
        choose_landmarks("best", KERNEL, np.zeros((5, 2)), 2, 0)
