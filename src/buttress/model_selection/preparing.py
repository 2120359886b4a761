"""Compile what a comparison will need before anything of it is timed.

Numba compiles a loop at its first call. A search that met that call would be charged for it, and
a plan made of such times would be wrong; so every kind of model is fitted to a few rows first,
once for an installation: what is done is remembered beside the compiled code.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from buttress._arrays import Array, IntArray
from buttress._compilation import watching
from buttress._compile import is_remembered, remember
from buttress.classifiers import online
from buttress.classifiers.online import learner_names
from buttress.model_selection.candidates import (
    Request,
    make_candidate,
    settled,
    takes_approximation,
)
from buttress.model_selection.cost_model import processor_factor
from buttress.model_selection.planning import spoken
from buttress.model_selection.titles import TITLES

# About how many processor seconds the first fits of each kind take on the reference machine with no
# code kept, and its first fit on landmarks after that. Rounded guesses from single tries, shown as
# "about": `benchmarks/first_run.py` measures the whole of a first run, not these parts.
_SECONDS = {"leaky": 10.0, "ramp": 5.0, "reject": 6.0, "uncertainty": 4.0, "online": 5.0}
_ON_LANDMARKS = 5.0
_OF_A_LEARNER, _OF_NOISE_AWARE = 5.0, 2.0
# Rows of the first fits. Two sizes where the solvers of a family change over in between.
_ROWS = {"leaky": (60, 400), "uncertainty": (120, 400)}
_ROWS_OF_OTHERS, _ROWS_ON_LANDMARKS = (120,), 400
# More rows than hinge-shaped machines solve as one block.
_ROWS_OF_BLOCKS = 700
# So little penalised in so wide a kernel hinge-shaped machines need Newton steps.
_HARD = {"C": 1e4, "gamma": 0.01}


@dataclass(frozen=True)
class Job:
    """Something to call once so that all it needs is compiled.

    Attributes
    ----------
    key : str
        Under which it is remembered.
    title : str
        For people.
    seconds : float
        What the compiler takes on the reference machine.
    call : function
    """

    key: str
    title: str
    seconds: float
    call: Callable[[], Any]


def jobs_of_kinds(kinds: Iterable[str], landmarks: bool = False) -> list[Job]:
    """What fits of these kinds need, also on landmarks if those may come.

    Examples
    --------
    >>> [job.key for job in jobs_of_kinds(["svc", "ramp"], landmarks=True)]
    ['ramp', 'ramp-landmarks']
    """
    jobs = []
    for kind in kinds:
        if kind not in _SECONDS:
            continue
        jobs.append(Job(kind, TITLES[kind], _SECONDS[kind], partial(_search_few, kind)))
        if landmarks and takes_approximation(kind):
            call = partial(_fit_on_landmarks, kind)
            jobs.append(Job(f"{kind}-landmarks", TITLES[kind], _ON_LANDMARKS, call))
    return jobs


def job_of_learner(learner: Any) -> Job:
    """What a learner of streams needs.

    Examples
    --------
    >>> from buttress import Norma
    >>> job_of_learner(Norma(budget=50)).key
    'stream-Norma-rbf-merge-budget'
    """
    words = ["stream", type(learner).__name__, str(learner.kernel)]
    if learner.budget is not None:
        words += [str(learner.budget_policy), "budget"]
    call = partial(_learn_few, learner)
    return Job("-".join(words), type(learner).__name__, _OF_A_LEARNER, call)


def job_of_noise_aware() -> Job:
    """What the model of label noise needs."""
    return Job("noise-aware", "the noise-aware model", _OF_NOISE_AWARE, _fit_noise_aware)


def jobs_of_family(family: str) -> list[Job]:
    """What commands will call of a family of `buttress.warm_up`.

    Examples
    --------
    >>> [job.key for job in jobs_of_family("sets")]
    ['uncertainty']
    """
    if family == "stream":
        rules = [getattr(online, name) for name in learner_names().values()]
        learners = [rule(budget=budget) for rule in rules for budget in (None, 20)]
        return [*jobs_of_kinds(["online"]), *map(job_of_learner, learners)]
    if family == "scale":
        jobs = jobs_of_kinds(_SECONDS, landmarks=True)
        return [job for job in jobs if job.key.endswith("-landmarks")]
    if family == "noise":
        return [job_of_noise_aware()]
    return jobs_of_kinds(["uncertainty" if family == "sets" else family])


def prepare(
    jobs: Sequence[Job], tell: Callable[[str], None] = lambda text: None, live: bool | None = None
) -> float:
    """Compile what `jobs` need and is not yet on disk.

    Parameters
    ----------
    jobs : sequence of Job
    tell : function of str
        Told beforehand what is compiled and how long that should take; not called when all is
        there.
    live : bool, optional
        Whether the function that is being compiled is shown; when not given, on a terminal.

    Returns
    -------
    float
        Seconds that the compiler took.

    Examples
    --------
    >>> prepare([])
    0.0
    """
    missing = [job for job in jobs if not is_remembered(job.key)]
    if not missing:
        return 0.0
    seconds = processor_factor() * sum(job.seconds for job in missing)
    titles = ", ".join(dict.fromkeys(job.title for job in missing))
    about = f"about {spoken(seconds)}, once; later runs start at once"
    tell(f"compiling the solvers of {titles}: {about}")
    with watching(live) as watch, warnings.catch_warnings():
        # what a few rows make a solver say is nothing to the user
        warnings.simplefilter("ignore")
        for job in missing:
            job.call()
            remember(job.key)
    return watch.seconds


def few_rows(n: int) -> tuple[Array, IntArray]:
    """Rows of two classes that overlap."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 4))
    return X, (X[:, 0] + random.normal(size=n) > 0).astype(int)


def _search_few(kind: str) -> None:
    for n in _ROWS.get(kind, _ROWS_OF_OTHERS):
        X, y = few_rows(n)
        search = make_candidate(kind, Request(folds=2)).fit(X, y)
        settled(search).fit(X, y).predict(X)
    if kind in ("ramp", "reject"):
        settled(search).fit(*few_rows(_ROWS_OF_BLOCKS))
        settled(search).set_params(**_HARD).fit(X, y)


def _fit_on_landmarks(kind: str) -> None:
    X, y = few_rows(_ROWS_ON_LANDMARKS)
    plain = settled(make_candidate(kind, Request(folds=2)).fit(X[:60], y[:60]))
    plain.set_params(approximation="nystroem", n_components=30).fit(X, y).predict(X)


def _fit_noise_aware() -> None:
    from buttress.noise import NoiseAwareClassifier

    X, y = few_rows(120)
    NoiseAwareClassifier(random_state=0).fit(X, y).predict(X)


def _learn_few(learner: Any) -> None:
    X, y = few_rows(200)
    small = {} if learner.budget is None else {"budget": 20}
    few = clone(learner).set_params(**small).partial_fit(X, y, classes=[0, 1])
    few.partial_fit(X[:1], y[:1]).predict(X[:1])
