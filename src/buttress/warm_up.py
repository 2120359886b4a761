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


def _rows(n: int, dtype: Any) -> tuple[Any, Any]:
    from buttress.model_selection.preparing import few_rows

    X, y = few_rows(n)
    return X.astype(dtype), y


def _fit_both_kernels(machine: Any, X: Any, y: Any, **settings: Any) -> None:
    for kernel in ("rbf", "linear"):
        machine(kernel=kernel, **settings).fit(X, y).predict(X)


def _leaky(dtype: Any) -> None:
    from buttress import LeakyHockeyStickClassifier, LeakyHockeyStickClassifierCV

    for n in (60, 400):
        X, y = _rows(n, dtype)
        _fit_both_kernels(LeakyHockeyStickClassifier, X, y)
        _fit_both_kernels(LeakyHockeyStickClassifierCV, X, y, alphas=20)


def _ramp(dtype: Any) -> None:
    from buttress import RampClassifier, RampClassifierCV

    X, y = _rows(120, dtype)
    _fit_both_kernels(RampClassifier, X, y)
    RampClassifier().fit(*_rows(700, dtype))  # more rows than one block of the solver
    RampClassifierCV(Cs=[0.1, 1.0]).fit(X, y)


def _reject(dtype: Any) -> None:
    from buttress import (
        DoubleHingeClassifier,
        DoubleRampClassifier,
        DoubleRampClassifierCV,
        GeneralizedHingeClassifier,
    )

    X, y = _rows(120, dtype)
    for machine in (DoubleRampClassifier, DoubleHingeClassifier, GeneralizedHingeClassifier):
        _fit_both_kernels(machine, X, y)
    DoubleRampClassifierCV(Cs=[0.1, 1.0]).fit(X, y)


def _sets(dtype: Any) -> None:
    from buttress import MinimaxProbabilityMachine, UncertaintySetClassifier

    X, y = _rows(120, dtype)
    for loss in ("ellipsoid", "reduced_hull", "truncated_quadratic"):
        _fit_both_kernels(UncertaintySetClassifier, X, y, loss=loss)
    _fit_both_kernels(MinimaxProbabilityMachine, X, y)


def _stream(dtype: Any) -> None:
    from buttress import KernelPegasos, KernelPerceptron, Norma, PARampClassifier

    X, y = _rows(200, dtype)
    for learner in (PARampClassifier, KernelPerceptron, KernelPegasos, Norma):
        learner().fit(X, y).predict(X)
        learner(budget=20).partial_fit(X, y, classes=[0, 1]).predict(X[:1])


def _theory(dtype: Any) -> None:
    from buttress import RademacherSelector

    X, y = _rows(80, dtype)
    RademacherSelector().fit(X, y)


def _scale(dtype: Any) -> None:
    from buttress import LeakyHockeyStickClassifier, RampClassifier

    X, y = _rows(400, dtype)
    for machine in (LeakyHockeyStickClassifier, RampClassifier):
        machine(approximation="nystroem", n_components=30).fit(X, y).predict(X)


def _noise(dtype: Any) -> None:
    from buttress import LabelAudit, NoiseAwareClassifier

    X, y = _rows(120, dtype)
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
