"""What Tables 3, 4 and 5 of the double ramp paper share: repeated 10-fold cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress.datasets import load_dataset
from buttress.experiments._claims import always, cases
from buttress.experiments._grids import grid, read_printed
from buttress.experiments._model import Check, Experiment, Plan, Runs, Task, Values
from buttress.experiments._papers import paper_of
from buttress.experiments._sampling import folds, generator

COSTS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
METHODS = ("double ramp", "double hinge", "Chow on a calibrated SVC", "generalised hinge")
# What one task runs: the columns of the paper with Chow's rule, and the rival it names but omits.
KINDS = {"paper": METHODS[:3], "generalised hinge": METHODS[3:]}
_UNITS = {"risk": "risk", "RR": "rejected (%)", "accuracy": "accuracy (%)"}
_QUICK_ROWS = 120


_PROTOCOL = (
    "10 repetitions of 10-fold cross-validation, as in the paper; the counts of the ten "
    "folds are pooled into risk = (errors + d rejected) / n, rejection rate and accuracy "
    "on the answered rows of a repetition.",
    "C and the kernel width are the printed ones; mu = 1; the search starts at zero.",
    "The double hinge rejects where |f| <= log((1 - d) / d).",
    "Chow's rule on an SVC with the kernel and C of the double ramp, calibrated by 5-fold "
    "sigmoid fits, is ours; the paper does not print it.",
    "The generalised hinge, which the paper defines beside the double hinge and leaves out of "
    "its tables, has the double hinge's C times d^2/H(d), H the entropy. That makes them the "
    "same machine up to scale: they differ by the threshold alone, 0.5 here.",
    "The paper prints standard deviations over its 10 repetitions. They describe the choice "
    "of folds, not of data.",
)


@dataclass(frozen=True, kw_only=True)
class RejectTable:
    """One of the three tables: its set, the machines with the printed parameters, the numbers.

    Attributes
    ----------
    number : int
    name, title : str
        Of the set.
    load : callable, optional
        (plan, number of the repetition) -> rows and labels; the set as it is by default.
    ramp_C, hinge_C : float
        C of the double ramp (and of Chow's SVC), and of the double hinge.
    kernel : mapping
        The kernel, as classifiers take it.
    printed : str
        Lines ``d, (risk sd RR sd accuracy sd) of both methods``.
    protocol : tuple of str
        What is said of this set alone.
    exceptions : tuple of str
        The values of d at which the paper does not claim a lower risk.
    unknown, remarks : mapping
        Method -> what is said of its cells.
    one_draw : bool
        As in `Cell`.
    version : int
        As in `Experiment`.
    """

    number: int
    name: str
    title: str
    ramp_C: float
    hinge_C: float
    kernel: Mapping[str, Any]
    printed: str
    protocol: tuple[str, ...]
    exceptions: tuple[str, ...]
    unknown: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    one_draw: bool = False
    version: int = 1
    load: Callable[[Plan, int], tuple[NDArray[Any], NDArray[Any]]] | None = None

    def rows(self, plan: Plan, repeat: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows and labels of a repetition."""
        if self.load is not None:
            return self.load(plan, repeat)
        bunch = load_dataset(self.name)
        return bunch.X, bunch.y

    def models(self) -> dict[str, Any]:
        """The machine of every method."""
        from sklearn.svm import SVC

        from buttress.classifiers import (
            ChowRejector,
            DoubleHingeClassifier,
            DoubleRampClassifier,
            GeneralizedHingeClassifier,
        )

        machines = (
            DoubleRampClassifier(C=self.ramp_C, **self.kernel),
            DoubleHingeClassifier(C=self.hinge_C, **self.kernel),
            ChowRejector(SVC(C=self.ramp_C, **self.kernel), calibration="sigmoid"),
            GeneralizedHingeClassifier(C=self.hinge_C, **self.kernel),
        )
        return dict(zip(METHODS, machines, strict=True))

    def experiment(self) -> Experiment:
        """The table as an experiment."""
        name = f"double-ramp-table{self.number}"
        columns = [f"{method}/{what}" for method, what in product(METHODS[:2], _UNITS)]
        return Experiment(
            name=name,
            title=f"Double ramp, Table {self.number}: {self.title}",
            paper=paper_of(name),
            protocol=(*self.protocol, *_PROTOCOL),
            cells=grid(
                {"d": COSTS, "method": METHODS, "quantity": list(_UNITS)},
                group=self.name,
                printed=read_printed(self.printed, 1, columns),
                paper_runs=10,
                better={"risk": "lower", "RR": None, "accuracy": "higher"},
                unit=_UNITS,
                scale={"RR": 100.0, "accuracy": 100.0},
                one_draw=self.one_draw,
                unknown=self.unknown,
                remark=self.remarks,
            ),
            tasks=self._tasks,
            run=self._run,
            check=self._check,
            fills=_fills,
            version=self.version,
        )

    def _tasks(self, plan: Plan) -> list[Task]:
        names = {"paper": "repeat", "generalised hinge": "generalised hinge"}
        return [
            Task(f"{names[kind]} {repeat}", self.name, {"repeat": repeat, "kind": kind})
            for kind, repeat in product(KINDS, range(plan.runs(10, 2)))
        ]

    def _run(self, plan: Plan, repeat: int, kind: str) -> Values:
        """One repetition of 10-fold cross-validation, all costs, from the folds' pooled counts."""
        X, y = self.rows(plan, repeat)
        random = generator(plan.seed, repeat)
        if plan.quick:
            kept = random.permutation(len(y))[:_QUICK_ROWS]
            X, y = X[kept], y[kept]
        costs = (0.1, 0.3) if plan.quick else COSTS
        counts = {(method, d): np.zeros(2) for method, d in product(KINDS[kind], costs)}
        for train, test in folds(len(y), 5 if plan.quick else 10, random):
            for method in KINDS[kind]:
                model = self.models()[method]
                for d in costs:
                    fitted = _fitted(method, model, d, X[train], y[train])
                    counts[method, d] += lost(fitted, X[test], y[test])
                    model = fitted if method == METHODS[2] else model
        values: Values = {}
        for (method, d), (wrong, rejected) in counts.items():
            key, n = f"{d:g}/{method}", len(y)
            values[f"{key}/risk"] = (wrong + d * rejected) / n
            values[f"{key}/RR"] = rejected / n
            values[f"{key}/accuracy"] = 1 - wrong / (n - rejected) if rejected < n else np.nan
        return values

    def _check(self, values: Runs) -> Iterator[Check]:
        """The paper's two sentences about its three tables."""
        risk, rejected = (
            cases(
                values,
                {
                    f"{d:g}": (f"{d:g}/{METHODS[0]}/{what}", f"{d:g}/{METHODS[1]}/{what}")
                    for d in COSTS
                },
            )
            for what in ("risk", "RR")
        )
        if len(risk) < len(COSTS):
            return
        but = ", ".join(self.exceptions)
        text = f"the double ramp's risk is lower except for d = {but}"
        yield always(text, risk, unless=self.exceptions)
        # At d = 0.5 neither method rejects, so there is nothing to be less.
        text = "the double ramp rejects less for all values of d"
        yield always(text, [case for case in rejected if case[0] != "0.5"])


def _fills(task: Task, cell: str) -> bool:
    return cell.split("/")[1] in KINDS[task.arguments["kind"]]


def _fitted(method: str, model: Any, d: float, X: NDArray[Any], y: NDArray[Any]) -> Any:
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    from buttress.classifiers import ChowRejector
    from buttress.losses import DoubleHinge

    if method == METHODS[2] and hasattr(model, "estimator_"):
        # The probabilities do not depend on d: calibrated once per fold.
        frozen = FrozenEstimator(model.estimator_)
        return ChowRejector(frozen, d=d, calibration=None).fit(X, y)
    model = clone(model).set_params(d=d)
    if method == METHODS[3]:
        # the double hinge's machine: only the threshold differs
        model.set_params(C=model.C * d**2 / DoubleHinge(d).entropy)
    return model.fit(X, y)


def lost(model: Any, X: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """How many rows a machine gets wrong, and how many it refuses."""
    refused = np.asarray(model.reject(X))
    return np.array([np.sum((model.predict(X) != y) & ~refused), refused.sum()])
