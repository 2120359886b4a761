"""Every estimator refuses nonsense by the name of the parameter."""

from __future__ import annotations

import inspect
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import buttress
from buttress import ChowRejector, GroupwiseRejector, TwoStageRejector
from buttress.classifiers.parameters import check_option

ESTIMATORS = {
    "LeakyHockeyStickClassifier": {},
    "LeakyHockeyStickClassifierCV": {"alphas": 3, "cv": 2},
    "RampClassifier": {},
    "RampClassifierCV": {"Cs": [1.0], "cv": 2},
    "PARampClassifier": {},
    "KernelPerceptron": {},
    "KernelPegasos": {},
    "Norma": {},
    "DoubleRampClassifier": {},
    "DoubleRampClassifierCV": {"Cs": [1.0], "cv": 2},
    "DoubleHingeClassifier": {},
    "GeneralizedHingeClassifier": {},
    "ChowRejector": {"estimator": LogisticRegression()},
    "UncertaintySetClassifier": {},
    "UncertaintySetClassifierCV": {"radii": [1.0], "cv": 2},
    "MinimaxProbabilityMachine": {},
    "RademacherSelector": {"Cs": [1.0]},
}
NONSENSE: dict[str, list[Any]] = {
    "kernel": [None, "magic", np.ones(2)],
    "gamma": [-1.0, np.nan, "wide", None, 10**400],
    "degree": [None, -1, np.nan, np.inf, "3", [2]],
    "coef0": [None, np.nan, -np.inf, "1", [0.0]],
    "kernel_params": [3, "gamma", [("gamma", 1.0)]],
    "fit_intercept": [None, "yes", 1, np.ones(2)],
    "n_jobs": [0, 1.5, "2", [1]],
    "verbose": [None, -1, "loud"],
    "random_state": [-1, "seed", 0.5],
    "cv": [0, 1, True, -3, 1.5, [1, 2]],
    "gammas": [[], 0.5, "narrow", [-1.0], ["wide"], {}],
    "Cs": [None, [], "x", [0.0], [1.0, "a"], True, np.ones((2, 2))],
    "ss": [None, [], [1.0]],
    "alphas": [None, [], "x", [0.0], 0, True, "1", np.ones((2, 2))],
    "radii": [None, [], "x", [0.0], 0, True, "1", np.ones((2, 2))],
    "r": [None, [], 1.0, "x"],
    "tol": [0.0, np.nan, None, 10**400],
    "solver": [None, np.ones(2), "magic"],
    "concentration": [None, 1, "yes"],
}


def cases() -> list[tuple[str, str, Any]]:
    found = []
    for name, given in ESTIMATORS.items():
        accepted = getattr(buttress, name)(**given).get_params(deep=False)
        for parameter in NONSENSE.keys() & accepted.keys():
            if (name, parameter) != ("ChowRejector", "cv"):  # looked at only when calibrating
                found += [(name, parameter, value) for value in NONSENSE[parameter]]
    return sorted(found, key=repr)


@pytest.mark.parametrize(("name", "parameter", "value"), cases())
def test_nonsense_is_refused_by_the_parameters_name(name: str, parameter: str, value: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    model = getattr(buttress, name)(**{**ESTIMATORS[name], parameter: value})
    with pytest.raises(ValueError, match=rf"\b{parameter}\b"):
        model.fit(X, y)
    assert not [attribute for attribute in vars(model) if attribute.endswith("_")]


def test_an_array_is_none_of_the_options() -> None:
    with pytest.raises(ValueError, match="solver="):
        check_option("solver", np.array(["auto", "mm"]), ["auto", "mm"])


KERNEL_MACHINES = sorted(name for name in ESTIMATORS if name != "ChowRejector")
BATCH_MACHINES = [n for n in KERNEL_MACHINES if not hasattr(getattr(buttress, n), "partial_fit")]


def undefined(x: Any, z: Any) -> float:
    return 1.0 if np.array_equal(x, z) else float("nan")


@pytest.mark.parametrize(
    "kernel", [{"kernel": undefined}, {"kernel": "poly", "degree": 0.5}, {"kernel": "rbf"}]
)
@pytest.mark.parametrize("name", KERNEL_MACHINES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # the power of a negative number
def test_similarities_that_are_not_finite_are_refused(name: str, kernel: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    if kernel["kernel"] == "rbf":
        X *= 1e200
    given = ESTIMATORS[name] | kernel
    if name == "RademacherSelector":
        given = {"estimator": buttress.RampClassifier(**kernel), "Cs": [1.0]}
    with pytest.raises(ValueError, match="finite"):
        getattr(buttress, name)(**given).fit(X, y)


@pytest.mark.parametrize("name", BATCH_MACHINES)
def test_a_linear_kernel_beyond_floating_point_is_refused(name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = 1e200 * rng.normal(size=(12, 2)), np.arange(12) % 2
    given = ESTIMATORS[name] | {"kernel": "linear"}
    if name == "RademacherSelector":
        given = {"estimator": buttress.RampClassifier(kernel="linear"), "Cs": [1.0]}
    with pytest.raises(ValueError, match="finite"):
        getattr(buttress, name)(**given).fit(X, y)


@pytest.mark.parametrize("model", [buttress.LeakyHockeyStickClassifier, buttress.RampClassifier])
def test_a_certificate_that_certifies_nothing_is_a_warning(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="standardise"):
        model(kernel="linear").fit(1e140 * X, y)


def test_shared_parameters_have_one_default_and_are_given_by_name() -> None:
    shared = {
        "kernel": "rbf", "gamma": "scale", "degree": 3, "coef0": 0.0, "kernel_params": None,
        "fit_intercept": True, "class_weight": None, "max_iter": 1000, "cache_size": 1000.0,
        "approximation": None, "n_components": 1000, "landmarks": "uniform", "memory_limit": None,
        "random_state": None, "n_jobs": None, "verbose": 0, "cv": 5,
    }  # fmt: skip
    for name in ESTIMATORS:
        for parameter in inspect.signature(getattr(buttress, name)).parameters.values():
            if parameter.name in shared:
                assert parameter.default == shared[parameter.name], (name, parameter.name)
                assert parameter.kind is parameter.KEYWORD_ONLY, (name, parameter.name)


SENSELESS = [
    ("RampClassifier", {"kernel_params": {"gama": 1.0}}, "takes no 'gama'"),
    ("KernelPegasos", {"kernel": "linear", "kernel_params": {"gamma": 1.0}}, "expected none"),
    ("LeakyHockeyStickClassifier", {"kernel_params": {"zz": 1}}, "takes no 'zz'"),
    ("UncertaintySetClassifier", {"loss": "ellipsoid", "nu": -1}, "nu=-1"),
    ("UncertaintySetClassifier", {"loss": "hull", "h": -1}, "h=-1"),
    ("UncertaintySetClassifier", {"loss": "reduced_hull", "omega": "wide"}, "omega='wide'"),
    ("DoubleRampClassifier", {"confidence": 2}, "confidence=2"),
    ("DoubleHingeClassifier", {"certify_on": "nothing"}, "certify_on='nothing'"),
    ("GeneralizedHingeClassifier", {"noise_rates": "much"}, "noise_rates='much'"),
    ("GeneralizedHingeClassifier", {"noise_rates": [(0, 1), (0.1, 7)]}, "noise_rates="),
]


@pytest.mark.parametrize(("name", "given", "reason"), SENSELESS, ids=str)
def test_a_senseless_value_is_refused_also_where_nothing_uses_it(name, given, reason):
    import buttress

    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=re.escape(reason)):
        getattr(buttress, name)(**given).fit(X, [0, 1] * 10)


def test_a_cv_that_nothing_uses_is_looked_at():
    from sklearn.linear_model import LogisticRegression

    from buttress import ChowRejector

    with pytest.raises(ValueError, match="cv"):
        ChowRejector(LogisticRegression(), cv="many").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("name", ["PARampClassifier", "KernelPerceptron", "KernelPegasos", "Norma"])
def test_online_learners_refuse_a_gram_matrix_that_is_not_symmetric(name):
    import buttress

    X = np.random.default_rng(0).normal(size=(20, 2))
    K = X @ X.T
    y = [0, 1] * 10
    learner = getattr(buttress, name)(kernel="precomputed")
    learner.fit(K, y)
    K[3, 5] += 0.1
    with pytest.raises(ValueError, match="not symmetric"):
        learner.fit(K, y)


@pytest.mark.parametrize("given", [[], "svm", None, LogisticRegression])
@pytest.mark.parametrize(
    "wrapper", [ChowRejector, TwoStageRejector, partial(GroupwiseRejector, target_coverage=0.9)]
)
def test_what_is_no_classifier_is_refused_by_name(wrapper, given):
    X, y = make_moons(40, noise=0.2, random_state=0)
    with pytest.raises(ValueError, match=r"estimator=.* is not accepted: expected a classifier"):
        wrapper(given).fit(X, y)
