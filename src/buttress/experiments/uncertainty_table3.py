"""Table 3 of the uncertainty set paper: thirteen data sets, five methods, a paired t-test."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from buttress.experiments._claims import always, at_least, cases
from buttress.experiments._grids import grid, read_printed
from buttress.experiments._ida import BY_SIZE, SETS, SPLITS_SENTENCE, realisation
from buttress.experiments._model import Cell, Check, Experiment, Plan, Runs, Task, Values
from buttress.experiments._set_tables import GRID_SENTENCE, METHODS, UNTUNED_METHODS, error_rates
from buttress.kernels import resolve_gamma

# mean and standard deviation of C-SVM, MPM, unbiased MPM, h = 0, h = 1
_PRINTED = """
banana_ida 10.7 0.6 11.4 0.9 11.4 0.9 11.1 0.9 10.9 0.7
breast_cancer_ida 26.9 4.8 35.0 4.9 34.0 4.8 28.1 5.0 28.1 4.5
diabetis_ida 23.9 2.1 28.8 2.4 28.3 2.5 24.3 1.9 24.2 2.1
flare_solar_ida 33.7 2.2 34.9 1.7 35.7 1.9 36.8 3.1 36.8 2.9
german_ida 23.8 2.3 29.2 2.4 28.2 2.7 23.5 2.3 23.6 2.4
heart_ida 16.7 3.5 25.6 4.2 25.7 4.0 17.3 3.7 17.2 3.5
image_ida 3.3 0.7 3.2 0.7 3.2 0.7 3.4 0.6 3.3 0.5
ringnorm_ida 1.7 0.3 3.2 0.4 2.8 0.5 1.7 0.3 1.6 0.2
splice_ida 11.1 0.7 12.3 1.7 11.7 0.8 11.3 0.7 11.1 0.8
thyroid_ida 5.3 2.1 6.3 3.1 6.2 3.7 5.6 2.4 5.4 2.2
titanic_ida 22.4 0.8 24.1 2.2 22.4 1.2 23.5 1.6 23.7 3.4
twonorm_ida 2.6 0.3 4.5 0.7 4.4 0.6 2.6 0.3 2.6 0.4
waveform_ida 10.2 0.7 13.0 0.9 12.7 0.8 10.2 0.6 10.1 0.7
"""
_RUNS = 100
# The paper's number of realisations of its two largest sets.
_FEW_RUNS = {"image_ida": 20, "splice_ida": 20}
# Realisations of the machines with a fixed ridge: fewer where a machine is expensive.
_UNTUNED_RUNS = 20
_FEW_UNTUNED = {"image_ida": 5, "splice_ida": 5, "german_ida": 10, "flare_solar_ida": 10}
_UNKNOWN_RIDGE = (
    'missing in the paper: "the covariances of the MPM were regularised by ..."; the kernel MPM is '
    "degenerate without"
)
_FACTORS = np.array([1 / 16, 1 / 4, 1.0, 4.0, 16.0])
# Training on repeated points, of which the paper says that its method suffers.
_DUPLICATED = ("flare_solar_ida", "titanic_ida")


def _cells() -> tuple[Cell, ...]:
    # both ways of regularising the MPM stand beside the same printed number
    methods = (*METHODS, *UNTUNED_METHODS)
    printed = read_printed(_PRINTED, 1, METHODS)
    return grid(
        {"data": SETS, "method": methods},
        printed={
            f"{name}/{method}": printed[f"{name}/{method.split(',')[0]}"]
            for name, method in product(SETS, methods)
        },
        paper_runs={name: _FEW_RUNS.get(name, _RUNS) for name in SETS},
        unit="error (%)",
        scale=100.0,
        unknown={method: _UNKNOWN_RIDGE for method in methods if "MPM" in method},
        remark="the paper's grids for width and penalty are not given",
    )


def _tasks(plan: Plan) -> list[Task]:
    names = BY_SIZE[:1] if plan.quick else BY_SIZE
    tasks = []
    for kind, usual, few in (
        ("tuned", _RUNS, _FEW_RUNS),
        ("ridge", _UNTUNED_RUNS, _FEW_UNTUNED),
    ):
        for name in names:
            for number in range(plan.runs(few.get(name, usual), 1)):
                key = f"{name}/{number}" if kind == "tuned" else f"ridge/{name}/{number}"
                tasks.append(Task(key, name, {"name": name, "number": number, "kind": kind}))
    return tasks


def _fills(task: Task, cell: str) -> bool:
    name, method = cell.split("/")
    kind = "ridge" if method in UNTUNED_METHODS else "tuned"
    return (name, kind) == (task.arguments["name"], task.arguments["kind"])


def _run(plan: Plan, name: str, number: int, kind: str) -> Values:
    data = realisation(name, number)
    widths = resolve_gamma("median", data.X, None) * _FACTORS
    if plan.quick:
        data = data._replace(X=data.X[:60], y=data.y[:60])
    errors = error_rates(data, widths, plan.quick, plan.seed, number, tuned=kind == "tuned")
    return {f"{name}/{method}": error for method, error in errors.items()}


def _nearer(values: Runs) -> Iterator[Check]:
    """Which ridge gives the printed errors of the two minimax machines."""
    distance: dict[str, list[float]] = {"tuned": [], "untuned": []}
    for cell in EXPERIMENT.cells:
        name, method = cell.id.split("/")
        if method not in UNTUNED_METHODS or cell.id not in values:
            continue
        tuned = f"{name}/{method.split(',')[0]}"
        for kind, key in (("tuned", tuned), ("untuned", cell.id)):
            mean = 100 * float(np.mean(values[key]))
            distance[kind].append(abs(mean - cell.number))
    if not distance["untuned"]:
        return
    pairs = zip(distance["tuned"], distance["untuned"], strict=True)
    nearer = sum(b < a - 1e-6 for a, b in pairs)
    count = len(distance["tuned"])
    # nearer, and near: on average within two points of what is printed
    close = float(np.mean(distance["untuned"])) < 2
    yield Check(
        "the printed MPM columns are those of a machine with a ridge of 1e-6, not of a tuned one",
        close and nearer > count / 2,
        f"nearer in {nearer} of {count} cells; mean distance {np.mean(distance['untuned']):.1f} "
        f"points against {np.mean(distance['tuned']):.1f}",
        ours=True,
    )


def _check(values: Runs) -> Iterator[Check]:
    single = [name for name in SETS if name not in _DUPLICATED]
    against_tuned, against_untuned = (
        {name: (f"{name}/h = 0", f"{name}/{machine}") for name in single}
        for machine in ("unbiased MPM", UNTUNED_METHODS[1])
    )
    turned = {name: (f"{name}/unbiased MPM", f"{name}/h = 0") for name in _DUPLICATED}
    against = {name: (f"{name}/h = 1", f"{name}/C-SVM") for name in SETS}
    if compared := cases(values, against_tuned):
        text = "h = 0 has smaller test errors than the unbiased MPM (sets without duplicated rows)"
        meaning = "Against an MPM whose ridge is tuned like every other parameter"
        yield always(text, compared, meaning=meaning)
    if compared := cases(values, against_untuned):
        text = "h = 0 has smaller test errors than the unbiased MPM with a ridge of 1e-6"
        meaning = (
            "Where this holds and the line above does not, the paper's advantage is over a rival "
            "that was not regularised, not over its uncertainty set"
        )
        yield always(text, compared, meaning=meaning, ours=True)
    yield from _nearer(values)
    if compared := cases(values, turned):
        text = "with many duplicated rows (flare-solar, titanic) the unbiased MPM is better"
        yield always(text, compared)
    if compared := cases(values, against):
        text = "overall, the C-SVM is better than h = 1 (at least half of the sets)"
        yield at_least(text, (len(SETS) + 1) // 2, [(n, b, a) for n, a, b in compared])


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, Table 3: thirteen data sets",
    protocol=(
        SPLITS_SENTENCE,
        "100 realisations per set, and 20 of image and splice, as in the paper.",
        "Features standardised on the training part.",
        GRID_SENTENCE,
        "The MPM is shown both ways: ridge tuned (columns MPM and unbiased MPM) and fixed at 1e-6, "
        "which only keeps the numbers finite (20 realisations; 10 of german and flare-solar, 5 of "
        "image and splice). The paper does not say which it used.",
        "Widths: 1/16 to 16 times one over the median squared distance.",
        "The paper prints standard deviations, and in bold what a paired t-test at the 1 % level "
        "finds; the bold type is lost in our copy, so the statements of its text are checked by "
        "paired differences over the realisations.",
    ),
    cells=_cells(),
    version=2,
)
