"""What holds for every public estimator, seen from outside.

Docstrings name what there is after `fit`, a fit forgets the one before, sparse and dense rows mean
the same, errors name the parameter and change nothing.
"""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from numpydoc.docscrape import ClassDoc
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import buttress

SMALL = {
    "ChowRejector": {"estimator": LogisticRegression()},
    "DoubleRampClassifierCV": {"Cs": [1.0, 10.0], "gammas": [0.5, 2.0], "cv": 3},
    "GroupwiseRejector": {"estimator": LogisticRegression(), "target_coverage": 0.8},
    "LeakyHockeyStickClassifierCV": {"alphas": 8, "cv": 3},
    "NoiseAwareClassifier": {"estimators": [LogisticRegression()], "n_repeats": 1},
    "RademacherSelector": {"Cs": [1.0, 10.0], "n_draws": 2, "gammas": None},
    "RampClassifierCV": {"Cs": [1.0, 10.0], "gammas": [0.5, 2.0], "cv": 3},
    "TwoStageRejector": {"estimator": LogisticRegression()},
    "UncertaintySetClassifier": {"radius": 5.0},
    "UncertaintySetClassifierCV": {"radii": [1.0, 10.0], "cv": 3},
}
NAMES = [
    name
    for name in buttress.__all__
    if inspect.isclass(getattr(buttress, name)) and hasattr(getattr(buttress, name), "fit")
]
SEARCHES = [name for name in NAMES if name.endswith("CV")]
X, Y = make_moons(60, noise=0.25, random_state=0)
# zeros, so that sparse rows differ from dense ones
HOLES = np.where(np.abs(X) < 0.3, 0.0, X)


def parameters(name: str) -> list[str]:
    return list(inspect.signature(getattr(buttress, name)).parameters)


def with_parameter(parameter: str) -> list[str]:
    return [name for name in NAMES if parameter in parameters(name)]


def make(name: str, **changed):
    given = SMALL.get(name, {}) | changed
    if "random_state" in parameters(name):
        given = {"random_state": 0} | given
    return getattr(buttress, name)(**given)


def scores(model, rows):
    read = getattr(model, "decision_function", None) or getattr(model, "predict_proba", None)
    return np.asarray(read(rows)) if read else model.predict(rows)


def refusal(model, rows) -> str | None:
    """What a fit says when it refuses; None when it does not."""
    try:
        model.fit(rows, Y)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def settings(name: str) -> list[dict]:
    """Parameters that change what there is after a fit."""
    tried = {
        "kernel": [{"kernel": "linear"}] if name != "TwoStageRejector" else [],
        "approximation": [
            {"approximation": "nystroem", "n_components": 10},
            {"approximation": "fourier", "n_components": 10},
        ],
        "probability": [{"probability": True}],
        "target_risk": [{"target_risk": 0.4, "target_coverage": None}],
        "margin": [{"margin": True}],
        "radius": [{"radius": 2.0}],
    }
    own = parameters(name)
    return [{}] + [given for key, values in tried.items() if key in own for given in values]


def fitted_names(model) -> set[str]:
    computed = inspect.getmembers_static(type(model), lambda value: isinstance(value, property))
    found = {name for name, _ in computed if hasattr(model, name)} | set(vars(model))
    return {name for name in found if name.endswith("_") and not name.startswith("_")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_names_every_fitted_attribute(name):
    text = getattr(buttress, name).__doc__
    listed = {
        part.strip("` ")
        for entry in ClassDoc(getattr(buttress, name))["Attributes"]
        for part in entry.name.split(",")
    }
    for given in settings(name):
        model = make(name, **given).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
        silent = {found for found in fitted_names(model) - listed if f"`{found}`" not in text}
        assert not silent, given


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_a_fit_leaves_nothing_of_the_one_before(name):
    for given in settings(name):
        fresh = make(name).fit(X, Y)
        model = make(name, **given).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
        model.set_params(**fresh.get_params(deep=False)).fit(X, Y)
        assert set(vars(model)) == set(vars(fresh)), given
        np.testing.assert_array_equal(scores(model, X), scores(fresh, X))
    approximate = [given for given in settings(name) if "approximation" in given]
    for given in approximate:
        fresh = make(name, **given).fit(X, Y)
        model = make(name).fit(X, Y)
        model.set_params(**fresh.get_params(deep=False)).fit(X, Y)
        assert set(vars(model)) == set(vars(fresh)), given


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("name", with_parameter("coef0"))
def test_sparse_rows_get_the_answers_of_the_same_dense_rows(name, kernel):
    thin = sparse.csr_matrix(HOLES)
    for rows in (HOLES, thin):
        model = make(name, kernel=kernel, gamma=0.7).fit(rows, Y)
        dense = scores(model, HOLES)
        np.testing.assert_allclose(scores(model, thin), dense, atol=1e-8 * np.abs(dense).max())


@pytest.mark.parametrize("name", with_parameter("coef0"))
def test_kernels_of_histograms_say_that_they_take_dense_rows_only(name):
    tags = make(name, kernel="chi2").__sklearn_tags__().input_tags
    assert tags.positive_only
    assert not tags.sparse
    assert make(name).__sklearn_tags__().input_tags.sparse


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 5.0}, "balanced"])
def test_the_best_estimator_of_a_search_fits_to_the_same_model(name, class_weight):
    # more noise and a wide grid would let `RampClassifierCV` weight the labels besides
    options = {"class_noise": None} if name == "RampClassifierCV" else {}
    search = make(name, class_weight=class_weight, **options).fit(X, Y)
    again = clone(search.best_estimator_).fit(X, Y)
    np.testing.assert_allclose(scores(again, X), scores(search, X), atol=1e-5)
    shared = set(again.get_params(deep=False)) & set(search.get_params(deep=False))
    kept = search.get_params(deep=False)
    for parameter in shared - {"gamma", "r"}:
        assert getattr(search.best_estimator_, parameter) is kept[parameter], parameter


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_share_the_keys_of_their_results(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = make(name).fit(X, Y).cv_results_
    keys = {key for key in found if not key.startswith("param_")}
    splits = {f"split{k}_test_score" for k in range(3)}
    assert keys == {"params", "mean_test_score", "std_test_score", "rank_test_score"} | splits


@pytest.mark.parametrize("name", SEARCHES)
def test_a_grid_may_be_given_by_position_where_the_tuned_parameter_may(name):
    grid = {"LeakyHockeyStickClassifierCV": "alphas", "UncertaintySetClassifierCV": "radii"}
    signature = inspect.signature(getattr(buttress, name)).parameters
    assert signature[grid.get(name, "Cs")].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


# What parameters of one name are unless given; all of them are given by name.
SHARED = {
    "coef0": 0.0,
    "cv": 5,
    "degree": 3,
    "gamma": "scale",
    "gammas": None,
    "kernel": "rbf",
    "kernel_params": None,
    "max_iter": 1000,
    "memory_limit": None,
    "n_jobs": None,
    "random_state": None,
}


@pytest.mark.parametrize("name", [*NAMES, "LabelAudit"])
def test_shared_parameters_are_given_by_name_and_begin_alike(name):
    signature = inspect.signature(getattr(buttress, name)).parameters
    by_position = [p for p in signature if signature[p].kind is not inspect.Parameter.KEYWORD_ONLY]
    assert len(by_position) <= 3
    assert not SHARED.keys() & set(by_position)
    given = {p: signature[p].default for p in SHARED.keys() & signature.keys()}
    assert given == {p: SHARED[p] for p in given}


# Values that compare, convert or unpack in ways of their own.
ODD = [
    pd.NA,
    np.array([1.0, 2.0]),
    object(),
    {},
    [1, "a"],
    b"x",
    2 + 1j,
    10**400,
    10**18,
    float("nan"),
]
# Parameters that are objects or collections, or that the wrapped classifier judges.
FREE = {"estimator", "estimators", "drift", "prior", "kernel_params"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_odd_values_of_a_parameter_are_refused_by_its_name(name):
    for parameter in set(parameters(name)) - FREE:
        for value in ODD:
            model = make(name, **{parameter: value})
            before = dict(vars(model))
            message = refusal(model, X)
            if message is not None:
                assert parameter in message, f"{parameter}={value!r}: {message}"
                assert vars(model).keys() == before.keys()
                assert all(vars(model)[key] is before[key] for key in before)


@pytest.mark.parametrize("name", with_parameter("class_weight"))
@pytest.mark.parametrize("factor", ["a", float("inf"), float("nan"), 0.0, None])
def test_a_class_weight_that_is_no_positive_number_is_named(name, factor):
    with pytest.raises(ValueError, match="class_weight"):
        make(name, class_weight={0: factor}).fit(X, Y)


@pytest.mark.parametrize("name", with_parameter("class_weight"))
def test_weights_that_are_no_numbers_are_named(name):
    with pytest.raises(ValueError, match="sample_weight"):
        make(name).fit(X, Y, sample_weight=["a"] * len(Y))


@pytest.mark.parametrize("name", SEARCHES)
def test_several_scorers_are_refused(name):
    with pytest.raises(ValueError, match="scoring="):
        make(name, scoring=["accuracy", "f1"]).fit(X, Y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", [1e-200, 1e150])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("name", with_parameter("coef0"))
def test_features_of_any_size_are_fitted_or_refused_with_advice(name, kernel, scale):
    model = make(name, kernel=kernel)
    message = refusal(model, scale * X)
    if message is None:
        assert np.isfinite(scores(model, scale * X)).all()
    else:
        assert "Scale" in message or "means coincide" in message


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weight", [1e-250, 1e-8, 1e8])
def test_weights_of_any_size_reach_the_noise_rates_of_a_search(weight):
    model = make("RampClassifierCV").fit(X, Y, sample_weight=np.full(len(Y), weight))
    assert set(model.noise_rates_) == {0, 1}


def test_a_minimax_machine_says_when_single_precision_cannot_hold_it():
    rows = np.abs(HOLES).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="float64 rows"):
        buttress.MinimaxProbabilityMachine(kernel="poly", coef0=1.0, degree=5).fit(10 * rows, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        buttress.MinimaxProbabilityMachine().fit(X.astype(np.float32), Y)


def test_a_warning_points_at_the_line_that_called():
    fits = [
        lambda: make("LeakyHockeyStickClassifier", alpha=1e-9, max_iter=1).fit(X, Y),
        lambda: make("DoubleRampClassifier", target_risk=0.001).fit(X, Y),
        lambda: make("DoubleHingeClassifier", target_risk=0.001).fit(X, Y),
        lambda: make("UncertaintySetClassifierCV").fit(np.repeat(X[:3], 20, axis=0), Y),
        lambda: make("KernelPegasos").partial_fit(X[:5], Y[:5], classes=[0, 1]),
    ]
    for fit in fits:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        assert caught
        assert {each.filename for each in caught} == {__file__}
