"""`target_risk` on every estimator with a reject option."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from buttress import (
    ChowRejector,
    DoubleHingeClassifier,
    DoubleRampClassifier,
    DoubleRampClassifierCV,
    GeneralizedHingeClassifier,
    load,
    save,
)
from buttress.datasets import flip_labels
from buttress.metrics import reject_scorer
from buttress.noise import fit_label_noise
from buttress.theory import binomial_upper

MACHINES = [
    DoubleRampClassifier(kernel="linear", C=0.3, tol=1e-4),
    DoubleHingeClassifier(kernel="linear", C=0.3, tol=1e-4),
    GeneralizedHingeClassifier(kernel="linear", C=0.3, tol=1e-4),
    ChowRejector(LogisticRegression()),
]


def blobs(n, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 2)) * spread + np.array([1.0, 0.4]) * (2 * y - 1)[:, None], y


def named(model):
    return type(model).__name__


@pytest.mark.parametrize("model", MACHINES, ids=named)
@pytest.mark.parametrize("certify_on", ["held_out", "folds"])
def test_the_certificate_is_what_its_counts_say(model, certify_on):
    X, y = blobs(600, 0)
    settings = {"target_risk": 0.1, "certify_on": certify_on, "random_state": 0}
    model = clone(model).set_params(**settings).fit(X, y)
    certificate = model.risk_certificate_
    assert certificate.certified
    assert certificate.n_rows == (150 if certify_on == "held_out" else 600)
    assert certificate.method == certify_on
    bounds = [binomial_upper(certificate.errors, certificate.n, k) for k in (0.1, 0.08, 0.02)]
    assert certificate.bound in bounds
    assert certificate.bound <= 0.1
    assert model.thresholds_.tolist() == [-certificate.threshold, certificate.threshold]
    rejected = model.reject(X)
    scores = model.decision_function(X)
    assert np.array_equal(rejected, np.abs(scores) <= certificate.threshold)
    assert 0.0 < rejected.mean() < 0.7


@pytest.mark.parametrize("model", MACHINES, ids=named)
def test_nothing_is_answered_when_nothing_can_be_promised(model):
    X, y = blobs(80, 0, spread=0.6)
    model = clone(model).set_params(target_risk=0.05, random_state=0)
    with pytest.warns(UserWarning, match=r"about \d+ more held-out rows would be needed, \d+"):
        model.fit(X, y)
    assert model.reject(X).all()
    assert model.predict_or_reject(X).mask.all()
    assert not model.risk_certificate_.certified
    assert set(model.predict(X)) == {0, 1}  # `predict` still names a class
    noise = np.random.default_rng(0).normal(size=(600, 2))
    with pytest.warns(UserWarning, match="more rows would not help: raise"):
        model.fit(noise, np.arange(600) % 2)
    # and a fit without a target forgets the certificate
    assert not hasattr(model.set_params(target_risk=None).fit(X, y), "risk_certificate_")


def promise_is_kept(model, draws, n, target, rate=0.0):
    broken, coverage = 0, []
    X_new, y_new = blobs(20000, 10**6)
    for seed in range(draws):
        X, y = blobs(n, seed)
        given = flip_labels(y, rate, random_state=seed) if rate else y
        fitted = clone(model).set_params(target_risk=target, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fitted.fit(X, given)
        kept = ~fitted.reject(X_new)
        coverage.append(kept.mean())
        if kept.any():
            broken += (fitted.predict(X_new) != y_new)[kept].mean() > target
    return broken / draws, np.mean(coverage)


def test_the_promise_is_kept_over_draws():
    broken, coverage = promise_is_kept(ChowRejector(LogisticRegression()), 60, 800, 0.1)
    assert broken <= 0.1
    assert coverage > 0.4


def test_the_promise_is_kept_on_true_labels():
    model = ChowRejector(LogisticRegression(), noise_rates=(0.09, 0.11))
    broken, coverage = promise_is_kept(model, 30, 4000, 0.1, rate=0.1)
    assert broken <= 0.1
    assert coverage > 0.2
    blind = ChowRejector(LogisticRegression())
    assert promise_is_kept(blind, 10, 4000, 0.1, rate=0.1)[1] < 0.1


def test_the_rates_of_wrong_labels_can_be_estimated():
    model = ChowRejector(LogisticRegression(), noise_rates="estimate")
    broken, coverage = promise_is_kept(model, 2, 2000, 0.1, rate=0.1)
    assert broken == 0
    assert coverage > 0.05
    X, y = blobs(4000, 0)
    given = flip_labels(y, 0.1, random_state=0)
    scores = cross_val_predict(LogisticRegression(), X, given, method="decision_function")
    rates = fit_label_noise(scores, given)
    fitted = ChowRejector(LogisticRegression(), target_risk=0.1, noise_rates=rates, random_state=0)
    assert fitted.fit(X, given).risk_certificate_.confidence == 0.9


@pytest.mark.slow
@pytest.mark.parametrize("model", MACHINES, ids=named)
def test_the_promise_is_kept_over_a_thousand_draws(model):
    broken, _ = promise_is_kept(model, 1000, 400, 0.1)
    assert broken <= 0.1


@pytest.mark.slow
def test_folds_keep_the_promise_about_as_often():
    model = ChowRejector(LogisticRegression(), certify_on="folds")
    broken, coverage = promise_is_kept(model, 1000, 400, 0.1)
    assert broken <= 0.12
    assert (
        coverage > promise_is_kept(clone(model).set_params(certify_on="held_out"), 200, 400, 0.1)[1]
    )


def test_a_matrix_of_similarities_equals_its_rows():
    X, y = blobs(300, 1)
    rows = DoubleRampClassifier(gamma=0.5, target_risk=0.12, random_state=0).fit(X, y)
    K = np.exp(-0.5 * euclidean_distances(X, squared=True))
    matrix = DoubleRampClassifier(kernel="precomputed", target_risk=0.12, random_state=0).fit(K, y)
    assert matrix.risk_certificate_.n == rows.risk_certificate_.n
    assert np.allclose(matrix.thresholds_, rows.thresholds_, atol=1e-6)
    assert np.array_equal(matrix.reject(K), rows.reject(X))
    unused = rows.support_kind_ == "not_used"
    assert unused.sum() == 75
    neighbours = KNeighborsClassifier(25, metric="precomputed")
    chow = ChowRejector(neighbours, target_risk=0.12, random_state=0)
    assert chow.fit(euclidean_distances(X), y).risk_certificate_.n_rows == 75


def test_sparse_rows_frames_and_pipelines():
    X, y = blobs(400, 2)
    dense = DoubleHingeClassifier(kernel="linear", tol=1e-4, target_risk=0.15, random_state=0).fit(
        X, y
    )
    thin = clone(dense).fit(sparse.csr_matrix(X), y)
    assert np.allclose(dense.thresholds_, thin.thresholds_, atol=1e-6)
    pd = pytest.importorskip("pandas")
    frame = clone(dense).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert np.allclose(frame.thresholds_, dense.thresholds_)
    piped = make_pipeline(StandardScaler(), dense)
    search = GridSearchCV(piped, {"doublehingeclassifier__C": [0.1, 1.0]}, cv=3)
    search.set_params(scoring=reject_scorer(0.2)).fit(X, y)
    assert hasattr(search.best_estimator_[-1], "risk_certificate_")


def test_three_classes_have_one_band():
    X, y = make_blobs(900, centers=3, cluster_std=3.0, random_state=1)
    for model in (
        GeneralizedHingeClassifier(kernel="linear", C=0.1, tol=1e-4),
        ChowRejector(LogisticRegression()),
    ):
        model.set_params(target_risk=0.1, random_state=0).fit(X, y)
        assert model.risk_certificate_.certified
        assert model.thresholds_.shape == (2,)
        kept = ~model.reject(X)
        assert (model.predict(X) != y)[kept].mean() < 0.1


def test_the_search_does_not_see_the_rows_of_the_test(monkeypatch):
    X, y = blobs(240, 3)
    seen = []
    plain = DoubleRampClassifierCV._training_set

    def spy(self, X, y, sample_weight=None):
        seen.append(np.flatnonzero(np.asarray(sample_weight) > 0))
        return plain(self, X, y, sample_weight)

    monkeypatch.setattr(DoubleRampClassifierCV, "_training_set", spy)
    model = DoubleRampClassifierCV(
        Cs=[0.3, 3.0], gammas=None, cv=3, target_risk=0.15, random_state=0
    )
    model.fit(X, y)
    assert len(seen[0]) == 180
    assert model.risk_certificate_.n_rows == 60
    assert np.array_equal(model.best_estimator_.reject(X), model.reject(X))


def test_a_fitted_model_is_tested_on_most_rows():
    X, y = blobs(1000, 4)
    ready = FrozenEstimator(LogisticRegression().fit(X[:300], y[:300]))
    model = ChowRejector(ready, target_risk=0.1, random_state=0).fit(X[300:], y[300:])
    assert model.risk_certificate_.n_rows == 525


def test_weights_of_zero_do_not_enter():
    X, y = blobs(500, 5)
    weight = np.ones(500)
    weight[:100] = 0.0
    model = DoubleHingeClassifier(kernel="linear", tol=1e-4, target_risk=0.15, random_state=0)
    assert model.fit(X, y, weight).risk_certificate_.n_rows == 100


def test_a_certificate_survives_saving(tmp_path):
    pytest.importorskip("skops")
    X, y = load_iris(return_X_y=True)
    model = ChowRejector(LogisticRegression(max_iter=500), target_risk=0.2, random_state=0)
    model.fit(X, y)
    save(model, tmp_path / "model.buttress")
    assert load(tmp_path / "model.buttress").risk_certificate_ == model.risk_certificate_


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"target_risk": 0.0}, r"target_risk=0.0.*\(0, 1\)"),
        ({"target_risk": 0.1, "confidence": 1.0}, "confidence=1.0"),
        ({"target_risk": 0.1, "certify_on": "luck"}, "certify_on='luck'"),
        ({"target_risk": 0.1, "target_coverage": 0.9}, "cannot both set the band"),
        ({"target_risk": 0.1, "noise_rates": "guess"}, "noise_rates='guess'"),
        ({"target_risk": 0.1, "noise_rates": [0.1]}, r"noise_rates has shape \(1,\)"),
        ({"target_risk": 0.1, "noise_rates": (0.2, 0.6)}, "add up to 1.2"),
    ],
)
@pytest.mark.parametrize("model", [MACHINES[1], MACHINES[3]], ids=named)
def test_impossible_requests_are_named(model, params, message):
    X, y = blobs(40, 0)
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(**params).fit(X, y)


def test_rows_in_blocks_are_refused(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"a": [0.0, 1.0], "y": [0, 1]}).to_parquet(path)
    model = DoubleRampClassifier(approximation="nystroem", target_risk=0.1)
    with pytest.raises(ValueError, match="needs rows in memory"):
        model.fit(str(path), "y")
