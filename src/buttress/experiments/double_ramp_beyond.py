"""Beyond the double ramp paper: the library's defaults on its three data sets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from buttress.experiments._beyond import NOISE_AWARE, PURPOSE, lowest, noise_aware
from buttress.experiments._claims import gap, in_most, verdict
from buttress.experiments._figures import GREY, marked_line, panels, plot_means
from buttress.experiments._grids import full_or_quick, repeats, tasks_over
from buttress.experiments._model import Cell, Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._reject_sets import TABLES
from buttress.experiments._reject_tables import METHODS, lost
from buttress.experiments._sampling import folds, generator

_COSTS = (0.1, 0.3)
_DEFAULT = "DoubleRampClassifierCV"
_MODELS = (_DEFAULT, NOISE_AWARE)


def _printed(name: str, d: float) -> str:
    """The lower of the two printed risks."""
    table = TABLES[name].EXPERIMENT
    return lowest(table.cell(f"{d:g}/{method}/risk") for method in METHODS[:2])


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


def _run(plan: Plan, name: str, repeat: int) -> Values:
    from buttress.model_selection import DoubleRampClassifierCV

    X, y = TABLES[name].DATA.rows(plan, repeat)
    if plan.quick:
        X, y = X[::4], y[::4]
    costs = _COSTS[:1] if plan.quick else _COSTS
    counts = {(model, d): np.zeros(2) for model in _MODELS for d in costs}
    for train, test in folds(len(y), 3 if plan.quick else 10, generator(plan.seed, repeat, 22)):
        aware = noise_aware().fit(X[train], y[train])
        sure = aware.predict_proba(X[test]).max(axis=1)
        wrong = aware.predict(X[test]) != y[test]
        for d in costs:
            # its own rule for a refusal at cost d
            refused = sure <= 1 - d
            counts[NOISE_AWARE, d] += [np.sum(wrong & ~refused), refused.sum()]
            search = DoubleRampClassifierCV(d=d, gammas="auto").fit(X[train], y[train])
            counts[_DEFAULT, d] += lost(search, X[test], y[test])
    values: Values = {}
    for (model, d), (errors, refused) in counts.items():
        values[f"{name}/{d:g}/{model}/risk"] = (errors + d * refused) / len(y)
        values[f"{name}/{d:g}/{model}/rejected"] = refused / len(y)
    return values


def _check(values: Runs) -> Iterator[Check]:
    for model, how in zip(_MODELS, ("three widths", "its defaults"), strict=True):
        gaps = [
            gap(runs, [float(_printed(name, d))] * len(runs))
            for name, d in product(TABLES, _COSTS)
            if (runs := values.get(f"{name}/{d:g}/{model}/risk"))
        ]
        if not gaps:
            continue
        below = sum(verdict(*pair) < 0 for pair in gaps)
        above = sum(verdict(*pair) > 0 for pair in gaps)
        yield Check(
            f"{model} with {how} has a lower 0-d-1 risk than the better printed column "
            "in more than half of the cases",
            in_most(below, above, len(gaps)),
            f"clearly lower in {below} of {len(gaps)}, clearly higher in {above}; mean "
            f"difference {np.mean([pair[0] for pair in gaps]):+.4f}",
        )


def _draw(figure: Figure, values: Runs) -> None:
    shown = [name for name in TABLES if f"{name}/0.1/{_DEFAULT}/risk" in values]
    for axis, name in panels(figure, shown, "0-d-1 risk"):
        costs = [d for d in _COSTS if f"{name}/{d:g}/{_DEFAULT}/risk" in values]
        for k, model in enumerate(_MODELS):
            keys = {d: f"{name}/{d:g}/{model}/risk" for d in costs}
            plot_means(axis, values, keys, {"label": model} | marked_line(k))
        axis.plot(
            costs, [float(_printed(name, d)) for d in costs], "x", color=GREY, ms=7,
            label="best printed",
        )  # fmt: skip
        axis.set(title=name, xlabel="cost d of a rejection", ylim=(0, None))


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, beyond the paper: the library's defaults",
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
    tasks=tasks_over(
        "{name}/{repeat}", repeat=repeats(2), name=full_or_quick(TABLES, ("synthetic",))
    ),
    ours=True,
)
