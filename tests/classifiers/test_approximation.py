"""Approximate fits: the same estimators, another engine, the same answers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons

from buttress import (
    DoubleRampClassifier,
    LeakyHockeyStickClassifier,
    LeakyHockeyStickClassifierCV,
    RampClassifier,
    UncertaintySetClassifier,
)
from buttress._memory import free_memory
from buttress.classifiers.approximation import memory_limit_bytes

X, Y = make_moons(200, noise=0.25, random_state=0)
MODELS = [
    LeakyHockeyStickClassifier(alpha=1e-2),
    LeakyHockeyStickClassifier(alpha=1e-2, r=2.0, fit_intercept=False),
    RampClassifier(C=1.0),
    DoubleRampClassifier(C=1.0),
    UncertaintySetClassifier(radius=5.0),
    UncertaintySetClassifier(loss="exponential", radius=2.0, bias="primal"),
    UncertaintySetClassifier(loss="truncated_quadratic", radius=5.0, bias="bisect"),
]


@pytest.mark.smoke
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_with_all_rows_as_landmarks_the_fit_is_the_exact_one(model) -> None:
    exact = clone(model).fit(X, Y)
    near = clone(model).set_params(approximation="nystroem").fit(X, Y)
    assert (exact.approximation_, near.approximation_) == (None, "nystroem")
    ramp = hasattr(near, "smoothing_width_")
    # A rounded hinge moves a ramp machine a little; smooth losses agree to many digits.
    np.testing.assert_allclose(
        near.decision_function(X), exact.decision_function(X), atol=0.1 if ramp else 2e-5
    )
    scale = model.C * len(X) * near.smoothing_width_ / 4 if ramp else 1e-6
    assert near.objective_ == pytest.approx(exact.objective_, abs=scale)
    assert near.solver_.startswith("reduction")
    if not ramp:
        assert near.duality_gap_ < 1e-7


@pytest.mark.parametrize("model", MODELS[:5:2], ids=lambda m: type(m).__name__)
def test_more_than_two_classes(model) -> None:
    rows, labels = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[labels]
    near = clone(model).set_params(approximation="nystroem", n_components=40).fit(rows, names)
    assert near.decision_function(rows).shape == (150, 3)
    assert near.score(rows, names) > 0.9


@pytest.mark.parametrize(
    "options",
    [
        {"approximation": "nystroem", "landmarks": "kmeans++"},
        {"approximation": "nystroem", "landmarks": "leverage"},
        {"approximation": "fourier"},
        {"approximation": "fourier", "kernel": "laplacian"},
        {"approximation": "nystroem", "kernel": "poly", "coef0": 1.0},
        {"approximation": "nystroem", "gamma": "median"},
        {"approximation": "nystroem", "gamma": "auto"},
        {"approximation": "nystroem", "kernel": lambda a, b: (a @ b.T + 1) ** 3},
    ],
)
def test_every_kind_of_map(options) -> None:
    model = LeakyHockeyStickClassifier(alpha=1e-3, n_components=60, **options).fit(X, Y)
    assert model.approximation_ == options["approximation"]
    assert model.score(X, Y) > 0.9
    again = clone(model).fit(X, Y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_an_intercept_that_is_not_unique_is_the_middle_of_its_interval() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 3)), np.repeat([0, 1], 30)
    options = {"alpha": 50.0, "gamma": 0.3, "tol": 1e-10}
    exact = LeakyHockeyStickClassifier(**options).fit(X, y)
    scaled = LeakyHockeyStickClassifier(**options, approximation="nystroem", n_components=60)
    scaled.fit(X, y)
    low, high = scaled.intercept_interval_
    assert high - low > 1.0
    np.testing.assert_allclose(scaled.intercept_interval_, exact.intercept_interval_, atol=1e-5)
    np.testing.assert_allclose(scaled.intercept_, exact.intercept_, atol=1e-5)
    path = LeakyHockeyStickClassifierCV(alphas=[50.0, 1e-3], cv=2, approximation="nystroem")
    assert np.ptp(path.fit(X, y).path_.intervals[0]) > 1.0


def test_linear_kernels_need_no_approximation() -> None:
    exact = LeakyHockeyStickClassifier(kernel="linear").fit(X, Y)
    same = LeakyHockeyStickClassifier(kernel="linear", approximation="nystroem").fit(X, Y)
    assert same.approximation_ is None
    np.testing.assert_array_equal(exact.coef_, same.coef_)


def test_auto_switches_where_the_kernel_no_longer_fits_and_says_so_once() -> None:
    needed = 200 * 200 * 8 / 2**20
    model = LeakyHockeyStickClassifier(approximation="auto", n_components=30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits = clone(model).set_params(memory_limit=1.01 * needed).fit(X, Y)
    assert fits.approximation_ is None
    with pytest.warns(UserWarning, match="approximation='auto' takes the Nyström map") as caught:
        switched = clone(model).set_params(memory_limit=0.99 * needed).fit(X, Y)
    assert len(caught) == 1
    assert switched.approximation_ == "nystroem"
    assert len(switched.support_) == 30


def test_memory_limits_in_words_and_numbers() -> None:
    assert memory_limit_bytes("500 MB") == 500 * 2**20
    assert memory_limit_bytes("2g") == 2 * 2**30
    assert memory_limit_bytes(None) == pytest.approx(free_memory() / 2, rel=0.5)
    for bad in ("much", -1, "3 bananas"):
        with pytest.raises(ValueError, match="memory_limit"):
            memory_limit_bytes(bad)


def test_float32_sparse_and_weighted_rows() -> None:
    weight = np.where(np.arange(200) % 4 == 0, 0.0, 1.0 + Y)
    options = {"approximation": "nystroem", "alpha": 1e-2, "n_components": 300}
    wide = LeakyHockeyStickClassifier(**options).fit(X, Y, weight)
    exact = LeakyHockeyStickClassifier(alpha=1e-2).fit(X, Y, weight)
    np.testing.assert_allclose(wide.decision_function(X), exact.decision_function(X), atol=1e-5)
    assert not (wide.support_ % 4 == 0).any()
    thin = LeakyHockeyStickClassifier(**options).fit(sparse.csr_matrix(X), Y, weight)
    np.testing.assert_allclose(
        thin.decision_function(sparse.csr_matrix(X)), wide.decision_function(X), atol=1e-5
    )
    narrow = LeakyHockeyStickClassifier(**options).fit(X.astype(np.float32), Y, weight)
    assert narrow.dual_coef_.dtype == np.float32
    np.testing.assert_allclose(narrow.decision_function(X), wide.decision_function(X), atol=0.05)


def test_a_refit_forgets_the_other_map() -> None:
    model = LeakyHockeyStickClassifier(approximation="fourier", n_components=50).fit(X, Y)
    assert model.random_weights_.shape == (2, 50)
    model.set_params(approximation="nystroem").fit(X, Y)
    assert not hasattr(model, "random_weights_")
    model.set_params(approximation=None, kernel="linear").fit(X, Y)
    assert model.coef_.shape == (1, 2)
    model.set_params(kernel="rbf", approximation="nystroem").fit(X, Y)
    assert not hasattr(model, "coef_")


def test_row_attributes_of_ramp_machines_agree_with_the_exact_fit() -> None:
    noisy = Y.copy()
    noisy[:10] = 1 - noisy[:10]
    exact = RampClassifier(C=10.0).fit(X, noisy)
    near = RampClassifier(C=10.0, approximation="nystroem").fit(X, noisy)
    assert (exact.ignored_ == near.ignored_).mean() > 0.98
    np.testing.assert_allclose(near.suspect_scores_, exact.suspect_scores_, atol=0.3)
    assert near.smoothing_width_ == pytest.approx(0.02)
    assert (np.diff(near.objective_path_) <= 1e-9).all()
    band = DoubleRampClassifier(d=0.1, approximation="nystroem").fit(X, noisy)
    sharp = DoubleRampClassifier(d=0.1).fit(X, noisy)
    assert band.rho_ == pytest.approx(sharp.rho_, abs=0.1)
    assert band.rejection_rate_ == pytest.approx(sharp.rejection_rate_, abs=0.05)
    assert (band.support_kind_ == sharp.support_kind_).mean() > 0.9
    assert band.reject(X).mean() == pytest.approx(band.rejection_rate_)


def test_set_attributes_agree_with_the_exact_fit() -> None:
    exact = UncertaintySetClassifier(radius=5.0).fit(X, Y)
    near = UncertaintySetClassifier(radius=5.0, approximation="nystroem").fit(X, Y)
    np.testing.assert_allclose(near.set_weights_, exact.set_weights_, atol=1e-6)
    np.testing.assert_allclose(near.set_levels_, exact.set_levels_, atol=1e-6)
    assert near.rho_ == pytest.approx(exact.rho_)
    assert len(near.uncertainty_sets_) == 2


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LeakyHockeyStickClassifier(approximation="magic"), "approximation='magic'"),
        (LeakyHockeyStickClassifier(approximation="nystroem", n_components=0), "n_components=0"),
        (LeakyHockeyStickClassifier(approximation="nystroem", landmarks="x"), "landmarks='x'"),
        (LeakyHockeyStickClassifier(approximation="fourier", kernel="poly"), "'laplacian'"),
        (LeakyHockeyStickClassifier(approximation="nystroem", kernel="precomputed"), "precomputed"),
        (RampClassifier(approximation="nystroem", radius=1.0), "radius needs the exact kernel"),
        (DoubleRampClassifier(approximation="nystroem", init="svm"), "init='svm'"),
        (DoubleRampClassifier(approximation="nystroem", target_coverage=0.9), "target_coverage"),
        (UncertaintySetClassifier(approximation="nystroem", loss="hull"), "smooth set loss"),
        (UncertaintySetClassifier(approximation="nystroem", holdout=0.5), "holdout=0.5"),
    ],
)
def test_what_cannot_be_is_refused_by_name(model, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(X[:, :2] if model.kernel != "precomputed" else np.eye(200), Y)


def test_losses_with_bounded_slope_refuse_a_class_too_small() -> None:
    rare = np.zeros(200, dtype=int)
    rare[:4] = 1
    model = UncertaintySetClassifier("logistic", nu=0.9, approximation="nystroem")
    with pytest.raises(ValueError, match="unbounded"):
        model.fit(X, rare)


# -- data in blocks ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=["u", "v"])
    frame["label"] = np.where(Y == 1, "up", "down")
    frame["w"] = 1.0 + Y
    frame.iloc[:120].to_parquet(tmp_path / "a.parquet", row_group_size=50)
    frame.iloc[120:].to_parquet(tmp_path / "b.parquet")
    return tmp_path


OPTIONS = {"approximation": "nystroem", "n_components": 50, "alpha": 1e-2}


def test_a_directory_of_files_gives_the_model_of_the_array(folder: Path) -> None:
    from buttress.blocks.parquet import ParquetBlocks

    source = ParquetBlocks(folder, "label", columns=["u", "v"])
    model = LeakyHockeyStickClassifier(**OPTIONS).fit(source, None)
    array = LeakyHockeyStickClassifier(**OPTIONS).fit(X, np.where(Y == 1, "up", "down"))
    np.testing.assert_allclose(model.dual_coef_, array.dual_coef_, atol=1e-8)
    np.testing.assert_array_equal(model.support_, array.support_)
    np.testing.assert_array_equal(model.classes_, ["down", "up"])
    assert model.feature_names_in_.tolist() == ["u", "v"]
    np.testing.assert_allclose(model.decision_function(folder), model._scores(X)[:, 0], atol=1e-12)
    assert (model.predict(source) == np.where(model._scores(X)[:, 0] > 0, "up", "down")).all()
    balanced = LeakyHockeyStickClassifier(**OPTIONS, class_weight="balanced")
    np.testing.assert_allclose(
        clone(balanced).fit(source, None).intercept_, balanced.fit(X, Y).intercept_, atol=1e-7
    )


def test_a_path_takes_the_names_of_its_columns(folder: Path) -> None:
    weighted = LeakyHockeyStickClassifier(**OPTIONS).fit(str(folder), "label", "w")
    array = LeakyHockeyStickClassifier(**OPTIONS).fit(X, Y, 1.0 + Y)
    np.testing.assert_allclose(weighted.dual_coef_, array.dual_coef_, atol=1e-7)
    linear = LeakyHockeyStickClassifier(kernel="linear").fit(str(folder), "label", "w")
    assert linear.coef_.shape == (1, 2)
    exact = LeakyHockeyStickClassifier(kernel="linear").fit(X, Y, 1.0 + Y)
    np.testing.assert_allclose(linear.coef_, exact.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="need approximation="):
        LeakyHockeyStickClassifier().fit(str(folder), "label")


def test_dask_collections_are_fitted_and_predicted_lazily() -> None:
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    array = LeakyHockeyStickClassifier(**OPTIONS).fit(X, Y)
    lazy_X, lazy_y = da.from_array(X, chunks=(70, 1)), da.from_array(Y, chunks=50)
    model = LeakyHockeyStickClassifier(**OPTIONS).fit(lazy_X, lazy_y)
    np.testing.assert_allclose(model.dual_coef_, array.dual_coef_, atol=1e-8)
    scores = model.decision_function(lazy_X)
    assert hasattr(scores, "compute")
    np.testing.assert_allclose(scores.compute(), array.decision_function(X), atol=1e-7)
    np.testing.assert_array_equal(model.predict(lazy_X).compute(), array.predict(X))
    frame = pd.DataFrame(X, columns=["u", "v"])
    frame["label"] = Y
    table = dd.from_pandas(frame, npartitions=3)
    model = LeakyHockeyStickClassifier(**OPTIONS).fit(table, "label")
    np.testing.assert_array_equal(model.predict(table).compute(), array.predict(X))


def test_several_classes_are_predicted_on_dask_too() -> None:
    da = pytest.importorskip("dask.array")
    rows, labels = load_iris(return_X_y=True)
    model = LeakyHockeyStickClassifier(**OPTIONS).fit(rows, labels)
    lazy = da.from_array(rows, chunks=(40, 4))
    assert model.decision_function(lazy).compute().shape == (150, 3)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(rows))


def test_a_model_from_blocks_is_an_ordinary_saved_model(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    from buttress import load, save

    for kind in ("nystroem", "fourier"):
        model = LeakyHockeyStickClassifier(approximation=kind, n_components=30).fit(X, Y)
        save(model, tmp_path / "model.skops")
        again = load(tmp_path / "model.skops")
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
