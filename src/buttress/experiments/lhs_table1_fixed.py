"""Table 1 of the leaky hockey stick paper with fixed centres, as the paper seems to have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from buttress.experiments._claims import at_least, cases, gap
from buttress.experiments._figures import COLOURS, MARKERS, panels
from buttress.experiments._grids import full_or_quick, repeats, tasks_over
from buttress.experiments._lhs import KERNELS
from buttress.experiments._model import Cell, Check, Experiment, Figure, Pair, Plan, Runs, Values
from buttress.experiments._sampling import generator
from buttress.experiments.lhs_table1 import (
    EXAMPLES,
    LEARNERS,
    error_rates,
    matching_centres,
    paired,
)
from buttress.experiments.lhs_table1 import EXPERIMENT as TABLE

_SIZES = (50, 90, 200)
_CENTRES = 3
_RUNS = 6


def _cells() -> tuple[Cell, ...]:
    return tuple(
        replace(
            cell,
            id=cell.id.replace(f"/{learner}", f"/{centres}/{learner}"),
            labels={**cell.labels, "centres": f"draw {centres + 1}"},
            one_draw=False,
            unknown='missing in the paper: "the centres are ..."; it gives their Bayes error only',
        )
        for cell, centres in product(TABLE.cells, range(_CENTRES))
        if int(cell.labels["n"]) in _SIZES and (learner := cell.labels["learner"])
    )


@lru_cache(maxsize=64)
def _centres(seed: int, example: int, draw: int, tolerance: float) -> Any:
    """They depend on the draw alone: all sizes and runs share them."""
    return matching_centres(example, generator(seed, example, draw, 21), tolerance)


def _run(plan: Plan, example: int, n: int, draw: int, repeat: int) -> Values:
    centers = _centres(plan.seed, example, draw, 1.0 if plan.quick else 0.003)
    random = generator(plan.seed, example, n, draw, repeat)
    errors = error_rates(plan, centers, random, (example, n, draw, repeat))
    values: Values = {}
    for key, error in errors.items():
        kernel, learner = key.split("/")
        values[f"{example}/{n}/{kernel}/{draw}/{learner}"] = error
    return values


def _pairs(values: Runs) -> list[Pair]:
    keys = {
        f"Example {example}, n = {n}, {kernel}, draw {draw + 1}": f"{example}/{n}/{kernel}/{draw}"
        for example, n, kernel, draw in product(EXAMPLES, _SIZES, KERNELS, range(_CENTRES))
    }
    return paired(values, keys)


def _spread(values: Runs) -> Check:
    """How far apart the draws of centres are, in the paper's own standard errors."""
    ratios = []
    for example, n, kernel, learner in product(EXAMPLES, _SIZES, KERNELS, LEARNERS):
        keys = [f"{example}/{n}/{kernel}/{draw}/{learner}" for draw in range(_CENTRES)]
        if all(key in values for key in keys):
            means = [100 * float(np.mean(values[key])) for key in keys]
            spread = float(TABLE.cell(f"{example}/{n}/{kernel}/{learner}").spread or "nan")
            ratios.append(float(np.std(means, ddof=1)) / spread)
    return Check(
        "the Bayes error determines the errors: draws of centres with the same one agree",
        bool(np.median(ratios) < 2) if ratios else None,
        f"standard deviation between draws over the printed standard error: median "
        f"{np.median(ratios):.0f}, range {min(ratios):.0f} to {max(ratios):.0f}"
        if ratios
        else "not run",
        "Table 1 cannot be compared to its last digits without the centres",
    )


def _check(values: Runs) -> Iterator[Check]:
    yield _spread(values)
    for text, example, kernel in (
        ("the Gaussian LHS outperforms the Gaussian SVM in Example 1", 1, "Gaussian"),
        ("the linear LHS outperforms the linear SVM in Example 2", 2, "linear"),
        ("the linear LHS outperforms the linear SVM in Example 3", 3, "linear"),
    ):
        keys = {
            f"n = {n}, draw {draw + 1}": (
                f"{example}/{n}/{kernel}/{draw}/LHS",
                f"{example}/{n}/{kernel}/{draw}/SVM",
            )
            for n, draw in product(_SIZES, range(_CENTRES))
        }
        if compared := cases(values, keys):
            statement = f"{text}, for most draws of centres and sizes"
            yield at_least(statement, len(compared) // 2 + 1, compared)


def _draw(figure: Figure, values: Runs) -> None:
    label = "LHS - SVM (points of error)"
    for axis, example in panels(figure, EXAMPLES, label, sharey=True):
        for (k, kernel), draw in product(enumerate(KERNELS), range(_CENTRES)):
            key = f"{example}/{{}}/{kernel}/{draw}"
            gaps = {
                n: 100 * gap(values[f"{key}/LHS".format(n)], values[f"{key}/SVM".format(n)])[0]
                for n in _SIZES
                if f"{key}/LHS".format(n) in values
            }
            axis.plot(
                list(gaps),
                list(gaps.values()),
                marker=MARKERS[k],
                color=COLOURS[k],
                lw=0.8,
                label=kernel if draw == 0 else None,
            )
        axis.axhline(0, color="black", lw=0.8)
        axis.set(title=f"Example {example}", xscale="log", xlabel="n")
        axis.set_xticks(_SIZES, [str(n) for n in _SIZES])
        axis.minorticks_off()


EXPERIMENT = Experiment.of(
    globals(),
    title="Leaky hockey stick, Table 1 with fixed centres",
    protocol=(
        "Table 1's protocol with centres that are drawn once and kept for all sizes and runs, as "
        "the paper's one Bayes error per example suggests; 3 such draws, each with the printed "
        "Bayes error to 0.3 points.",
        "n = 50, 90 and 200, 6 runs each (900 rows are in lhs-table1 only). LHS and SVM see the "
        "same rows, so their difference is taken run by run. A line per draw in the picture.",
        "No verdicts: the centres of the paper are not known.",
    ),
    cells=_cells(),
    tasks=tasks_over(
        "{example}/{n}/{draw}/{repeat}",
        "example{example}",
        n=full_or_quick(_SIZES, _SIZES[:1]),
        repeat=repeats(_RUNS),
        draw=full_or_quick(range(_CENTRES), range(2)),
        example=EXAMPLES,
    ),
    ours=True,
)
