"""Table 1 of the uncertainty set paper: two normal classes, balanced and not."""

from __future__ import annotations

import numpy as np

from buttress.datasets import make_skewed_gaussians
from buttress.experiments._claims import always, cases
from buttress.experiments._grids import grid, read_printed, repeats, tasks_over
from buttress.experiments._model import Check, Experiment, Plan, Runs, Values
from buttress.experiments._sampling import TrainTest, seed_of
from buttress.experiments._set_tables import GRID_SENTENCE, METHODS, error_rates

_PRINTED = """
0.2 15.8 1.1 26.0 2.2 16.5 1.2 15.9 1.1 16.0 1.2
0.5 25.2 1.1 25.1 1.0 25.0 1.3 25.0 1.4 25.4 1.1
"""
_RATES = (0.2, 0.5)
_WIDTHS = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0])
_UNKNOWN = (
    'missing in the paper: "the results are averages of ... repetitions, tested on ... points". '
    "Without the first the error of its means is not known"
)


def _run(plan: Plan, rate: float, repeat: int) -> Values:
    train, test = (
        make_skewed_gaussians(
            size, positive_rate=rate, random_state=seed_of(plan.seed, repeat, side, int(10 * rate))
        )
        for side, size in enumerate((80 if plan.quick else 400, 10_000))
    )
    data = TrainTest(train.X, train.y, test.X, test.y)
    errors = error_rates(data, _WIDTHS, plan.quick, plan.seed, repeat)
    return {f"{rate}/{method}": error for method, error in errors.items()}


def _check(values: Runs) -> list[Check]:
    if "0.2/MPM" not in values or "0.5/MPM" not in values:
        return []
    others = [method for method in METHODS if method != "MPM"]
    biased = {method: (f"0.2/{method}", "0.2/MPM") for method in others}
    balanced = {method: ("0.5/MPM", f"0.5/{method}") for method in others}
    return [
        always("with unbalanced classes the MPM is biased: all others err less",
               cases(values, biased)),
        always("with balanced classes the MPM is slightly better than the other methods",
               cases(values, balanced)),
    ]  # fmt: skip


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Table 1: two normal classes",
    protocol=(
        "400 training rows, 10,000 test rows, 10 repetitions; positives N(0, I), negatives with "
        "mean (1, 1) and covariance R' diag(0.25, 2.25) R, R the rotation by pi/3. The printed "
        "description leaves the sense of the rotation open; this one fits the errors.",
        GRID_SENTENCE,
        "Widths 0.01 to 3.",
        "The paper prints standard deviations.",
    ),
    cells=grid(
        {"P(Y=+1)": _RATES, "method": METHODS},
        group="rate{}",
        printed=read_printed(_PRINTED, 1, METHODS),
        unit="error (%)",
        scale=100.0,
        unknown=_UNKNOWN,
    ),
    tasks=tasks_over("{rate}/{repeat}", "rate{rate}", repeat=repeats(10), rate=_RATES),
    version=2,
)
