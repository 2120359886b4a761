"""Bands by group: the promise in every group, equal refusals, groups that cannot be told."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from buttress import (
    ChowRejector,
    DoubleHingeClassifier,
    DoubleRampClassifier,
    GeneralizedHingeClassifier,
    GroupwiseRejector,
    TwoStageRejector,
)
from buttress.datasets import flip_labels
from buttress.metrics import outcomes_by_group


def two_groups(n, seed):
    """The labels of the second group are harder to tell."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["easy", "hard"], size=n, p=[0.6, 0.4])
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + np.where(groups == "hard", 1.0, 0.3) * rng.normal(size=n) > 0
    return X, y.astype(int), groups


@parametrize_with_checks([GroupwiseRejector(LogisticRegression(), target_coverage=0.8)])
def test_estimator_checks(estimator, check):
    check(estimator)


def test_every_group_has_its_coverage():
    shares = []
    for seed in range(15):
        X, y, groups = two_groups(1600, seed)
        model = GroupwiseRejector(LogisticRegression(), target_coverage=0.7, random_state=seed)
        model.fit(X[:800], y[:800], groups=groups[:800])
        kept = ~model.reject(X[800:], groups[800:])
        shares.append([kept[groups[800:] == name].mean() for name in ("easy", "hard")])
    assert np.abs(np.mean(shares, axis=0) - 0.7).max() < 0.04


@pytest.mark.long
def test_every_group_has_its_promise():
    broken, coverage = 0, []
    X_new, y_new, groups_new = two_groups(20000, 10**6)
    for seed in range(12):
        X, y, groups = two_groups(4000, seed)
        model = GroupwiseRejector(LogisticRegression(), target_risk=0.12, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(X, y, groups=groups)
        kept = ~model.reject(X_new, groups_new)
        wrong = model.predict(X_new) != y_new
        parts = [kept & (groups_new == name) for name in ("easy", "hard")]
        broken += any(part.any() and wrong[part].mean() > 0.12 for part in parts)
        coverage.append(
            [
                part.sum() / (groups_new == name).sum()
                for part, name in zip(parts, ("easy", "hard"), strict=True)
            ]
        )
    assert broken / 12 <= 0.25  # allowed .1, standard error .09
    easy, hard = np.mean(coverage, axis=0)
    assert easy > hard > 0.03


def test_equalised_bands_refuse_alike():
    X, y, groups = two_groups(6000, 0)
    model = GroupwiseRejector(LogisticRegression(), target_risk=0.15, random_state=0)
    plain = clone(model).fit(X, y, groups=groups)
    equal = clone(model).set_params(equalised=True).fit(X, y, groups=groups)
    X_new, y_new, groups_new = two_groups(20000, 1)

    def gap(fitted):
        found = outcomes_by_group(
            y_new, fitted.predict(X_new), fitted.reject(X_new, groups_new), groups_new
        )
        return abs(found[0].rejection_rate.value - found[1].rejection_rate.value)

    assert gap(equal) < 0.05 < gap(plain)


def test_by_class_bounds_the_error_of_every_answer():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=8000) < 0.2).astype(int)
    X = rng.normal(size=(8000, 1)) + 3.0 * y[:, None]
    model = GroupwiseRejector(LogisticRegression(), target_risk=0.15, by="class", random_state=0)
    model.fit(X[:4000], y[:4000])
    assert set(model.risk_certificates_) == {0, 1}
    kept, pred = ~model.reject(X[4000:]), model.predict(X[4000:])
    for label in (0, 1):
        mine = kept & (pred == label)
        assert mine.any()
        assert (y[4000:][mine] != label).mean() < 0.18


def test_rows_without_their_groups_are_an_error_and_not_refused():
    X, y, groups = two_groups(1000, 0)
    model = GroupwiseRejector(LogisticRegression(), target_coverage=0.8, random_state=0)
    model.fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="groups are needed"):
        model.predict_or_reject(X)
    assert not model.fit(X, y).reject(X).all()


def test_a_group_too_small_for_a_coverage_says_how_many_rows_it_needs():
    X, y, groups = two_groups(1000, 0)
    groups = groups.astype(object)
    groups[:20] = "tiny"
    for coverage, fewest in ((0.9, 9), (0.95, 19)):
        model = GroupwiseRejector(LogisticRegression(), target_coverage=coverage, random_state=0)
        with pytest.warns(UserWarning, match=f"'tiny': {fewest} held-out rows needed"):
            model.fit(X, y, groups=groups.astype(str))


def test_small_and_unknown_groups_get_no_answer():
    X, y, groups = two_groups(1000, 0)
    groups = groups.astype(object)
    groups[:6] = "tiny"
    model = GroupwiseRejector(LogisticRegression(), target_risk=0.15, random_state=0)
    with pytest.warns(UserWarning, match=r"'tiny'.*cannot tell.*'tiny': about \d+ more held-out"):
        model.fit(X, y, groups=groups.astype(str))
    assert "tiny" in model.cannot_tell_
    assert model.reject(X[:6], ["tiny"] * 6).all()
    assert model.reject(X[:6], ["never seen"] * 6).all()
    answer = model.predict_or_reject(X, groups.astype(str), reject_label=-1)
    assert (answer[:6] == -1).all()


def test_groups_are_routed():
    X, y, groups = two_groups(600, 0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = GroupwiseRejector(LogisticRegression(), target_coverage=0.8, random_state=0)
        piped = make_pipeline(StandardScaler(), inner.set_fit_request(groups=True))
        found = cross_validate(piped, X, y, params={"groups": groups}, cv=3, return_estimator=True)
    assert set(found["estimator"][0][-1].band_widths_) == {"easy", "hard"}


MACHINES = [
    DoubleRampClassifier(kernel="linear", C=0.3, tol=1e-4),
    DoubleHingeClassifier(kernel="linear", C=0.3, tol=1e-4),
    GeneralizedHingeClassifier(kernel="linear", C=0.3, tol=1e-4),
    ChowRejector(LogisticRegression()),
    TwoStageRejector(LogisticRegression(), Cs=(1.0,), cv=2),
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda one: type(one).__name__)
def test_every_machine_can_have_bands_by_group(machine):
    X, y, groups = two_groups(1200, 3)
    model = GroupwiseRejector(clone(machine), target_coverage=0.7, random_state=0)
    model.fit(X[:500], y[:500], groups=groups[:500])
    kept = ~model.reject(X[500:], groups[500:])
    for name in ("easy", "hard"):
        assert abs(kept[groups[500:] == name].mean() - 0.7) < 0.2
    model.set_params(target_coverage=None, target_risk=0.3, by="class")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X[:500], y[:500])
    assert set(model.risk_certificates_) == {0, 1}


def test_a_fitted_model_serves_most_rows_to_its_bands():
    X, y, groups = two_groups(1000, 4)
    ready = FrozenEstimator(LogisticRegression().fit(X[:200], y[:200]))
    model = GroupwiseRejector(ready, target_risk=0.3, random_state=0)
    model.fit(X[200:], y[200:], groups=groups[200:])
    assert sum(one.n_rows for one in model.risk_certificates_.values()) == 600


def test_promises_by_group_can_be_about_true_labels():
    X, y, groups = two_groups(8000, 5)
    given = flip_labels(y, 0.1, random_state=0)
    blind = GroupwiseRejector(LogisticRegression(), target_risk=0.12, random_state=0)
    aware = clone(blind).set_params(noise_rates=(0.09, 0.11))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        kept = [~one.fit(X, given, groups=groups).reject(X, groups) for one in (blind, aware)]
    assert kept[1].mean() > kept[0].mean() + 0.2


def test_weights_reach_the_classifier():
    X, y, groups = two_groups(400, 6)
    weight = np.where(y == 1, 50.0, 1.0)
    plain = GroupwiseRejector(LogisticRegression(), target_coverage=0.8, random_state=0)
    heavy = clone(plain).fit(X, y, groups=groups, sample_weight=weight)
    assert heavy.predict(X).mean() > plain.fit(X, y, groups=groups).predict(X).mean() + 0.1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"target_risk": 0.1, "noise_rates": "estimate"}, "pass limits, or the LabelNoise"),
        ({}, "exactly one of the two"),
        ({"target_risk": 0.1, "target_coverage": 0.8}, "exactly one of the two"),
        ({"target_risk": 0.1, "by": "colour"}, "by='colour'"),
        ({"target_coverage": 2.0}, "target_coverage=2.0"),
    ],
)
def test_impossible_requests_are_named(params, message):
    X, y, groups = two_groups(60, 0)
    with pytest.raises(ValueError, match=message):
        GroupwiseRejector(LogisticRegression(), **params).fit(X, y, groups=groups)


def test_groups_of_another_length_are_refused():
    X, y, groups = two_groups(200, 0)
    model = GroupwiseRejector(LogisticRegression(), target_coverage=0.8).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="groups has 3 entries, expected 200"):
        model.reject(X, groups[:3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y, groups=groups[:3])


def test_names_of_features_are_those_of_the_last_fit():
    X, y, groups = two_groups(400, 0)
    named = pd.DataFrame(X, columns=["first", "second"])
    model = GroupwiseRejector(LogisticRegression(), target_coverage=0.8)
    assert model.fit(named, y, groups=groups).feature_names_in_.tolist() == ["first", "second"]
    assert not hasattr(model.fit(X, y, groups=groups), "feature_names_in_")
