"""What the library is for, shown on data that come with scikit-learn and whose truth is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.svm import SVC

from buttress._arrays import Array, BoolArray
from buttress._threads import limited_threads
from buttress.datasets import flip_labels
from buttress.metrics import Estimate
from buttress.model_selection import Judged, Measure
from buttress.model_selection.judging import answers_of, together
from buttress.model_selection.titles import TITLES
from buttress.noise import NoiseAwareClassifier
from buttress.report.comparing import comparison_section
from buttress.report.environment import versions
from buttress.report.fitted import class_table, left_by_itself
from buttress.report.health import data_health
from buttress.report.pictures import picture
from buttress.report.sections import Coverage, Report, Suspects
from buttress.report.suspected import suspects_section
from buttress.tables import TableClassifier, TableEncoder, as_table
from buttress.tables.row_encoding import assemble

# Three in ten cancers were recorded as benign: labels that are wrong in one direction, as those
# of a test that misses cases. Flips in equal shares do a kernel machine little harm here.
MISSED = 0.3
D = 0.2
_RARE, _COMMON = "malignant", "benign"


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows with wrong labels, test rows with the right ones."""

    names: list[str]
    X_train: Array
    y_clean: NDArray[Any]
    y_train: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]

    @property
    def wrong(self) -> BoolArray:
        """Which training labels were changed."""
        return np.asarray(self.y_train != self.y_clean)


def make_split(seed: int) -> Split:
    """Half of the rows to train on, with labels missed; half to test, with the right ones."""
    bunch = load_breast_cancer()
    labels = np.array([_RARE, _COMMON])[bunch.target]
    X_train, X_test, y_clean, y_test = train_test_split(
        bunch.data, labels, test_size=0.5, stratify=labels, random_state=seed
    )
    y_train = flip_labels(y_clean, {_RARE: MISSED}, kind="class", random_state=seed)
    return Split(list(bunch.feature_names), X_train, y_clean, y_train, X_test, y_test)


# -- the models ------------------------------------------------------------------------------

Fit = Callable[[Array, NDArray[Any], int, dict[str, Any]], Any]


def entries() -> dict[str, tuple[str, Fit]]:
    """The models shown: for every short name a title and a function that fits it."""
    fits: dict[str, tuple[str, Fit]] = {"svc": (TITLES["svc"], _fit_svc)}
    if find_spec("cleanlab") is not None:
        fits["cleanlab"] = ("SVC after cleanlab", _fit_cleanlab)
    return fits | {
        "noise-aware": ("noise-aware", _fit_noise_aware),
        "abstaining": ("noise-aware, may abstain", _same_but_abstaining),
    }


def _fit_svc(X: Array, y: NDArray[Any], seed: int, fitted: dict[str, Any]) -> Any:
    return SVC().fit(X, y)


def _fit_cleanlab(X: Array, y: NDArray[Any], seed: int, fitted: dict[str, Any]) -> Any:
    """Leave out the labels that cleanlab calls wrong, and fit to the others."""
    from cleanlab.filter import find_label_issues

    codes = np.unique(y, return_inverse=True)[1]
    witness = CalibratedClassifierCV(SVC(), ensemble=False)
    probabilities = cross_val_predict(witness, X, codes, cv=5, method="predict_proba")
    # By default cleanlab forks processes; from a program with threads these may wait for ever.
    kept = ~find_label_issues(codes, probabilities, n_jobs=1)
    return SVC().fit(X[kept], y[kept])


def _fit_noise_aware(X: Array, y: NDArray[Any], seed: int, fitted: dict[str, Any]) -> Any:
    return NoiseAwareClassifier(random_state=seed).fit(X, y)


def _same_but_abstaining(X: Array, y: NDArray[Any], seed: int, fitted: dict[str, Any]) -> Any:
    """The cost of no answer changes what is answered, and nothing that was fitted."""
    model = copy(fitted["noise-aware"]).set_params(d=D)
    model.thresholds_ = np.array([-(1.0 - 2.0 * D), 1.0 - 2.0 * D])
    return model


# -- the runs --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Demonstration:
    """Every model on several random halves of the data.

    Attributes
    ----------
    splits : list of Split
    models : dict of str to TableClassifier
        Those of the first split.
    judged : dict of str to list of Judged
        For every model one per split.
    """

    splits: list[Split]
    models: dict[str, TableClassifier]
    judged: dict[str, list[Judged]]

    def values(self, kind: str, measure: Measure) -> Array:
        """The loss of a model in every split."""
        return np.array([measure.value(each) for each in self.judged[kind]])

    def interval(self, values: Array) -> Estimate:
        """The mean over splits with a 95 % interval corrected for their overlap.

        The corrected resampled t interval of Nadeau and Bengio (2003): the halves share rows,
        so their spread understates how much another sample would change the mean.
        """
        split = self.splits[0]
        share = len(split.y_test) / len(split.y_train)
        spread = float(np.sqrt((1 / len(values) + share) * values.var(ddof=1)))
        half = float(stats.t.ppf(0.975, len(values) - 1)) * spread
        mean = float(values.mean())
        return Estimate(mean, mean - half, mean + half)

    def loss(self, kind: str, measure: Measure) -> Estimate:
        """The mean loss of a model, with its interval."""
        interval = self.interval(self.values(kind, measure))
        return Estimate(interval.value, max(0.0, interval.low), min(1.0, interval.high))

    def against_svc(self, kind: str, measure: Measure) -> Estimate:
        """By how much a model's loss is above that of the plain SVC, split by split."""
        return self.interval(self.values(kind, measure) - self.values("svc", measure))


def run_demonstration(
    seeds: Sequence[int], jobs: int = -1, advance: Callable[[int], None] = lambda steps: None
) -> Demonstration:
    """Fit every model to every split and judge it on the right labels.

    Parameters
    ----------
    seeds : sequence of int
        One split for each.
    jobs : int
        Splits at a time, in threads.
    advance : function of int
        Told of every split that is done.
    """
    runs = []
    with limited_threads(1):
        for run in Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(
            delayed(_run_split)(seed) for seed in seeds
        ):
            runs.append(run)
            advance(1)
    judged = {kind: [answers[kind] for _, _, answers in runs] for kind in entries()}
    return Demonstration([split for split, _, _ in runs], runs[0][1], judged)


def _run_split(seed: int) -> tuple[Split, dict[str, TableClassifier], dict[str, Judged]]:
    split = make_split(seed)
    train = as_table(split.X_train, names=split.names)
    test = as_table(split.X_test, names=split.names)
    encoder = TableEncoder()
    X_train, X_test = encoder.fit_transform(train), encoder.transform(test)
    fitted: dict[str, Any] = {}
    judged: dict[str, Judged] = {}
    for kind, (title, fit) in entries().items():
        start = time.thread_time()
        fitted[kind] = fit(X_train, split.y_train, seed, fitted)
        seconds = time.thread_time() - start
        answers = answers_of(fitted[kind], X_test, split.y_test, kind, title)
        judged[kind] = replace(answers, seconds=seconds)
    models = {
        kind: assemble(TableClassifier(model), encoder, model) for kind, model in fitted.items()
    }
    return split, models, judged


# -- what is said about it -------------------------------------------------------------------


def findings(shown: Demonstration) -> list[str]:
    """The results in sentences, each with whether it could be chance."""
    sentences = []
    error, cost = Measure("accuracy"), Measure("cost", D)
    for kind, splits in shown.judged.items():
        if kind == "svc":
            continue
        abstains = any(each.rejected.any() for each in splits)
        measure, what = (cost, "cost per row") if abstains else (error, "error")
        ours = shown.values(kind, measure).mean()
        theirs = shown.values("svc", measure).mean()
        gap = shown.against_svc(kind, measure)
        title = splits[0].title
        word = "lower" if gap.value < 0 else "higher"
        chance = (
            "more than chance explains"
            if gap.high < 0 or gap.low > 0
            else "within what chance alone may do"
        )
        sentences.append(
            f"{title[0].upper()}{title[1:]}: {what} {100 * ours:.1f} %, plain SVC "
            f"{100 * theirs:.1f} %; {100 * abs(gap.value):.1f} points {word}, 95 % interval of the "
            f"difference {100 * gap.low:+.1f} to {100 * gap.high:+.1f}: {chance}."
        )
    return sentences


def wrong_labels(shown: Demonstration) -> tuple[Suspects, BoolArray, dict[str, float]]:
    """The labels that look wrong in the first split, beside the truth, and how good the list is.

    Returns
    -------
    Suspects
        With a column of the true label.
    ndarray of bool
        Which rows are listed.
    dict
        ``listed``, ``found``, ``precision`` and ``recall``.
    """
    split = shown.splits[0]
    section, flagged = suspects_section(
        shown.models["noise-aware"].estimator_.suspects_,
        split.y_train,
        np.arange(len(split.y_train)),
        "kernel machines and forests",
    )
    hits = int((flagged & split.wrong).sum())
    counts = {
        "listed": int(flagged.sum()),
        "found": hits,
        "precision": hits / max(1, int(flagged.sum())),
        "recall": hits / max(1, int(split.wrong.sum())),
    }
    truth = (
        f"The labels were changed on purpose, so the truth is known: {hits} of the "
        f"{counts['listed']} listed rows are wrong (precision {100 * counts['precision']:.0f} %), "
        f"and {hits} of the {int(split.wrong.sum())} wrong rows are listed (recall "
        f"{100 * counts['recall']:.0f} %)."
    )
    cells = [[*row, str(split.y_clean[int(row[0]) - 1])] for row in section.rows]
    section = replace(section, columns=[*section.columns, "true"], rows=cells, truth=truth)
    return section, flagged, counts


def demonstration_report(
    shown: Demonstration, suspects: Suspects, flagged: BoolArray, seeds: Sequence[int]
) -> Report:
    """The report of ``buttress demo``."""
    split = shown.splits[0]
    train = as_table(split.X_train, names=split.names)
    cost = Measure("cost", D)
    best = min(shown.judged, key=lambda kind: float(shown.values(kind, cost).mean()))
    model = shown.models[best]
    pooled = [together(splits) for splits in shown.judged.values()]
    first = shown.judged[best][0]
    return Report(
        title=f"Breast cancer, {100 * MISSED:g} % of the malignant training cases labelled benign",
        summary=[*findings(shown), suspects.truth],
        health=data_health(train, split.y_train),
        comparison=comparison_section(
            pooled,
            cost,
            best,
            f"Mean over {len(seeds)} random halves of the data: fitted to {len(split.y_train)} "
            f"rows with wrong labels, judged on the {len(split.y_test)} others with right ones. "
            "Intervals are corrected for the overlap of the halves (Nadeau and Bengio). Seconds "
            f"are processor time of all {len(seeds)} fits; the model that may abstain is the "
            "noise-aware one with a threshold, and is not fitted again.",
            badge="smallest",
            losses=[shown.loss(each.kind, cost) for each in pooled],
        ),
        classes=replace(class_table(first), where="the test rows of the first half"),
        coverage=Coverage.from_answers(
            split.y_test,
            first.answers,
            first.confidence,
            D,
            f"Answers and confidences of {first.title} on the test rows of the first half."
            f"{left_by_itself(first)}",
        ),
        suspects=suspects,
        picture=picture(model, train, model.encode(train), split.y_train, flagged),
        settings={
            "data": "Wisconsin breast cancer, as shipped with scikit-learn",
            "training labels changed": f"{100 * MISSED:g} % of the malignant, to benign",
            "models": ", ".join(title for title, _ in entries().values()),
            "seeds": ", ".join(map(str, seeds)),
            **versions(),
        },
    )
