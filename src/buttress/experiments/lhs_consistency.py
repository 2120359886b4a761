"""Theorems 5 and 7 of the leaky hockey stick paper: the error tends to the Bayes error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from buttress.experiments._figures import GREY, marked_line, panels, plot_means
from buttress.experiments._grids import grid, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Task, Values
from buttress.experiments._sampling import generator
from buttress.experiments._world import WORLD_SENTENCE, world

_SIZES = (50, 100, 200, 400, 800, 1600, 3200, 6400)
_EXPONENTS = {"LHS": math.inf, "r = 5": 5.0, "r = 2": 2.0}
_SCHEDULES = {"n^-1/2 (admissible)": 0.5, "n^-1 (not admissible)": 1.0, "fixed": 0.0}
_SCALE = 0.05
_SAMPLES = 100


def _tasks(plan: Plan) -> list[Task]:
    sizes = _SIZES[:3] if plan.quick else _SIZES
    tasks = tasks_over(
        "{loss}/{schedule}/{n}", "{loss}", loss=_EXPONENTS, schedule=_SCHEDULES, n=sizes
    )
    return [Task("conditions", "LHS", {"loss": "", "schedule": "", "n": 0}), *tasks(plan)]


def _penalty(schedule: str, n: float) -> float:
    power = _SCHEDULES[schedule]
    # the three schedules meet at the smallest sample
    return float(_SCALE * _SIZES[0] ** -0.5 * (n / _SIZES[0]) ** -power)


def _run(plan: Plan, loss: str, schedule: str, n: int) -> Values:
    from buttress.classifiers import LeakyHockeyStickClassifier

    if n == 0:
        return _conditions()
    small_world = world()
    model = LeakyHockeyStickClassifier(
        alpha=_penalty(schedule, n), r=_EXPONENTS[loss], kernel="precomputed", fit_intercept=False
    )
    excess = []
    for draw in range(plan.runs(_SAMPLES, 5)):
        _, f = small_world.fitted(model, small_world.sample(n, generator(plan.seed, draw, n, 5)))
        excess.append(small_world.error(f) - small_world.bayes_error)
    return {f"{loss}/{schedule}/{n}": excess}


def _conditions() -> Values:
    from buttress.theory import noise_condition, schedule_is_admissible

    eta = world().eta

    def g(delta: float) -> float:
        return float(np.mean(eta * (1 - eta) <= delta / 2 * (1 - delta / 2)))

    met = [noise_condition(g, r=r) for r in _EXPONENTS.values()]
    fits = [schedule_is_admissible(lambda n, name=name: _penalty(name, n)) for name in _SCHEDULES]
    return {"conditions met": met, "schedules admitted": fits}


def _listed(names: Iterable[str], verdicts: list[Any], yes: str, no: str) -> str:
    pairs = zip(names, verdicts, strict=True)
    return ", ".join(f"{name}: {yes if good else no}" for name, good in pairs)


def _check(values: Runs) -> Iterator[Check]:
    met, fits = values["conditions met"][0], values["schedules admitted"][0]
    yield Check(
        "the distribution meets the theorems' conditions on g",
        all(good is True for good in met),
        _listed(_EXPONENTS, met, "met", "not met"),
    )
    yield Check(
        "of the three schedules the theorems admit n^-1/2 alone",
        [good is True for good in fits] == [True, False, False],
        _listed(_SCHEDULES, fits, "admitted", "no"),
    )
    sizes = [n for n in _SIZES if f"LHS/fixed/{n}" in values]
    schedule = next(iter(_SCHEDULES))
    for loss in _EXPONENTS:
        first, last = (
            np.array(values[f"{loss}/{schedule}/{n}"], dtype=float) for n in (sizes[0], sizes[-1])
        )
        theorem = "5" if loss == "LHS" else "7"
        yield Check(
            f"the error tends to the Bayes error (Theorem {theorem}, {loss})",
            bool(last.mean() < 0.1 * first.mean()),
            f"{100 * first.mean():.2f} points at n = {sizes[0]}, {100 * last.mean():.3f} at "
            f"n = {sizes[-1]}",
        )


def _draw(figure: Figure, values: Runs) -> None:
    label = "excess error (points)"
    for axis, loss in panels(figure, list(_EXPONENTS), label, legend_in=-1, sharey=True):
        for k, schedule in enumerate(_SCHEDULES):
            keys = {n: f"{loss}/{schedule}/{n}" for n in _SIZES}
            style = {"label": f"lambda ~ {schedule}"} | marked_line(k)
            plot_means(axis, values, keys, style, scale=100, least=1e-3)
        axis.axhline(0.1, color=GREY, lw=0.6)
        axis.set(title=loss, xscale="log", yscale="log", xlabel="n")


EXPERIMENT = Experiment.of(
    globals(),
    title="Leaky hockey stick, Theorems 5 and 7: consistency",
    protocol=(
        WORLD_SENTENCE.replace("a sin", "0.4 sin"),
        "Machines without intercept for the leaky hockey stick and L_r with r = 5 and 2; lambda = "
        "0.05 / sqrt(n), and two schedules that the theorems do not admit, equal to it at n = 50. "
        "100 samples of every size.",
        "The theorems do not say that the other schedules fail: they are shown, not judged.",
        "An error that is a tenth of the first one at the largest n counts as tending to zero.",
    ),
    cells=grid(
        {"loss": list(_EXPONENTS), "lambda": list(_SCHEDULES), "n": _SIZES},
        unit="excess error (%)",
        scale=100.0,
    ),
)
