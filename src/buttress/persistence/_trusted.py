"""The types that a model file may hold, beside those that skops itself trusts.

skops trusts NumPy arrays and most of scikit-learn's estimators. Added here are the classes of
this library (those that packages list themselves, see `buttress._lazy`, the losses that files of
`buttress.losses` define, and the few named below), the support vectors of models fitted on sparse
rows, and what is left of scikit-learn: every class that is defined there (trees, neighbours,
kernels, losses, splitters), the functions of its metrics, and those that score or pool features.
No function of a user is in the list: a model with a callable kernel cannot be saved.

A user's own classifier, loss or scorer on this library's base, and a learner's rule, are trusted
once the program has imported them: a file cannot make it import anything but modules of this
library and of scikit-learn.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
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
    ("buttress.losses._base", "Loss"),
    ("buttress.metrics.scorer", "AnswerScorer"),
    ("buttress.solvers.stream.rules", "UpdateRule"),
)

_LOSSES = "buttress.losses"
# Three functions of the user's, which no file may hold.
_NO_LOSSES_IN_FILES = {"buttress.losses.scalar.ScalarLoss"}

_OWN = frozenset(
    {
        "buttress.kernels.approximate.FourierMap",
        "buttress.kernels.approximate.LinearMap",
        "buttress.kernels.approximate.NystroemMap",
        "buttress.kernels.gram.Kernel",
        "buttress.metrics.cost_risk.CostScorer",
        "buttress.metrics.scorer.RejectScorer",
        "buttress.theory.risk_control.RiskCertificate",
        "buttress.noise.classifier.NoiseAwareClassifier",
        "buttress.noise.core.forest_witness.ForestWitness",
        "buttress.noise.core.kernel_witness.KernelWitness",
        "buttress.noise.core.label_noise.LabelNoise",
        "buttress.noise.core.suspects.LabelSuspects",
        "buttress.theory.rademacher.RademacherCurve",
        "buttress.tables.classifier.TableClassifier",
        "buttress.tables.encoder.TableEncoder",
    }
)

_OTHERS = frozenset(
    {
        "numpy.dtype",
        # how features are pooled, which an agglomeration of them carries
        *(f"numpy.{name}" for name in ("mean", "median", "max", "min", "sum")),
        "scipy.interpolate._bsplines.BSpline",
        "scipy._lib.array_api_compat.numpy._aliases.asarray",  # which a BSpline carries
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
    }
)

# Where functions that models hold by name are defined: kernels and scores, scores of features.
_FUNCTIONS = (
    "sklearn.metrics.",
    "sklearn.feature_selection._univariate_selection",
    "sklearn.feature_selection._mutual_info",
)

# Parts of scikit-learn that no model is made of.
_APART = {"tests", "conftest", "externals", "datasets", "_build_utils", "experimental"}

_LISTED = {
    f"{module}.{name}": module for room in _ROOMS for name, module in classes_in_files(room).items()
}

TRUSTED = _OWN | _OTHERS | _LISTED.keys()


def trusted_types(named: Iterable[str] = ()) -> frozenset[str]:
    """The types to trust in a file that holds the types `named`.

    Parameters
    ----------
    named : iterable of str
        Full names of types.

    Examples
    --------
    >>> "buttress.classifiers.online.norma.Norma" in trusted_types(())
    True
    >>> "sklearn.tree._tree.Tree" in trusted_types(["sklearn.tree._tree.Tree"])
    True
    >>> "buttress.losses.leaky.LeakyHockeyStick" in trusted_types(
    ...     ["buttress.losses.leaky.LeakyHockeyStick"]
    ... )
    True
    >>> "sklearn.datasets.load_files" in trusted_types(["sklearn.datasets.load_files"])
    False
    """
    named = list(named)
    homes = set(_LISTED.values())
    for module in {name.rpartition(".")[0] for name in named}:
        if module in homes:  # where a listed learner is defined, its rule may be too
            import_module(module)
    learned = {name for name in named if _is_of_scikit_learn(name) or _is_loss_of_ours(name)}
    return (
        TRUSTED
        | learned
        | {
            f"{one.__module__}.{one.__qualname__}"
            for home, base in _OPEN_BASES
            if home in sys.modules
            for one in _descendants(getattr(sys.modules[home], base))
        }
    )


def _descendants(base: type[Any]) -> Iterator[type[Any]]:
    for one in base.__subclasses__():
        yield one
        yield from _descendants(one)


def _is_loss_of_ours(name: str) -> bool:
    """Whether a name is that of a loss which a file of `buttress.losses` defines."""
    module, _, attribute = name.rpartition(".")
    package, _, file = module.rpartition(".")
    if package != _LOSSES or name in _NO_LOSSES_IN_FILES:
        return False
    files = import_module(_LOSSES).__path__
    if file not in {one.name for one in iter_modules(files)}:
        return False
    member = getattr(import_module(module), attribute, None)
    if not inspect.isclass(member) or member.__module__ != module:
        return False
    return hasattr(member, "value") and hasattr(member, "derivative")


def _is_of_scikit_learn(name: str) -> bool:
    """Whether a name is that of a class of scikit-learn, or of a function that models hold."""
    module, _, attribute = name.rpartition(".")
    words = module.split(".")
    if words[0] != "sklearn" or _APART & set(words):
        return False
    try:
        member = getattr(import_module(module), attribute, None)
    except ImportError:
        return False
    home = str(getattr(member, "__module__", ""))
    if inspect.isclass(member):
        return home.startswith("sklearn.")
    return inspect.isfunction(member) and home.startswith(_FUNCTIONS)
