"""Table 2 of the leaky hockey stick paper: error and time on fifteen data sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from buttress.datasets import load_dataset
from buttress.experiments._claims import at_least, cases
from buttress.experiments._grids import Printed, grid, read_printed
from buttress.experiments._lhs import KERNELS, Training, package_width
from buttress.experiments._model import Cell, Check, Experiment, Plan, Runs, Task, Values
from buttress.experiments._sampling import balanced_folds, generator, random_split, standardised

# set, name in the paper, kernel: LHS error (se) time, SVM error (se) time
_PRINTED = """
arrhythmia Arrhythmia linear 21.39 0.84 0.48 21.39 0.85 10.08
arrhythmia Arrhythmia Gaussian 20.13 0.82 2.18 21.78 0.85 10.23
australian Australian linear 13.59 0.23 0.35 13.62 0.23 344.94
australian Australian Gaussian 13.89 0.23 2.34 13.61 0.23 11.96
banknote Banknote linear 1.07 0.05 6.84 1.08 0.05 10.41
banknote Banknote Gaussian 0.44 0.03 25.49 0.01 0.00 11.68
qsar_biodeg Biodeg linear 13.56 0.18 6.13 13.23 0.18 652.33
qsar_biodeg Biodeg Gaussian 12.23 0.17 23.87 12.28 0.17 26.03
bupa Bupa linear 31.59 0.77 0.06 31.79 0.77 18.35
bupa Bupa Gaussian 31.16 0.77 0.38 31.34 0.77 4.26
kr_vs_kp Chess linear 2.82 0.05 41.41 3.25 0.05 69.64
kr_vs_kp Chess Gaussian 1.70 0.04 239.25 0.93 0.03 152.53
cleveland cle:Heart linear 16.15 0.37 0.11 15.85 0.37 3.31
cleveland cle:Heart Gaussian 16.47 0.37 0.36 16.31 0.37 3.92
hepatitis Hepatitis linear 14.44 0.67 0.16 16.19 0.70 3.21
hepatitis Hepatitis Gaussian 13.59 0.65 2.84 13.89 0.66 3.09
hungarian Hungarian linear 17.69 0.41 0.08 18.52 0.41 3.35
hungarian Hungarian Gaussian 18.69 0.42 0.26 17.90 0.41 3.74
lsvt LSVT linear 14.31 0.53 0.60 16.69 0.57 20.86
lsvt LSVT Gaussian 15.10 0.55 15.62 16.07 0.56 27.86
musk1 Musk linear 17.08 0.30 2.30 16.85 0.30 26.82
musk1 Musk Gaussian 10.48 0.24 4.11 8.29 0.22 62.61
parkinsons Parkinsons linear 15.25 0.40 0.16 14.14 0.43 9.40
parkinsons Parkinsons Gaussian 11.68 0.40 1.72 9.06 0.35 5.85
sonar Sonar linear 23.39 0.51 0.61 25.10 0.52 8.73
sonar Sonar Gaussian 17.36 0.45 0.91 15.65 0.43 8.09
spect_train Spectf linear 30.07 0.87 0.13 31.19 0.88 5.00
spect_train Spectf Gaussian 26.74 0.84 0.14 28.04 0.85 7.79
vertebral_2c Vertebral linear 14.88 0.35 0.14 15.18 0.35 14.38
vertebral_2c Vertebral Gaussian 16.81 0.37 1.14 15.83 0.36 6.69
"""
# rows and features as printed
_SIZES = """
arrhythmia 68 233
australian 690 14
banknote 1372 4
qsar_biodeg 1055 41
bupa 345 6
kr_vs_kp 3196 36
cleveland 297 13
hepatitis 80 19
hungarian 261 10
lsvt 126 310
musk1 475 166
parkinsons 195 22
sonar 208 60
spect_train 80 22
vertebral_2c 310 6
"""
LEARNERS = ("LHS", "SVM", "LHS by MM")
_RUNS = 100
_TIMED_RUNS = 3
# The largest sets, which come last.
_BIG = ("banknote", "qsar_biodeg", "kr_vs_kp")
_QUANTITIES = {"error": "error (%)", "seconds": "time (s)"}
_REMARKS = {
    "size": "the file in the repository; the paper does not say which rows or columns it dropped",
    "LHS": "the paper stops its solver after 10,000 steps over the path, this one solves every "
    "penalty to its certificate",
    "SVM": "another solver with the same iteration limit",
    "arrhythmia": "the paper does not say how the 16 classes were made two; normal against all "
    "others on the complete rows gives its 68 rows and 233 features exactly",
}


SETS = {line.split()[0]: line.split()[1] for line in _PRINTED.strip().splitlines()}


def _printed() -> dict[str, Printed]:
    printed: dict[str, Printed] = {}
    for line in _PRINTED.strip().splitlines():
        name, _, kernel, *numbers = line.split()
        for k, learner in enumerate(LEARNERS[:2]):
            error, spread, seconds = numbers[3 * k : 3 * k + 3]
            printed[f"{name}/{kernel}/{learner}/error"] = error, spread
            printed[f"{name}/{kernel}/{learner}/seconds"] = seconds, None
    return printed


def _cells() -> tuple[Cell, ...]:
    sizes = grid(
        {"data": SETS, "quantity": ("n", "p")},
        printed=read_printed(_SIZES, 1, ("n", "p"), spreads=False),
        exact=True,
        unit={"n": "n", "p": "p"},
        better=None,
        remark=_REMARKS["size"],
    )
    results = grid(
        {"data": SETS, "kernel": KERNELS, "learner": LEARNERS, "quantity": _QUANTITIES},
        printed=_printed(),
        spread_is={"error": "se"},
        paper_runs={"error": 100, "seconds": 3},
        unit=_QUANTITIES,
        scale={"error": 100.0},
        unknown={"seconds": "another computer, and another program for the SVM (kernlab in R)"},
        other_machine={"seconds": True},
        remark=_REMARKS,
    )
    order = list(SETS)
    return tuple(sorted((*sizes, *results), key=lambda cell: order.index(cell.group)))


def _tasks(plan: Plan) -> list[Task]:
    """Errors first, then times; small sets first, and every set once before any set twice."""
    names = ("spect_train", "bupa") if plan.quick else sorted(SETS, key=_BIG.__contains__)
    tasks = []
    if not plan.quick:
        tasks = [Task(f"size/{name}", name, {"name": name, "kind": "size"}) for name in names]
    for kind, runs in (
        ("error", plan.runs(_RUNS, 2)),
        ("time", plan.runs(_TIMED_RUNS)),
        ("mm", plan.runs(_TIMED_RUNS)),
    ):
        for repeat, name, kernel in product(range(runs), names, KERNELS):
            if kind != "error" and plan.quick and name != names[0]:
                continue
            arguments = {"name": name, "kernel": kernel, "repeat": repeat, "kind": kind}
            tasks.append(Task(f"{kind}/{name}/{kernel}/{repeat}", name, arguments))
    return tasks


def _fills(task: Task, cell: str) -> bool:
    """Whether a task gives the cell a value."""
    name, kind = task.arguments["name"], task.arguments["kind"]
    if cell.count("/") == 1:
        return (cell.split("/")[0], "size") == (name, kind)
    data, form, learner, quantity = cell.split("/")
    wanted = "mm" if learner == "LHS by MM" else {"error": "error", "seconds": "time"}[quantity]
    return (data, wanted) == (name, kind) and form == task.arguments["kernel"]


def _run(plan: Plan, name: str, kind: str, kernel: str = "", repeat: int = 0) -> Values:
    bunch = load_dataset(name)
    if kind == "size":
        rows, features = bunch.X.shape
        return {f"{name}/n": rows, f"{name}/p": features}
    random = generator(plan.seed, repeat)
    train, test = random_split(len(bunch.y), 2 / 3, random)
    X, y = standardised(bunch.X, train), bunch.y
    width = package_width(X[train], random)
    folds = balanced_folds(y[train], 5, plan.seed, repeat)
    given = Training(X[train], y[train], folds, kernel, width, plan.quick)
    key = f"{name}/{kernel}"
    values: Values = {}
    if kind == "error":
        for learner, (model, _) in zip(LEARNERS, (given.fit_lhs(), given.fit_svm()), strict=False):
            values[f"{key}/{learner}/error"] = 1 - model.score(X[test], y[test])
        return values
    # The first fit of a process loads compiled code, which is not what is to be measured.
    replace(given, quick=True).fit_lhs()
    if kind == "time":
        _, values[f"{key}/LHS/seconds"] = given.fit_lhs()
        _, values[f"{key}/SVM/seconds"] = given.fit_svm(timed=True)
        return values
    model, values[f"{key}/LHS by MM/seconds"] = given.fit_lhs(solver="mm")
    values[f"{key}/LHS by MM/error"] = 1 - model.score(X[test], y[test])
    return values


def _sides(kernel: str, ours: str, quantity: str) -> dict[str, tuple[str, str]]:
    return {
        name: (f"{name}/{kernel}/{ours}/{quantity}", f"{name}/{kernel}/SVM/{quantity}")
        for name in SETS
    }


def _check(values: Runs) -> Iterator[Check]:
    for kernel, better, faster in (("linear", 10, 15), ("Gaussian", 6, 13)):
        compared = cases(values, _sides(kernel, "LHS", "error"))
        if compared:
            text = f"the {kernel} LHS outperforms the SVM on {better} of 15 data sets"
            yield at_least(text, better, compared)
        for ours, whose in (("LHS", "this package's"), ("LHS by MM", "the paper's")):
            compared = cases(values, _sides(kernel, ours, "seconds"))
            if compared:
                text = (
                    f"the {kernel} LHS, by {whose} algorithm, is faster than the SVM on "
                    f"{faster} of 15 data sets"
                )
                yield at_least(text, faster, compared)


EXPERIMENT = Experiment.of(
    globals(),
    title="Leaky hockey stick, Table 2: fifteen data sets",
    protocol=(
        "Random 2/3 of the rows for training, the rest for testing; features standardised on the "
        "training part (the paper does not mention scaling).",
        "lambda among 100 values from 1 to 1e-7 by 5-fold stratified cross-validation, smallest "
        "error; SVM with C = 1/(2 n lambda) over every fourth of these values (scikit-learn's SVC "
        "on a precomputed kernel), at most 10,000 iterations each.",
        "Gaussian kernel with the width of the authors' package: mean of the inverse 10 % and "
        "90 % quantiles of squared distances.",
        "'LHS by MM' is the paper's own algorithm with its package's tolerance (squared step below "
        "1e-5) and the paper's limit of 10,000 steps over the path, on the runs that are timed.",
        "Time is processor time for tuning and fitting, one process, one BLAS thread, mean of the "
        "first 3 runs as in the paper; the SVM is then fitted for all 100 values.",
        "The set printed as Spectf with 80 rows and 22 features is SPECT.train; Musk has 476 "
        "rows here, 475 in the paper.",
        "Runs: 100, as in the paper. The runs of the paper's own algorithm are older than the "
        "others, its code has not changed since; the times are newer than the errors, and of a "
        "faster solver.",
        "The paper prints standard errors; they equal pooled binomial errors.",
    ),
    cells=_cells(),
)
