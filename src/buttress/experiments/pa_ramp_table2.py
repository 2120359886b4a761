"""Table 2 of the PA-RAMP paper: accuracy and support vectors of online learners under noise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.datasets import flip_labels, load_dataset
from buttress.experiments._claims import always, cases
from buttress.experiments._grids import grid, read_printed
from buttress.experiments._model import Cell, Check, Experiment, Plan, Runs, Task, Values
from buttress.experiments._sampling import (
    TrainTest,
    generator,
    random_split,
    seed_of,
    standardised,
    stratified_folds,
)
from buttress.experiments.pa_ramp_table1 import SETS

LEARNERS = ("Perceptron", "Pegasos", "NORMA", "PA-RAMP", "PA")
# The batch method that the paper names and does not run, and where its full fit is affordable.
BATCH = "CCCP"
_BATCH_SETS = _TIMED_SETS = ("wdbc", "banana_ida", "occupancy")
_TIMED = (*LEARNERS[:4], BATCH)
NOISE = (0.0, 0.05, 0.10)
# accuracy ± sd, support vectors ± sd for Perceptron, Pegasos, NORMA, PA-RAMP; noise 0, 5, 10 %
_PRINTED = """
wdbc 0 88.42 7.07 65.6 6.1 89.12 2.75 105.2 17.8
    92.11 2.15 138.4 24.1 92.28 2.03 113.0 11.1
wdbc 0.05 87.37 4.49 99.8 6.8 88.42 6.11 121.8 19.1
    88.60 3.86 184.0 34.4 89.65 1.40 115.8 11.7
wdbc 0.1 84.91 4.35 119.2 8.4 87.37 5.13 176.2 41.7
    86.84 3.42 205.6 34.5 87.71 3.19 106.0 8.4
letter 0 94.70 0.23 1419.6 10.3 93.62 1.11 9344.8 914.9
    91.45 0.32 14560.0 2868.0 96.72 0.23 7473.0 210.9
letter 0.05 89.27 0.79 2811.0 44.3 90.46 0.68 10130.4 56.0
    90.47 1.11 13255.4 3362.7 96.52 0.21 7852.8 287.6
letter 0.1 84.63 1.17 3919.8 45.6 91.73 0.86 9379.0 594.9
    89.72 2.17 14181.8 3638.4 95.44 0.73 7574.8 616.0
occupancy 0 98.78 0.20 303.6 5.9 98.74 0.17 5837.6 2798.1
    98.64 0.19 470.0 230.6 99.00 0.12 309.2 15.5
occupancy 0.05 96.51 0.63 1833.4 83.2 98.64 0.68 7593.2 2491.2
    98.73 0.16 8353.2 4770.2 98.97 0.09 306.6 10.7
occupancy 0.1 87.55 4.66 3221.8 42.8 98.56 0.16 8175.4 2184.1
    98.65 0.13 8684.4 4536.0 98.92 0.03 340.4 36.7
banana_ida 0 86.17 1.80 602.4 5.6 89.98 0.70 1554.4 8.9
    89.38 1.80 1434.0 230.7 89.77 0.95 643.0 27.5
banana_ida 0.05 85.23 9.46 927.2 18.3 88.94 0.41 1696.2 39.4
    83.91 1.80 1873.0 439.1 88.49 0.89 685.0 26.2
banana_ida 0.1 82.04 5.66 1173.2 20.1 88.92 0.62 1894.4 25.0
    87.66 3.09 2130.2 230.6 87.34 2.83 692.0 47.2
adult 0 78.83 0.36 8537.2 24.9 84.15 0.23 23632.2 543.6
    84.26 0.27 27780.2 598.2 84.09 0.36 19287.0 1476.9
adult 0.05 75.45 0.43 10808.8 80.9 83.74 0.55 24092.0 37.2
    82.09 3.56 30657.2 14870.6 83.32 0.56 21165.8 1805.1
adult 0.1 72.10 0.29 12664.4 118.5 83.30 0.25 23996.2 260.0
    81.11 3.50 23962.2 17350.7 83.09 0.33 19588.2 1374.8
"""

_REMARKS = {
    "wdbc": "z-scores and width 1, as the text says. Tried without success: min-max and unit rows, "
    "widths 1/2, 1/30, 1/60; none gives the accuracies and the support vector counts together. The "
    "paper counts 32 features where the file has 30, an identifier and the label",
    "letter": "with z-scores and width 1, as the paper says, the kernel matrix is nearly the "
    "identity; the paper's support vector counts lie between those for width 1 and 1/2",
    "adult": "the paper does not say how the eight text columns were coded; alphabetical codes "
    "are used because it counts 14 features. Whether its rows with question marks were dropped is "
    "not certain, and both readings were tried: without them the accuracies are up to a point "
    "lower and further from the paper's, the perceptron's support vectors 6 % fewer, and the "
    "printed counts lie between the two",
    "NORMA": "the paper does not define its truncation parameter; it is read as a threshold on "
    "coefficients, the only reading that fits its values. Which of several equally good "
    "parameters the hold-out picks decides the number of support vectors",
    "Perceptron": "the last function of a perceptron on noisy labels changes by several points "
    "from row to row, and its spread over 5 splits is large",
    "Pegasos": "rows drawn with replacement and distinct support vectors counted; in-order passes "
    "were tried and fit worse",
}


def _cells() -> tuple[Cell, ...]:
    levels = {noise: f"{noise:.0%}" for noise in NOISE}
    quantities = ("accuracy", "SVs")
    columns = [f"{learner}/{what}" for learner, what in product(LEARNERS[:4], quantities)]
    cells = grid(
        {"data": SETS, "noise": levels, "learner": (*LEARNERS, BATCH), "quantity": quantities},
        printed=read_printed(_PRINTED, 2, columns),
        paper_runs=5,
        better={"accuracy": "higher", "SVs": None},
        unit={"accuracy": "accuracy (%)", "SVs": "support vectors"},
        scale={"accuracy": 100.0},
        remark=_REMARKS,
    )
    timed = grid(
        {
            "data": {name: SETS[name] for name in _TIMED_SETS},
            "noise": {noise: levels[noise] for noise in (0.0, 0.1)},
            "learner": _TIMED,
            "quantity": {"microseconds": "prediction (us per row)"},
        },
        unit="prediction (us per row)",
    )
    affordable = [cell for cell in cells if BATCH not in cell.id or cell.group in _BATCH_SETS]
    return (*affordable, *timed)


def _tasks(plan: Plan) -> list[Task]:
    names = (
        ("wdbc", "banana_ida")
        if plan.quick
        else ("banana_ida", "wdbc", "occupancy", "letter", "adult")
    )
    noise = (0.1,) if plan.quick else NOISE
    tasks = []
    for kind, runs in (
        ("online", plan.runs(5, 2)),
        ("batch", plan.runs(5)),
        ("time", plan.runs(3)),
    ):
        for name, repeat, rate in product(names, range(runs), noise):
            if kind == "batch" and name not in _BATCH_SETS:
                continue
            if kind == "time" and (name not in _TIMED_SETS or rate == 0.05):
                continue
            key = f"{name}/{rate:g}/{repeat}"
            arguments = {"name": name, "noise": rate, "repeat": repeat, "kind": kind}
            tasks.append(Task(key if kind == "online" else f"{kind}/{key}", name, arguments))
    return tasks


def _fills(task: Task, cell: str) -> bool:
    name, noise, learner, quantity = cell.split("/")
    kind = "time" if quantity == "microseconds" else "batch" if learner == BATCH else "online"
    wanted = task.arguments
    return (name, float(noise), kind) == (wanted["name"], wanted["noise"], wanted["kind"])


def candidates(learner: str, seed: int, quick: bool = False) -> list[Any]:
    """The unfitted learners of the paper's grid, all with the kernel exp(-||x - z||^2)."""
    from sklearn.base import clone

    from buttress import classifiers

    kernel: dict[str, Any] = {"kernel": "rbf", "gamma": 1.0}
    costs, cuts = (0.1, 1.0, 10.0), (-1.0,) if quick else (-1.0, -0.25)
    alphas = (1e-2,) if quick else (1e-3, 1e-2, 1e-1, 1.0)
    etas = (1e-1,) if quick else (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
    taus = (1e-4,) if quick else (1e-5, 1e-4, 1e-3)
    pegasos: dict[str, Any] = {"sampling": "with_replacement", "random_state": seed}
    grids: dict[str, tuple[Any, dict[str, Any]]] = {
        "Perceptron": (classifiers.KernelPerceptron(), {}),
        "Pegasos": (classifiers.KernelPegasos(**pegasos), {"alpha": alphas}),
        "NORMA": (classifiers.Norma(), {"eta": etas, "alpha": alphas, "tau": taus}),
        "PA-RAMP": (classifiers.PARampClassifier(), {"s": (-1.0, -0.75, -0.5, -0.25)}),
        "PA": (classifiers.PARampClassifier(s=-np.inf), {}),
        BATCH: (
            classifiers.RampClassifier(fit_intercept=False, tol=1e-4),
            {"C": costs, "s": cuts},
        ),
    }
    model, axes = grids[learner]
    return [
        clone(model).set_params(**kernel, **dict(zip(axes, values, strict=True)))
        for values in product(*axes.values())
    ]


def chosen(models: list[Any], X: NDArray[Any], y: NDArray[Any], random: np.random.Generator) -> Any:
    """The model with the best accuracy in 5-fold cross-validation; the first of equals."""
    if len(models) == 1:
        return models[0]
    folds = stratified_folds(y, 5, random)
    scores = [
        np.mean([model.fit(X[train], y[train]).score(X[test], y[test]) for train, test in folds])
        for model in models
    ]
    return models[int(np.argmax(scores))]


def load(name: str, rows: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
    """A set as the paper prepares it, standardised over all rows.

    Rows of adult with question marks are kept, the mark as one more category, before the others
    in the alphabet: the paper drops incomplete rows but counts all 48,842 of this set.
    """
    bunch = load_dataset(name, variant="raw" if name == "adult" else "paper")
    X, y = bunch.X, bunch.y
    if name == "adult":
        X = np.where(np.isnan(X), np.nanmin(X, axis=0) - 1, X)
    if rows is not None and rows < len(y):
        kept = generator(1).permutation(len(y))[:rows]
        X, y = X[kept], y[kept]
    return standardised(X), y


def noisy_split(
    X: NDArray[Any], y: NDArray[Any], noise: float, *numbers: int
) -> tuple[TrainTest, int]:
    """Four fifths to learn from, some of their labels flipped, and the seed of the flips."""
    train, test = random_split(len(y), 0.8, generator(*numbers))
    seed = seed_of(*numbers, 1)
    noisy = flip_labels(y[train], noise, random_state=seed)
    return TrainTest(X[train], noisy, X[test], y[test]), seed


def tuned(models: list[Any], data: TrainTest, *numbers: int, held: int = 1000) -> Any:
    """The best of the models on the first rows, which are in random order, fitted to all."""
    model = chosen(models, data.X[:held], data.y[:held], generator(*numbers, 2))
    return model.fit(data.X, data.y)


def _run(plan: Plan, name: str, noise: float, repeat: int, kind: str) -> Values:
    X, y = load(name, 500 if plan.quick else None)
    data, seed = noisy_split(X, y, noise, plan.seed, repeat)
    held = min(1000, round(0.1 * len(y))) if name == "wdbc" else 1000
    values: Values = {}
    for learner in {"online": LEARNERS, "batch": (BATCH,), "time": _TIMED}[kind]:
        models = candidates(learner, seed, plan.quick)
        model = tuned(models, data, plan.seed, repeat, held=held)
        key = f"{name}/{noise:g}/{learner}"
        if kind == "time":
            values[f"{key}/microseconds"] = _prediction_time(model, data.X_test)
            continue
        values[f"{key}/accuracy"] = model.score(data.X_test, data.y_test)
        values[f"{key}/SVs"] = len(model.support_)
    return values


def _prediction_time(model: Any, X: NDArray[Any]) -> float:
    """Processor time of the decision values in microseconds per row, the best of five."""
    spent = []
    for _ in range(6):
        start = time.process_time()
        model.decision_function(X)
        spent.append(time.process_time() - start)
    # the first call may load compiled code
    return 1e6 * min(spent[1:]) / len(X)


def _keys(smaller: str, larger: str, quantity: str, noise: tuple[float, ...]) -> dict[str, Any]:
    return {
        f"{SETS[name]} {rate:.0%}": (
            f"{name}/{rate:g}/{smaller}/{quantity}",
            f"{name}/{rate:g}/{larger}/{quantity}",
        )
        for name, rate in product(SETS, noise)
    }


def _growth(values: Runs) -> Iterator[Check]:
    growth = {
        learner: [
            float(np.mean(values[f"{name}/0.1/{learner}/SVs"]))
            / float(np.mean(values[f"{name}/0/{learner}/SVs"]))
            for name in SETS
            if f"{name}/0.1/{learner}/SVs" in values and f"{name}/0/{learner}/SVs" in values
        ]
        for learner in LEARNERS[:4]
    }
    if not all(growth.values()):
        return
    typical = {learner: float(np.median(ratios)) for learner, ratios in growth.items()}
    others = [ratio for learner, ratio in typical.items() if learner != "PA-RAMP"]
    yield Check(
        "as noise grows others store more support vectors, PA-RAMP is more stable",
        typical["PA-RAMP"] < min(others) and min(others) > 1,
        "support vectors at 10 % over those at 0 %, median of the sets: "
        + ", ".join(f"{learner} {ratio:.2f}" for learner, ratio in typical.items()),
    )


def _comparable(values: Runs, noise: float) -> Iterator[Check]:
    """Within a point of the best of the others: the paper does not say what comparable is."""
    compared = []
    for name in SETS:
        columns = [values.get(f"{name}/{noise:g}/{rival}/accuracy") for rival in LEARNERS[:3]]
        accuracy = values.get(f"{name}/{noise:g}/PA-RAMP/accuracy")
        if accuracy is None or not all(columns):
            continue
        best = max((column for column in columns if column), key=lambda runs: float(np.mean(runs)))
        compared.append((SETS[name], [value - 0.01 for value in best], accuracy))
    if compared:
        yield always(
            f"PA-RAMP is comparable to the best of the others (less than a point below) with "
            f"{noise:.0%} of noise",
            compared,
        )


def _less(values: Runs, text: str, quantity: str, noise: tuple[float, ...]) -> list[Check]:
    compared = {
        rival: cases(values, _keys("PA-RAMP", rival, quantity, noise))
        for rival in ("Pegasos", "NORMA")
    }
    return [always(f"{text} {rival}", both) for rival, both in compared.items() if both]


def _check(values: Runs) -> Iterator[Check]:
    yield from _less(values, "PA-RAMP stores fewer support vectors than", "SVs", NOISE)
    yield from _growth(values)
    for noise in NOISE:
        if compared := cases(values, _keys("Perceptron", "PA-RAMP", "accuracy", (noise,))):
            text = f"PA-RAMP is more accurate than the Perceptron with {noise:.0%} of noise"
            yield always(text, compared)
        yield from _comparable(values, noise)
    text = "PA-RAMP spends less time while predicting than"
    yield from _less(values, text, "microseconds", (0.0, 0.1))


EXPERIMENT = Experiment.of(
    globals(),
    title="PA-RAMP, Table 2: online learners under label noise",
    protocol=(
        "Five data sets, labels of the training part flipped at rates 0, 5 and 10 %.",
        "5 random splits into 80 % training and 20 % test rows, as in the paper; features "
        "standardised over all rows before the split. The paper drops rows with missing values, "
        "yet counts all rows of adult: there a question mark is a category of its own.",
        "Gaussian kernel exp(-||x - z||^2): the paper says 'parameter 1', and the support "
        "vector counts on banana fit this reading only.",
        "Parameters by 5-fold cross-validation on the first 1000 training rows (10 % of the "
        "rows for Breast Cancer); the support vector counts show that this hold-out stays in "
        "the training part. The labels of the hold-out are noisy too.",
        "Grids: s in -1, -0.75, -0.5, -0.25 (the paper's 0 never updates, so it is left out); "
        "lambda in 1e-3 to 1; eta in 1e-5 to 1e-1; tau in 1e-5 to 1e-3. The perceptron's "
        "learning rate has no effect without a bias.",
        "One pass in random order. Pegasos draws its rows with replacement, and counts distinct "
        "support vectors: only this fits the printed counts.",
        "Plain PA (no ramp, s = -infinity) is ours; the paper does not print it. CCCP, the batch "
        "method for the same loss (no bias, C in 0.1, 1, 10 and s in -1, -0.25 by the same "
        "hold-out, solved to 1e-4), is ours too, on the three smaller sets.",
        "Prediction time: processor time of the decision values of the test rows, best of five "
        "calls, one thread, first 3 splits of the same sets.",
        "The paper prints standard deviations over 5 splits.",
    ),
    cells=_cells(),
)
