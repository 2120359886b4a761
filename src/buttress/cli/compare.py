"""``buttress compare``: all models on one file, while labels are flipped."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._compiled import compile_kinds
from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import Data, Decimal, DecimalMark, Missing, guard_files, names, read_data
from buttress.cli._models import Metric, check_cost, class_weights_of, measure_of
from buttress.cli._options import Categorical, ClassWeight, DataFile, Ignore, MissingValues, Target
from buttress.model_selection.titles import TITLES

if TYPE_CHECKING:
    from buttress.model_selection import Judged, Measure
    from buttress.model_selection.candidates import Request
    from buttress.report.comparing import NoiseCell

app = typer.Typer(rich_markup_mode="markdown")

_DEFAULT = "svc,leaky,ramp,uncertainty,online"

Noise = Annotated[str, typer.Option(help="Shares of training labels to flip: 0,0.1.")]
Folds = Annotated[str, typer.Option(help="Folds (10), or repetitions x folds (5x10).")]
Models = Annotated[str, typer.Option(help=f"Models to compare, of {', '.join(TITLES)}.")]
Cost = Annotated[
    float | None,
    typer.Option("--d", help="Cost of no answer, in (0, 0.5]; adds the abstaining model."),
]
Measured = Annotated[
    Metric | None, typer.Option(help="What is compared: accuracy, or cost when --d is given.")
]
ReportFile = Annotated[Path | None, typer.Option(help="HTML report to write.")]


@app.command()
def compare(
    data: DataFile,
    target: Target,
    noise: Noise = "0",
    cv: Folds = "5",
    models: Models = _DEFAULT,
    d: Cost = None,
    metric: Measured = None,
    class_weight: ClassWeight = None,
    report: ReportFile = None,
    missing: MissingValues = Missing.error,
    categorical: Categorical = None,
    ignore: Ignore = None,
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
    _run(_Options(**locals()))


@dataclass(frozen=True)
class _Options:
    """The options of the command, by their names."""

    data: Path
    target: str
    noise: str
    cv: str
    models: str
    d: float | None
    metric: Metric | None
    class_weight: str | None
    report: Path | None
    missing: Missing
    categorical: str | None
    ignore: str | None
    decimal: Decimal
    json: bool
    quiet: bool
    seed: int
    jobs: int


def _run(options: _Options) -> None:
    say = Output(options.json, options.quiet)
    rates = _rates(options.noise)
    repeats, folds = _folds(options.cv)
    check_cost(options.d)
    kinds = _kinds(options.models, options.d)
    guard_files([options.data], {"--report": options.report})
    with limit_threads(options.jobs):
        from buttress.model_selection.candidates import Request, takes_class_weight

        read = read_data(
            options.data,
            options.target,
            missing=options.missing,
            categorical=options.categorical,
            ignore=options.ignore,
            folds=folds,
            decimal=options.decimal,
        )
        weights = class_weights_of(options.class_weight, read.labels)
        if weights is not None:
            kinds = [kind for kind in kinds if takes_class_weight(kind)]
        measure = measure_of(options.metric, options.d, "reject" in kinds)
        request = Request(
            d=measure.d,
            seed=options.seed,
            class_weight=weights,
            scoring=measure.scoring(len(read.classes)),
        )
        compile_kinds(kinds, say)
        results = [
            _judge(
                read, kinds, rate, repeats, folds, request, str(options.missing), options.jobs, say
            )
            for rate in rates
        ]
        table = _table(results, measure, 1.0 / (folds - 1))
        _print(say, table, rates, measure.title)
        if options.report is not None:
            _write(options, read, table, rates, measure, options.report)
            say.say(f"wrote {options.report}")
    about = {
        "data": str(options.data),
        "rows": len(read.labels),
        "classes": read.classes,
        "cv": {"repetitions": repeats, "folds": folds},
        "measure": measure.title,
        "results": _records(table, rates),
        "report": str(options.report) if options.report else None,
    }
    say.result(about)


def _write(
    options: _Options,
    read: Data,
    table: dict[str, list[NoiseCell]],
    rates: list[float],
    measure: Measure,
    out: Path,
) -> None:
    from buttress.report import noise_report, write_report

    titled = {TITLES[kind]: cells for kind, cells in table.items()}
    data, cv, seed = str(options.data), options.cv, options.seed
    page = noise_report(data, read.table, read.labels, titled, rates, measure, cv, seed)
    write_report(page, out)


def _records(table: dict[str, list[NoiseCell]], rates: list[float]) -> list[dict[str, Any]]:
    return [
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
    ]


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
