"""The models that the command line offers, each with its own cross-validation."""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import Any

import typer

# Rows up to which the comparison of models uses everything; beyond, a sample decides.
COMPARED_ROWS = 2000


class Model(StrEnum):
    """What ``--model`` accepts."""

    auto = "auto"
    leaky = "leaky"
    ramp = "ramp"
    reject = "reject"
    uncertainty = "uncertainty"
    online = "online"


TITLES = {
    "svc": "plain SVC",
    "leaky": "leaky hockey stick",
    "ramp": "ramp",
    "reject": "double ramp (abstains)",
    "uncertainty": "uncertainty sets",
    "online": "PA-RAMP (one pass)",
}

_CLASSES = {
    "leaky": "LeakyHockeyStickClassifierCV",
    "ramp": "RampClassifierCV",
    "reject": "DoubleRampClassifierCV",
    "uncertainty": "UncertaintySetClassifierCV",
}

# Those that always answer; the rejecting one takes part when a cost of rejection is given.
ANSWERING = ("leaky", "ramp", "uncertainty", "online")


def make_estimator(
    kind: str, *, d: float = 0.2, seed: int = 0, folds: int = 5, approximation: str | None = None
) -> Any:
    """The estimator behind a name, not fitted.

    Parameters
    ----------
    kind : str
        A value of `Model` except "auto", or "svc" for scikit-learn's `SVC` as it comes.
    d : float
        Cost of rejection, for "reject".
    seed : int
        Of the folds, and of whatever else is random.
    folds : int
        Number of folds of the estimator's own cross-validation.
    approximation : str, optional
        Feature map instead of the exact kernel, for the estimators that take one.
    """
    from sklearn.model_selection import StratifiedKFold

    import buttress

    if kind == "svc":
        from sklearn.svm import SVC

        return SVC()
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    if approximation is not None and not takes_approximation(kind):
        raise typer.BadParameter(f"--approximation does not apply to --model {kind}")
    if kind == "online":
        return _online_search(cv)
    cls = getattr(buttress, _CLASSES[kind])
    accepted = inspect.signature(cls).parameters
    settings: dict[str, Any] = {"cv": cv}
    if "random_state" in accepted:
        settings["random_state"] = seed
    if kind == "reject":
        settings["d"] = d
    if approximation is not None:
        settings["approximation"] = approximation
    return cls(**settings)


def takes_approximation(kind: str) -> bool:
    """Whether a model can stand on a feature map instead of the exact kernel."""
    import buttress

    if kind not in _CLASSES:
        return False
    return "approximation" in inspect.signature(getattr(buttress, _CLASSES[kind])).parameters


def _online_search(cv: Any) -> Any:
    """PA-RAMP has no cross-validated version of its own: width and ramp by a small grid."""
    from sklearn.model_selection import GridSearchCV

    from buttress import PARampClassifier

    grid = {"gamma": ["scale", "median"], "s": [-1.0, -0.5, -0.2]}
    return GridSearchCV(PARampClassifier(), grid, cv=cv)
