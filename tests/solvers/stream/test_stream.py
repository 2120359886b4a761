"""The block-wise engine against one-by-one processing with a kernel matrix from differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from buttress.kernels import make_kernel
from buttress.kernels.exponential import exp_in_place_32, exp_in_place_64
from buttress.solvers.stream._exp import powers_of_two
from buttress.solvers.stream.model import OnlineModel
from buttress.solvers.stream.rules import NormaRule, PARampRule, PegasosRule, PerceptronRule

RULES = [
    PARampRule(-1.0),
    PARampRule(-0.25),
    PARampRule(-np.inf),
    PARampRule(0.0, first_of_class=True),
    PerceptronRule(),
    PegasosRule(0.01),
    NormaRule(0.1, 0.01, 1e-3),
    NormaRule(0.1, 1.0, 1e-3),
    NormaRule(0.5, 0.3, 0.0),
]


def one_by_one(rule: Any, K: np.ndarray, y: np.ndarray) -> tuple[list[int], list[float]]:
    """The update rules as the paper states them, on a full kernel matrix; 0 is no label."""
    idx: list[int] = []
    coef: list[float] = []
    seen: set[float] = set()
    t = 0
    for i, label in enumerate(y):
        if label == 0:
            continue
        t += 1
        f = float(K[i, idx] @ np.array(coef)) if idx else 0.0
        if isinstance(rule, PegasosRule):
            f = f / (rule.alpha * (t - 1)) if t > 1 else 0.0
        z = label * f
        if isinstance(rule, PARampRule):
            first = rule.first_of_class and label not in seen
            if K[i, i] > 0:
                seen.add(label)
                if 1 - z > 1e-12 and (z > rule.s or first):
                    idx.append(i)
                    coef.append(label * (1 - z) / K[i, i])
        elif isinstance(rule, PerceptronRule):
            if z <= 0:
                idx.append(i)
                coef.append(label)
        elif isinstance(rule, PegasosRule):
            if z < 1:
                idx.append(i)
                coef.append(label)
        else:
            coef = [c * (1 - rule.eta * rule.alpha) for c in coef]
            kept = [j for j, c in enumerate(coef) if abs(c) >= rule.tau]
            idx, coef = [idx[j] for j in kept], [coef[j] for j in kept]
            if z < 1:
                idx.append(i)
                coef.append(rule.eta * label)
    if isinstance(rule, PegasosRule):
        coef = [c / (rule.alpha * t) for c in coef]
    return idx, coef


def run(
    rule: Any, kernel: Any, X: Any, y: np.ndarray, cuts: Any = (), **options: Any
) -> OnlineModel:
    """Learn the stream, cut into calls at `cuts`."""
    model = OnlineModel(rule, kernel, n_problems=1, n_features=X.shape[1], dtype=X.dtype, **options)
    position = np.arange(len(y))
    ends = [0, *sorted(cuts), len(y)]
    for begin, end in itertools.pairwise(ends):
        part = slice(begin, end)
        model.learn(X[part], y[part, None], position[part], (y[part] > 0).astype(int))
    return model


def blobs(n: int, p: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


def support(model: OnlineModel) -> np.ndarray:
    return model.store.position[: model.store.n]


@pytest.mark.smoke
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("block_size", [1, 7, 64])
def test_blocks_give_what_one_by_one_processing_gives(rule: Any, block_size: int) -> None:
    X, y = blobs(300)
    y[::17] = 0
    idx, coef = one_by_one(rule, np.exp(-cdist(X, X, "sqeuclidean")), y)
    kernel = make_kernel("rbf", gamma=1.0, center=X.mean(axis=0))
    model = run(rule, kernel, X, y, block_size=block_size)
    assert support(model).tolist() == idx
    np.testing.assert_allclose(model.coefficients[0], coef, rtol=0, atol=1e-10)


@given(
    rule=st.sampled_from(RULES),
    block_size=st.integers(1, 90),
    cuts=st.lists(st.integers(0, 200), max_size=6),
    duplicates=st.booleans(),
    scale=st.sampled_from([1e-3, 1.0, 1e3, 1e6]),
    offset=st.sampled_from([0.0, 1e3]),
)
def test_neither_blocks_nor_cuts_nor_scale_nor_offset_change_the_model(
    rule: Any, block_size: int, cuts: list[int], duplicates: bool, scale: float, offset: float
) -> None:
    X, y = blobs(200, seed=block_size)
    if duplicates:
        X, y = np.repeat(X[:100], 2, axis=0), np.repeat(y[:100], 2)
    X = scale * (X + offset)
    # sharp enough that rounded distances would show at any scale
    gamma = 1.0 if duplicates else scale**-2
    idx, coef = one_by_one(rule, np.exp(-gamma * cdist(X, X, "sqeuclidean")), y)
    kernel = make_kernel("rbf", gamma=gamma, center=X[:5].mean(axis=0))
    model = run(rule, kernel, X, y, cuts, block_size=block_size)
    assert support(model).tolist() == idx
    np.testing.assert_allclose(model.coefficients[0], coef, rtol=1e-10, atol=1e-10)


def test_repeated_rows_make_no_ghost_vectors_at_any_feature_scale() -> None:
    X, y = blobs(400, p=5, seed=3)
    for scale in (1e-3, 1.0, 1e3, 1e5):
        twice = np.repeat(scale * X, 3, axis=0)
        kernel = make_kernel("rbf", gamma=1.0, center=twice.mean(axis=0))
        for sparsely in (False, True):
            rows = sparse.csr_matrix(twice) if sparsely else twice
            model = run(PARampRule(-np.inf), kernel, rows, np.repeat(y, 3), is_sparse=sparsely)
            assert len(np.unique(support(model) // 3)) == model.store.n
        single = twice.astype(np.float32)
        model = run(PARampRule(-np.inf), kernel, single, np.repeat(y, 3))
        assert len(np.unique(support(model) // 3)) == model.store.n


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", ["linear", "poly", "laplacian"])
def test_other_kernels_and_sparse_rows_agree_with_one_by_one(rule: Any, name: str) -> None:
    X, y = blobs(150, p=4, seed=5)
    X[::9] = 0.0
    X[np.abs(X) < 0.5] = 0.0
    kernel = make_kernel(name, gamma=0.5, degree=2, coef0=1.0)
    idx, coef = one_by_one(rule, kernel(X), y)
    for rows in (X, sparse.csr_matrix(X)):
        model = run(rule, kernel, rows, y, [40], block_size=16, is_sparse=rows is not X)
        assert support(model).tolist() == idx
        np.testing.assert_allclose(model.coefficients[0], coef, rtol=1e-9, atol=1e-10)
        expected = kernel(X)[:, idx] @ np.array(coef)
        np.testing.assert_allclose(model.scores(rows)[:, 0], expected, rtol=1e-8, atol=1e-8)


def test_sparse_gaussian_rows_agree_with_dense_ones() -> None:
    X, y = blobs(150, p=4, seed=6)
    X[np.abs(X) < 0.7] = 0.0
    for scale in (1.0, 1e3):
        kernel = make_kernel("rbf", gamma=scale**-2)
        dense = run(PARampRule(-0.5), kernel, scale * X, y)
        for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-3)):
            rows = sparse.csr_matrix(scale * X, dtype=dtype)
            model = run(PARampRule(-0.5), kernel, rows, y, is_sparse=True)
            assert support(model).tolist() == support(dense).tolist()
            np.testing.assert_allclose(model.coefficients, dense.coefficients, atol=tolerance)


def test_a_given_gram_matrix_is_enough() -> None:
    X, y = blobs(120)
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    numbers = np.arange(120.0)[:, None]
    for rule in RULES:
        idx, coef = one_by_one(rule, K, y)
        model = run(rule, make_kernel("precomputed"), numbers, y, block_size=32, gram=K)
        assert support(model).tolist() == idx
        np.testing.assert_allclose(model.coefficients[0], coef, atol=1e-12)
    with pytest.raises(ValueError, match="Gram matrix"):
        run(RULES[0], make_kernel("precomputed"), numbers, y)


def test_an_update_puts_the_margin_at_one() -> None:
    X, y = blobs(200, p=3, seed=8)
    kernel = make_kernel("rbf", gamma=0.7, center=X.mean(axis=0))
    model = OnlineModel(PARampRule(-1.0), kernel, n_problems=1, n_features=3)
    for i in range(len(y)):
        row = slice(i, i + 1)
        outcome = model.learn(X[row], y[row, None], np.array([i]), np.array([0]))
        if outcome.updated[0]:
            assert y[i] * model.scores(X[row])[0, 0] == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_array_equal(outcome.vectors, model.store.n)
    assert 0 < model.store.n < len(y)


def test_problems_share_vectors_and_each_follows_its_own_rule() -> None:
    X, y = blobs(200)
    rng = np.random.default_rng(0)
    Y = np.column_stack([y, np.where(rng.random(200) < 0.5, 1.0, -1.0), -y])
    kernel = make_kernel("rbf", gamma=1.0, center=X.mean(axis=0))
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    for rule in RULES:
        model = OnlineModel(rule, kernel, n_problems=3, n_features=2, block_size=32)
        model.learn(X, Y, np.arange(200), np.zeros(200, dtype=int))
        for p in range(3):
            idx, coef = one_by_one(rule, K, Y[:, p])
            full = np.zeros(200)
            full[idx] = coef
            own = np.zeros(200)
            own[support(model)] = model.coefficients[p]
            np.testing.assert_allclose(own, full, atol=1e-10)


def test_single_precision_stays_single_and_close() -> None:
    X, y = blobs(600, p=6, seed=2)
    kernel = make_kernel("rbf", gamma=0.3, center=X.mean(axis=0))
    double = run(PARampRule(-1.0), kernel, X, y)
    single = run(PARampRule(-1.0), kernel, X.astype(np.float32), y)
    assert single.store.rows.array.dtype == np.float32
    common = np.intersect1d(support(single), support(double))
    assert len(common) > 0.98 * max(single.store.n, double.store.n)
    agreement = np.sign(single.scores(X.astype(np.float32))) == np.sign(double.scores(X))
    assert agreement.mean() > 0.98


def test_the_threads_do_not_change_a_bit() -> None:
    from threadpoolctl import threadpool_limits

    X, y = blobs(3000, p=8, seed=4)
    kernel = make_kernel("rbf", gamma=1.0, center=X.mean(axis=0))
    with threadpool_limits(1):
        one = run(PARampRule(-1.0), kernel, X, y, block_size=128)
    with threadpool_limits(2):
        two = run(PARampRule(-1.0), kernel, X, y, block_size=128)
    assert one.store.n > 1000
    np.testing.assert_array_equal(support(one), support(two))
    np.testing.assert_array_equal(one.coefficients, two.coefficients)


def test_the_polynomial_exponential_is_right_to_the_last_place() -> None:
    x = np.linspace(-760.0, 0.0, 200_001)[None]
    values = x.copy()
    exp_in_place_64(values)
    np.testing.assert_allclose(values, np.exp(x), rtol=3e-16, atol=1e-322)
    x32 = np.linspace(-110.0, 0.0, 100_001, dtype=np.float32)[None]
    values32 = x32.copy()
    exp_in_place_32(values32)
    np.testing.assert_allclose(values32, np.exp(x32.astype(float)), rtol=1.3e-7, atol=2e-45)


def test_the_polynomial_power_of_two_is_right_to_the_last_place() -> None:
    x = np.linspace(-1022.0, 0.0, 200_001)[None]
    values = x.copy()
    powers_of_two(values, *values.shape)
    np.testing.assert_allclose(values, np.exp2(x), rtol=3e-16, atol=0)
    x32 = np.linspace(-126.0, 0.0, 100_001, dtype=np.float32)[None]
    values32 = x32.copy()
    powers_of_two(values32, *values32.shape)
    np.testing.assert_allclose(values32, np.exp2(x32.astype(float)), rtol=1.3e-7, atol=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_power_of_two_below_the_normal_numbers_is_zero(dtype: Any) -> None:
    least = np.log2(np.finfo(dtype).tiny)
    values = np.array([[least - 1, 2 * least, 1e3 * least, 1e30 * least, -np.inf]], dtype=dtype)
    powers_of_two(values, *values.shape)
    np.testing.assert_array_equal(values, 0.0)


def test_copies_of_a_drawn_row_are_added_up() -> None:
    X, y = blobs(50)
    draws = np.random.default_rng(0).integers(0, 50, 80)
    kernel = make_kernel("rbf", gamma=1.0, center=X.mean(axis=0))
    model = OnlineModel(PegasosRule(0.01), kernel, n_problems=1, n_features=2, drawn=draws)
    model.learn(X[draws], y[draws, None], np.arange(80), (y[draws] > 0).astype(int))
    before = model.scores(X)
    model.end_draws()
    assert len(np.unique(support(model))) == model.store.n
    np.testing.assert_allclose(model.scores(X), before, rtol=1e-10)
    np.testing.assert_array_equal(model.store.vectors(), X[support(model)])


def test_a_merged_vector_is_no_copy_of_the_row_it_came_from() -> None:
    X, y = blobs(50)
    draws = np.random.default_rng(0).integers(0, 50, 200)
    kernel = make_kernel("rbf", gamma=1.0, center=X.mean(axis=0))
    model = OnlineModel(
        PegasosRule(0.01), kernel, n_problems=1, n_features=2, budget=8, drawn=draws
    )
    model.learn(X[draws], y[draws, None], np.arange(200), (y[draws] > 0).astype(int))
    before = model.scores(X)
    model.end_draws()
    np.testing.assert_allclose(model.scores(X), before, rtol=1e-10)


def test_oracle_traces(oracle: Any) -> None:
    for name in ("online_a", "online_b", "online_c"):
        arrays, _ = oracle(name)
        if not arrays:
            continue
        cases: dict[str, Any] = {"perceptron": PerceptronRule()}
        for key in arrays:
            parts = key.removesuffix("_idx").split("_")
            if not key.endswith("_idx"):
                continue
            if key.startswith("pegasos"):
                cases[f"pegasos_{parts[1]}"] = PegasosRule(float(parts[1]))
            elif key.startswith("norma"):
                cases["_".join(parts)] = NormaRule(*(float(part) for part in parts[1:4]))
            elif key.startswith("pa_ramp_s") and len(parts) == 3:
                cases["_".join(parts)] = PARampRule(float(parts[2][1:]))
        cases["pa_ramp_s0_firsteach"] = PARampRule(0.0, first_of_class=True)
        X, y = arrays["X"], arrays["y"]
        kernel = make_kernel("rbf", gamma=1.0, center=X.mean(axis=0))
        assert len(cases) >= 10
        for case, rule in cases.items():
            for block_size in (1, 13, 64):
                model = run(rule, kernel, X, y, block_size=block_size)
                np.testing.assert_array_equal(support(model), arrays[f"{case}_idx"])
                np.testing.assert_allclose(
                    model.coefficients[0], arrays[f"{case}_coef"], rtol=0, atol=1e-10
                )
        draws = arrays["pegasos_draws"]
        model = run(PegasosRule(0.01), kernel, X[draws], y[draws])
        dense = np.bincount(draws[support(model)], model.coefficients[0], minlength=len(y))
        np.testing.assert_allclose(dense, arrays["pegasos_draws_lam0.01_coef_dense"], atol=1e-10)
