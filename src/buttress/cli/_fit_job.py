"""The work of ``buttress fit``: read, plan, choose, save, report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from buttress.cli._blocks import fit_blocks
from buttress.cli._console import Output, limit_threads
from buttress.cli._corrected import corrected
from buttress.cli._fit_results import as_record, describe, print_comparison, quality
from buttress.cli._inputs import Data, fingerprint, guard_files, names
from buttress.cli._models import (
    Approximation,
    Model,
    check_cost,
    check_coverage,
    class_weights_of,
    measure_of,
    seconds_of,
)
from buttress.cli.fit import BUDGET, FitOptions
from buttress.model_selection.titles import ANSWERING, TITLES

if TYPE_CHECKING:
    from buttress.model_selection import Measure
    from buttress.model_selection.candidates import Request
    from buttress.tables.automatic import Chosen


def run_fit(options: FitOptions) -> None:
    """Check everything that can be checked, then fit."""
    say = options.output()
    check_cost(options.d)
    check_coverage(options.target_coverage, options.model)
    budget = seconds_of(BUDGET if options.time is None else options.time)
    outputs = {"--out": options.out, "--report": options.report}
    guard_files([options.data, options.corrections], outputs)
    if options.dask is not None or options.data.is_dir():
        _refuse_in_blocks(options)
        fit_blocks(options, say)
        return
    from buttress.model_selection.candidates import Request
    from buttress.report.truth import score_on_true_labels, wrong_label_shares

    source = corrected(options.data, options.corrections, options.target)
    with limit_threads(options.jobs), source as path:
        read = options.read(path, options.target, options.folds)
        weights = class_weights_of(options.class_weight, read.labels)
        measure = measure_of(options.metric, options.d, options.model == "reject")
        costed = measure.name == "cost"
        kinds = _kinds(options.model, costed, options.approximation, weights is not None)
        say.say(describe(options.data, read))
        request = Request(
            d=measure.d,
            seed=options.seed,
            folds=options.folds,
            class_weight=weights,
            scoring=measure.scoring(len(read.classes)),
            target_coverage=options.target_coverage,
            jobs=options.jobs,
        )
        chosen = _choose(options, read, kinds, measure, request, budget, say)
        _save(chosen, options, read, measure)  # what follows only tells of it
        print_comparison(say, chosen, measure)
        score = score_on_true_labels(chosen.judged, measure)
        wrong = wrong_label_shares(score)
        say.say(quality(chosen, measure, wrong))
        changes = None
        if options.corrections is not None:
            before = options.read(options.data, options.target, options.folds)
            changes = _before_and_after(chosen, read, before, options.seed)
            say.say("\n".join(changes["sentences"]))
        say.say(f"wrote {options.out} ({options.out.stat().st_size} bytes)")
        if options.report is not None:
            from buttress.report import fit_report, write_report

            page = fit_report(
                str(options.data),
                read.table,
                read.labels,
                chosen,
                measure=measure,
                request=request,
                folds=options.folds,
                on_true_labels=score,
                numbers=read.numbers,
            )
            told = changes["sentences"] if changes else []
            write_report(replace(page, summary=[*page.summary, *told]), options.report)
            say.say(f"wrote {options.report}")
    record = as_record(chosen, options, read, measure, wrong)
    say.result(record | {"corrections": changes})


def _refuse_in_blocks(options: FitOptions) -> None:
    """For rows that are never held all at once fewer options apply."""
    given = {
        "--metric": options.metric,
        "--class-weight": options.class_weight,
        "--report": options.report,
        "--corrections": options.corrections,
        "--target-coverage": options.target_coverage,
        "--time": options.time,
        "--missing": None if options.missing == "error" else options.missing,
        "--categorical": options.categorical,
        "--decimal": None if options.decimal == "." else options.decimal,
        "--d": None if options.model == "reject" else options.d,
    }
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"{option} does not apply to --dask and directories")


def _choose(
    options: FitOptions,
    read: Data,
    kinds: list[str],
    measure: Measure,
    request: Request,
    budget: float,
    say: Output,
) -> Chosen:
    from buttress.model_selection.cost_model import Size
    from buttress.model_selection.planning import Planner, available_threads
    from buttress.model_selection.preparing import jobs_of_kinds
    from buttress.model_selection.racing import RaceRules
    from buttress.tables.automatic import choose_model
    from buttress.tables.row_encoding import encoded_width

    size = Size(len(read.labels), encoded_width(read.table), len(read.classes))
    planning: dict[str, Any] = {
        "generous": options.time is not None,
        "threads": available_threads(options.jobs),
        "folds": options.folds,
    }
    report = options.report is not None
    # The compiler's time is nobody's: it is spent before the clock of the budget starts.
    landmarks = size.rows > max(Planner(size, budget, **planning).samples(kinds))
    compiled = [*kinds, "ramp"] if report else kinds
    say.compile(jobs_of_kinds(compiled, landmarks or options.approximation is not None))
    planner = Planner(size, budget, **planning)
    say.say(planner.sentence(kinds, report))
    rules = RaceRules(
        planner,
        measure,
        replace(request, jobs=None) if len(kinds) > 1 else request,
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
        missing=options.missing,
        approximation=options.approximation,
    )
    chosen.model.ignore = names(options.ignore)
    return chosen


def _kinds(
    model: Model, costed: bool, approximation: Approximation | None, weighted: bool
) -> list[str]:
    """The candidates, without those that a further option rules out."""
    from buttress.model_selection.candidates import takes_approximation, takes_class_weight

    kinds: list[str] = [model]
    if model == "auto":
        kinds = [*ANSWERING, *(["reject"] if costed else [])]
    kept = kinds
    for option, wanted, takes in (
        ("--approximation", approximation is not None, takes_approximation),
        ("--class-weight", weighted, takes_class_weight),
    ):
        if wanted:
            kept = [kind for kind in kept if takes(kind)]
            if not kept:
                raise typer.BadParameter(f"{option} does not apply to --model {model}")
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


def _save(chosen: Chosen, options: FitOptions, read: Data, measure: Measure) -> None:
    from buttress.persistence import save

    loss = measure.estimate(chosen.judged)
    chosen.model.record_ = {
        "model": TITLES[chosen.kind],
        "rows": len(read.labels),
        "seed": options.seed,
        "folds": options.folds,
        "missing": options.missing,
        **({"d": measure.d} if chosen.kind == "reject" else {}),
        **({"chosen because": chosen.why} if len(chosen.race.judged) > 1 else {}),
        "data sha256": fingerprint(options.data),
        f"held-out {measure.title}": round(loss.value, 6),
        "fitted to rows": chosen.final.rows,
    }
    save(chosen.model, options.out)
