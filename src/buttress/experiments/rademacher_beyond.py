"""Beyond the Rademacher penalty paper: its penalty as a selector, beside folds and defaults."""

from __future__ import annotations

from itertools import product

import numpy as np

from buttress.datasets import load_dataset
from buttress.experiments._beyond import NOISE_AWARE, noise_aware
from buttress.experiments._claims import in_points
from buttress.experiments._figures import COLOURS, MARKERS, two_errors
from buttress.experiments._grids import full_or_quick, grid, repeats, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Pair, Plan, Runs, Values
from buttress.experiments._sampling import generator, random_split, seed_of, standardised

_SETS = {"sonar": "sonar", "ionosphere": "ionosphere", "heart_ida": "heart"}
_MODELS = ("RademacherSelector", "the same grid by 5 folds", NOISE_AWARE)
_C_VALUES = (0.1, 1.0, 10.0, 100.0)


def _run(plan: Plan, name: str, repeat: int) -> Values:
    from sklearn.model_selection import GridSearchCV

    from buttress.classifiers import RampClassifier
    from buttress.kernels import resolve_gamma
    from buttress.model_selection import RademacherSelector

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


def _pairs(values: Runs) -> list[Pair]:
    return [
        pair
        for (name, title), rival in product(_SETS.items(), _MODELS[1:])
        for pair in in_points(
            values,
            f"{_MODELS[0]} - {rival}",
            {title: (f"{name}/{_MODELS[0]}", f"{name}/{rival}")},
        )
    ]


def _check(values: Runs) -> list[Check]:
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


def _draw(figure: Figure, values: Runs) -> None:
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


EXPERIMENT = Experiment.of(
    globals(),
    title="Rademacher penalty: beyond the paper, choosing by the penalty",
    protocol=(
        "The paper prints no experiment. Here its penalty chooses C and width of a ramp machine "
        "(RademacherSelector, three widths, 12 candidates), 5-fold cross-validation chooses "
        "among the same, and the noise-aware classifier stands beside them.",
        "10 random splits into 2/3 and 1/3, features standardised on the training part.",
    ),
    cells=grid({"data": _SETS, "model": _MODELS}, unit="error (%)", scale=100.0),
    tasks=tasks_over("{name}/{repeat}", repeat=repeats(10), name=full_or_quick(_SETS, ("sonar",))),
    ours=True,
)
