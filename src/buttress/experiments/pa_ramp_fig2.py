"""Figure 2 of the PA-RAMP paper: mistakes of the online learners as the stream goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from buttress.experiments._figures import COLOURS
from buttress.experiments._model import Check, Experiment, Plan, Task, Values
from buttress.experiments._sampling import generator
from buttress.experiments.pa_ramp_table1 import PAPER
from buttress.experiments.pa_ramp_table2 import SETS, load

_STEPS = 40


def _learners() -> dict[str, Any]:
    from buttress.classifiers import KernelPegasos, KernelPerceptron, Norma, PARampClassifier

    kernel: dict[str, Any] = {"kernel": "rbf", "gamma": 1.0}
    return {
        "Perceptron": KernelPerceptron(**kernel),
        "Pegasos": KernelPegasos(alpha=1e-2, **kernel),
        "NORMA": Norma(eta=1e-1, alpha=1e-2, tau=1e-4, **kernel),
        "PA-RAMP": PARampClassifier(s=-0.75, **kernel),
    }


def _tasks(plan: Plan) -> list[Task]:
    names = ["wdbc"] if plan.quick else list(SETS)
    return [Task(name, name, {"name": name}) for name in names]


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    name = arguments["name"]
    X, y = load(name, 300 if plan.quick else None)
    order = generator(plan.seed).permutation(len(y))
    X, y = X[order], y[order]
    ends = np.unique(np.geomspace(min(20, len(y)), len(y), _STEPS).astype(int))
    values: Values = {f"{name}/seen": ends}
    for learner, model in _learners().items():
        wrong = []
        for start, end in zip([0, *ends], ends, strict=False):
            model.partial_fit(X[start:end], y[start:end], classes=[-1, 1])
            wrong.append(model.progressive_error_)
        values[f"{name}/{learner}"] = wrong
    return values


def _check(values: Mapping[str, list[Any]]) -> list[Check]:
    checks = []
    for name, title in SETS.items():
        if f"{name}/PA-RAMP" not in values:
            continue
        curve = values[f"{name}/PA-RAMP"][0]
        text = f"{curve[0]:.3f} to {curve[-1]:.3f}"
        statement = f"PA-RAMP's misclassification rate falls along the stream ({title})"
        checks.append(Check(statement, curve[-1] < curve[0], text))
    return checks


def _draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
    shown = [name for name in SETS if f"{name}/seen" in values]
    axes = figure.subplots(1, len(shown), squeeze=False)[0]
    for axis, name in zip(axes, shown, strict=True):
        for colour, learner in zip(COLOURS, _learners(), strict=False):
            axis.plot(
                values[f"{name}/seen"][0],
                values[f"{name}/{learner}"][0],
                color=colour,
                label=learner,
            )
        axis.set(title=SETS[name], xlabel="rows seen", xscale="log")
    axes[0].set_ylabel("misclassification rate so far")
    axes[-1].legend(fontsize=7)


EXPERIMENT = Experiment(
    name="pa-ramp-fig2",
    title="PA-RAMP, Figure 2: mistakes along the stream",
    paper=PAPER,
    protocol=(
        "One pass over each set in random order, features standardised, kernel exp(-||x-z||^2).",
        "The share of rows misclassified before they were learnt from, at 40 points.",
        "Fixed parameters (s = -0.75; lambda = 0.01; eta = 0.1, tau = 1e-4): the paper does not "
        "say which were used for the figure.",
    ),
    cells=(),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    check=_check,
)
