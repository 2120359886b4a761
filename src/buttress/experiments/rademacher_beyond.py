"""Beyond the Rademacher penalty paper: its penalty as a selector, beside folds and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from buttress.datasets import load_dataset
from buttress.experiments._beyond import NOISE_AWARE, noise_aware
from buttress.experiments._claims import in_points
from buttress.experiments._figures import COLOURS, MARKERS, two_errors
from buttress.experiments._model import Cell, Check, Experiment, Pair, Plan, Task, Values, repeated
from buttress.experiments._sampling import generator, random_split, seed_of, standardised
from buttress.experiments.rademacher_curve import PAPER

_SETS = {"sonar": "sonar", "ionosphere": "ionosphere", "heart_ida": "heart"}
_MODELS = ("RademacherSelector", "the same grid by 5 folds", NOISE_AWARE)
_C_VALUES = (0.1, 1.0, 10.0, 100.0)
_RUNS = 10


def _cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(
            f"{name}/{model}",
            name,
            {"data": title, "model": model},
            unit="error (%)",
            scale=100.0,
        )
        for (name, title), model in product(_SETS.items(), _MODELS)
    )


def _tasks(plan: Plan) -> list[Task]:
    names = ("sonar",) if plan.quick else tuple(_SETS)
    return repeated(names, plan.runs(_RUNS, 1))


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from sklearn.model_selection import GridSearchCV

    from buttress.classifiers import RampClassifier
    from buttress.kernels import resolve_gamma
    from buttress.model_selection import RademacherSelector

    name, repeat = arguments["name"], arguments["repeat"]
    bunch = load_dataset(name)
    rows = generator(plan.seed, repeat, 23).permutation(len(bunch.y))
    rows = rows[: 60 if plan.quick else len(rows)]
    train, test = random_split(len(rows), 2 / 3, generator(plan.seed, repeat))
    X, y = standardised(bunch.X[rows], train), bunch.y[rows]
    width = resolve_gamma("scale", X[train], None)
    folds = GridSearchCV(
        RampClassifier(), {"C": _C_VALUES, "gamma": [width / 4, width, 4 * width]}, cv=5
    )
    seed = seed_of(plan.seed, repeat, 24)
    models = (RademacherSelector(gammas="auto", random_state=seed), folds, noise_aware())
    return {
        f"{name}/{key}": 1 - model.fit(X[train], y[train]).score(X[test], y[test])
        for key, model in zip(_MODELS, models, strict=True)
    }


def _pairs(values: Mapping[str, list[Any]]) -> list[Pair]:
    pairs = []
    for (name, title), rival in product(_SETS.items(), _MODELS[1:]):
        if f"{name}/{rival}" in values:
            sides = values[f"{name}/{_MODELS[0]}"], values[f"{name}/{rival}"]
            pairs.append(in_points(title, f"{_MODELS[0]} - {rival}", *sides))
    return pairs


def _check(values: Mapping[str, list[Any]]) -> list[Check]:
    gaps = [
        float(np.mean(np.subtract(values[f"{name}/{_MODELS[0]}"], values[f"{name}/{_MODELS[1]}"])))
        for name in _SETS
        if f"{name}/{_MODELS[0]}" in values
    ]
    return [
        Check(
            "the penalty chooses as well as folds do (within a point of error on every set)",
            bool(gaps and max(gaps) <= 0.01),
            "penalty minus folds: "
            + ", ".join(
                f"{100 * g:+.1f} ({title})" for g, title in zip(gaps, _SETS.values(), strict=False)
            ),
            "The paper proposes the penalty and prints no experiment",
        )
    ]


def _draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
    axis = figure.subplots()
    shown = [name for name in _SETS if f"{name}/{_MODELS[0]}" in values]
    for k, model in enumerate(_MODELS):
        runs = [100 * np.array(values[f"{name}/{model}"], dtype=float) for name in shown]
        axis.errorbar(
            np.arange(len(shown)) + 0.12 * (k - 1),
            [r.mean() for r in runs],
            yerr=two_errors(runs),
            fmt=MARKERS[k],
            color=COLOURS[k],
            label=model,
        )
    axis.set_xticks(range(len(shown)), [_SETS[name] for name in shown])
    axis.set(ylabel="error (%), with two standard errors", ylim=(0, None))
    axis.legend()


EXPERIMENT = Experiment(
    name="rademacher-beyond",
    title="Rademacher penalty: beyond the paper, choosing by the penalty",
    paper=PAPER,
    protocol=(
        "The paper prints no experiment. Here its penalty chooses C and width of a ramp machine "
        "(RademacherSelector, three widths, 12 candidates), 5-fold cross-validation chooses "
        "among the same, and the noise-aware classifier stands beside them.",
        "10 random splits into 2/3 and 1/3, features standardised on the training part.",
    ),
    cells=_cells(),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    check=_check,
    pairs=_pairs,
    ours=True,
)
