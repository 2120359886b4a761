"""Label noise: how many, which, and with what instead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.datasets import flip_labels


@pytest.mark.smoke
@given(rate=st.floats(0, 1), n=st.integers(2, 200), seed=st.integers(0, 99))
def test_uniform_changes_exactly_the_rounded_share(rate, n, seed):
    y = np.arange(n) % 2
    noisy = flip_labels(y, rate, random_state=seed)
    assert np.sum(noisy != y) == round(rate * n)
    assert set(noisy) <= {0, 1}


def test_original_is_untouched_and_type_kept():
    y = np.array(["a", "b", "c", "a"])
    noisy = flip_labels(y, 1.0, random_state=0)
    assert list(y) == ["a", "b", "c", "a"]
    assert noisy.dtype == y.dtype
    assert np.all(noisy != y)


def test_wrong_labels_are_uniform_over_the_other_classes():
    y = np.zeros(3000, dtype=int)
    y[:3] = [1, 2, 3]
    noisy = flip_labels(y, 1.0, random_state=0)
    counts = np.bincount(noisy[3:], minlength=4)
    assert counts[0] == 0
    assert np.all(np.abs(counts[1:] - 999) < 120)


def test_class_rates_by_number_sequence_and_mapping():
    y = np.repeat([-1, 1], 100)
    one = flip_labels(y, 0.3, kind="class", random_state=0)
    assert np.sum(one[:100] != -1) == 0
    assert np.sum(one[100:] != 1) == 30
    two = flip_labels(y, [0.1, 0.2], kind="class", random_state=0)
    assert (np.sum(two[:100] != -1), np.sum(two[100:] != 1)) == (10, 20)
    three = flip_labels(y, {-1: 0.5}, kind="class", random_state=0)
    assert (np.sum(three[:100] != -1), np.sum(three[100:] != 1)) == (50, 0)


def test_near_boundary_touches_only_the_smallest_scores():
    scores = np.linspace(-1, 1, 200)
    y = np.where(scores > 0, 1, -1)
    noisy = flip_labels(y, 0.1, kind="near_boundary", scores=scores, random_state=0)
    wrong = np.flatnonzero(noisy != y)
    assert len(wrong) == 20
    assert np.abs(scores[wrong]).max() < 0.21


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"rate": 1.5}, "rate"),
        ({"rate": "x"}, "rate"),
        ({"rate": 0.1, "kind": "other"}, "kind"),
        ({"rate": 0.1, "kind": "near_boundary"}, "scores"),
        ({"rate": 0.1, "kind": "near_boundary", "scores": [1.0]}, "scores"),
        ({"rate": [0.1], "kind": "class"}, "rate"),
        ({"rate": {7: 0.1}, "kind": "class"}, "rate"),
    ],
)
def test_bad_arguments_are_named(arguments, match):
    with pytest.raises(ValueError, match=match):
        flip_labels([0, 1, 1], **arguments)


def test_labels_must_be_a_vector_of_two_classes():
    with pytest.raises(ValueError, match="two different"):
        flip_labels([1, 1], 0.1)
    with pytest.raises(ValueError, match="one-dimensional"):
        flip_labels([[1, 0]], 0.1)
