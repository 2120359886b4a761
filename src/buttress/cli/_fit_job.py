"""The work of ``buttress fit``: read, plan, choose, save, report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from buttress.cli._blocks import fit_blocks, refuse_in_blocks
from buttress.cli._compiled import compile_kinds
from buttress.cli._console import Output, limit_threads
from buttress.cli._corrected import corrected
from buttress.cli._fit_results import as_record, describe, print_comparison, quality
from buttress.cli._inputs import (
    Data,
    Decimal,
    Missing,
    fingerprint,
    guard_files,
    names,
    read_data,
)
from buttress.cli._models import (
    Approximation,
    Metric,
    Model,
    check_cost,
    check_coverage,
    class_weights_of,
    measure_of,
    seconds_of,
)
from buttress.model_selection.titles import ANSWERING, TITLES

if TYPE_CHECKING:
    from buttress.model_selection import Measure
    from buttress.noise import CleanScore
    from buttress.report import Report
    from buttress.tables.automatic import Chosen

# The budget when none is given.
BUDGET = "2m"


@dataclass(frozen=True)
class FitOptions:
    """The options of the command, by their names."""

    data: Path
    target: str
    model: Model
    d: float | None
    metric: Metric | None
    class_weight: str | None
    target_coverage: float | None
    time: str | None
    out: Path
    report: Path | None
    corrections: Path | None
    missing: Missing
    categorical: str | None
    ignore: str | None
    decimal: Decimal
    folds: int
    approximation: Approximation | None
    dask: str | None
    json: bool
    quiet: bool
    seed: int
    jobs: int

    def read(self, source: Path) -> Data:
        """Read a file as these options say."""
        return read_data(
            source,
            self.target,
            missing=self.missing,
            categorical=self.categorical,
            ignore=self.ignore,
            folds=self.folds,
            decimal=self.decimal,
        )


def run_fit(options: FitOptions) -> None:
    """Check everything that can be checked, then fit."""
    say = Output(options.json, options.quiet)
    check_cost(options.d)
    check_coverage(options.target_coverage, options.model)
    budget = seconds_of(BUDGET if options.time is None else options.time)
    outputs = {"--out": options.out, "--report": options.report}
    guard_files([options.data, options.corrections], outputs)
    if options.dask is not None or options.data.is_dir():
        _fit_in_blocks(options, say)
        return
    from buttress.report.truth import score_on_true_labels, wrong_label_shares

    source = corrected(options.data, options.corrections, options.target)
    with limit_threads(options.jobs), source as path:
        read = options.read(path)
        weights = class_weights_of(options.class_weight, read.labels)
        measure = measure_of(options.metric, options.d, options.model is Model.reject)
        costed = measure.name == "cost"
        kinds = _kinds(options.model, costed, options.approximation, weights is not None)
        say.say(describe(options.data, read))
        chosen = _choose(options, read, kinds, measure, weights, budget, say)
        _save(chosen, options, read, measure)  # what follows only tells of it
        print_comparison(say, chosen, measure)
        score = score_on_true_labels(chosen.judged, measure)
        wrong = wrong_label_shares(score)
        say.say(quality(chosen, measure, wrong))
        changes = None
        if options.corrections is not None:
            before = options.read(options.data)
            changes = _before_and_after(chosen, read, before, options.seed)
            say.say("\n".join(changes["sentences"]))
        say.say(f"wrote {options.out} ({options.out.stat().st_size} bytes)")
        if options.report is not None:
            from buttress.report import write_report

            told = changes["sentences"] if changes else []
            page = _report(chosen, options, read, measure, weights, score)
            write_report(replace(page, summary=[*page.summary, *told]), options.report)
            say.say(f"wrote {options.report}")
    record = as_record(chosen, options, read, measure, wrong)
    say.result(record | {"corrections": changes})


def _fit_in_blocks(options: FitOptions, say: Output) -> None:
    """Rows that are never held all at once: fewer options apply."""
    refused = {
        "--metric": options.metric,
        "--class-weight": options.class_weight,
        "--report": options.report,
        "--corrections": options.corrections,
        "--target-coverage": options.target_coverage,
        "--time": options.time,
        "--missing": None if options.missing is Missing.error else options.missing,
        "--categorical": options.categorical,
        "--decimal": None if options.decimal is Decimal.point else options.decimal,
        "--d": None if options.model is Model.reject else options.d,
    }
    refuse_in_blocks(refused)
    fit_blocks(options, say)


def _choose(
    options: FitOptions,
    read: Data,
    kinds: list[str],
    measure: Measure,
    weights: Any,
    budget: float,
    say: Output,
) -> Chosen:
    from buttress.model_selection.candidates import Request
    from buttress.model_selection.cost_model import Size
    from buttress.model_selection.planning import Planner, available_threads
    from buttress.tables.automatic import RaceRules, choose_model, encoded_width

    size = Size(len(read.labels), encoded_width(read.table), len(read.classes))
    planning: dict[str, Any] = {
        "generous": options.time is not None,
        "threads": available_threads(options.jobs),
        "folds": options.folds,
    }
    # The compiler's time is nobody's: it is spent before the clock of the budget starts.
    landmarks = size.rows > max(Planner(size, budget, **planning).samples(kinds))
    compile_kinds(
        [*kinds, *(["ramp"] if options.report is not None else [])],
        say,
        landmarks or options.approximation is not None,
    )
    planner = Planner(size, budget, **planning)
    report = options.report is not None
    say.say(planner.sentence(kinds, report))
    request = Request(
        d=measure.d,
        seed=options.seed,
        folds=options.folds,
        class_weight=weights,
        scoring=measure.scoring(len(read.classes)),
        target_coverage=options.target_coverage,
        jobs=None if len(kinds) > 1 else options.jobs,
    )
    rules = RaceRules(
        planner,
        measure,
        request,
        yardstick=len(kinds) > 1 or report,
        jobs=options.jobs,
        verbose=say.verbose,
        say=say.say,
    )
    chosen = choose_model(
        read.table,
        read.labels,
        kinds,
        rules,
        target=options.target,
        missing=str(options.missing),
        approximation=options.approximation.value if options.approximation else None,
    )
    chosen.model.ignore = names(options.ignore)
    return chosen


def _kinds(
    model: Model, costed: bool, approximation: Approximation | None, weighted: bool
) -> list[str]:
    """The candidates, without those that a further option rules out."""
    from buttress.model_selection.candidates import takes_approximation, takes_class_weight

    kinds = [model.value]
    if model is Model.auto:
        kinds = [*ANSWERING, *(["reject"] if costed else [])]
    kept = kinds
    for option, wanted, takes in (
        ("--approximation", approximation is not None, takes_approximation),
        ("--class-weight", weighted, takes_class_weight),
    ):
        if wanted:
            kept = [kind for kind in kept if takes(kind)]
            if not kept:
                raise typer.BadParameter(f"{option} does not apply to --model {model.value}")
    return kept


def _before_and_after(chosen: Chosen, read: Data, before: Data, seed: int) -> dict[str, Any]:
    """What the corrections change, for people and for programs."""
    from buttress.review.effect import as_record, effect_of_corrections, sentences

    was, now = effect_of_corrections(
        chosen.model, read.table, before.labels, read.labels, seed=seed
    )
    n_changed = int((before.labels.astype(str) != read.labels.astype(str)).sum())
    told = sentences(was, now, n_changed)
    return {"before": as_record(was), "after": as_record(now), "sentences": told}


def _report(
    chosen: Chosen,
    options: FitOptions,
    read: Data,
    measure: Measure,
    weights: Any,
    score: CleanScore | None,
) -> Report:
    """The report, from what was found."""
    from buttress.model_selection.candidates import Request
    from buttress.report import fit_report

    folds = options.folds
    asked = Request(
        d=measure.d,
        seed=options.seed,
        folds=folds,
        class_weight=weights,
        jobs=options.jobs,
    )
    return fit_report(
        str(options.data),
        read.table,
        read.labels,
        chosen,
        measure=measure,
        request=asked,
        folds=folds,
        on_true_labels=score,
    )


def _save(chosen: Chosen, options: FitOptions, read: Data, measure: Measure) -> None:
    from buttress.persistence import save

    loss = measure.estimate(chosen.judged)
    chosen.model.record_ = {
        "model": TITLES[chosen.kind],
        "rows": len(read.labels),
        "seed": options.seed,
        "folds": options.folds,
        "missing": str(options.missing),
        **({"d": measure.d} if chosen.kind == "reject" else {}),
        **({"chosen because": chosen.why} if len(chosen.race.judged) > 1 else {}),
        "data sha256": fingerprint(options.data),
        f"held-out {measure.title}": round(loss.value, 6),
        "fitted to rows": chosen.final.rows,
    }
    save(chosen.model, options.out)
