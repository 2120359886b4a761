"""PA-RAMP on banana over many splits: the mean, its error, and the orders that lock a region."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from buttress.experiments._figures import COLOURS, GREY, panels
from buttress.experiments._grids import grid
from buttress.experiments._model import Cell, Check, Experiment, Figure, Plan, Runs, Task, Values
from buttress.experiments.pa_ramp_table2 import EXPERIMENT as TABLE
from buttress.experiments.pa_ramp_table2 import NOISE, candidates, load, noisy_split, tuned

_SPLITS = 200
# Splits of one task; a run that is stopped loses no more than these.
_SPLITS_PER_TASK = 20
# The share of refused rows from which the learner itself warns.
_LOCKED = 0.25


def _cells() -> tuple[Cell, ...]:
    cells = []
    for cell in TABLE.cells:
        name, noise, learner, what = cell.id.split("/")
        # prediction times are Table 2's own
        if (name, learner) == ("banana_ida", "PA-RAMP") and what in ("accuracy", "SVs"):
            labels = {"noise": cell.labels["noise"], "quantity": what}
            cells.append(replace(cell, id=f"{noise}/{what}", labels=labels, remark=""))
    locked = grid(
        {
            "noise": {noise: f"{noise:.0%}" for noise in NOISE},
            "quantity": {"locked": "orders that lock a region (%)"},
        },
        group="banana_ida",
        unit="share (%)",
        scale=100.0,
        better=None,
    )
    return (*cells, *locked)


def _tasks(plan: Plan) -> list[Task]:
    splits = plan.runs(_SPLITS, 2)
    return [
        Task(
            f"{noise:g}/{first}",
            "banana_ida",
            {"noise": noise, "splits": (first, min(first + _SPLITS_PER_TASK, splits))},
        )
        for first, noise in product(range(0, splits, _SPLITS_PER_TASK), NOISE)
    ]


def _run(plan: Plan, noise: float, splits: tuple[int, int]) -> Values:
    X, y = load("banana_ida", 500 if plan.quick else None)
    of_splits = []
    for repeat in range(*splits):
        data, seed = noisy_split(X, y, noise, plan.seed, repeat)
        with warnings.catch_warnings():
            # that it refuses many rows is what is counted here
            warnings.simplefilter("ignore", UserWarning)
            model = tuned(candidates("PA-RAMP", seed), data, plan.seed, repeat)
        refused = model.n_skipped_ / len(data.y)
        of_splits.append(
            (model.score(data.X_test, data.y_test), len(model.support_), refused > _LOCKED)
        )
    names = ("accuracy", "SVs", "locked")
    return {
        f"{noise:g}/{name}": [float(value) for value in column]
        for name, column in zip(names, zip(*of_splits, strict=True), strict=True)
    }


def _locked(values: Runs, noise: float) -> tuple[Any, Any]:
    accuracy = np.array(values[f"{noise:g}/accuracy"], dtype=float)
    return accuracy, np.array(values[f"{noise:g}/locked"], dtype=bool)


def _check(values: Runs) -> Iterator[Check]:
    for noise in NOISE:
        if f"{noise:g}/accuracy" not in values:
            continue
        accuracy, locked = _locked(values, noise)
        cell = EXPERIMENT.cell(f"{noise:g}/accuracy")
        error = 100 * float(accuracy.std(ddof=1)) / np.sqrt(len(accuracy))
        theirs = float(cell.spread or "nan") / np.sqrt(5)
        gap = 100 * float(accuracy.mean()) - cell.number
        text = f"{100 * accuracy.mean():.2f} ± {error:.2f} against {cell.number} ± {theirs:.2f}"
        if locked.any() and not locked.all():
            text += (
                f"; {100 * accuracy[~locked].mean():.2f} where no region is locked, "
                f"{100 * accuracy[locked].mean():.2f} in the {locked.mean():.1%} where one is"
            )
        yield Check(
            f"the mean accuracy over {len(accuracy)} splits is the printed one, {noise:.0%} of "
            "the labels flipped",
            bool(abs(gap) <= 2 * np.hypot(error, theirs)),
            text,
        )


def _draw(figure: Figure, values: Runs) -> None:
    shown = [noise for noise in NOISE if f"{noise:g}/accuracy" in values]
    bins = np.arange(60.0, 93.0, 1.0)
    for axis, noise in panels(figure, shown, "splits", loc="upper left", sharex=True, sharey=True):
        accuracy, locked = _locked(values, noise)
        axis.hist(
            [100 * accuracy[~locked].clip(0.6), 100 * accuracy[locked].clip(0.6)],
            bins=bins,
            stacked=True,
            color=[COLOURS[0], COLOURS[1]],
            hatch=["", "///"],
            label=["no region locked", "a region locked"],
        )
        printed = EXPERIMENT.cell(f"{noise:g}/accuracy").number
        axis.axvline(printed, color=GREY, ls="--", label="printed mean of 5")
        axis.set(title=f"{noise:.0%} of labels flipped", xlabel="accuracy (%)")


EXPERIMENT = Experiment.of(
    globals(),
    title="PA-RAMP, banana over many splits",
    protocol=(
        "The protocol of Table 2 for PA-RAMP on banana, 200 random splits instead of 5: one pass "
        "in random order, s by 5-fold cross-validation on the first 1000 training rows.",
        "An order locks a region when early rows of one class fill it: rows of the other class "
        "there are beyond the ramp's flat part from then on and are refused for ever. Counted "
        "where more than a quarter of the rows was refused, which is where the learner warns and "
        "names the remedy (the same rows in another order). No remedy is used here.",
        "Five splits say little at 10 %: the spread between splits comes from the few that lock a "
        "region.",
    ),
    cells=_cells(),
    ours=True,
)
