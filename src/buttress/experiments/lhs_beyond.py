"""Beyond the leaky hockey stick paper: the library's defaults on its fifteen data sets."""

from __future__ import annotations

from buttress.datasets import load_dataset
from buttress.experiments._beyond import (
    NOISE_AWARE,
    DefaultsBesidePrinted,
    beyond,
    lowest,
    noise_aware,
)
from buttress.experiments._grids import full_or_quick, repeats, tasks_over
from buttress.experiments._model import Plan, Values
from buttress.experiments._sampling import generator, random_split
from buttress.experiments.lhs_table2 import EXPERIMENT as TABLE
from buttress.experiments.lhs_table2 import SETS

_DEFAULT = "LeakyHockeyStickClassifierCV"
_BEST = {
    name: lowest(cell for cell in TABLE.cells if cell.group == name and cell.id.endswith("/error"))
    for name in SETS
}


def _run(plan: Plan, name: str, repeat: int) -> Values:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from buttress.model_selection import LeakyHockeyStickClassifierCV

    bunch = load_dataset(name)
    train, test = random_split(len(bunch.y), 2 / 3, generator(plan.seed, repeat))
    models = {_DEFAULT: LeakyHockeyStickClassifierCV(), NOISE_AWARE: noise_aware()}
    values: Values = {}
    for key, model in models.items():
        fitted = make_pipeline(StandardScaler(), model).fit(bunch.X[train], bunch.y[train])
        values[f"{name}/{key}"] = 1 - fitted.score(bunch.X[test], bunch.y[test])
    return values


EXPERIMENT = beyond(
    globals(),
    title="Leaky hockey stick",
    protocol=(
        "The first 5 splits of Table 2 (2/3 for training), features standardised on the training "
        "part. Printed: the best of the four columns of Table 2, which is known only after the "
        "test rows were seen.",
    ),
    beside=DefaultsBesidePrinted(_DEFAULT, SETS, _BEST, "four"),
    tasks=tasks_over("{name}/{repeat}", repeat=repeats(5), name=full_or_quick(SETS, ("bupa",))),
)
