"""What all searches share: results, groups, metadata, widths, the refit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_moons
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

import buttress

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.4 * RNG.normal(size=90) > 0, "yes", "no")
GROUPS = np.arange(90) % 6
WEIGHT = RNG.integers(1, 4, size=90).astype(float)
GAMMAS = [0.2, 1.0]

# class name: grid of the search, the estimator it tunes and its fixed parameters
SEARCHES: dict[str, tuple[dict[str, Any], dict[str, list[float]], dict[str, Any]]] = {
    "LeakyHockeyStickClassifierCV": ({"alphas": [0.1, 0.01]}, {"alpha": [0.1, 0.01]}, {}),
    "RampClassifierCV": (
        {"Cs": [0.3, 3.0], "ss": [-np.inf, -1.0], "class_noise": None},
        {"C": [0.3, 3.0], "s": [-np.inf, -1.0]},
        {},
    ),
    "DoubleRampClassifierCV": ({"Cs": [0.3, 3.0], "scoring": "accuracy"}, {"C": [0.3, 3.0]}, {}),
    "UncertaintySetClassifierCV": ({"radii": [1.0, 10.0]}, {"radius": [1.0, 10.0]}, {}),
}
every_search = pytest.mark.parametrize("name", SEARCHES)


def search(name: str, **options: Any) -> Any:
    return getattr(buttress, name)(**(SEARCHES[name][0] | options))


def estimator(name: str) -> Any:
    return getattr(buttress, name.removesuffix("CV"))()


@every_search
def test_results_are_those_of_a_grid_search(name: str) -> None:
    ours = search(name, gammas=GAMMAS, cv=StratifiedKFold(4)).fit(X, Y)
    grid = SEARCHES[name][1] | {"gamma": GAMMAS}
    theirs = GridSearchCV(estimator(name), grid, cv=StratifiedKFold(4)).fit(X, Y)
    times = ("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time")
    assert ours.cv_results_.keys() - {"param_r"} == theirs.cv_results_.keys() - set(times)
    order = [
        next(
            i
            for i, params in enumerate(ours.cv_results_["params"])
            if wanted.items() <= params.items()
        )
        for wanted in theirs.cv_results_["params"]
    ]
    for key in theirs.cv_results_.keys() - {"params", *times}:
        found = np.asarray(ours.cv_results_[key])[order].astype(float)
        np.testing.assert_allclose(found, theirs.cv_results_[key].astype(float), err_msg=key)
    assert ours.cv_results_["params"][ours.best_index_] == ours.best_params_
    assert ours.cv_results_["mean_test_score"][ours.best_index_] == ours.best_score_
    assert ours.gamma_ == ours.best_params_["gamma"]


@every_search
@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_the_best_estimator_is_the_estimator_refitted_on_all_rows(
    name: str, approximation: str | None
) -> None:
    options = {"approximation": approximation, "n_components": 40, "gammas": "auto", "cv": 3}
    model = search(name, **options).fit(X, Y)
    again = estimator(name).set_params(**model.best_estimator_.get_params()).fit(X, Y)
    expected = again.decision_function(X)
    for one in (model, model.best_estimator_):
        np.testing.assert_allclose(one.decision_function(X), expected, atol=1e-6)
        np.testing.assert_array_equal(one.predict(X), again.predict(X))
    assert len({params["gamma"] for params in model.cv_results_["params"]}) == 3
    assert model.best_estimator_.approximation_ == approximation


@every_search
def test_widths_mean_the_same_everywhere(name: str) -> None:
    own = search(name, gammas=None, gamma=0.5, cv=3).fit(X, Y)
    assert {params["gamma"] for params in own.cv_results_["params"]} == {0.5}
    auto = search(name, gammas="auto", gamma=0.5, cv=3).fit(X, Y)
    assert {params["gamma"] for params in auto.cv_results_["params"]} == {0.125, 0.5, 2.0}
    linear = search(name, gammas=[0.1, 1.0], kernel="linear", cv=3).fit(X, Y)
    assert {params["gamma"] for params in linear.cv_results_["params"]} == {None}
    assert len(linear.cv_results_["params"]) == len(own.cv_results_["params"])


@every_search
@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_groups_reach_the_splitter(name: str, approximation: str | None) -> None:
    options = {"gammas": None, "approximation": approximation, "n_components": 30}
    folds = list(GroupKFold(3).split(X, Y, GROUPS))
    by_groups = search(name, cv=GroupKFold(3), **options).fit(X, Y, groups=GROUPS)
    given = search(name, cv=folds, **options).fit(X, Y)
    for k in range(3):
        key = f"split{k}_test_score"
        np.testing.assert_array_equal(by_groups.cv_results_[key], given.cv_results_[key])
    # rows of weight zero are removed, their groups with them
    zero = np.where(GROUPS == 5, 0.0, 1.0)
    search(name, cv=GroupKFold(3), **options).fit(X, Y, sample_weight=zero, groups=GROUPS)


@every_search
def test_what_nobody_asked_for_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="takes no speed"):
        search(name).fit(X, Y, speed=GROUPS)
    with pytest.raises(ValueError, match="groups"):
        search(name, cv=GroupKFold(3)).fit(X, Y)


@every_search
def test_metadata_are_routed(name: str) -> None:
    weighted = search(name, gammas=None, cv=GroupKFold(3)).fit(
        X, Y, sample_weight=WEIGHT, groups=GROUPS
    )
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            search(name, gammas=None).fit(X, Y, sample_weight=WEIGHT)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        routed = search(name, gammas=None, cv=GroupKFold(3), scoring=scorer)
        routed.fit(X, Y, sample_weight=WEIGHT, groups=GROUPS)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=False)
        plain = search(name, gammas=None, cv=GroupKFold(3), scoring=scorer)
        plain.fit(X, Y, sample_weight=WEIGHT, groups=GROUPS)
    found = routed.cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, weighted.cv_results_["mean_test_score"])
    assert not np.allclose(plain.cv_results_["mean_test_score"], found)


def test_groups_pass_through_pipelines_and_outer_folds() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        inner = search("RampClassifierCV", gammas=None, cv=GroupKFold(2))
        scores = cross_val_score(
            make_pipeline(StandardScaler(), inner),
            X,
            Y,
            cv=GroupKFold(3),
            params={"groups": GROUPS},
        )
    assert np.isfinite(scores).all()


def test_parts_of_a_checked_matrix_are_not_checked_again(monkeypatch):
    """A factorisation per fold would take longer than the fits; the whole is looked at once."""
    from buttress.kernels import gram

    looked = []
    real = gram.check_positive_semidefinite
    monkeypatch.setattr(
        gram, "check_positive_semidefinite", lambda K: looked.append(len(K)) or real(K)
    )
    X, y = make_moons(60, noise=0.3, random_state=0)
    search = buttress.RampClassifierCV(Cs=[0.1, 1.0], cv=3).fit(X, y)
    search.suspects(X, y, cv=2)
    assert looked == []  # a Gaussian kernel needs no look at all
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    given = buttress.RampClassifierCV(Cs=[0.1, 1.0], cv=3, kernel="precomputed").fit(K, y)
    assert set(looked) == {60}
    assert given.best_estimator_.kernel == "precomputed"
    assert given.best_estimator_.kernel_params is None
    with pytest.raises(ValueError, match="not positive semidefinite"):
        buttress.RampClassifier(kernel="precomputed").fit(-K, y)
    with pytest.raises(ValueError, match="takes no 'gamma'; expected definite"):
        buttress.RampClassifier(kernel="precomputed", kernel_params={"gamma": 1.0}).fit(K, y)


def test_arguments_of_a_kernel_survive_the_search():
    X, y = make_moons(60, noise=0.3, random_state=0)
    X = np.abs(X)
    search = buttress.RampClassifierCV(
        Cs=[0.1, 1.0],
        cv=3,
        kernel="polynomial",
        gamma=1.0,
        kernel_params={"degree": 2},
        class_noise=None,
    ).fit(X, y)
    assert search.best_estimator_.kernel_params == {"degree": 2}
    alone = buttress.RampClassifier(
        kernel="polynomial", kernel_params={"degree": 2}, **search.best_params_
    ).fit(X, y)
    np.testing.assert_allclose(
        search.decision_function(X), alone.decision_function(X), rtol=1e-4, atol=1e-4
    )


@every_search
@pytest.mark.parametrize("jobs", [2, 3])
def test_widths_side_by_side_score_as_one_after_the_other(name: str, jobs: int) -> None:
    gammas = [0.1, 0.3, 1.0, 3.0, 0.2]
    alone = search(name, gammas=gammas, cv=3).fit(X, Y)
    together = search(name, gammas=gammas, cv=3, n_jobs=jobs).fit(X, Y)
    assert together.best_params_ == alone.best_params_
    for key, values in alone.cv_results_.items():
        if key.startswith("split"):
            np.testing.assert_allclose(together.cv_results_[key], values, atol=1e-12)
    np.testing.assert_allclose(
        together.decision_function(X), alone.decision_function(X), rtol=1e-5, atol=1e-5
    )


@every_search
@pytest.mark.parametrize(("free", "expected"), [(2**50, 2), (1, 1), (None, 2)])
def test_only_as_many_widths_at_a_time_as_memory_allows(
    name: str, free: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, at_once, most = search(name, gammas=[0.1, 0.3, 1.0], cv=3, n_jobs=2), set(), []
    kind = model._exact_search
    solve_width = kind._solve_width

    def counted(self: Any, width: Any, *rest: Any) -> Any:
        at_once.add(width)
        most.append(len(at_once))
        try:
            return solve_width(self, width, *rest)
        finally:
            at_once.discard(width)

    monkeypatch.setattr(kind, "_solve_width", counted)
    monkeypatch.setattr("buttress.model_selection._exact.free_memory", lambda: free)
    model.fit(X, Y)
    assert len(most) == 3
    assert max(most) <= expected


def test_scorers_see_the_settings_of_scikit_learn_at_every_width() -> None:
    seen = []

    def score(estimator: Any, X: Any, y: Any) -> float:
        seen.append(sklearn.get_config()["working_memory"])
        return 0.5

    with sklearn.config_context(working_memory=77):
        search("LeakyHockeyStickClassifierCV", gammas=GAMMAS, cv=3, n_jobs=2, scoring=score).fit(
            X, Y
        )
    assert set(seen) == {77}


def test_an_error_at_one_width_ends_the_search_and_leaves_the_threads_of_blas() -> None:
    before = [library["num_threads"] for library in threadpool_info()]

    def score(estimator: Any, X: Any, y: Any) -> float:
        raise ZeroDivisionError("a scorer's own")

    model = search("LeakyHockeyStickClassifierCV", gammas=GAMMAS, cv=3, n_jobs=2, scoring=score)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    assert not hasattr(model, "best_params_")
    assert [library["num_threads"] for library in threadpool_info()] == before
