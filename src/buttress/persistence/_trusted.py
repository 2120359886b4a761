"""The types that a model file may hold, beside those that skops itself trusts.

skops trusts NumPy arrays and scikit-learn's estimators. Added here are the classes of this
library (those that packages list themselves, see `buttress._lazy`, and the few named below), the
support vectors of models fitted on sparse rows, and scikit-learn's splitters, scorers and
calibrators, which searches carry along. No function of a user is in the list: a model with a
callable kernel cannot be saved.

A user's own classifier on this library's base, and a learner's rule, are trusted once the program
has imported them: a file cannot make it import anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from buttress._lazy import classes_in_files

# Packages that say themselves which of their classes stand in model files.
_ROOMS = (
    "buttress.classifiers",
    "buttress.classifiers.online",
    "buttress.model_selection",
    "buttress.solvers.stream",
)

# What others may derive from, and have saved: a classifier of one's own is one file.
_OPEN_BASES = (
    ("buttress.classifiers.base", "BaseMarginClassifier"),
    ("buttress.solvers.stream.rules", "UpdateRule"),
)

_OWN = frozenset(
    {
        "buttress.kernels.approximate.FourierMap",
        "buttress.kernels.approximate.LinearMap",
        "buttress.kernels.approximate.NystroemMap",
        "buttress.kernels.gram.Kernel",
        "buttress.losses.hinge.DoubleHinge",
        "buttress.losses.hinge.GeneralizedHinge",
        "buttress.losses.hinge.HardMargin",
        "buttress.losses.hinge.Hinge",
        "buttress.losses.hinge.NuHinge",
        "buttress.losses.leaky.LeakyHockeyStick",
        "buttress.losses.ramp.DoubleRamp",
        "buttress.losses.ramp.GeneralizedRamp",
        "buttress.losses.ramp.Ramp",
        "buttress.losses.smooth.EllipsoidError",
        "buttress.losses.smooth.Exponential",
        "buttress.losses.smooth.LogBarrier",
        "buttress.losses.smooth.Logistic",
        "buttress.losses.smooth.TruncatedQuadratic",
        "buttress.metrics.cost_risk.CostScorer",
        "buttress.metrics.scorer.RejectScorer",
        "buttress.theory.risk_control.RiskCertificate",
        "buttress.theory.rademacher.RademacherCurve",
        "buttress.tables.classifier.TableClassifier",
        "buttress.tables.encoder.TableEncoder",
    }
)

_SPLITTERS = (
    "GroupKFold",
    "KFold",
    "LeaveOneOut",
    "PredefinedSplit",
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)

_OTHERS = frozenset(
    {
        "numpy.dtype",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
        *(f"sklearn.model_selection._split.{name}" for name in _SPLITTERS),
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.metrics._classification.accuracy_score",
        "sklearn.metrics._classification.balanced_accuracy_score",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
    }
)

_LISTED = {
    f"{module}.{name}": module for room in _ROOMS for name, module in classes_in_files(room).items()
}

TRUSTED = _OWN | _OTHERS | _LISTED.keys()


def trusted_types(named: Iterable[str]) -> frozenset[str]:
    """The types to trust in a file that holds the types `named`.

    Examples
    --------
    >>> "buttress.classifiers.online.norma.Norma" in trusted_types(())
    True
    """
    own = set(_LISTED.values())
    for module in {name.rpartition(".")[0] for name in named}:
        if module in own:  # where a listed learner is defined, its rule may be too
            import_module(module)
    return TRUSTED | {
        f"{one.__module__}.{one.__qualname__}"
        for home, base in _OPEN_BASES
        if home in sys.modules
        for one in _descendants(getattr(sys.modules[home], base))
    }


def _descendants(base: type[Any]) -> Iterator[type[Any]]:
    for one in base.__subclasses__():
        yield one
        yield from _descendants(one)
