"""The models to choose from, each with its own search, and what a search has settled on."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from buttress.classifiers import LeakyHockeyStickClassifier, PARampClassifier
from buttress.model_selection.double_ramp import DoubleRampClassifierCV
from buttress.model_selection.leaky_hockey_stick import LeakyHockeyStickClassifierCV
from buttress.model_selection.ramp import RampClassifierCV
from buttress.model_selection.titles import TITLES
from buttress.model_selection.uncertainty_set import UncertaintySetClassifierCV

_CLASSES: dict[str, Any] = {
    "leaky": LeakyHockeyStickClassifierCV,
    "ramp": RampClassifierCV,
    "reject": DoubleRampClassifierCV,
    "uncertainty": UncertaintySetClassifierCV,
}
# A path of all penalties at one width is as good as three of them (``benchmarks/widths.py``); the
# machines of a few penalties are compared at several, which their prices (`cost_model`) include.
_SEVERAL_WIDTHS = ("ramp", "reject")


@dataclass(frozen=True)
class Request:
    """What is asked of every candidate, whichever model it is.

    Attributes
    ----------
    d : float
        Cost of rejection, for "reject".
    seed : int
        Of the folds, and of whatever else is random.
    folds : int
        Number of folds of the candidate's own cross-validation.
    class_weight : dict or "balanced", optional
        For the models that take one; see `takes_class_weight`.
    scoring : str, optional
        What the candidate's own search aims at; its default when None.
    target_coverage : float, optional
        Share of rows that "reject" should answer.
    jobs : int, optional
        Threads of the search.
    """

    d: float = 0.2
    seed: int = 0
    folds: int = 5
    class_weight: Mapping[Any, float] | str | None = None
    scoring: str | None = None
    target_coverage: float | None = None
    jobs: int | None = None


def make_candidate(kind: str, request: Request | None = None, **approximation: Any) -> Any:
    """The estimator behind a name, not fitted.

    Parameters
    ----------
    kind : str
        A key of `TITLES`; "svc" is scikit-learn's `SVC` as it comes.
    request : Request, optional
    **approximation
        ``approximation``, ``n_components`` and the like, for the models that take a feature map
        instead of the exact kernel.

    Examples
    --------
    >>> make_candidate("ramp", Request(seed=3)).random_state
    3
    """
    request = request or Request()
    if kind not in TITLES:
        raise ValueError(f"kind={kind!r} is not accepted: expected one of {', '.join(TITLES)}.")
    weight = request.class_weight
    if weight is not None and not takes_class_weight(kind):
        raise ValueError(f"class_weight does not apply to {TITLES[kind]}: leave it out.")
    if approximation and not takes_approximation(kind):
        raise ValueError(f"approximation does not apply to {TITLES[kind]}: leave it out.")
    if kind == "svc":
        from sklearn.svm import SVC

        return SVC(class_weight=weight)
    cv = StratifiedKFold(request.folds, shuffle=True, random_state=request.seed)
    if kind == "online":
        return _online_search(cv, request)
    cls = _CLASSES[kind]
    settings: dict[str, Any] = {"cv": cv, "class_weight": weight, **approximation}
    accepted = inspect.signature(cls).parameters
    if "random_state" in accepted:
        settings["random_state"] = request.seed
    if "n_jobs" in accepted:
        settings["n_jobs"] = request.jobs
    if kind in _SEVERAL_WIDTHS:
        settings["gammas"] = "auto"
    if kind == "reject":
        settings["d"] = request.d
    elif request.scoring is not None:
        settings["scoring"] = request.scoring
    return cls(**settings)


def takes_approximation(kind: str) -> bool:
    """Whether a model can stand on a feature map instead of the exact kernel."""
    return kind in _CLASSES


def takes_class_weight(kind: str) -> bool:
    """Whether a model can weigh its classes; learners of one pass cannot."""
    return kind != "online"


def settled(search: Any) -> Any:
    """An unfitted estimator with the parameters that a fitted search has chosen.

    Fitting it costs one fit instead of a search. What chooses nothing is cloned.

    Parameters
    ----------
    search : fitted estimator
        One of ours that tunes itself, a scikit-learn search, or any other estimator.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> search = make_candidate("leaky").fit(X, y)
    >>> settled(search).fit(X, y).alpha == search.alpha_
    True
    """
    if isinstance(search, LeakyHockeyStickClassifierCV):
        accepted = inspect.signature(LeakyHockeyStickClassifier).parameters
        shared = {name: v for name, v in search.get_params(deep=False).items() if name in accepted}
        shared |= {"alpha": search.alpha_, "r": search.r_}
        if getattr(search, "gamma_", None) is not None:
            shared["gamma"] = search.gamma_
        return LeakyHockeyStickClassifier(**shared)
    if not hasattr(search, "best_estimator_"):
        return clone(search)
    chosen = clone(search.best_estimator_)
    if isinstance(search, RampClassifierCV):
        weights = getattr(search, "noise_weights_", {})
        if search.class_weight is not None:
            chosen.set_params(class_weight=search.class_weight)
        elif any(weight != 1.0 for weight in weights.values()):
            chosen.set_params(class_weight=dict(weights))
    elif "class_weight" in chosen.get_params(deep=False) and hasattr(search, "class_weight"):
        chosen.set_params(class_weight=search.class_weight)
    return chosen


def _online_search(cv: Any, request: Request) -> Any:
    """PA-RAMP has no cross-validated version of its own: width and ramp by a small grid."""
    grid = {"gamma": ["scale", "median"], "s": [-1.0, -0.5, -0.2]}
    # scikit-learn would start processes for more jobs, which take longer than the search.
    return GridSearchCV(PARampClassifier(), grid, cv=cv, scoring=request.scoring)
