"""Probabilities of margin machines: there on demand, calibrated, and not fooled by noise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import (
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    LeakyHockeyStickClassifier,
    RampClassifier,
    load,
    save,
)
from buttress.classifiers import probability

MACHINES = [
    RampClassifier,
    LeakyHockeyStickClassifier,
    DoubleRampClassifier,
    DoubleHingeClassifier,
    GeneralizedHingeClassifier,
]


def noisy(n, seed, rate=0.25):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 2)) + np.where(y == 1, 1.2, -1.2)[:, None]
    return X, y, np.where(rng.random(n) < rate, 1 - y, y)


@parametrize_with_checks([RampClassifier(probability=True)])
def test_scikit_learn_contract(estimator, check):
    name = check.func.__name__
    if name.startswith("check_sample_weight_equivalence"):
        pytest.skip("folds of copies differ from folds of weights, as in scikit-learn's own CV")
    if name == "check_classifiers_train":
        pytest.skip("true classes may have another boundary than the labels as given")
    check(estimator)


@pytest.mark.parametrize("machine", MACHINES)
def test_probabilities_are_there_on_demand_only(machine):
    X, y, _ = noisy(60, 0)
    plain = machine().fit(X, y)
    assert not hasattr(plain, "predict_proba")
    model = machine(probability=True).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X))
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    # monotone in the decision value
    order = np.argsort(model.decision_function(X))
    assert (np.diff(proba[order, 1]) >= -1e-12).all()
    assert not hasattr(model.set_params(probability=False).fit(X, y), "noise_")
    with pytest.raises(ValueError, match="probability='yes'"):
        machine(probability="yes").fit(X, y)


def test_wrong_labels_do_not_pull_probabilities_to_one_half():
    X, _, given = noisy(800, 1)
    model = RampClassifier(kernel="linear", C=0.1, probability=True).fit(X[:400], given[:400])
    proba = model.predict_proba(X[400:])[:, 1]
    # log-odds of the true classes at x: 2.4 (x_1 + x_2)
    truth = 1.0 / (1.0 + np.exp(-2.4 * X[400:].sum(axis=1)))
    assert np.abs(proba - truth).mean() < 0.06
    assert model.noise_.rates_[0] == pytest.approx(0.25, abs=0.08)


def test_three_classes_weights_and_files(tmp_path):
    X, y = make_blobs(90, centers=3, random_state=0)
    weight = np.r_[np.zeros(10), np.ones(80)]
    model = LeakyHockeyStickClassifier(probability=True).fit(X, y, sample_weight=weight)
    alone = LeakyHockeyStickClassifier(probability=True).fit(X[10:], y[10:])
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-6)
    save(model, tmp_path / "m.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "m.skops").predict_proba(X), model.predict_proba(X)
    )


def test_a_class_with_one_row_is_refused():
    with pytest.raises(ValueError, match="two rows of every class"):
        RampClassifier(probability=True).fit(np.arange(5.0)[:, None], [0, 0, 0, 0, 1])


@pytest.mark.parametrize("machine", [RampClassifier, DoubleRampClassifier])
def test_lists_and_lazy_frames_are_rows_in_memory(machine):
    pl = pytest.importorskip("polars")
    X, y, _ = noisy(60, 0)
    model = machine(probability=True, approximation="nystroem", n_components=20, random_state=0)
    wanted = model.fit(X, y).predict_proba(X)
    lazy = pl.LazyFrame({"a": X[:, 0], "b": X[:, 1]})
    for rows in (X.tolist(), lazy):
        np.testing.assert_allclose(model.fit(rows, y).predict_proba(rows), wanted)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_in_blocks_are_refused_before_training(monkeypatch, kernel):
    monkeypatch.setattr(RampClassifier, "_rows", lambda *given: pytest.fail("trained"))
    model = RampClassifier(probability=True, approximation="nystroem", kernel=kernel)
    with pytest.raises(ValueError, match="probability=True needs rows in memory"):
        model.fit("rows.parquet", "y")


@pytest.mark.parametrize("certify_on", ["held_out", "folds"])
@pytest.mark.parametrize("machine", MACHINES[2:])
def test_a_promised_risk_calibrates_once_on_all_rows(monkeypatch, machine, certify_on):
    calibrated = []
    plain = probability._calibrated

    def counted(model, X, y, sample_weight):
        calibrated.append(np.sum(np.ones(len(y)) if sample_weight is None else sample_weight))
        return plain(model, X, y, sample_weight)

    monkeypatch.setattr(probability, "_calibrated", counted)
    X, y, _ = noisy(120, 0, rate=0.0)
    asked = {"target_risk": 0.3, "confidence": 0.6, "certify_on": certify_on, "random_state": 0}
    model = machine(probability=True, **asked).fit(X, y)
    assert calibrated == [120]
    # no probabilities, the same band
    np.testing.assert_array_equal(machine(**asked).fit(X, y).thresholds_, model.thresholds_)
