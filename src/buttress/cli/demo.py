"""``buttress demo``: the main job on data that come with scikit-learn."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import guard_files
from buttress.model_selection.titles import TITLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from buttress.model_selection import Judged

app = typer.Typer(rich_markup_mode="markdown")

FLIPPED = 0.15
D = 0.2
KINDS = ("svc", "leaky", "ramp", "reject", "online")


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows with wrong labels, test rows with the right ones."""

    names: list[str]
    X_train: NDArray[Any]
    y_clean: NDArray[Any]
    y_train: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML report to write.")] = Path(
        "buttress-report.html"
    ),
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Compare the models on the Wisconsin breast cancer data with 15 % of the labels flipped.

    Needs no file and no network. Prints how every model does on clean test labels and which
    flipped rows the ramp classifier found, and writes a report.

    **Example:** `buttress demo --out report.html`
    """
    say = Output(json, quiet)
    guard_files([], {"--out": out})
    start = time.perf_counter()
    helper = None
    if not compiled_before():
        say.note("first run: compiling the solvers, once per installation ...")
        helper = compile_beside()
    with limit_threads(jobs):
        from buttress.report import write_report

        split = make_split(seed)
        n_flipped = int((split.y_train != split.y_clean).sum())
        say.say(
            f"Wisconsin breast cancer: {len(split.y_train)} training rows, {n_flipped} of their "
            f"labels flipped; {len(split.y_test)} test rows with clean labels"
        )
        models, judged = run_models(split, seed, say, helper)
        _print(say, judged)
        page, found = make_report(split, models, judged, seed)
        say.say(
            f"of {n_flipped} flipped labels the ramp classifier lists {found['found']} in "
            f"{found['listed']} suspects: precision {100 * found['precision']:.0f} %, recall "
            f"{100 * found['recall']:.0f} %"
        )
        write_report(page, out)
    seconds = time.perf_counter() - start
    say.say(f"wrote {out} ({seconds:.1f} s)")
    say.result(
        {
            "flipped": n_flipped,
            "d": D,
            "models": [summary(each) for each in judged],
            "suspects": found,
            "report": str(out),
            "seconds": seconds,
        }
    )


def compiled_before() -> bool:
    """Whether Numba's cache of this installation holds compiled solvers."""
    import os

    import buttress

    folders = [Path(buttress.__file__).parent]
    if os.environ.get("NUMBA_CACHE_DIR"):
        folders = [Path(os.environ["NUMBA_CACHE_DIR"])]
    return any(next(folder.rglob("*.nbi"), None) is not None for folder in folders)


def compile_beside() -> Any:
    """Start a process that compiles what the later models need, while the first one is fitted.

    Numba compiles one function at a time in a process, and keeps the result on disk for all.
    """
    return subprocess.Popen(
        [sys.executable, "-c", "from buttress.cli.demo import warm_up; warm_up()"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def warm_up() -> None:
    """Fit the models that `compile_beside` is for to a few rows."""
    from buttress.model_selection.candidates import Request, make_candidate

    split = make_split(0)
    for kind in ("ramp", "online", "reject"):
        make_candidate(kind, Request(folds=2)).fit(split.X_train[:60], split.y_train[:60])


def make_split(seed: int) -> Split:
    """Half of the rows to train on, standardised, with flipped labels; half to test."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    from buttress.datasets import flip_labels

    bunch = load_breast_cancer()
    labels = np.array(["malignant", "benign"])[bunch.target]
    X_train, X_test, y_clean, y_test = train_test_split(
        bunch.data, labels, test_size=0.5, stratify=labels, random_state=seed
    )
    y_train = flip_labels(y_clean, FLIPPED, random_state=seed)
    return Split(list(bunch.feature_names), X_train, y_clean, y_train, X_test, y_test)


def run_models(
    split: Split, seed: int, say: Output, helper: Any = None
) -> tuple[dict[str, Any], list[Judged]]:
    """Fit every model on the flipped labels and judge it on the clean ones.

    `helper` is waited for before the first model whose code it compiles.
    """
    from buttress._progress import progress
    from buttress.metrics.costs import cost_on_noisy_labels
    from buttress.model_selection.candidates import Request, make_candidate
    from buttress.model_selection.judging import answers_of
    from buttress.tables import TableClassifier, as_table

    train = as_table(split.X_train, names=split.names)
    test = as_table(split.X_test, names=split.names)
    models: dict[str, Any] = {}
    judged = []
    with progress("fitting", len(KINDS), say.verbose) as advance:
        for kind in KINDS:
            if kind == "ramp" and helper is not None:
                helper.wait()
            start = time.perf_counter()
            cost = D
            if kind == "reject":
                rates = list(models["ramp"].estimator_.noise_rates_.values())
                cost = cost_on_noisy_labels(D, sum(rates) / len(rates))
            estimator = make_candidate(kind, Request(d=cost, seed=seed))
            model = TableClassifier(estimator).fit(train, split.y_train)
            seconds = time.perf_counter() - start
            models[kind] = model
            found = answers_of(
                model.estimator_, model.encode(test), split.y_test, kind, TITLES[kind]
            )
            judged.append(replace(found, seconds=seconds))
            advance(1)
    return models, judged


def summary(each: Judged) -> dict[str, Any]:
    """One model's result as plain values."""
    risk = each.risk(D)
    return {
        "model": each.kind,
        "title": each.title,
        "accuracy": each.accuracy,
        "answered": each.coverage,
        "risk": risk.value,
        "low": risk.low,
        "high": risk.high,
        "seconds": each.seconds,
    }


def _print(say: Output, judged: list[Judged]) -> None:
    rows = [
        (
            each.title,
            f"{100 * each.accuracy:.1f} %",
            f"{100 * each.coverage:.1f} %",
            f"{each.risk(D).value:.4f}",
            f"{each.seconds:.2f}",
        )
        for each in judged
    ]
    columns = ["model", "accuracy of answers", "answered", f"0-d-1 risk, d = {D:g}", "seconds"]
    say.table(columns, rows)


def make_report(
    split: Split, models: dict[str, Any], judged: list[Judged], seed: int
) -> tuple[Any, dict[str, Any]]:
    """The report, and how well the flipped labels were found."""
    import numpy as np

    from buttress.model_selection import Measure
    from buttress.report import (
        Coverage,
        Report,
        comparison_section,
        data_health,
        path_section,
        picture,
        suspects_section,
        versions,
    )
    from buttress.tables import as_table

    train = as_table(split.X_train, names=split.names)
    ramp = models["ramp"]
    encoded = ramp.encode(train)
    suspects, flagged = suspects_section(
        ramp.estimator_, encoded, split.y_train, np.arange(len(split.y_train)), 5
    )
    flips = split.y_train != split.y_clean
    hits = int((flagged & flips).sum())
    found = {
        "listed": int(flagged.sum()),
        "found": hits,
        "precision": hits / max(1, int(flagged.sum())),
        "recall": hits / max(1, int(flips.sum())),
    }
    best = min(judged, key=lambda each: each.risk(D).value)
    by_kind = {each.kind: each for each in judged}
    truth = (
        f"The labels were flipped on purpose, so the truth is known: {hits} of the "
        f"{found['listed']} listed rows are flipped (precision {100 * found['precision']:.0f} %), "
        f"and {hits} of the {int(flips.sum())} flipped rows are listed (recall "
        f"{100 * found['recall']:.0f} %)."
    )
    page = Report(
        title="Breast cancer with 15 % of the training labels flipped",
        summary=[
            f"{best.title[0].upper()}{best.title[1:]} has the smallest cost on clean test labels: "
            f"{best.risk(D).value:.4f} per row, when a wrong answer costs 1 and none {D:g}.",
            f"Plain SVC answers {100 * by_kind['svc'].accuracy:.1f} % of the test rows rightly, "
            f"the ramp classifier {100 * by_kind['ramp'].accuracy:.1f} %.",
            truth,
        ],
        health=data_health(train, split.y_train),
        comparison=comparison_section(
            judged,
            Measure("cost", D),
            best.kind,
            f"Fitted to {len(split.y_train)} rows with flipped labels, judged on "
            f"{len(split.y_test)} others with clean labels (Clopper-Pearson intervals). The double "
            f"ramp was trained with the cost {models['reject'].estimator_.d:.2f}, which the share "
            f"of wrong labels estimated by the ramp classifier turns into {D:g} on clean labels.",
            badge="smallest",
        ),
        path=path_section(models["leaky"].estimator_),
        coverage=Coverage.from_answers(
            split.y_test,
            by_kind["ramp"].answers,
            by_kind["ramp"].confidence,
            D,
            "Answers and confidences of the ramp classifier on the clean test rows.",
        ),
        suspects=replace(suspects, truth=truth),
        picture=picture(ramp, train, encoded, split.y_train, flagged),
        settings={
            "data": "Wisconsin breast cancer, as shipped with scikit-learn",
            "training labels flipped": f"{100 * FLIPPED:g} %",
            "models": ", ".join(TITLES[kind] for kind in KINDS),
            "seed": str(seed),
            **versions(),
        },
    )
    return page, found
