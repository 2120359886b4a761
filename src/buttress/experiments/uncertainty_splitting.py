"""Figure 5 of the uncertainty set paper splits the rows in two; its experiments do not."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from buttress.datasets import make_skewed_gaussians
from buttress.experiments._claims import gap, in_points, verdict
from buttress.experiments._figures import marked_line, two_errors
from buttress.experiments._ida import PAPER
from buttress.experiments._model import Cell, Check, Experiment, Pair, Plan, Task, Values
from buttress.experiments._sampling import seed_of

_RATES = (0.2, 0.5)
_SIZES = (100, 400, 1600)
_WAYS = {"all rows for both": 0.0, "half in T1, half in T2": 0.5}
_RUNS = 20
_WIDTHS = (0.03, 0.1, 0.3, 1.0)
_RADII = (1.0, 10.0, 100.0)


def _cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(
            f"{rate:g}/{m}/{way}",
            f"rate{rate:g}",
            {"P(Y=+1)": f"{rate:g}", "rows": str(m), "f and b from": way},
            unit="error (%)",
            scale=100.0,
        )
        for rate, m, way in product(_RATES, _SIZES, _WAYS)
    )


def _tasks(plan: Plan) -> list[Task]:
    sizes = _SIZES[:1] if plan.quick else _SIZES
    return [
        Task(f"{rate:g}/{m}/{r}", f"rate{rate:g}", {"rate": rate, "m": m, "repeat": r})
        for m, r, rate in product(sizes, range(plan.runs(_RUNS, 1)), _RATES)
    ]


def _run(arguments: Mapping[str, Any], plan: Plan) -> Values:
    from buttress.classifiers import UncertaintySetClassifier
    from buttress.model_selection import UncertaintySetClassifierCV

    rate, m, repeat = arguments["rate"], arguments["m"], arguments["repeat"]
    train, test = (
        make_skewed_gaussians(
            size, positive_rate=rate, random_state=seed_of(plan.seed, repeat, m, side, 10)
        )
        for side, size in enumerate((m, 10_000))
    )
    search = UncertaintySetClassifierCV(_RADII, gammas=_WIDTHS, cv=5, random_state=0)
    search.fit(train.X, train.y)
    values: Values = {}
    for way, share in _WAYS.items():
        model = UncertaintySetClassifier(
            radius=search.radius_, gamma=search.gamma_, holdout=share, random_state=repeat
        ).fit(train.X, train.y)
        values[f"{rate:g}/{m}/{way}"] = float(np.mean(model.predict(test.X) != test.y))
    return values


def _pairs(values: Mapping[str, list[Any]]) -> list[Pair]:
    whole, split = _WAYS
    pairs = []
    for rate, m in product(_RATES, _SIZES):
        if f"{rate:g}/{m}/{whole}" in values:
            what = f"P(Y=+1) = {rate:g}, {m} rows"
            sides = values[f"{rate:g}/{m}/{split}"], values[f"{rate:g}/{m}/{whole}"]
            pairs.append(in_points(what, "split - all", *sides))
    return pairs


def _check(values: Mapping[str, list[Any]]) -> list[Check]:
    whole, split = _WAYS
    gaps = {
        (rate, m): gap(values[f"{rate:g}/{m}/{split}"], values[f"{rate:g}/{m}/{whole}"])
        for rate, m in product(_RATES, _SIZES)
        if f"{rate:g}/{m}/{whole}" in values
    }
    worse = sum(verdict(*both) > 0 for both in gaps.values())
    better = sum(verdict(*both) < 0 for both in gaps.values())
    last = [gaps[rate, _SIZES[-1]] for rate in _RATES if (rate, _SIZES[-1]) in gaps]
    return [
        Check(
            "splitting costs accuracy: using all rows twice, as the experiments do, is better",
            True if worse >= len(gaps) / 2 else False if better > worse else None,
            f"clearly worse in {worse} of {len(gaps)} cases, clearly better in {better}",
            "The theorem asks for the split to keep its proof simple, not for accuracy",
        ),
        Check(
            "the cost of splitting vanishes as the sample grows",
            all(abs(difference) < 0.01 for difference, _ in last),
            ", ".join(f"{100 * d:+.2f} ± {100 * e:.2f} points" for d, e in last)
            + f" at {_SIZES[-1]} rows",
        ),
    ]


def _draw(figure: Any, values: Mapping[str, list[Any]]) -> None:
    axes = figure.subplots(1, len(_RATES))
    for axis, rate in zip(axes, _RATES, strict=True):
        sizes = [m for m in _SIZES if f"{rate:g}/{m}/{next(iter(_WAYS))}" in values]
        for k, way in enumerate(_WAYS):
            runs = [100 * np.array(values[f"{rate:g}/{m}/{way}"]) for m in sizes]
            axis.errorbar(
                sizes,
                [r.mean() for r in runs],
                yerr=two_errors(runs),
                label=way,
                **marked_line(k),
            )
        axis.set(title=f"P(Y=+1) = {rate:g}", xscale="log", xlabel="rows")
    axes[0].set_ylabel("test error (%)")
    axes[0].legend()


EXPERIMENT = Experiment(
    name="uncertainty-splitting",
    title="Uncertainty sets, the two halves of Figure 5",
    paper=PAPER,
    protocol=(
        "The normal classes of Table 1, h = 0; width and norm bound by 5-fold cross-validation on "
        "all rows, then two fits with them: f and bias from all rows, or f from one random half "
        "and the bias from the other (holdout=0.5). 10,000 test rows, 20 samples.",
    ),
    cells=_cells(),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    check=_check,
    pairs=_pairs,
    ours=True,
)
