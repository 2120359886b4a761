"""Figure 2 of the PA-RAMP paper: mistakes of the online learners as the stream goes on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.base import clone

from buttress.experiments._figures import lettered, line_style
from buttress.experiments._grids import full_or_quick, repeats, tasks_over
from buttress.experiments._model import Check, Experiment, Figure, Plan, Runs, Values
from buttress.experiments._sampling import generator
from buttress.experiments.pa_ramp_table1 import SETS
from buttress.experiments.pa_ramp_table2 import LEARNERS, candidates, chosen, load

_CURVE_POINTS = 40
_ORDERS = 3
_LEARNERS = LEARNERS[:4]


def _run(plan: Plan, name: str, order: int) -> Values:
    X, y = load(name, 300 if plan.quick else None)
    rows = generator(plan.seed, order).permutation(len(y))
    X, y = X[rows], y[rows]
    held = min(1000, round(0.1 * len(y))) if name == "wdbc" else min(1000, len(y))
    ends = np.unique(np.geomspace(min(20, len(y)), len(y), _CURVE_POINTS).astype(int))
    values: Values = {f"{name}/seen": ends}
    for learner in _LEARNERS:
        models = candidates(learner, order, plan.quick)
        if learner == "Pegasos":
            # rows come in order here: each is predicted before it is learnt from
            models = [model.set_params(sampling="in_order") for model in models]
        model = clone(chosen(models, X[:held], y[:held], generator(plan.seed, order, 2)))
        wrong = []
        for start, end in zip([0, *ends], ends, strict=False):
            model.partial_fit(X[start:end], y[start:end], classes=[-1, 1])
            wrong.append(model.progressive_error_)
        values[f"{name}/{learner}"] = wrong
    return values


def _check(values: Runs) -> Iterator[Check]:
    for name, title in SETS.items():
        if f"{name}/PA-RAMP" not in values:
            continue
        curves = np.array(values[f"{name}/PA-RAMP"], dtype=float)
        first, last = curves[:, 0], curves[:, -1]
        yield Check(
            f"PA-RAMP's misclassification rate falls along the stream ({title})",
            bool(np.all(last < first)),
            f"{first.mean():.3f} to {last.mean():.3f}, mean of {len(curves)} orders; the last "
            f"rate lies between {last.min():.3f} and {last.max():.3f}",
        )


def _draw(figure: Figure, values: Runs) -> None:
    shown = [name for name in SETS if f"{name}/seen" in values]
    figure.set_size_inches(9, 6 if len(shown) > 2 else 4)
    axes = figure.subplots(2 if len(shown) > 2 else 1, -(-len(shown) // 2) or 1, squeeze=False)
    axes = axes.ravel()
    for axis, name in zip(axes, shown, strict=False):
        seen = values[f"{name}/seen"][0]
        for k, learner in enumerate(_LEARNERS):
            curves = 100 * np.array(values[f"{name}/{learner}"], dtype=float)
            style = line_style(k)
            axis.plot(seen, curves.mean(axis=0), label=learner, **style)
            axis.fill_between(
                seen, curves.min(axis=0), curves.max(axis=0), color=style["color"], alpha=0.15, lw=0
            )
        axis.set(title=SETS[name], xlabel="rows seen", xscale="log", ylim=(0, None))
    for axis in axes[::3]:
        axis.set_ylabel("misclassified so far (%)")
    lettered(axes[: len(shown)])
    for axis in axes[len(shown) :]:
        axis.remove()
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="lower right" if len(shown) > 2 else "upper right",
        bbox_to_anchor=(0.97, 0.12) if len(shown) > 2 else None,
    )


EXPERIMENT = Experiment.of(
    globals(),
    title="PA-RAMP, Figure 2: mistakes along the stream",
    protocol=(
        "One pass over each set in each of 3 random orders, features standardised, kernel "
        "exp(-||x-z||^2). Lines are means over the orders, bands their range.",
        "The share of rows misclassified before they were learnt from, at 40 points.",
        "Parameters as in Table 2, by 5-fold cross-validation on the first 1000 rows of the order "
        "(10 % of Breast Cancer); Pegasos takes the rows in order.",
    ),
    tasks=tasks_over(
        "{name}/{order}", order=repeats(_ORDERS, 2), name=full_or_quick(SETS, ("wdbc",))
    ),
    version=2,
)
