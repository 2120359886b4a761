"""C and the kernel width of the double ramp paper's tables, chosen again by 10-fold CV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.experiments._figures import GREY, line_style, panels
from buttress.experiments._grids import Printed, full_or_quick, grid, repeats, tasks_over
from buttress.experiments._model import Cell, Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._reject_sets import TABLES
from buttress.experiments._reject_tables import METHODS, lost
from buttress.experiments._sampling import seed_of

_TUNED = METHODS[:2]
# what the paper prints over its tables: C, and gamma for the Gaussian kernel
_PRINTED = {
    ("synthetic", "double ramp"): ("2", None),
    ("synthetic", "double hinge"): ("32", None),
    ("ionosphere", "double ramp"): ("2", "0.125"),
    ("ionosphere", "double hinge"): ("16", "0.125"),
    ("parkinsons", "double ramp"): ("32", None),
    ("parkinsons", "double hinge"): ("32", None),
}
_POWERS = (-3, -1, 1, 3, 4, 5)
_WIDTHS = (-5, -3, -1)
_COSTS = (0.1, 0.2, 0.3, 0.4)
_RUNS = 5


def _cells() -> tuple[Cell, ...]:
    choices, risks = ("log2 C", "log2 gamma"), ("risk at our choice", "risk at the printed values")
    printed: dict[str, Printed] = {
        f"{name}/{method}/{choice}": (f"{np.log2(float(number)):.0f}", None)
        for (name, method), numbers in _PRINTED.items()
        for choice, number in zip(choices, numbers, strict=True)
        if number
    }
    cells = grid(
        {"data": list(TABLES), "method": _TUNED, "quantity": (*choices, *risks)},
        printed=printed,
        better=dict.fromkeys(choices),
        unit={choice: choice for choice in choices} | dict.fromkeys(risks, "risk"),
        unknown='missing in the paper: "the grid of C and sigma was ..., chosen at d = ..."',
    )
    return tuple(cell for cell in cells if cell.id in printed or cell.unit == "risk")


def _settings(name: str, quick: bool) -> list[dict[str, float]]:
    powers = _POWERS[1:3] if quick else _POWERS
    if name != "ionosphere":
        return [{"C": 2.0**power} for power in powers]
    return [{"C": 2.0**power, "gamma": 2.0**width} for power in powers for width in _WIDTHS]


def _risks(
    model: Any,
    settings: list[dict[str, float]],
    X: NDArray[Any],
    y: NDArray[Any],
    d: float,
    seed: int,
) -> NDArray[Any]:
    """Risk of every setting over the same ten folds."""
    from sklearn.base import clone
    from sklearn.model_selection import StratifiedKFold

    risks = np.zeros(len(settings))
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(X, y):
        for k, setting in enumerate(settings):
            fitted = clone(model).set_params(d=d, tol=1e-4, **setting).fit(X[train], y[train])
            wrong, refused = lost(fitted, X[test], y[test])
            risks[k] += wrong
            risks[k] += d * refused
    return risks / len(y)


def _run(plan: Plan, name: str, d: float, repeat: int) -> Values:
    data = TABLES[name].DATA
    X, y = data.rows(plan, repeat)
    settings = _settings(name, plan.quick)
    values: Values = {}
    for method in _TUNED:
        risks = _risks(data.models()[method], settings, X, y, d, seed_of(plan.seed, repeat, 8))
        chosen = settings[int(np.argmin(risks))]
        key = f"{name}/{method}"
        values[f"{key}/log2 C"] = np.log2(chosen["C"])
        if "gamma" in chosen:
            values[f"{key}/log2 gamma"] = np.log2(chosen["gamma"])
        values[f"{key}/risk at our choice"] = risks.min()
        cost, width = _PRINTED[name, method]
        printed = {"C": float(cost or "nan")} | ({"gamma": float(width)} if width else {})
        if printed in settings:
            values[f"{key}/risk at the printed values"] = risks[settings.index(printed)]
        values[f"{key}/{d:g}/risks"] = risks
    return values


def _check(values: Runs) -> Iterator[Check]:
    for (name, method), (cost, _) in _PRINTED.items():
        log_costs = values.get(f"{name}/{method}/log2 C")
        lost = values.get(f"{name}/{method}/risk at the printed values")
        if not log_costs or not lost:
            continue
        best = np.array(values[f"{name}/{method}/risk at our choice"], dtype=float)
        excess = np.array(lost, dtype=float) - best
        wanted = float(np.log2(float(cost or "nan")))
        share = float(np.mean(np.array(log_costs) == wanted))
        yield Check(
            f"10-fold cross-validation chooses the printed C = {cost} ({name}, {method})",
            None if 0.3 < share < 0.7 else share >= 0.7,
            f"in {share:.0%} of {len(log_costs)} searches; its risk is {excess.mean():.4f} "
            f"above the chosen one's on average, {excess.max():.4f} at most",
        )


def _draw(figure: Figure, values: Runs) -> None:
    sets = [name for name in TABLES if f"{name}/{_TUNED[0]}/log2 C" in values]
    label = "share of the searches"
    for axis, name in panels(figure, sets, label, legend_in=-1, sharey=True):
        for k, method in enumerate(_TUNED):
            log_costs = np.array(values[f"{name}/{method}/log2 C"], dtype=float)
            powers = np.array(_POWERS, dtype=float)
            share = [float(np.mean(log_costs == power)) for power in powers]
            axis.plot(powers, share, marker="o", label=method, **line_style(k))
            printed = np.log2(float(_PRINTED[name, method][0] or "nan"))
            axis.axvline(printed, color=GREY, lw=0.8, ls=(0, (1 + 3 * k, 2)))
        axis.set(title=name, xlabel="log2 C (grey: printed)")


EXPERIMENT = Experiment.of(
    globals(),
    title="Double ramp, C and the width by cross-validation",
    protocol=(
        "The paper chooses C and the width by 10-fold cross-validation and prints the result over "
        "its tables; it gives neither the grid nor the d it was chosen at.",
        "Grid: C = 2^-3, 2^-1, 2, 2^3, 2^4, 2^5; for ionosphere gamma = 2^-5, 2^-3, 2^-1. Ten "
        "stratified folds, smallest 0-d-1 risk, the first of equals; d = 0.1, 0.2, 0.3 and 0.4.",
        "5 repetitions; every d and repetition is one search. Machines solved to 1e-4.",
    ),
    cells=_cells(),
    tasks=tasks_over(
        "{name}/{d:g}/{repeat}",
        repeat=repeats(_RUNS),
        name=full_or_quick(TABLES, ("synthetic",)),
        d=full_or_quick(_COSTS, (0.2,)),
    ),
)
