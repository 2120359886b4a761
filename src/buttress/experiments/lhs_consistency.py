"""Theorems 5 and 7 of the leaky hockey stick paper: the error tends to the Bayes error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from buttress.experiments._figures import GREY, marked_line
from buttress.experiments._lhs import PAPER
from buttress.experiments._model import Cell, Check, Experiment, Plan, Task, Values
from buttress.experiments._sampling import generator
from buttress.experiments._world import WORLD_SENTENCE, world

_SIZES = (50, 100, 200, 400, 800, 1600, 3200, 6400)
_EXPONENTS = {"LHS": math.inf, "r = 5": 5.0, "r = 2": 2.0}
_SCHEDULES = {"n^-1/2 (admissible)": 0.5, "n^-1 (not admissible)": 1.0, "fixed": 0.0}
_SCALE = 0.05
_SAMPLES = 100


def _cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(
            f"{loss}/{schedule}/{n}",
            loss,
            {"loss": loss, "lambda": schedule, "n": str(n)},
            unit="excess error (%)",
            scale=100.0,
        )
        for loss, schedule, n in product(_EXPONENTS, _SCHEDULES, _SIZES)
    )


def _tasks(plan: Plan) -> list[Task]:
    sizes = _SIZES[:3] if plan.quick else _SIZES
    tasks = [
        Task(f"{loss}/{schedule}/{n}", loss, {"loss": loss, "schedule": schedule, "n": n})
        for loss, schedule, n in product(_EXPONENTS, _SCHEDULES, sizes)
    ]
    return [Task("conditions", "LHS", {"loss": "", "schedule": "", "n": 0}), *tasks]


def _penalty(schedule: str, n: float) -> float:
    power = _SCHEDULES[schedule]
    # the three schedules meet at the smallest sample
    return float(_SCALE * _SIZES[0] ** -0.5 * (n / _SIZES[0]) ** -power)


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from buttress.classifiers import LeakyHockeyStickClassifier

    loss, schedule, n = arguments["loss"], arguments["schedule"], arguments["n"]
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


def _condition_checks(values: Mapping[str, list[Any]]) -> list[Check]:
    met, fits = values["conditions met"][0], values["schedules admitted"][0]
    return [
        Check(
            "the distribution meets the theorems' conditions on g",
            all(good is True for good in met),
            ", ".join(
                f"{name}: {'met' if good else 'not met'}"
                for name, good in zip(_EXPONENTS, met, strict=True)
            ),
        ),
        Check(
            "of the three schedules the theorems admit n^-1/2 alone",
            [good is True for good in fits] == [True, False, False],
            ", ".join(
                f"{name}: {'admitted' if good else 'no'}"
                for name, good in zip(_SCHEDULES, fits, strict=True)
            ),
        ),
    ]


def _check(values: Mapping[str, list[Any]]) -> list[Check]:
    checks = _condition_checks(values)
    sizes = [n for n in _SIZES if f"LHS/fixed/{n}" in values]
    schedule = next(iter(_SCHEDULES))
    for loss in _EXPONENTS:
        first, last = (
            np.array(values[f"{loss}/{schedule}/{n}"], dtype=float) for n in (sizes[0], sizes[-1])
        )
        theorem = "5" if loss == "LHS" else "7"
        checks.append(
            Check(
                f"the error tends to the Bayes error (Theorem {theorem}, {loss})",
                bool(last.mean() < 0.1 * first.mean()),
                f"{100 * first.mean():.2f} points at n = {sizes[0]}, {100 * last.mean():.3f} at "
                f"n = {sizes[-1]}",
            )
        )
    return checks


def _draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
    axes = figure.subplots(1, len(_EXPONENTS), sharey=True)
    for axis, loss in zip(axes, _EXPONENTS, strict=True):
        for k, schedule in enumerate(_SCHEDULES):
            sizes = [n for n in _SIZES if f"{loss}/{schedule}/{n}" in values]
            means = [100 * np.mean(values[f"{loss}/{schedule}/{n}"]) for n in sizes]
            axis.plot(
                sizes,
                np.maximum(means, 1e-3),
                label=f"lambda ~ {schedule}",
                **marked_line(k),
            )
        axis.axhline(0.1, color=GREY, lw=0.6)
        axis.set(title=loss, xscale="log", yscale="log", xlabel="n")
    axes[0].set_ylabel("excess error (points)")
    axes[-1].legend()


EXPERIMENT = Experiment(
    name="lhs-consistency",
    title="Leaky hockey stick, Theorems 5 and 7: consistency",
    paper=PAPER,
    protocol=(
        WORLD_SENTENCE.replace("a sin", "0.4 sin"),
        "Machines without intercept for the leaky hockey stick and L_r with r = 5 and 2; lambda = "
        "0.05 / sqrt(n), and two schedules that the theorems do not admit, equal to it at n = 50. "
        "100 samples of every size.",
        "The theorems do not say that the other schedules fail: they are shown, not judged.",
        "An error that is a tenth of the first one at the largest n counts as tending to zero.",
    ),
    cells=_cells(),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    check=_check,
)
