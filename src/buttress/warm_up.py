"""Compile the solvers before they are needed: in an image, in CI, before a measurement.

Numba compiles a loop when it is first called, for the types it is called with, and keeps the
result on disk. Small problems of every family, in the sizes at which solvers change over, call
all that ordinary use calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from buttress._compilation import watching


def _rows(n: int, p: int, dtype: Any, classes: int = 2) -> tuple[Any, Any]:
    """Rows with overlapping classes, none of which a solver could separate."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, p)).astype(dtype)
    y = (X[:, 0] + random.normal(size=n) > 0).astype(int)
    if classes > 2:
        y += (X[:, 1] > 0).astype(int)
    return X, y


def _leaky(dtype: Any) -> None:
    from buttress import LeakyHockeyStickClassifier, LeakyHockeyStickClassifierCV

    for n in (60, 400):
        X, y = _rows(n, 4, dtype)
        for kernel in ("rbf", "linear"):
            LeakyHockeyStickClassifier(kernel=kernel).fit(X, y)
            LeakyHockeyStickClassifierCV(kernel=kernel, alphas=20).fit(X, y).predict(X)


def _ramp(dtype: Any) -> None:
    from buttress import RampClassifier, RampClassifierCV

    X, y = _rows(120, 4, dtype)
    for kernel in ("rbf", "linear"):
        RampClassifier(kernel=kernel).fit(X, y).predict(X)
    RampClassifier().fit(*_rows(700, 4, dtype))  # more rows than one block of the solver
    RampClassifierCV(Cs=[0.1, 1.0]).fit(X, y)


def _reject(dtype: Any) -> None:
    from buttress import (
        DoubleHingeClassifier,
        DoubleRampClassifier,
        DoubleRampClassifierCV,
        GeneralizedHingeClassifier,
    )

    X, y = _rows(120, 4, dtype)
    for machine in (DoubleRampClassifier, DoubleHingeClassifier, GeneralizedHingeClassifier):
        for kernel in ("rbf", "linear"):
            machine(kernel=kernel).fit(X, y).predict_or_reject(X)
    DoubleRampClassifierCV(Cs=[0.1, 1.0]).fit(X, y)


def _sets(dtype: Any) -> None:
    from buttress import MinimaxProbabilityMachine, UncertaintySetClassifier

    X, y = _rows(120, 4, dtype)
    for loss in ("ellipsoid", "reduced_hull", "truncated_quadratic"):
        for kernel in ("rbf", "linear"):
            UncertaintySetClassifier(loss=loss, kernel=kernel).fit(X, y).predict(X)
    for kernel in ("rbf", "linear"):
        MinimaxProbabilityMachine(kernel=kernel).fit(X, y).predict(X)


def _stream(dtype: Any) -> None:
    from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier

    X, y = _rows(200, 4, dtype)
    for learner in (PARampClassifier, KernelPerceptron, KernelPegasos, Norma):
        learner().fit(X, y).predict(X)
        learner(budget=20).partial_fit(X, y, classes=[0, 1]).predict(X[:1])


def _theory(dtype: Any) -> None:
    from buttress import RademacherSelector

    X, y = _rows(80, 4, dtype)
    RademacherSelector().fit(X, y)


def _scale(dtype: Any) -> None:
    from buttress import LeakyHockeyStickClassifier, RampClassifier

    X, y = _rows(400, 4, dtype)
    for machine in (LeakyHockeyStickClassifier, RampClassifier):
        machine(approximation="nystroem", n_components=30).fit(X, y).predict(X)


def _noise(dtype: Any) -> None:
    from buttress import LabelAudit, NoiseAwareClassifier

    X, y = _rows(120, 4, dtype)
    NoiseAwareClassifier(random_state=0).fit(X, y).predict(X)
    LabelAudit(random_state=0).audit(X, y)


FAMILIES: dict[str, Callable[[Any], None]] = {
    "leaky": _leaky,
    "ramp": _ramp,
    "reject": _reject,
    "sets": _sets,
    "stream": _stream,
    "theory": _theory,
    "scale": _scale,
    "noise": _noise,
}


def warm_up(
    families: Iterable[str] | None = None, dtypes: Iterable[str] = ("float64",)
) -> Iterator[tuple[str, int, float]]:
    """Compile what `families` need, one after another.

    Parameters
    ----------
    families : iterable of str, optional
        Any of "leaky", "ramp", "reject", "sets", "stream", "theory", "scale" and "noise"; all of
        them when not given.
    dtypes : iterable of str
        The types of features: "float64", "float32" or both.

    Yields
    ------
    family : str
    functions : int
        How many functions were compiled; 0 where all was on disk already.
    seconds : float
        How long the compiler took.

    Raises
    ------
    ValueError
        Before anything is compiled, if a family is not known.

    Examples
    --------
    >>> for family, functions, seconds in warm_up(["ramp"]):
    ...     print(family)
    ramp
    """
    names = list(FAMILIES) if families is None else list(families)
    unknown = [name for name in names if name not in FAMILIES]
    if unknown:
        raise ValueError(f"unknown family {unknown[0]!r}; there are {', '.join(FAMILIES)}")
    return _each(names, list(dtypes))


def _each(names: list[str], dtypes: list[str]) -> Iterator[tuple[str, int, float]]:
    from buttress.model_selection.preparing import jobs_of_family, prepare

    for name in names:
        with watching() as watch, warnings.catch_warnings():
            # what small problems say of themselves is nothing to the user
            warnings.simplefilter("ignore")
            for dtype in dtypes:
                FAMILIES[name](np.dtype(dtype))
            # the very calls that commands make before they look at a clock
            prepare(jobs_of_family(name), live=watch.live)
        yield name, watch.functions, watch.seconds
