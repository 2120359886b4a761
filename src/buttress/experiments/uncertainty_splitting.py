"""Figure 5 of the uncertainty set paper splits the rows in two; its experiments do not."""

from __future__ import annotations

from itertools import product

import numpy as np

from buttress.datasets import make_skewed_gaussians
from buttress.experiments._claims import gap, in_points, verdict
from buttress.experiments._figures import marked_line, panels, plot_means
from buttress.experiments._grids import full_or_quick, grid, repeats, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Pair, Plan, Runs, Values
from buttress.experiments._sampling import seed_of

_RATES = (0.2, 0.5)
_SIZES = (100, 400, 1600)
_WAYS = {"all rows for both": 0.0, "half in T1, half in T2": 0.5}
_RUNS = 20
_WIDTHS = (0.03, 0.1, 0.3, 1.0)
_RADII = (1.0, 10.0, 100.0)


def _run(plan: Plan, rate: float, m: int, repeat: int) -> Values:
    from buttress.classifiers import UncertaintySetClassifier
    from buttress.model_selection import UncertaintySetClassifierCV

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


def _pairs(values: Runs) -> list[Pair]:
    whole, split = _WAYS
    keys = {
        f"P(Y=+1) = {rate:g}, {m} rows": (f"{rate:g}/{m}/{split}", f"{rate:g}/{m}/{whole}")
        for rate, m in product(_RATES, _SIZES)
    }
    return in_points(values, "split - all", keys)


def _check(values: Runs) -> list[Check]:
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


def _draw(figure: Figure, values: Runs) -> None:
    for axis, rate in panels(figure, _RATES, "test error (%)"):
        for k, way in enumerate(_WAYS):
            keys = {m: f"{rate:g}/{m}/{way}" for m in _SIZES}
            style = {"label": way} | marked_line(k)
            plot_means(axis, values, keys, style, scale=100, errors=True)
        axis.set(title=f"P(Y=+1) = {rate:g}", xscale="log", xlabel="rows")


EXPERIMENT = Experiment.of(
    globals(),
    title="Uncertainty sets, the two halves of Figure 5",
    protocol=(
        "The normal classes of Table 1, h = 0; width and norm bound by 5-fold cross-validation on "
        "all rows, then two fits with them: f and bias from all rows, or f from one random half "
        "and the bias from the other (holdout=0.5). 10,000 test rows, 20 samples.",
    ),
    cells=grid(
        {"P(Y=+1)": _RATES, "rows": _SIZES, "f and b from": list(_WAYS)},
        group="rate{}",
        unit="error (%)",
        scale=100.0,
    ),
    tasks=tasks_over(
        "{rate:g}/{m}/{repeat}",
        "rate{rate:g}",
        m=full_or_quick(_SIZES, _SIZES[:1]),
        repeat=repeats(_RUNS),
        rate=_RATES,
    ),
    ours=True,
)
