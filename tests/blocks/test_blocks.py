"""Rows in blocks: numbering, samples, folds and the first scan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from buttress._threads import results_in_order
from buttress.blocks.base import ArrayBlocks, take_rows
from buttress.blocks.sources import Changed, ClassFactors, Standardize, as_blocks, is_blocks
from buttress.solvers.blockwise.columns import Folds
from buttress.solvers.blockwise.scan import scan

RNG = np.random.default_rng(0)
X = RNG.standard_normal((57, 4))
Y = np.repeat(["a", "b", "c"], 19)
W = RNG.uniform(0.5, 2.0, 57)


@pytest.mark.smoke
@given(st.integers(1, 80), st.integers(1, 3))
def test_blocks_cover_all_rows_in_order(size: int, threads: int) -> None:
    source = ArrayBlocks(X, Y, W, block_size=size, n_threads=threads)
    blocks = list(source.map(lambda block: block))
    np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([b.numbers for b in blocks]), np.arange(57))
    np.testing.assert_array_equal(np.concatenate([b.y for b in blocks]), Y)


@given(st.integers(1, 80), st.sets(st.integers(0, 56), min_size=1))
def test_taken_rows_do_not_depend_on_blocks(size: int, wanted: set[int]) -> None:
    rows = np.array(sorted(wanted))
    taken = take_rows(ArrayBlocks(X, Y, W, block_size=size), rows)
    np.testing.assert_array_equal(taken.X, X[rows])
    np.testing.assert_array_equal(taken.y, Y[rows])
    np.testing.assert_array_equal(taken.weight, W[rows])
    np.testing.assert_array_equal(taken.numbers, rows)


def test_sparse_rows_can_be_taken() -> None:
    taken = take_rows(ArrayBlocks(sparse.csr_matrix(X), block_size=10), np.array([3, 40]))
    np.testing.assert_array_equal(taken.X.toarray(), X[[3, 40]])
    assert taken.y is None


def test_rows_outside_the_data_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0, 57\)"):
        take_rows(ArrayBlocks(X), np.array([57]))
    with pytest.raises(ValueError, match="y has 3 rows, X has 57"):
        ArrayBlocks(X, [1, 2, 3])


@given(st.integers(1, 80), st.booleans())
def test_the_scan_does_not_depend_on_blocks(size: int, thin: bool) -> None:
    rows = sparse.csr_matrix(X) if thin else X
    folds = Folds(3, seed=5)
    seen = scan(ArrayBlocks(rows, Y, W, block_size=size), folds)
    assert seen.n_rows == 57
    np.testing.assert_array_equal(seen.classes, ["a", "b", "c"])
    np.testing.assert_allclose(seen.mean, np.average(X, axis=0, weights=W), atol=1e-12)
    grand = np.average(X.mean(axis=1), weights=W)
    variance = np.average(((X - grand) ** 2).mean(axis=1), weights=W)
    assert seen.variance == pytest.approx(variance, rel=1e-10)
    train = folds.train(np.arange(57))
    expected = [[W[(Y == c) & train[:, f]].sum() for f in range(4)] for c in "abc"]
    np.testing.assert_allclose(seen.fold_weight, expected)


def test_folds_depend_on_row_number_and_seed_only() -> None:
    folds = Folds(5, seed=9)
    everything = folds.test(np.arange(1000))
    assert (everything.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(folds.test(np.arange(300, 700)), everything[300:700])
    np.testing.assert_array_equal(folds.train(np.arange(1000))[:, :5], ~everything)
    assert (Folds(5, seed=10).test(np.arange(1000)) != everything).any()
    assert everything.sum(axis=0).min() > 150


def test_given_folds_are_used_as_they_are() -> None:
    train, test = np.eye(4, 2, dtype=bool), ~np.eye(4, 2, dtype=bool)
    folds = Folds(2, 0, (train, test))
    np.testing.assert_array_equal(folds.train(np.array([1]))[0], [False, True, True])
    np.testing.assert_array_equal(folds.test(np.array([1]))[0], [True, False])


def test_bad_values_are_located() -> None:
    bad = X.copy()
    bad[31, 2] = np.nan
    with pytest.raises(ValueError, match=r"rows 30 to 39: column 2 holds NaN \(row 31 of all\)"):
        scan(ArrayBlocks(bad, Y, block_size=10))
    bad[31, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        scan(ArrayBlocks(bad, Y, block_size=10))
    with pytest.raises(ValueError, match="NaN or infinity in X"):
        scan(ArrayBlocks(sparse.csr_matrix(bad), Y, block_size=10))
    with pytest.raises(ValueError, match="has no labels"):
        scan(ArrayBlocks(X))
    with pytest.raises(ValueError, match="weights must be finite"):
        scan(ArrayBlocks(X, Y, -W))


def test_missing_classes_are_named() -> None:
    with pytest.raises(ValueError, match="only one class"):
        scan(ArrayBlocks(X, np.zeros(57)))
    y = np.zeros(57)
    y[4] = 1
    with pytest.raises(ValueError, match=r"Fold \d of 3 has no training rows of class 1"):
        scan(ArrayBlocks(X, y), Folds(3, seed=0))
    mixed = np.array(["a"] * 57, dtype=object)
    with pytest.raises(ValueError, match="text in some blocks and numbers"):
        scan(_Mixed(X, mixed, block_size=30))


class _Mixed(ArrayBlocks):
    """A source whose labels change their type on the way."""

    def map(self, task, rows=None):
        def changed(block):
            from dataclasses import replace

            return task(replace(block, y=block.y.astype(str) if block.start else np.arange(30)))

        return super().map(changed, rows)


def test_class_factors_multiply_the_weights() -> None:
    factors = ClassFactors(np.array(["a", "b", "c"]), np.arange(3.0))
    source = Changed(ArrayBlocks(X, Y, W, block_size=20), factors)
    seen = scan(source)
    np.testing.assert_allclose(seen.class_weight, [0, W[Y == "b"].sum(), 2 * W[Y == "c"].sum()])
    assert (source.n_rows, source.n_features, source.dtype) == (57, 4, np.float64)
    plain = Changed(ArrayBlocks(X, Y), factors)
    assert take_rows(plain, np.array([20])).weight == 1.0
    assert plain.is_local


def test_features_can_be_standardised_on_the_way() -> None:
    source = ArrayBlocks(5 + 3 * X, Y, block_size=20)
    seen = scan(source)
    again = scan(Changed(source, Standardize(seen.mean, np.sqrt(seen.feature_variance))))
    np.testing.assert_allclose(again.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(again.feature_variance, 1.0)


def test_what_is_a_source() -> None:
    source = ArrayBlocks(X, Y)
    assert is_blocks(source)
    assert is_blocks("some.parquet")
    assert not is_blocks(X)
    assert as_blocks(source) is source
    with pytest.raises(ValueError, match="has its own labels"):
        as_blocks(source, Y)
    with pytest.raises(ValueError, match="name of a column"):
        as_blocks("some.parquet", Y)


def test_an_error_in_a_block_reaches_the_caller() -> None:
    def fail() -> None:
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        list(results_in_order([fail, fail], 2))
