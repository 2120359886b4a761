"""Beyond the double ramp paper: the library's defaults on its three data sets."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from buttress.experiments._beyond import NOISE_AWARE, PURPOSE, noise_aware
from buttress.experiments._claims import gap, in_most, verdict
from buttress.experiments._figures import GREY, marked_line
from buttress.experiments._model import Cell, Check, Experiment, Plan, Task, Values, repeated
from buttress.experiments._reject_sets import TABLES
from buttress.experiments._reject_tables import PAPER
from buttress.experiments._sampling import folds, generator

_COSTS = (0.1, 0.3)
_DEFAULT = "DoubleRampClassifierCV"
_MODELS = (_DEFAULT, NOISE_AWARE)
_RUNS = 2


def _how(model: str) -> str:
    return "three widths" if model == _DEFAULT else "its defaults"


def _printed(name: str, d: float) -> str:
    """The lower of the two printed risks."""
    risks: list[str] = [
        cell.printed
        for cell in TABLES[name].EXPERIMENT.cells
        if cell.id in (f"{d:g}/double ramp/risk", f"{d:g}/double hinge/risk") and cell.printed
    ]
    return min(risks, key=float)


def _cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(
            f"{name}/{d:g}/{model}/{what}",
            name,
            {
                "data": name,
                "d": f"{d:g}",
                "best printed risk": _printed(name, d),
                "model": model,
                "quantity": what,
            },
            unit=what,
            better="lower" if what == "risk" else None,
        )
        for name, d, model, what in product(TABLES, _COSTS, _MODELS, ("risk", "rejected"))
    )


def _tasks(plan: Plan) -> list[Task]:
    names = ("synthetic",) if plan.quick else tuple(TABLES)
    return repeated(names, plan.runs(_RUNS, 1))


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from buttress.model_selection import DoubleRampClassifierCV

    name, repeat = arguments["name"], arguments["repeat"]
    X, y = TABLES[name].DATA.load(plan, repeat)
    if plan.quick:
        X, y = X[::4], y[::4]
    costs = _COSTS[:1] if plan.quick else _COSTS
    lost = {(model, d): np.zeros(2) for model in _MODELS for d in costs}
    for train, test in folds(len(y), 3 if plan.quick else 10, generator(plan.seed, repeat, 22)):
        aware = noise_aware().fit(X[train], y[train])
        sure = aware.predict_proba(X[test]).max(axis=1)
        wrong = aware.predict(X[test]) != y[test]
        for d in costs:
            # its own rule for a refusal at cost d
            refused = sure <= 1 - d
            lost[NOISE_AWARE, d] += [np.sum(wrong & ~refused), refused.sum()]
            search = DoubleRampClassifierCV(d=d, gammas="auto").fit(X[train], y[train])
            refused = search.reject(X[test])
            lost[_DEFAULT, d] += [
                np.sum((search.predict(X[test]) != y[test]) & ~refused),
                refused.sum(),
            ]
    values: Values = {}
    for (model, d), (errors, refused) in lost.items():
        values[f"{name}/{d:g}/{model}/risk"] = (errors + d * refused) / len(y)
        values[f"{name}/{d:g}/{model}/rejected"] = refused / len(y)
    return values


def _check(values: Mapping[str, list[Any]]) -> list[Check]:
    checks = []
    for model in _MODELS:
        gaps = []
        for name, d in product(TABLES, _COSTS):
            runs = values.get(f"{name}/{d:g}/{model}/risk")
            if runs:
                gaps.append(gap(runs, [float(_printed(name, d))] * len(runs)))
        if not gaps:
            continue
        below = sum(verdict(*pair) < 0 for pair in gaps)
        above = sum(verdict(*pair) > 0 for pair in gaps)
        checks.append(
            Check(
                f"{model} with {_how(model)} has a lower 0-d-1 risk than the better printed column "
                "in more than half of the cases",
                in_most(below, above, len(gaps)),
                f"clearly lower in {below} of {len(gaps)}, clearly higher in {above}; mean "
                f"difference {np.mean([pair[0] for pair in gaps]):+.4f}",
            )
        )
    return checks


def _draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
    shown = [name for name in TABLES if f"{name}/0.1/{_DEFAULT}/risk" in values]
    axes = figure.subplots(1, len(shown), squeeze=False)[0]
    for axis, name in zip(axes, shown, strict=True):
        costs = [d for d in _COSTS if f"{name}/{d:g}/{_DEFAULT}/risk" in values]
        for k, model in enumerate(_MODELS):
            means = [np.mean(values[f"{name}/{d:g}/{model}/risk"]) for d in costs]
            axis.plot(costs, means, label=model, **marked_line(k))
        axis.plot(
            costs, [float(_printed(name, d)) for d in costs], "x", color=GREY, ms=7,
            label="best printed",
        )  # fmt: skip
        axis.set(title=name, xlabel="cost d of a rejection", ylim=(0, None))
    axes[0].set_ylabel("0-d-1 risk")
    axes[0].legend()


EXPERIMENT = Experiment(
    name="double-ramp-beyond",
    title="Double ramp, beyond the paper: the library's defaults",
    paper=PAPER,
    protocol=(
        PURPOSE,
        "The sets of Tables 3 to 5 as they are prepared there (raw, raw, scaled to [0, 1]); 2 "
        "repetitions of 10-fold cross-validation. Printed: the lower of the two risks of the "
        "table.",
        "DoubleRampClassifierCV with three widths (Gaussian kernel, by 5 folds inside the "
        "training part, as C) and the noise-aware classifier, which refuses where its largest "
        "probability is at most 1 - d.",
    ),
    cells=_cells(),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    check=_check,
    ours=True,
)
