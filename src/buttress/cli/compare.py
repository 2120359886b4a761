"""``buttress compare``: all models on one file, while labels are flipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import Data, Decimal, DecimalMark, Missing, guard_files, names, read_data
from buttress.cli._models import TITLES

if TYPE_CHECKING:
    from buttress.cli._evaluate import Judged

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

    Every model is tuned by its own cross-validation inside each training part; the test
    labels are left as they are. Intervals are corrected for the overlap of the training parts
    (Nadeau and Bengio).

    **Example:** `buttress compare patients.csv --target diagnosis --noise 0,0.05,0.1 --cv 5x10`
    """
    say = Output(json, quiet)
    rates = _rates(noise)
    repeats, folds = _folds(cv)
    kinds = _kinds(models, d)
    if d is not None and not 0 < d <= 0.5:
        raise typer.BadParameter(f"--d {d:g} is out of range: a number in (0, 0.5]")
    guard_files([data], {"--report": report})
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
        share = 1.0 / (folds - 1)
        results = [
            _judge(read, kinds, rate, repeats, folds, d or 0.2, missing, seed, jobs, say)
            for rate in rates
        ]
        table = _table(results, rates, d or 0.2, share)
        _print(say, table, rates, "error" if d is None else f"0-d-1 risk at d = {d:g}")
        if report is not None:
            _write_report(report, data, read, table, rates, d, cv, seed)
            say.say(f"wrote {report}")
    say.result(
        {
            "data": str(data),
            "rows": len(read.labels),
            "classes": read.classes,
            "cv": {"repetitions": repeats, "folds": folds},
            "measure": "error" if d is None else "0-d-1 risk",
            "results": [
                {"model": kind, "title": TITLES[kind], "noise": rate, **cell}
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
    d: float,
    missing: str,
    seed: int,
    jobs: int,
    say: Output,
) -> list[Judged]:
    import numpy as np
    from sklearn.model_selection import RepeatedStratifiedKFold

    from buttress.cli._evaluate import judge
    from buttress.datasets import flip_labels

    def flip(labels: Any, fold: int) -> Any:
        return flip_labels(labels, rate, random_state=np.random.RandomState([seed, fold]))

    splitter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=seed)
    return judge(
        kinds,
        read.table,
        read.labels,
        list(splitter.split(np.zeros(len(read.labels)), read.labels)),
        flip=flip if rate > 0 else None,
        missing=missing,
        d=d,
        seed=seed,
        jobs=jobs,
        verbose=say.verbose,
    )


def _table(
    results: list[list[Judged]], rates: list[float], d: float, share: float
) -> dict[str, list[dict[str, float]]]:
    """For every model a cell per noise rate."""
    table: dict[str, list[dict[str, float]]] = {}
    for judged in results:
        for each in judged:
            risk = each.risk_over_folds(d, share)
            table.setdefault(each.kind, []).append(
                {
                    "risk": risk.value,
                    "low": risk.low,
                    "high": risk.high,
                    "accuracy": each.accuracy,
                    "answered": each.coverage,
                    "seconds": each.seconds,
                }
            )
    return table


def _print(
    say: Output, table: dict[str, list[dict[str, float]]], rates: list[float], measure: str
) -> None:
    rows = [
        (
            TITLES[kind],
            *(
                f"{100 * cell['risk']:.2f} % ({100 * cell['low']:.1f} – {100 * cell['high']:.1f})"
                for cell in cells
            ),
            f"{sum(cell['seconds'] for cell in cells):.1f}",
        )
        for kind, cells in table.items()
    ]
    heads = [f"{100 * rate:g} % flipped" for rate in rates]
    say.table(["model", *heads, "seconds"], rows, title=f"{measure} (95 % interval)")


def _write_report(
    path: Path,
    data: Path,
    read: Data,
    table: dict[str, list[dict[str, float]]],
    rates: list[float],
    d: float | None,
    cv: str,
    seed: int,
) -> None:
    from buttress.cli._report import versions
    from buttress.report import NoiseComparison, Report, data_health, write_report

    best = [min(table, key=lambda kind: table[kind][i]["risk"]) for i in range(len(rates))]
    noise = NoiseComparison(
        measure="error" if d is None else f"0-d-1 risk at d = {d:g}",
        rates=rates,
        names=[TITLES[kind] for kind in table],
        values=[[cell["risk"] for cell in cells] for cells in table.values()],
        lows=[[cell["low"] for cell in cells] for cells in table.values()],
        highs=[[cell["high"] for cell in cells] for cells in table.values()],
        how=f"Cross-validation {cv}, the same parts for all models, each tuned inside them; 95 % "
        "intervals corrected for the overlap of the training parts.",
    )
    write_report(
        Report(
            title=f"{data}: models under label noise",
            summary=[
                f"With {100 * rate:g} % of the training labels flipped, {TITLES[kind]} errs least: "
                f"{100 * table[kind][i]['risk']:.2f} %."
                for i, (rate, kind) in enumerate(zip(rates, best, strict=True))
            ],
            health=data_health(read.table, read.labels),
            noise=noise,
            settings={"data": str(data), "cv": cv, "seed": str(seed), **versions()},
        ),
        path,
    )
