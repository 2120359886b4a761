"""The estimate of what is left, its interval, and the agreement of reviewers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from buttress.review.progress import _distribution, agreement_of, errors_left, progress_of
from buttress.review.records import Decision
from buttress.review.store import ReviewStore


def by_convolution(chances, counts):
    masses = np.ones(1)
    for chance, count in zip(chances, counts, strict=True):
        for _ in range(count):
            masses = np.convolve(masses, [1 - chance, chance])
    return np.cumsum(masses)


@pytest.mark.parametrize("seed", range(5))
def test_the_distribution_is_that_of_a_sum(seed):
    rng = np.random.default_rng(seed)
    chances, counts = rng.random(6) ** 2, rng.integers(1, 30, 6)
    found, expected = _distribution(chances, counts), by_convolution(chances, counts)
    size = min(len(found), len(expected))
    np.testing.assert_allclose(found[:size], expected[:size], atol=1e-10)
    assert found[-1] == pytest.approx(1, abs=1e-9)


def covered(rng, shift, n_seen):
    wrong = rng.beta(0.3, 2.0, 400)
    odds = np.exp(shift) * wrong / (1 - wrong)
    truth = rng.random(400) < odds / (1 + odds)
    order = np.argsort(-wrong)
    seen, unseen = order[:n_seen], order[n_seen:]
    left = errors_left(wrong[unseen], wrong[seen], truth[seen])
    return left.low <= truth[unseen].sum() <= left.high


def test_intervals_cover_though_the_probabilities_are_off():
    rng = np.random.default_rng(0)
    draws = [covered(rng, rng.uniform(-0.9, 0.9), n) for n in (0, 20, 60, 120) for _ in range(30)]
    assert np.mean(draws) >= 0.92


def test_nothing_unseen_is_nothing_left():
    left = errors_left(np.empty(0), np.full(3, 0.5), np.ones(3, dtype=bool))
    assert (left.mean, left.low, left.high) == (0.0, 0, 0)


def test_large_tables_have_a_normal_interval():
    left = errors_left(np.full(100_000, 0.02), np.full(4000, 0.02), np.arange(4000) < 80)
    assert left.low < 2000 < left.high
    assert left.high - left.low < 1200


def test_progress_counts_and_advises(tmp_path):
    store = ReviewStore(tmp_path / "r.sqlite", overlap=0.0)
    wrong = np.r_[np.full(30, 0.8), np.full(30, 0.01)]
    store.add(
        (i, str(i), "no", "yes", float(p), float(p), i < 50, None) for i, p in enumerate(wrong)
    )
    before = progress_of(store)
    assert (before.reviewed, before.total, before.n_wrong) == (0, 50, 0)
    assert before.sentence.startswith("0 of 50 reviewed, about ")
    assert before.advice.startswith("Go on: most of the next rows")
    for i in range(30):
        verdict = "change" if i % 5 else "keep"
        store.decide(i, "ada", verdict, label="yes", request=str(i))
    after = progress_of(store)
    assert (after.reviewed, after.total, after.n_wrong) == (30, 50, 24)
    assert after.curve[-1] == 24
    assert list(after.curve) == sorted(after.curve)
    assert after.advice == "You may stop: fewer than 1 in 20 of the next rows would be wrong."
    assert after.low <= 1 <= after.high <= 4
    for i in range(30, 50):
        store.decide(i, "ada", "keep", request=str(i))
    assert progress_of(store).advice == "The queue is empty."


def test_agreement_is_cohens_kappa():
    rng = np.random.default_rng(1)
    first = rng.choice(["a", "b", "c"], 80)
    second = np.where(rng.random(80) < 0.7, first, rng.choice(["a", "b", "c"], 80))
    made = [
        Decision(2 * i + j, i, "rs"[j], "change", str(label), "", "", 0.5, False)
        for i, pair in enumerate(zip(first, second, strict=True))
        for j, label in enumerate(pair)
    ]
    looked = Decision(999, 0, "t", "change", "a", "", "", 0.5, True)
    alone = Decision(1000, 777, "t", "change", "a", "", "", 0.5, False)
    found = agreement_of([*made, looked, alone])
    assert found.rows == 80
    assert found.share == pytest.approx(np.mean(first == second))
    assert found.kappa == pytest.approx(cohen_kappa_score(first, second))
    assert agreement_of([alone]).sentence == "No row has been seen by two reviewers yet."
