"""What the four online learners promise beyond scikit-learn's checks."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier, _memory
from buttress.classifiers.online import _warnings

LEARNERS = [PARampClassifier, KernelPerceptron, KernelPegasos, Norma]


def stream(n: int = 400, p: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=n) > 0, "yes", "no")


def assert_same_model(a: Any, b: Any, atol: float = 1e-10) -> None:
    np.testing.assert_array_equal(a.support_, b.support_)
    np.testing.assert_allclose(a.dual_coef_, b.dual_coef_, rtol=0, atol=atol)
    assert (a.n_seen_, a.n_mistakes_, a.n_skipped_) == (b.n_seen_, b.n_mistakes_, b.n_skipped_)
    assert a.windowed_error_ == b.windowed_error_
    for name, column in a.history_.items():
        np.testing.assert_array_equal(column, b.history_[name])


@pytest.mark.smoke
@pytest.mark.parametrize("learner", LEARNERS)
def test_fit_is_one_pass_of_partial_fit(learner: Any) -> None:
    X, y = stream()
    fitted = learner(gamma=1.0).fit(X, y)
    continued = learner(gamma=1.0).partial_fit(X[:1], y[:1], classes=["no", "yes"])
    for begin in range(1, 400, 23):
        continued.partial_fit(X[begin : begin + 23], y[begin : begin + 23])
    assert_same_model(fitted, continued)
    assert fitted.score(X, y) > 0.8
    np.testing.assert_array_equal(fitted.support_vectors_, X[fitted.support_])
    assert fitted.n_support_.sum() == len(fitted.support_) == fitted.dual_coef_.shape[1]
    again = fitted.fit(X[::-1], y[::-1])
    assert again.n_seen_ == 400


@given(
    learner=st.sampled_from(LEARNERS),
    cuts=st.lists(st.integers(1, 249), max_size=5, unique=True),
    block_size=st.integers(1, 80),
    budget=st.sampled_from([None, 5, 30]),
    policy=st.sampled_from(["merge", "project", "forget", "forget_oldest"]),
    drift=st.sampled_from([None, "page-hinkley"]),
    three=st.booleans(),
)
def test_the_cut_into_calls_and_blocks_changes_nothing(
    learner: Any,
    cuts: list[int],
    block_size: int,
    budget: int | None,
    policy: str,
    drift: str | None,
    three: bool,
) -> None:
    X, y = stream(250, seed=block_size)
    y = y.astype(object)
    if three:
        y[X[:, 0] > 0.8] = "far"
    y[::11] = None
    options = {"gamma": 1.0, "budget": budget, "budget_policy": policy, "drift": drift}
    whole = learner(**options).fit(X, y)
    parts = learner(**options, block_size=block_size)
    for part in np.split(np.arange(250), sorted(cuts)):
        parts.partial_fit(X[part], y[part], classes=whole.classes_)
    np.testing.assert_array_equal(whole.support_, parts.support_)
    np.testing.assert_allclose(
        whole.dual_coef_, parts.dual_coef_, atol=1e-10 if budget is None else 1e-6
    )
    assert whole.n_mistakes_ == parts.n_mistakes_
    assert whole.n_labelled_ == 250 - len(range(0, 250, 11))
    if budget is not None:
        assert len(whole.support_) <= budget


def test_answers_are_given_before_learning() -> None:
    X, y = stream(100)
    model = PARampClassifier(gamma=1.0)
    given_labels = model.answer_and_learn(X, y, classes=["no", "yes"])
    assert given_labels[0] == "no"  # f = 0 is class 0
    assert (given_labels != y).sum() == model.n_mistakes_
    assert model.progressive_error_ == model.n_mistakes_ / 100
    slow = PARampClassifier(gamma=1.0).partial_fit(X[:1], y[:1], classes=["no", "yes"])
    for i in range(1, 100):
        assert slow.predict(X[i : i + 1])[0] == given_labels[i]
        slow.partial_fit(X[i : i + 1], y[i : i + 1])


def test_rows_without_a_label_are_answered_and_not_learned() -> None:
    X, y = stream(120)
    some = y.astype(object)
    some[::3] = None
    model = PARampClassifier(gamma=1.0).fit(X, some)
    only = PARampClassifier(gamma=1.0).fit(X[some != None], y[some != None])  # noqa: E711
    np.testing.assert_allclose(model.dual_coef_, only.dual_coef_, atol=1e-12)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(some != None)[only.support_])  # noqa: E711
    numbers = np.where(y == "yes", 1.0, 0.0)
    numbers[::3] = np.nan
    np.testing.assert_array_equal(
        PARampClassifier(gamma=1.0).fit(X, numbers).support_, model.support_
    )
    model.partial_fit(X[:2], [None, None])
    assert (model.n_seen_, model.n_labelled_) == (122, 80)


def test_history_counts_every_row_once_and_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("buttress.classifiers.online.history._MAX_ENTRIES", 8)
    X, y = stream(1000)
    model = PARampClassifier(gamma=1.0, s=-0.1, block_size=16).fit(X, y)
    history = model.history_
    assert len(history["n_seen"]) <= 8
    assert history["n_seen"][-1] == 1000
    assert history["labelled"].sum() == 1000
    assert history["mistakes"].sum() == model.n_mistakes_
    assert history["updates"].sum() == model.n_updates_ == len(model.support_)
    assert history["skipped"].sum() == model.n_skipped_ > 0
    assert history["support_vectors"][-1] == len(model.support_)
    odd = PARampClassifier(gamma=1.0, block_size=9).fit(X[:60], y[:60])
    odd.partial_fit(X[60:80], y[60:80])
    assert odd.history_["labelled"].sum() == 80
    assert odd.history_["support_vectors"][-1] == len(odd.support_)


def test_the_windowed_error_looks_at_the_last_rows() -> None:
    X, y = stream(300)
    model = PARampClassifier(gamma=1.0, window=50)
    wrong = model.answer_and_learn(X, y, classes=["no", "yes"]) != y
    assert model.windowed_error_ == pytest.approx(wrong[-50:].mean())


def test_s_zero_is_refused_with_the_reason_unless_each_class_starts_warm() -> None:
    X, y = stream()
    with pytest.raises(ValueError, match=r"s=0 .*no row would ever be accepted.*warm_start"):
        PARampClassifier(s=0.0).fit(X, y)
    model = PARampClassifier(s=0.0, gamma=1.0, warm_start_per_class=True).fit(X, y)
    assert (model.n_support_ > 0).all()


def test_minus_infinity_is_plain_passive_aggressive() -> None:
    X, y = stream()
    model = PARampClassifier(s=-np.inf, gamma=1.0).fit(X, y)
    assert model.n_skipped_ == 0
    assert len(model.support_) > len(PARampClassifier(s=-0.5, gamma=1.0).fit(X, y).support_)


def test_a_class_locked_out_is_reported_once() -> None:
    X, _ = stream(700)
    y = np.where(np.arange(700) < 350, 0, 1)
    model = PARampClassifier(s=-0.01, gamma=1e-3)
    with pytest.warns(UserWarning, match=r"\[1\] have no support vector"):
        model.partial_fit(X[:310], y[:310], classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[310:], y[310:])
    assert model.n_support_[1] == 0


def test_a_region_closed_by_early_wrong_labels_is_reported_once() -> None:
    rng = np.random.default_rng(0)
    place = rng.choice([0, 10, 20], size=1500, p=[0.3, 0.3, 0.4])
    X = rng.normal(scale=0.3, size=(1500, 2)) + place[:, None]
    far = place == 20
    y = np.where(place > 0, 1, 0)
    # Wrong labels only where the stream begins.
    y[:60][far[:60]] = 0
    model = PARampClassifier(s=-0.5, gamma=0.5)
    with pytest.warns(UserWarning, match=r"3\d% of 1200 labelled rows were refused"):
        model.partial_fit(X[:1200], y[:1200], classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[1200:], y[1200:])
        # In another order the right labels come first.
        again = PARampClassifier(s=-0.5, gamma=0.5).fit(X[::-1], y[::-1])
    assert model.score(X[far], y[far]) < 0.2 < 0.9 < again.score(X[far], y[far])


def test_a_class_that_was_not_announced_is_named() -> None:
    X, y = stream(20)
    model = PARampClassifier(gamma=1.0).partial_fit(X, y, classes=["no", "yes"])
    before = model.n_seen_
    with pytest.raises(ValueError, match="'maybe'"):
        model.partial_fit(X[:1], ["maybe"])
    with pytest.raises(ValueError, match="first call"):
        model.partial_fit(X[:1], y[:1], classes=["no", "perhaps"])
    assert model.n_seen_ == before
    with pytest.raises(ValueError, match="classes must be passed"):
        PARampClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="at least 2"):
        PARampClassifier().partial_fit(X, y, classes=["no"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PARampClassifier(s=0.5), r"s=0.5 .*\[-inf, 0\]"),
        (lambda: PARampClassifier(budget=0), r"budget=0"),
        (lambda: PARampClassifier(budget=2.5), r"budget=2.5"),
        (lambda: PARampClassifier(budget_policy="x"), r"budget_policy='x'"),
        (lambda: PARampClassifier(block_size=0), r"block_size=0"),
        (lambda: PARampClassifier(window=0), r"window=0"),
        (lambda: PARampClassifier(drift="x"), r"drift='x'"),
        (lambda: PARampClassifier(kernel="x"), r"Unknown kernel 'x'"),
        (lambda: PARampClassifier(gamma=-1), r"gamma=-1"),
        (lambda: PARampClassifier(warm_start_per_class="x"), r"warm_start_per_class='x'"),
        (lambda: KernelPegasos(alpha=0.0), r"alpha=0.0"),
        (lambda: KernelPegasos(sampling="x"), r"sampling='x'"),
        (lambda: Norma(eta=0.0), r"eta=0.0"),
        (lambda: Norma(tau=-1.0), r"tau=-1.0"),
        (lambda: Norma(eta=2.0, alpha=0.5), r"eta \* alpha must be below 1"),
    ],
)
def test_a_wrong_parameter_is_named(make: Any, message: str) -> None:
    X, y = stream(20)
    with pytest.raises(ValueError, match=message):
        make().fit(X, y)


def test_a_gram_matrix_is_accepted_by_fit_and_refused_by_partial_fit() -> None:
    X, y = stream(150)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    for learner in LEARNERS:
        direct = learner(gamma=1.0).fit(X[:100], y[:100])
        given_gram = learner(kernel="precomputed").fit(K[:100, :100], y[:100])
        assert_same_model(direct, given_gram)
        assert given_gram.support_vectors_.shape == (0, 0)
        np.testing.assert_allclose(
            given_gram.decision_function(K[100:, :100]), direct.decision_function(X[100:])
        )
        with pytest.raises(ValueError, match=r"precomputed.*partial_fit"):
            given_gram.partial_fit(K[:100, :100], y[:100])
    with pytest.raises(ValueError, match="square"):
        PARampClassifier(kernel="precomputed").fit(K[:100, :90], y[:100])
    small = PARampClassifier(kernel="precomputed", budget=10).fit(K, y)
    assert len(small.support_) == 10


def test_sampled_pegasos_counts_distinct_points() -> None:
    X, y = stream(300)
    model = KernelPegasos(gamma=1.0, sampling="with_replacement", random_state=0).fit(X, y)
    again = KernelPegasos(gamma=1.0, sampling="with_replacement", random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.support_, again.support_)
    assert len(np.unique(model.support_)) == len(model.support_) < 300
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    draws = np.random.RandomState(0).randint(300, size=300)
    ordered = KernelPegasos(gamma=1.0).fit(X[draws], y[draws])
    np.testing.assert_allclose(model.decision_function(X), ordered.decision_function(X))
    with pytest.raises(ValueError, match=r"with_replacement.*partial_fit"):
        KernelPegasos(sampling="with_replacement").partial_fit(X, y, classes=["no", "yes"])


def test_a_precomputed_kernel_follows_a_drift_as_its_rows_would() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    y[1500:] *= -1
    by_rows = KernelPerceptron(gamma=1.0, drift="page-hinkley").fit(X, y)
    K = rbf_kernel(X, gamma=1.0)
    by_gram = KernelPerceptron(kernel="precomputed", drift="page-hinkley").fit(K, y)
    assert by_gram.n_drifts_ == by_rows.n_drifts_ > 0
    np.testing.assert_array_equal(by_gram.support_, by_rows.support_)


def test_a_budget_counts_distinct_points_that_were_drawn() -> None:
    X, y = stream(60)
    sampled = KernelPegasos(gamma=1.0, sampling="with_replacement", random_state=0)
    unbounded = sampled.fit(X, y)
    n_distinct = len(unbounded.support_)
    for policy in ("merge", "project", "forget", "forget_oldest"):
        bounded = KernelPegasos(**sampled.get_params())
        bounded.set_params(budget=n_distinct, budget_policy=policy).fit(X, y)
        np.testing.assert_allclose(bounded.decision_function(X), unbounded.decision_function(X))
        assert len(bounded.set_params(budget=n_distinct // 2).fit(X, y).support_) == n_distinct // 2


def test_the_oldest_of_drawn_points_is_the_one_drawn_first() -> None:
    X, y = stream(60)
    draws = np.random.RandomState(0).randint(60, size=60)
    model = KernelPegasos(
        alpha=1e-6, gamma=1e4, sampling="with_replacement", random_state=0, budget=5,
        budget_policy="forget_oldest",
    ).fit(X, y)  # fmt: skip
    # the kernel is the identity: a row that is in the model has a large margin, others have none
    kept: list[int] = []
    for row in draws:
        kept = (kept if row in kept else [*kept, row])[-5:]
    assert sorted(model.support_) == sorted(kept)


def test_linear_weights_and_sparse_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.4)
    y = np.where(X @ np.arange(-3, 3) > 0, 1, 0)
    for learner in LEARNERS:
        dense = learner(kernel="linear").fit(X, y)
        thin = learner(kernel="linear").fit(sparse.csr_matrix(X), y)
        np.testing.assert_array_equal(dense.support_, thin.support_)
        np.testing.assert_allclose(dense.coef_, thin.coef_, atol=1e-9)
        np.testing.assert_allclose(dense.coef_, dense.dual_coef_ @ dense.support_vectors_)
        np.testing.assert_allclose(dense.decision_function(X), X @ dense.coef_[0], atol=1e-12)
        assert sparse.issparse(thin.support_vectors_)
        thin.partial_fit(X[:10], y[:10])  # dense rows go on where sparse ones began
        bounded = learner(kernel="linear", budget=8).fit(sparse.csr_matrix(X), y)
        assert len(bounded.support_) <= 8
    with pytest.raises(AttributeError, match="linear kernel only"):
        PARampClassifier(gamma=1.0).fit(X, y).coef_
    gaussian = PARampClassifier(gamma=0.5).fit(sparse.csr_matrix(X), y)
    np.testing.assert_array_equal(gaussian.support_, PARampClassifier(gamma=0.5).fit(X, y).support_)
    mixed = PARampClassifier(gamma=0.5).fit(X, y)
    np.testing.assert_allclose(
        mixed.decision_function(sparse.csr_matrix(X)), gaussian.decision_function(X), atol=1e-9
    )


def test_single_precision_stays_single() -> None:
    X, y = stream()
    for learner in LEARNERS:
        model = learner(gamma=1.0).fit(X.astype(np.float32), y)
        assert model.dual_coef_.dtype == model.support_vectors_.dtype == np.float32
        assert model.decision_function(X.astype(np.float32)).dtype == np.float32


def test_a_width_from_too_few_rows_is_reported() -> None:
    X, y = stream(60)
    with pytest.warns(UserWarning, match="gamma='scale' was fixed"):
        PARampClassifier().partial_fit(X[:3], y[:3], classes=["no", "yes"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PARampClassifier().partial_fit(X, y, classes=["no", "yes"])
        model = PARampClassifier(kernel="linear").partial_fit(X[:3], y[:3], classes=["no", "yes"])
    assert model.gamma_ is None


def test_growth_that_will_fill_the_memory_is_forecast_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = stream(600)
    monkeypatch.setattr(_warnings, "free_memory", lambda: 20_000)
    with pytest.warns(UserWarning, match="half of the free memory") as caught:
        PARampClassifier(gamma=5.0).fit(X, y)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PARampClassifier(gamma=5.0, budget=50).fit(X, y)
        monkeypatch.setattr(_warnings, "free_memory", lambda: None)
        PARampClassifier(gamma=5.0).fit(X, y)


def test_the_free_memory_is_known_or_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "meminfo"
    table.write_text("MemTotal: 9 kB\nMemAvailable: 5 kB\n")
    monkeypatch.setattr(_memory, "_MEMINFO", table)
    assert _memory.free_memory() == 5120
    table.unlink()
    assert (_memory.free_memory() or 1) > 0
    monkeypatch.delattr("os.sysconf")
    assert _memory.free_memory() is None
    assert _warnings.forecast(0, 0, 1.0, 1) is None


def test_river_can_drive_a_learner() -> None:
    compat = pytest.importorskip("river.compat")
    X, y = stream(150)
    labels = y == "yes"
    wrapped = compat.SKL2RiverClassifier(PARampClassifier(gamma=1.0), classes=[False, True])
    for row, label in zip(X, labels, strict=True):
        wrapped.learn_one(dict(enumerate(row)), bool(label))
    fitted = PARampClassifier(gamma=1.0).fit(X, labels)
    np.testing.assert_array_equal(wrapped.estimator.support_, fitted.support_)
    answers = [wrapped.predict_one(dict(enumerate(row))) for row in X]
    np.testing.assert_array_equal(answers, fitted.predict(X))
