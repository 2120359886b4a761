"""`max_iter` means the same in all estimators: a fit that needs more says so."""

from __future__ import annotations

import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

import buttress

NAMES = [
    name
    for name in buttress.__all__
    if inspect.isclass(getattr(buttress, name))
    and "max_iter" in inspect.signature(getattr(buttress, name)).parameters
]
GRIDS = {
    "DoubleRampClassifierCV": {"Cs": [1.0, 10.0]},
    "LeakyHockeyStickClassifierCV": {"alphas": 6},
    "RampClassifierCV": {"Cs": [0.1, 1.0, 10.0]},
    "UncertaintySetClassifierCV": {"radii": [1.0, 10.0]},
}
SEARCHES = list(GRIDS)
X, Y = make_moons(150, noise=0.3, random_state=0)
# A step of these is 10 000 pair steps, and these rows need more of them.
STACKED = ["DoubleHingeClassifier", "GeneralizedHingeClassifier"]
MANY_ROWS = make_moons(1500, noise=0.5, random_state=0)
NEEDS_MANY = {"C": 1e5, "gamma": 10.0}

VARIANTS = [
    (name, variant)
    for name in NAMES
    for key, variant in [
        ("kernel", {"kernel": "linear"}),
        ("kernel", {"kernel": "poly", "degree": 2}),
        ("approximation", {"approximation": "nystroem", "n_components": 10}),
        ("approximation", {"approximation": "fourier", "n_components": 10}),
        ("probability", {"probability": True}),
        ("target_risk", {"target_risk": 0.4}),
        ("margin", {"margin": True}),
        ("radius", {"radius": 2.0}),
        ("init", {"init": "best"}),
        ("solver", {"solver": "mm"} if name.startswith("Leaky") else {"solver": "conic"}),
        ("loss", {"loss": "reduced_hull"} if name.startswith("Uncertainty") else {"r": 3.0}),
        ("ss", {"ss": [-np.inf]}),
    ]
    if key in inspect.signature(getattr(buttress, name)).parameters
]


def make(name, **given):
    folds = {"cv": 3} if name in SEARCHES else {}
    seed = "random_state" in inspect.signature(getattr(buttress, name)).parameters
    given = GRIDS.get(name, {}) | folds | ({"random_state": 0} if seed else {}) | given
    return getattr(buttress, name)(**given)


def fitted(name, rows=(X, Y), **given):
    """A model, and what it says about steps."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(name, **given).fit(*rows)
    return model, [str(w.message) for w in caught if w.category is ConvergenceWarning]


def most_steps(name, given):
    """What `n_iter_` may be with one step, as docstrings say."""
    if name in STACKED:
        return 10_000
    return 5 if name.startswith("Leaky") and "approximation" in given else 1


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_that_needs_more_steps_warns_and_keeps_to_the_limit(name):
    stacked = name in STACKED
    rows, given = (MANY_ROWS, NEEDS_MANY) if stacked else ((X, Y), {})
    model, told = fitted(name, rows, max_iter=1, **given)
    assert any("max_iter" in message for message in told)
    assert 1 <= model.n_iter_ <= most_steps(name, given)
    _, told = fitted(name, rows, **given)
    assert not told


@pytest.mark.parametrize(("name", "given"), VARIANTS)
def test_a_limit_is_kept_or_was_not_needed(name, given):
    model, told = fitted(name, max_iter=1, **given)
    if told:
        assert all("max_iter" in message for message in told)
        assert 1 <= model.n_iter_ <= most_steps(name, given)
    else:
        gap, objective = model.duality_gap_, model.objective_
        assert gap <= max(model.tol, 1e-7) * (1.0 + np.abs(objective))
        assert objective == pytest.approx(fitted(name, **given)[0].objective_, rel=1e-6)


@pytest.mark.parametrize(
    "given", [{}, {"gammas": [0.5, 2.0]}, {"approximation": "nystroem", "n_components": 10}]
)
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_says_once_how_many_fits_on_folds_were_cut_short(name, given):
    if name.startswith("Uncertainty") and "approximation" in given:
        pytest.skip("ends by itself")
    search, told = fitted(name, max_iter=1, n_jobs=2, **given)
    (of_folds,) = (message for message in told if message.startswith(name))
    count = 3 * len(search.cv_results_["params"])
    assert f"of the {count} fits on folds" in of_folds
    assert len(told) <= 2  # that, and the one of the refit
    assert not fitted(name, **given)[1]


def test_all_searches_say_it_in_the_same_words():
    texts = set()
    for name in SEARCHES:
        _, told = fitted(name, max_iter=1)
        text = told[0].removeprefix(name)
        texts.add("".join(letter for letter in text if not letter.isdigit()))
    assert len(texts) == 1


def test_fits_on_folds_that_are_scored_one_by_one_warn_once_too():
    search, told = fitted("DoubleRampClassifierCV", max_iter=1, scoring=lambda model, X, y: 0.5)
    assert len(told) == 2
    assert f"ended 6 of the {3 * len(search.cv_results_['params'])} fits" in told[0]


def test_only_fits_that_the_limit_ended_are_counted():
    # the support vector machine is one convex step, the ramp needs more
    _, told = fitted("RampClassifierCV", max_iter=1, ss=[-np.inf, -1.0], class_noise=None)
    (ended,) = re.findall(r"ended (\d+) of the 18 fits", told[0])
    assert 0 < int(ended) <= 9
    _, told = fitted("RampClassifierCV", max_iter=1, ss=[-np.inf])
    assert not told


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_with_its_defaults_has_steps_enough(name, scoring):
    rows = make_classification(
        150, 8, n_informative=4, n_classes=3, flip_y=0.2, class_sep=0.5, random_state=3
    )
    scores = {} if name.startswith("Double") else {"scoring": scoring}
    grid = {} if name.startswith("Leaky") else GRIDS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(buttress, name)(gammas="auto", **scores, **grid).fit(*rows)


@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_a_convex_machine_needs_one_outer_step(approximation):
    few = {"approximation": approximation, "n_components": 10, "max_iter": 1, "s": -np.inf}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert buttress.RampClassifier(**few).fit(X, Y).n_iter_ == 1
        del few["s"]
        buttress.RampClassifierCV(ss=[-np.inf], Cs=[0.1, 1.0], **few).fit(X, Y)
