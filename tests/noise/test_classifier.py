"""The noise-aware classifier: true labels, refusals, weights, groups, scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import LabelAudit, NoiseAwareClassifier, RampClassifier, load, save
from buttress.metrics import reject_risk
from buttress.noise import ForestWitness, KernelWitness, LabelNoiseWarning

pytestmark = pytest.mark.filterwarnings("ignore::buttress.noise.LabelNoiseWarning")


def one_sided(n, seed, rate=0.35):
    X, y = make_moons(2 * n, noise=0.2, random_state=seed)
    rng = np.random.default_rng(seed)
    given = np.where((y[:n] == 1) & (rng.random(n) < rate), 0, y[:n])
    return X[:n], y[:n], given, X[n:], y[n:]


@parametrize_with_checks(
    [
        NoiseAwareClassifier([KernelWitness()]),
        KernelWitness(),
        ForestWitness(n_estimators=5),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("default::buttress.noise.LabelNoiseWarning")
def test_clean_labels_ask_for_nothing_that_was_done_already():
    X, y = make_blobs(120, centers=[[-9, 0], [9, 0]], random_state=0)
    with pytest.warns(LabelNoiseWarning, match="have not seen the row.*Nothing is to be done"):
        NoiseAwareClassifier([KernelWitness()]).fit(X, y)
    with pytest.warns(LabelNoiseWarning, match="Nothing is to be done"):
        LabelAudit([KernelWitness()]).audit(X, y)


def test_the_boundary_is_that_of_true_labels():
    X, _, given, X_test, y_test = one_sided(400, 0)
    plain = KernelWitness().fit(X, given).score(X_test, y_test)
    model = NoiseAwareClassifier([KernelWitness()]).fit(X, given)
    assert model.noise_.kind == "per_class"
    assert model.score(X_test, y_test) > plain + 0.01
    np.testing.assert_allclose(model.predict_proba(X_test).sum(axis=1), 1.0)
    positive = model.predict_proba(X_test)[:, 1]
    np.testing.assert_array_equal(model.predict(X_test), (positive > 0.5).astype(int))
    np.testing.assert_allclose(model.decision_function(X_test), 2 * positive - 1)


def test_refusal_is_chows_rule_on_clean_probabilities():
    X, _, given, X_test, _ = one_sided(300, 1)
    model = NoiseAwareClassifier([KernelWitness()], d=0.1).fit(X, given)
    top = model.predict_proba(X_test).max(axis=1)
    np.testing.assert_array_equal(model.reject(X_test), top <= 0.9)
    answers = model.predict_or_reject(X_test)
    assert answers.mask.sum() == model.reject(X_test).sum() > 0
    never = NoiseAwareClassifier([KernelWitness()]).fit(X, given)
    assert not never.reject(X_test).any()
    half = NoiseAwareClassifier([KernelWitness()], d=0.5).fit(X, given)
    assert not half.reject(X_test).any()


def test_three_classes():
    rng = np.random.default_rng(0)
    X, y = make_blobs(400, centers=[[-3, 0], [3, 0], [0, 4]], cluster_std=1.2, random_state=0)
    names = np.array(["a", "b", "c"])
    given = np.where(rng.random(400) < 0.2, (y + rng.integers(1, 3, 400)) % 3, y)
    model = NoiseAwareClassifier([KernelWitness()], d=0.2).fit(X[:300], names[given[:300]])
    assert model.score(X[300:], names[y[300:]]) > 0.9
    assert model.noise_.rates_["a"] == pytest.approx(0.2, abs=0.07)
    assert model.decision_function(X).shape == (400, 3)
    assert model.reject(X).dtype == bool


def test_suspects_are_those_of_the_training_rows():
    X, y, given, _, _ = one_sided(300, 2)
    model = NoiseAwareClassifier([KernelWitness()]).fit(X, given)
    assert model.suspects_.probabilities.shape == (300,)
    assert (y != given)[model.suspects_.selected].mean() > 0.8
    np.testing.assert_array_equal(model.suspects_.given, given)


def test_integer_weights_are_copies_and_zero_weights_are_absent():
    X, _, given, X_test, _ = one_sided(150, 3)
    weight = np.random.default_rng(0).integers(0, 3, 150)
    witnesses = [KernelWitness(), ForestWitness(n_estimators=10, random_state=0)]
    weighted = NoiseAwareClassifier(witnesses).fit(X, given, sample_weight=weight)
    rows = np.repeat(np.arange(150), weight)
    copied = NoiseAwareClassifier(witnesses).fit(X[rows], given[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(X_test), copied.predict_proba(X_test), atol=1e-7
    )
    np.testing.assert_allclose(
        weighted.suspects_.probabilities[rows], copied.suspects_.probabilities, atol=1e-7
    )
    assert (weighted.suspects_.probabilities[weight == 0] == 0).all()


@pytest.mark.parametrize("weight", [None, np.ones(60)])
@pytest.mark.parametrize("n_groups", [59, 500])
def test_groups_of_another_length_are_refused_by_name(weight, n_groups):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    groups = np.arange(n_groups) % 7
    with pytest.raises(ValueError, match=rf"groups has shape \({n_groups},\), expected \(60,\)"):
        NoiseAwareClassifier(LogisticRegression(), n_repeats=1).fit(
            X, y, sample_weight=weight, groups=groups
        )


def test_groups_and_metadata_routing():
    X, _, given, _, _ = one_sided(150, 4)
    groups = np.arange(150) // 3
    direct = NoiseAwareClassifier([KernelWitness()], random_state=0).fit(X, given, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        model = NoiseAwareClassifier([KernelWitness()], random_state=0)
        model.set_fit_request(groups=True, sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False)
        scaler.set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model)
        pipeline.fit(X, given, groups=groups, sample_weight=np.ones(150))
    np.testing.assert_allclose(pipeline.predict_proba(X), direct.predict_proba(X), atol=1e-9)


def test_tables_with_text_go_to_pipelines():
    X, _, given, _, _ = one_sided(200, 5)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "side": np.where(X[:, 0] > 0, "r", "l")})
    encode = make_column_transformer((OneHotEncoder(), ["side"]), remainder="passthrough")
    witness = make_pipeline(encode, StandardScaler(), LogisticRegression())
    model = NoiseAwareClassifier(witness, n_repeats=1, random_state=0).fit(frame, given)
    assert list(model.feature_names_in_) == ["a", "b", "side"]
    assert model.predict(frame).shape == (200,)
    assert list(model.suspects_.to_frame().columns[:3]) == ["a", "b", "side"]


def test_default_witnesses_and_saved_files(tmp_path):
    X, _, given, X_test, _ = one_sided(80, 6)
    model = NoiseAwareClassifier(d=0.2, random_state=0).fit(X, given)
    assert [type(witness).__name__ for witness in model.estimators_] == [
        "KernelWitness",
        "ForestWitness",
    ]
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
    np.testing.assert_array_equal(again.reject(X_test), model.reject(X_test))
    assert again.noise_.rates_ == model.noise_.rates_
    np.testing.assert_array_equal(again.suspects_.selected, model.suspects_.selected)
    assert again.suspects_.expected_errors.interval == model.suspects_.expected_errors.interval
    with pytest.raises(ValueError, match="rows=X"):
        again.suspects_.to_frame()
    assert again.suspects_.to_frame(rows=X).shape == (80, 6)


def test_leave_one_out_scores_are_those_of_refitted_machines():
    """The closed formula against the machine itself, trained without the row or the fold."""
    from buttress.noise.core import kernel_witness
    from buttress.noise.core.kernel_witness import LeftOut

    X, _, given, _, _ = one_sided(40, 7)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 40)
    targets = np.where(given == 1, 1.0, -1.0)[:, None]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)) + 1.0
    scale = np.sqrt(weight)
    values, basis = np.linalg.eigh(scale[:, None] * K * scale)
    shrink = (values / (values + 0.3))[:, None]
    image = basis.T @ (scale[:, None] * targets)

    def refitted(train, test):
        W = np.diag(weight[train])
        dual = np.linalg.solve(
            W @ K[np.ix_(train, train)] + 0.3 * np.eye(len(train)), W @ targets[train]
        )
        return K[np.ix_(test, train)] @ dual

    folds = [(np.setdiff1d(np.arange(40), part), part) for part in np.array_split(np.arange(40), 4)]
    (got,) = kernel_witness._held_out(
        basis, shrink, image, targets, scale, LeftOut(folds, np.ones(40), [])
    )
    want = np.concatenate([refitted(train, test) for train, test in folds])
    np.testing.assert_allclose(got, want, atol=1e-8)
    (alone,) = kernel_witness._held_out(
        basis, shrink, image, targets, scale, LeftOut(None, np.ones(40), [])
    )
    want = [refitted(np.delete(np.arange(40), i), [i])[0] for i in range(40)]
    np.testing.assert_allclose(alone, want, atol=1e-7)


def test_landmarks_stand_for_many_rows(monkeypatch):
    from buttress.noise.core import kernel_witness

    X, _, given, X_test, y_test = one_sided(500, 8)
    exact = KernelWitness().fit(X, given)
    monkeypatch.setattr(kernel_witness, "_MOST_ROWS", 100)
    monkeypatch.setattr(kernel_witness, "_LANDMARKS", 80)
    model = KernelWitness(random_state=0)
    held = model.fit_held_out(X, given)
    assert model.centers_.shape == (80, 2)
    assert abs(model.score(X_test, y_test) - exact.score(X_test, y_test)) < 0.03
    assert np.corrcoef(held[:, 0], KernelWitness().fit_held_out(X, given)[:, 0])[0, 1] > 0.95


def test_few_rows_are_fitted_with_a_warning():
    X, _, given, _, _ = one_sided(30, 9)
    with pytest.warns(LabelNoiseWarning, match="A class has only"):
        NoiseAwareClassifier([KernelWitness()]).fit(X[:12], np.arange(12) % 2)
    assert len(given) == 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d": 0.7}, "d=0.7"),
        ({"fdr": 2.0}, "fdr=2.0"),
        ({"cv": 0}, "cv=0"),
        ({"n_repeats": "many"}, "n_repeats='many'"),
        ({"prior": (1.0,)}, "prior"),
        ({"estimators": [3]}, "not a classifier"),
    ],
)
def test_bad_arguments_are_named_and_nothing_is_left_behind(options, message):
    X, _, given, _, _ = one_sided(40, 0)
    model = NoiseAwareClassifier(**({"estimators": [KernelWitness()]} | options))
    with pytest.raises(ValueError, match=message):
        model.fit(X, given)
    assert not hasattr(model, "noise_")
    assert not hasattr(model, "n_features_in_")


def test_a_prior_is_refused_before_any_fit():
    class Untouched(KernelWitness):
        def fit_held_out(self, *arguments, **options):
            raise AssertionError("fitted before the parameters were checked")

    X, _, given, _, _ = one_sided(40, 0)
    with pytest.raises(ValueError, match="prior"):
        NoiseAwareClassifier([Untouched()], prior=(1.0, -3.0)).fit(X, given)


def test_ramp_machines_are_witnesses():
    X, _, given, X_test, y_test = one_sided(200, 10)
    model = NoiseAwareClassifier(RampClassifier(C=3.0), n_repeats=1, random_state=0).fit(X, given)
    assert model.score(X_test, y_test) > RampClassifier(C=3.0).fit(X, given).score(X_test, y_test)


def test_classes_that_overlap_everywhere_are_not_all_held_for_wrong_labels():
    """Right labels that no row predicts for sure: answering is wrong one time in five."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(rng.random(600) < 0.2, X[:, 0] < 0, X[:, 0] > 0).astype(int)
    model = NoiseAwareClassifier(LogisticRegression(), d=0.05, n_repeats=1, random_state=0)
    model.fit(X[:300], y[:300])
    assert model.noise_.rates_[0] > 0.1  # the labels can be read as noisy too
    risk = reject_risk(y[300:], model.predict(X[300:]), model.reject(X[300:]), 0.05)
    assert risk < 0.1
