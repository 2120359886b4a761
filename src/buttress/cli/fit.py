"""``buttress fit``: from a file to a saved model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._blocks import fit_blocks, refuse_in_blocks
from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._corrected import corrected
from buttress.cli._inputs import (
    Data,
    Decimal,
    DecimalMark,
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
    from buttress.model_selection import Judged, Measure
    from buttress.tables.automatic import Chosen

app = typer.Typer(rich_markup_mode="markdown")

# The budget when none is given.
_BUDGET = "2m"


@app.command()
def fit(
    data: Annotated[Path, typer.Argument(help="CSV (also .csv.gz) or Parquet file.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Column of the labels.")],
    model: Annotated[Model, typer.Option(help="The kind of model; auto compares them.")] = (
        Model.auto
    ),
    d: Annotated[
        float | None,
        typer.Option("--d", help="Cost of no answer, in (0, 0.5]; lets auto choose to abstain."),
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(help="What decides between models: accuracy, or cost when --d is given."),
    ] = None,
    class_weight: Annotated[
        str | None, typer.Option(help="Weights of the classes: balanced, or label=2,other=1.")
    ] = None,
    target_coverage: Annotated[
        float | None,
        typer.Option(help="Share of rows that the model that abstains should answer."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help=f"Time for comparing and fitting: 60s, 10m; {_BUDGET} if not given."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")] = Path(
        "model.skops"
    ),
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write; none if not given.")
    ] = None,
    corrections: Annotated[
        Path | None,
        typer.Option(help="Corrections of a review to apply first; shows before and after."),
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="What a missing value does: stop, be filled in, drop its row.")
    ] = Missing.error,
    categorical: Annotated[
        str | None, typer.Option(help="Columns that are categories though they hold numbers: a,b.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out: id,name.")] = None,
    decimal: DecimalMark = Decimal.point,
    folds: Annotated[int, typer.Option(min=2, max=20, help="Folds of the cross-validation.")] = 5,
    approximation: Annotated[
        Approximation | None,
        typer.Option(help="Feature map to fit with; by size and time if not given."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Fit Parquet files on a Dask cluster: its address, or 'local'."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Fit a model to a file and save it with everything that a prediction needs.

    Numeric columns are standardised, text columns become one-hot. --model auto compares every
    kind on shared folds with scikit-learn's plain SVC beside them and keeps the best: by error
    rate, with --d by the 0-d-1 risk with the abstaining model taking part, or by --metric.
    What is compared on a sample and what on all rows follows from the size and from --time.

    **Examples:**

    - `buttress fit patients.csv --target diagnosis`

    - `buttress fit patients.csv --target diagnosis --model reject --d 0.1 --report report.html`

    - `buttress fit patients.csv --target diagnosis --corrections corrections.csv`

    - `buttress fit rare.csv --target y --class-weight balanced --metric f1 --time 5m`

    - `buttress fit big.parquet --target y --approximation nystroem --dask tcp://10.0.0.1:8786`

    With --dask, and for a directory of Parquet files, rows are read in blocks and never held
    all at once; columns must be numbers, and --model auto means leaky.
    """
    say = Output(json, quiet)
    check_cost(d)
    check_coverage(target_coverage, model)
    budget = seconds_of(time or _BUDGET)
    guard_files([data, corrections], {"--out": out, "--report": report})
    if dask is not None or data.is_dir():
        refused = {"--metric": metric, "--class-weight": class_weight, "--report": report}
        refused |= {"--corrections": corrections}
        refuse_in_blocks(refused | {"--target-coverage": target_coverage, "--time": time})
        fit_blocks(
            data, target, model, d or 0.2, out, ignore, folds, approximation, dask, seed, say
        )
        return
    reading: dict[str, Any] = {
        "missing": missing,
        "categorical": categorical,
        "ignore": ignore,
        "folds": folds,
        "decimal": decimal,
    }
    with limit_threads(jobs), corrected(data, corrections, target) as source:
        read = read_data(source, target, **reading)
        weights = class_weights_of(class_weight, read.labels)
        measure = measure_of(metric, d, model is Model.reject)
        kinds = _kinds(model, measure.name == "cost", approximation, weights is not None)
        say.say(_describe(data, read))
        chosen = _choose(
            read,
            kinds,
            measure,
            weights,
            target=target,
            missing=str(missing),
            folds=folds,
            seed=seed,
            jobs=jobs,
            budget=budget,
            generous=time is not None,
            target_coverage=target_coverage,
            approximation=approximation,
            report=report is not None,
            say=say,
        )
        chosen.model.ignore = names(ignore)
        _print_comparison(say, chosen, measure)
        say.say(_quality(chosen, measure))
        changes = None
        if corrections is not None:
            changes = _before_and_after(chosen, read, read_data(data, target, **reading), seed)
            say.say("\n".join(changes["sentences"]))
        _save(chosen, data, read, measure, out, missing=str(missing), folds=folds, seed=seed)
        say.say(f"wrote {out} ({out.stat().st_size} bytes)")
        if report is not None:
            told = changes["sentences"] if changes else []
            _report(chosen, data, read, measure, weights, folds, seed, report, told)
            say.say(f"wrote {report}")
    say.result(_result(chosen, data, read, measure, out, report) | {"corrections": changes})


def _report(
    chosen: Chosen,
    data: Path,
    read: Data,
    measure: Measure,
    weights: Any,
    folds: int,
    seed: int,
    out: Path,
    told: list[str],
) -> None:
    """Build the report from what was found, with what is `told` already, and write it."""
    from buttress.model_selection.candidates import Request
    from buttress.report import fit_report, write_report

    asked = Request(d=measure.d, seed=seed, folds=folds, class_weight=weights)
    page = fit_report(
        str(data), read.table, read.labels, chosen, measure=measure, request=asked, folds=folds
    )
    write_report(replace(page, summary=[*page.summary, *told]), out)


def _result(
    chosen: Chosen, data: Path, read: Data, measure: Measure, out: Path, report: Path | None
) -> dict[str, Any]:
    """What a program is told."""
    return {
        "data": str(data),
        "rows": len(read.labels),
        "rows_in_file": read.n_read,
        "columns": len(read.table.names),
        "classes": read.classes,
        "measure": measure.title,
        "compared": [summary(each, measure) for each in chosen.race.judged],
        "rows_compared": len(chosen.race.rows),
        "tuned_in_folds": chosen.race.tuned_in_folds,
        "chosen": chosen.kind,
        "why": chosen.why,
        "held_out": summary(chosen.judged, measure),
        "noise_rates": _noise_rates(chosen),
        "rows_fitted": chosen.final.rows,
        "landmarks": chosen.final.components,
        "model": str(out),
        "report": str(report) if report else None,
    }


def _before_and_after(chosen: Chosen, read: Data, before: Data, seed: int) -> dict[str, Any]:
    """What the corrections change, for people and for programs."""
    from buttress.review.effect import as_record, effect_of_corrections, sentences

    was, now = effect_of_corrections(
        chosen.model, read.table, before.labels, read.labels, seed=seed
    )
    n_changed = int((before.labels.astype(str) != read.labels.astype(str)).sum())
    told = sentences(was, now, n_changed)
    return {"before": as_record(was), "after": as_record(now), "sentences": told}


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


def _choose(
    read: Data,
    kinds: list[str],
    measure: Measure,
    weights: Any,
    *,
    target: str,
    missing: str,
    folds: int,
    seed: int,
    jobs: int,
    budget: float,
    generous: bool,
    target_coverage: float | None,
    approximation: Approximation | None,
    report: bool,
    say: Output,
) -> Chosen:
    from buttress.model_selection.candidates import Request
    from buttress.model_selection.planning import Planner, Size, available_threads
    from buttress.tables.automatic import choose_model, encoded_width

    size = Size(len(read.labels), encoded_width(read.table), len(read.classes))
    planner = Planner(size, budget, generous=generous, threads=available_threads(jobs), folds=folds)
    say.say(planner.sentence(kinds, report))
    request = Request(
        d=measure.d,
        seed=seed,
        folds=folds,
        class_weight=weights,
        scoring=measure.scoring(len(read.classes)),
        target_coverage=target_coverage,
        jobs=None if len(kinds) > 1 else jobs,
    )
    return choose_model(
        read.table,
        read.labels,
        kinds,
        planner=planner,
        measure=measure,
        request=request,
        target=target,
        missing=missing,
        approximation=approximation.value if approximation else None,
        yardstick=len(kinds) > 1 or report,
        jobs=jobs,
        verbose=say.verbose,
        say=say.say,
    )


def _describe(path: Path, read: Data) -> str:
    each = ", ".join(f"{name} {count}" for name, count in list(read.classes.items())[:10])
    dropped = read.n_read - len(read.labels)
    left_out = f" ({dropped} rows with missing values left out)" if dropped else ""
    return f"{path}: {len(read.labels)} rows, {len(read.table.names)} columns{left_out}; {each}"


def summary(each: Judged, measure: Measure) -> dict[str, Any]:
    """One model's result as plain values."""
    loss = measure.estimate(each)
    return {
        "model": each.kind,
        "title": each.title,
        "risk": loss.value,
        "low": loss.low,
        "high": loss.high,
        "accuracy": each.accuracy,
        "answered": each.coverage,
        "recall": each.recalls(),
        "rows": len(each.rows),
        "seconds": each.seconds,
        "dropped": each.dropped or None,
    }


def _print_comparison(say: Output, chosen: Chosen, measure: Measure) -> None:
    judged = chosen.race.judged
    if len(judged) < 2:
        return
    rows = []
    for each in judged:
        loss = measure.estimate(each)
        mark = " *" if each.kind == chosen.kind else " (dropped)" if each.dropped else ""
        rows.append(
            (
                each.title + mark,
                f"{100 * loss.value:.2f} %",
                f"{100 * loss.low:.1f} – {100 * loss.high:.1f} %",
                f"{100 * each.accuracy:.2f} %",
                f"{100 * each.coverage:.1f} %",
                f"{each.seconds:.1f}",
            )
        )
    heads = ["model", measure.title, "95 % interval", "accuracy of answers", "answered", "seconds"]
    say.table(heads, rows)
    say.say(chosen.why)


def _quality(chosen: Chosen, measure: Measure) -> str:
    """How good the model is, on rows that it has not seen."""
    judged = chosen.judged
    loss = measure.estimate(judged)
    parts = [
        f"{judged.title} on {len(judged.rows)} rows that it had not seen: {measure.title} of "
        f"{100 * loss.value:.2f} % (95 % interval {100 * loss.low:.1f} – {100 * loss.high:.1f} %)"
    ]
    if judged.rejected.any():
        parts.append(
            f"no answer to {100 * judged.rejected.mean():.1f} % of them, "
            f"{100 * judged.accuracy:.2f} % of its answers right"
        )
    rates = _noise_rates(chosen)
    if rates:
        each = ", ".join(f"{100 * rate:.1f} % of class {name}" for name, rate in rates.items())
        parts.append(f"labels that seem wrong: {each}")
    return "; ".join(parts)


def _noise_rates(chosen: Chosen) -> dict[str, float]:
    """Shares of wrong labels as the ramp classifier's search estimates them, if it ran."""
    search = chosen.race.searches.get("ramp")
    rates = getattr(search, "noise_rates_", None) or {}
    return {str(label): float(rate) for label, rate in rates.items()}


def _save(
    chosen: Chosen,
    data: Path,
    read: Data,
    measure: Measure,
    out: Path,
    *,
    missing: str,
    folds: int,
    seed: int,
) -> None:
    from buttress.persistence import save

    loss = measure.estimate(chosen.judged)
    chosen.model.record_ = {
        "model": TITLES[chosen.kind],
        "rows": len(read.labels),
        "seed": seed,
        "folds": folds,
        "missing": missing,
        **({"d": measure.d} if chosen.kind == "reject" else {}),
        **({"chosen because": chosen.why} if len(chosen.race.judged) > 1 else {}),
        "data sha256": fingerprint(data),
        f"held-out {measure.title}": round(loss.value, 6),
        "fitted to rows": chosen.final.rows,
    }
    save(chosen.model, out)
