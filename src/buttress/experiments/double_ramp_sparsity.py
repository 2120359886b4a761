"""How many rows a double ramp machine keeps, beside its convex rivals and the SVM."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from buttress.experiments._claims import always, cases
from buttress.experiments._figures import marked_line
from buttress.experiments._model import Cell, Check, Experiment, Plan, Task, Values, repeated
from buttress.experiments._reject_sets import TABLES
from buttress.experiments._reject_tables import METHODS, PAPER
from buttress.experiments._sampling import folds, generator

_COSTS = (0.1, 0.2, 0.3, 0.4, 0.5)
_COLUMNS = ("double ramp", "double hinge", "SVM")
_RUNS = 5


def _cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(
            f"{name}/{d:g}/{method}",
            name,
            {"data": name, "d": f"{d:g}", "method": method},
            unit="support vectors (% of the training rows)",
            scale=100.0,
            better=None,
        )
        for name, d, method in product(TABLES, _COSTS, _COLUMNS)
    )


def _tasks(plan: Plan) -> list[Task]:
    sets = ["synthetic"] if plan.quick else list(TABLES)
    return repeated(sets, plan.runs(_RUNS, 1))


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from sklearn.base import clone

    name, repeat = arguments["name"], arguments["repeat"]
    data = TABLES[name].DATA
    X, y = data.load(plan, repeat)
    models = data.models()
    costs = _COSTS[1:2] if plan.quick else _COSTS
    kept: dict[str, list[float]] = {}
    for train, _ in folds(len(y), 10, generator(plan.seed, repeat, 9)):
        machine = clone(models[METHODS[2]].estimator).fit(X[train], y[train])
        for d in costs:
            kept.setdefault(f"{name}/{d:g}/SVM", []).append(len(machine.support_) / len(train))
            for method in _COLUMNS[:2]:
                fitted = clone(models[method]).set_params(d=d, tol=1e-6).fit(X[train], y[train])
                share = len(fitted.support_) / len(train)
                kept.setdefault(f"{name}/{d:g}/{method}", []).append(share)
        if plan.quick:
            break
    return {key: float(np.mean(shares)) for key, shares in kept.items()}


def _check(values: Mapping[str, list[Any]]) -> list[Check]:
    checks = []
    for name in TABLES:
        for rival in _COLUMNS[1:]:
            keys = {
                f"d = {d:g}": (f"{name}/{d:g}/double ramp", f"{name}/{d:g}/{rival}") for d in _COSTS
            }
            if compared := cases(values, keys):
                text = f"the double ramp keeps fewer rows than the {rival} ({name})"
                checks.append(always(text, compared))
    return checks


def _draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
    shown = [name for name in TABLES if f"{name}/0.2/SVM" in values]
    axes = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axis, name in zip(axes, shown, strict=True):
        costs = [d for d in _COSTS if f"{name}/{d:g}/SVM" in values]
        for k, method in enumerate(_COLUMNS):
            means = [100 * np.mean(values[f"{name}/{d:g}/{method}"]) for d in costs]
            axis.plot(costs, means, label=method, **marked_line(k))
        axis.set(title=name, xlabel="cost d of a rejection", ylim=(0, 100))
    axes[0].set_ylabel("support vectors (% of rows)")
    axes[-1].legend()


EXPERIMENT = Experiment(
    name="double-ramp-sparsity",
    title="Double ramp, sparsity against the SVM",
    paper=PAPER,
    protocol=(
        "The sets, kernels and C of Tables 3 to 5; the SVM is scikit-learn's SVC with the double "
        "ramp's kernel and C. The paper says which rows the double ramp ignores (its Table 2) and "
        "counts none.",
        "Share of the training rows with a coefficient that is not zero, mean over ten folds; 5 "
        "repetitions.",
    ),
    cells=_cells(),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    check=_check,
    ours=True,
)
