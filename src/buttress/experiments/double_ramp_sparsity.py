"""How many rows a double ramp machine keeps, beside its convex rivals and the SVM."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from buttress.experiments._claims import always, cases
from buttress.experiments._figures import marked_line, panels, plot_means
from buttress.experiments._grids import full_or_quick, grid, repeats, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._reject_sets import TABLES
from buttress.experiments._reject_tables import METHODS
from buttress.experiments._sampling import folds, generator

_COSTS = (0.1, 0.2, 0.3, 0.4, 0.5)
_COLUMNS = ("double ramp", "double hinge", "SVM")


def _run(plan: Plan, name: str, repeat: int) -> Values:
    from sklearn.base import clone

    data = TABLES[name].DATA
    X, y = data.rows(plan, repeat)
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


def _check(values: Runs) -> Iterator[Check]:
    for name, rival in product(TABLES, _COLUMNS[1:]):
        keys = {
            f"d = {d:g}": (f"{name}/{d:g}/double ramp", f"{name}/{d:g}/{rival}") for d in _COSTS
        }
        if compared := cases(values, keys):
            yield always(f"the double ramp keeps fewer rows than the {rival} ({name})", compared)


def _draw(figure: Figure, values: Runs) -> None:
    shown = [name for name in TABLES if f"{name}/0.2/SVM" in values]
    label = "support vectors (% of rows)"
    for axis, name in panels(figure, shown, label, legend_in=-1, sharey=True):
        for k, method in enumerate(_COLUMNS):
            keys = {d: f"{name}/{d:g}/{method}" for d in _COSTS}
            plot_means(axis, values, keys, {"label": method} | marked_line(k), scale=100)
        axis.set(title=name, xlabel="cost d of a rejection", ylim=(0, 100))


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, sparsity against the SVM",
    protocol=(
        "The sets, kernels and C of Tables 3 to 5; the SVM is scikit-learn's SVC with the double "
        "ramp's kernel and C. The paper says which rows the double ramp ignores (its Table 2) and "
        "counts none.",
        "Share of the training rows with a coefficient that is not zero, mean over ten folds; 5 "
        "repetitions.",
    ),
    cells=grid(
        {"data": list(TABLES), "d": _COSTS, "method": _COLUMNS},
        unit="support vectors (% of the training rows)",
        scale=100.0,
        better=None,
    ),
    tasks=tasks_over(
        "{name}/{repeat}", repeat=repeats(5), name=full_or_quick(TABLES, ("synthetic",))
    ),
    ours=True,
)
