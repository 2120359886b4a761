"""``buttress compare``: all models on one file, while labels are flipped."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import Data, Decimal, DecimalMark, Missing, guard_files, names, read_data
from buttress.cli._models import Metric, check_cost, class_weights_of, measure_of
from buttress.model_selection.titles import TITLES

if TYPE_CHECKING:
    from buttress.model_selection import Judged, Measure
    from buttress.model_selection.candidates import Request
    from buttress.report.comparing import NoiseCell

app = typer.Typer(rich_markup_mode="markdown")

_DEFAULT = "svc,leaky,ramp,uncertainty,online"


@app.command()
def compare(
    data: Annotated[Path, typer.Argument(help="CSV (also .csv.gz) or Parquet file.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Column of the labels.")],
    noise: Annotated[str, typer.Option(help="Shares of training labels to flip: 0,0.1.")] = "0",
    cv: Annotated[str, typer.Option(help="Folds (10), or repetitions x folds (5x10).")] = "5",
    models: Annotated[
        str, typer.Option(help=f"Models to compare, of {', '.join(TITLES)}.")
    ] = _DEFAULT,
    d: Annotated[
        float | None,
        typer.Option("--d", help="Cost of no answer, in (0, 0.5]; adds the abstaining model."),
    ] = None,
    metric: Annotated[
        Metric | None,
        typer.Option(help="What is compared: accuracy, or cost when --d is given."),
    ] = None,
    class_weight: Annotated[
        str | None, typer.Option(help="Weights of the classes: balanced, or label=2,other=1.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="HTML report to write.")] = None,
    missing: Annotated[
        Missing, typer.Option(help="What a missing value does: stop, be filled in, drop its row.")
    ] = Missing.error,
    categorical: Annotated[
        str | None, typer.Option(help="Columns that are categories though they hold numbers: a,b.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out: id,name.")] = None,
    decimal: DecimalMark = Decimal.point,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Compare all models on a file while a share of the training labels is flipped.

    Every model is tuned by its own cross-validation inside each training part, whose rows are
    shuffled with the seed; the test labels are left as they are. Intervals are corrected for the
    overlap of the training parts (Nadeau and Bengio).

    **Example:** `buttress compare patients.csv --target diagnosis --noise 0,0.05,0.1 --cv 5x10`
    """
    say = Output(json, quiet)
    rates = _rates(noise)
    repeats, folds = _folds(cv)
    check_cost(d)
    kinds = _kinds(models, d)
    guard_files([data], {"--report": report})
    with limit_threads(jobs):
        from buttress.model_selection.candidates import Request, takes_class_weight

        read = read_data(
            data,
            target,
            missing=missing,
            categorical=categorical,
            ignore=ignore,
            folds=folds,
            decimal=decimal,
        )
        weights = class_weights_of(class_weight, read.labels)
        if weights is not None:
            kinds = [kind for kind in kinds if takes_class_weight(kind)]
        measure = measure_of(metric, d, "reject" in kinds)
        request = Request(
            d=measure.d,
            seed=seed,
            class_weight=weights,
            scoring=measure.scoring(len(read.classes)),
        )

        results = [
            _judge(read, kinds, rate, repeats, folds, request, str(missing), jobs, say)
            for rate in rates
        ]
        table = _table(results, measure, 1.0 / (folds - 1))
        _print(say, table, rates, measure.title)
        if report is not None:
            from buttress.report import noise_report, write_report

            titled = {TITLES[kind]: cells for kind, cells in table.items()}
            page = noise_report(
                str(data), read.table, read.labels, titled, rates, measure, cv, seed
            )
            write_report(page, report)
            say.say(f"wrote {report}")
    say.result(
        {
            "data": str(data),
            "rows": len(read.labels),
            "classes": read.classes,
            "cv": {"repetitions": repeats, "folds": folds},
            "measure": measure.title,
            "results": [
                {
                    "model": kind,
                    "title": TITLES[kind],
                    "noise": rate,
                    "risk": cell.loss.value,
                    "low": cell.loss.low,
                    "high": cell.loss.high,
                    "accuracy": cell.accuracy,
                    "answered": cell.answered,
                    "seconds": cell.seconds,
                }
                for kind, cells in table.items()
                for rate, cell in zip(rates, cells, strict=True)
            ],
            "report": str(report) if report else None,
        }
    )


def _rates(text: str) -> list[float]:
    try:
        rates = [float(part) for part in names(text)]
    except ValueError:
        rates = []
    if not rates or not all(0 <= rate < 0.5 for rate in rates):
        raise typer.BadParameter(f"--noise {text}: expected numbers in [0, 0.5), as 0,0.05,0.1")
    return sorted(set(rates))


def _folds(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(?:(\d+)x)?(\d+)", text.strip())
    repeats, folds = (int(found[1] or 1), int(found[2])) if found else (0, 0)
    if not (1 <= repeats <= 100 and 2 <= folds <= 100):
        raise typer.BadParameter(
            f"--cv {text}: expected a number of folds, as 10, or repetitions x folds, as 5x10"
        )
    return repeats, folds


def _kinds(text: str, d: float | None) -> list[str]:
    kinds = names(text)
    unknown = [kind for kind in kinds if kind not in TITLES]
    if unknown or not kinds:
        raise typer.BadParameter(
            f"--models {text}: expected a list of {', '.join(TITLES)}, as svc,ramp"
        )
    if d is not None and "reject" not in kinds:
        kinds.append("reject")
    return list(dict.fromkeys(kinds))


def _judge(
    read: Data,
    kinds: list[str],
    rate: float,
    repeats: int,
    folds: int,
    request: Request,
    missing: str,
    jobs: int,
    say: Output,
) -> list[Judged]:
    import numpy as np
    from sklearn.model_selection import RepeatedStratifiedKFold

    from buttress.datasets import flip_labels
    from buttress.model_selection.candidates import make_candidate
    from buttress.model_selection.judging import inner_folds, judge
    from buttress.tables.automatic import Encoding

    def flip(labels: Any, fold: int) -> Any:
        return flip_labels(labels, rate, random_state=np.random.RandomState([request.seed, fold]))

    splitter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=request.seed)
    pairs = list(splitter.split(np.zeros(len(read.labels)), read.labels))
    flipped = [
        flip(read.labels[train], fold) if rate > 0 else read.labels[train]
        for fold, (train, _) in enumerate(pairs)
    ]
    inner = replace(request, folds=min(inner_folds(labels) for labels in flipped))
    return judge(
        {kind: make_candidate(kind, inner) for kind in kinds},
        Encoding(read.table, missing),
        read.labels,
        pairs,
        titles=TITLES,
        flip=flip if rate > 0 else None,
        seed=request.seed,
        jobs=jobs,
        verbose=say.verbose,
    )


def _table(
    results: list[list[Judged]], measure: Measure, share: float
) -> dict[str, list[NoiseCell]]:
    """For every model a cell per noise rate."""
    from buttress.report.comparing import NoiseCell

    table: dict[str, list[NoiseCell]] = {}
    for judged in results:
        for each in judged:
            loss = each.risk_over_folds(measure, share)
            cell = NoiseCell(loss, each.accuracy, each.coverage, each.seconds)
            table.setdefault(each.kind, []).append(cell)
    return table


def _print(
    say: Output, table: dict[str, list[NoiseCell]], rates: list[float], measure: str
) -> None:
    rows = [
        (
            TITLES[kind],
            *(
                f"{100 * cell.loss.value:.2f} % "
                f"({100 * cell.loss.low:.1f} – {100 * cell.loss.high:.1f})"
                for cell in cells
            ),
            f"{sum(cell.seconds for cell in cells):.1f}",
        )
        for kind, cells in table.items()
    ]
    heads = [f"{100 * rate:g} % flipped" for rate in rates]
    say.table(["model", *heads, "seconds"], rows, title=f"{measure} (95 % interval)")
