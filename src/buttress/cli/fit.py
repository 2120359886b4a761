"""``buttress fit``: from a file to a saved model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import Data, Decimal, DecimalMark, Missing, guard_files, names, read_data
from buttress.cli._models import (
    ANSWERING,
    COMPARED_ROWS,
    TITLES,
    Model,
    make_estimator,
    takes_approximation,
)

if TYPE_CHECKING:
    from buttress.cli._evaluate import Judged

app = typer.Typer(rich_markup_mode="markdown")


class Approximation(StrEnum):
    """What ``--approximation`` accepts."""

    auto = "auto"
    nystroem = "nystroem"
    fourier = "fourier"


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
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")] = Path(
        "model.skops"
    ),
    report: Annotated[
        Path | None, typer.Option(help="HTML report to write; none if not given.")
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
        Approximation | None, typer.Option(help="Feature map for large files; exact if not given.")
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

    Numeric columns are standardised, text columns become one-hot. --model auto fits every
    kind on shared folds, says how each did beside scikit-learn's plain SVC, and keeps the
    best: by error rate, or, with --d, by the 0-d-1 risk with the abstaining model taking part.

    **Examples:**

    - `buttress fit patients.csv --target diagnosis`

    - `buttress fit patients.csv --target diagnosis --model reject --d 0.1 --report report.html`

    - `buttress fit big.parquet --target y --approximation nystroem --dask tcp://10.0.0.1:8786`

    With --dask, and for a directory of Parquet files, rows are read in blocks and never held
    all at once; columns must be numbers, and --model auto means leaky.
    """
    say = Output(json, quiet)
    if d is not None and not 0 < d <= 0.5:
        raise typer.BadParameter(f"--d {d:g} is out of range: a number in (0, 0.5]")
    guard_files([data], {"--out": out, "--report": report})
    if dask is not None or data.is_dir():
        _fit_blocks(
            data, target, model, d or 0.2, out, ignore, folds, approximation, dask, seed, say
        )
        return
    with limit_threads(jobs):
        read = read_data(
            data,
            target,
            missing=missing,
            categorical=categorical,
            ignore=ignore,
            folds=folds,
            decimal=decimal,
        )
        say.say(_describe(data, read))
        kinds, judged = [model.value], []
        if model is Model.auto:
            kinds = list(ANSWERING) + (["reject"] if d is not None else [])
            if approximation is not None:
                kinds = [kind for kind in kinds if takes_approximation(kind)]
        elif approximation is not None and not takes_approximation(model.value):
            raise typer.BadParameter(f"--approximation does not apply to --model {model.value}")
        if model is Model.auto or report is not None:
            judged = _compare(read, [*kinds, "svc"], d or 0.2, missing, folds, seed, jobs, say)
        chosen, reason = _choose(judged, kinds, d)
        if judged:
            _print_comparison(say, judged, d, chosen)
            say.say(reason)
        fitted = _fit_all(read, chosen, target, d or 0.2, missing, folds, seed, approximation, say)
        fitted.ignore = names(ignore)
        fitted.record_ = {
            "model": TITLES[chosen],
            "rows": len(read.labels),
            "seed": seed,
            "folds": folds,
            "missing": str(missing),
            **({"d": d or 0.2} if chosen == "reject" else {}),
            **({"chosen because": reason} if judged else {}),
        }
        _save(fitted, out)
        say.say(f"wrote {out} ({out.stat().st_size} bytes)")
        if report is not None:
            from buttress.cli._report import fit_report
            from buttress.report import write_report

            page = fit_report(
                str(data), read, fitted, judged, chosen, reason, d or 0.2, folds, seed
            )
            write_report(page, report)
            say.say(f"wrote {report}")
    say.result(
        {
            "data": str(data),
            "rows": len(read.labels),
            "rows_in_file": read.n_read,
            "columns": len(read.table.names),
            "classes": read.classes,
            "compared": [summary(each, d or 0.2) for each in judged],
            "chosen": chosen,
            "why": reason,
            "model": str(out),
            "report": str(report) if report else None,
        }
    )


def _fit_blocks(
    data: Path,
    target: str,
    model: Model,
    d: float,
    out: Path,
    ignore: str | None,
    folds: int,
    approximation: Approximation | None,
    dask: str | None,
    seed: int,
    say: Output,
) -> None:
    """Files that need not fit in memory: one kind of model, an approximate kernel."""
    from buttress.cli._blocks import fit_in_blocks

    kind = "leaky" if model is Model.auto else model.value
    if not takes_approximation(kind):
        raise typer.BadParameter(f"--dask and directories do not apply to --model {kind}")
    name = approximation.value if approximation else "auto"
    estimator = make_estimator(kind, d=d, seed=seed, folds=folds, approximation=name)
    estimator.set_params(cv=folds)
    left_out = names(ignore)
    fitted = fit_in_blocks(data, target, estimator, dask=dask, ignore=left_out)
    rows = int(fitted.encoder_.scaler_.n_samples_seen_)
    fitted.ignore = left_out
    fitted.record_ = {"model": TITLES[kind], "rows": rows, "seed": seed, "folds": folds}
    _save(fitted, out)
    say.say(f"{data}: {rows} rows, {fitted.n_features_in_} columns")
    say.say(f"wrote {out} ({out.stat().st_size} bytes)")
    say.result(
        {
            "data": str(data),
            "rows": rows,
            "columns": int(fitted.n_features_in_),
            "classes": [str(label) for label in fitted.classes_.tolist()],
            "approximation": fitted.estimator_.approximation_,
            "chosen": kind,
            "model": str(out),
        }
    )


def _describe(path: Path, read: Data) -> str:
    each = ", ".join(f"{name} {count}" for name, count in list(read.classes.items())[:10])
    dropped = read.n_read - len(read.labels)
    left_out = f" ({dropped} rows with missing values left out)" if dropped else ""
    return f"{path}: {len(read.labels)} rows, {len(read.table.names)} columns{left_out}; {each}"


def _compare(
    read: Data,
    kinds: list[str],
    d: float,
    missing: str,
    folds: int,
    seed: int,
    jobs: int,
    say: Output,
) -> list[Judged]:
    import numpy as np
    from sklearn.model_selection import StratifiedKFold, train_test_split

    from buttress.cli._evaluate import judge

    rows = np.arange(len(read.labels))
    if len(rows) > COMPARED_ROWS:
        rows, _ = train_test_split(
            rows, train_size=COMPARED_ROWS, stratify=read.labels, random_state=seed
        )
        say.say(f"comparing on a random {COMPARED_ROWS} of the rows")
    labels = read.labels[rows]
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return judge(
        kinds,
        read.table.take(rows),
        labels,
        list(splitter.split(np.zeros(len(rows)), labels)),
        missing=missing,
        d=d,
        seed=seed,
        jobs=jobs,
        verbose=say.verbose,
    )


def _choose(judged: list[Judged], kinds: list[str], d: float | None) -> tuple[str, str]:
    """The model of the smallest risk, and the sentence that says so."""
    if len(kinds) == 1:
        return kinds[0], f"{TITLES[kinds[0]]} was asked for"
    measure = "error" if d is None else f"0-d-1 risk at d = {d:g}"
    risks = {each.kind: each.risk(d or 0.2).value for each in judged}
    chosen = min(kinds, key=lambda kind: risks[kind])
    others = ", ".join(
        f"{TITLES[kind]} {100 * risks[kind]:.2f} %" for kind in risks if kind != chosen
    )
    return chosen, (
        f"chosen: {TITLES[chosen]}, for the smallest {measure}, {100 * risks[chosen]:.2f} % "
        f"({others})"
    )


def summary(each: Judged, d: float) -> dict[str, Any]:
    """One model's result as plain values."""
    risk = each.risk(d)
    return {
        "model": each.kind,
        "title": each.title,
        "risk": risk.value,
        "low": risk.low,
        "high": risk.high,
        "accuracy": each.accuracy,
        "answered": each.coverage,
        "seconds": each.seconds,
    }


def _print_comparison(say: Output, judged: list[Judged], d: float | None, chosen: str) -> None:
    rows = []
    for each in judged:
        risk = each.risk(d or 0.2)
        mark = " *" if each.kind == chosen else ""
        rows.append(
            (
                each.title + mark,
                f"{100 * risk.value:.2f} %",
                f"{100 * risk.low:.1f} – {100 * risk.high:.1f} %",
                f"{100 * each.accuracy:.2f} %",
                f"{100 * each.coverage:.1f} %",
                f"{each.seconds:.1f}",
            )
        )
    measure = "error" if all(not each.rejected.any() for each in judged) else "0-d-1 risk"
    say.table(["model", measure, "95 % interval", "accuracy", "answered", "seconds"], rows)


def _fit_all(
    read: Data,
    kind: str,
    target: str,
    d: float,
    missing: str,
    folds: int,
    seed: int,
    approximation: Approximation | None,
    say: Output,
) -> Any:
    import numpy as np

    from buttress.tables import TableClassifier

    estimator = make_estimator(
        kind,
        d=d,
        seed=seed,
        folds=folds,
        approximation=approximation.value if approximation else None,
    )
    table, labels = read.table, read.labels
    if kind == "online":
        # One pass in the file's order would see one class after the other in a sorted file.
        order = np.random.default_rng(seed).permutation(len(labels))
        table, labels = table.take(order), labels[order]
    return TableClassifier(estimator, target=target, missing=str(missing)).fit(table, labels)


def _save(model: Any, out: Path) -> None:
    from buttress.persistence import save

    save(model, out)
