"""``buttress compare``: all models on one file, while labels are flipped."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import Output, limit_threads
from buttress.cli._inputs import Data, guard_files, names
from buttress.cli._models import Metric, check_cost, class_weights_of, measure_of
from buttress.cli._options import ClassWeight, DataFile, ReadingOptions, Target, command
from buttress.model_selection.titles import TITLES

if TYPE_CHECKING:
    from buttress.model_selection import Judged, Measure
    from buttress.model_selection.candidates import Request
    from buttress.report.comparing import NoiseCell

app = typer.Typer(rich_markup_mode="markdown")

_DEFAULT = "svc,leaky,ramp,uncertainty,online"

Folds = Annotated[str, typer.Option(help="Folds (10), or repetitions x folds (5x10).")]
Models = Annotated[str, typer.Option(help=f"Models to compare, of {', '.join(TITLES)}.")]
Cost = Annotated[
    float | None,
    typer.Option("--d", help="Cost of no answer, in (0, 0.5]; adds the abstaining model."),
]


@dataclass(frozen=True)
class CompareOptions(ReadingOptions):
    """The options of the command, by their names."""

    data: DataFile
    target: Target
    noise: Annotated[str, typer.Option(help="Shares of training labels to flip: 0,0.1.")] = "0"
    cv: Folds = "5"
    models: Models = _DEFAULT
    d: Cost = None
    metric: Annotated[
        Metric | None, typer.Option(help="What is compared: accuracy, or cost when --d is given.")
    ] = None
    class_weight: ClassWeight = None
    report: Annotated[Path | None, typer.Option(help="HTML report to write.")] = None


@command(app, CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare all models on a file while a share of the training labels is flipped.

    Every model is tuned by its own cross-validation inside each training part, whose rows are
    shuffled with the seed; the test labels are left as they are. Intervals are corrected for the
    overlap of the training parts (Nadeau and Bengio).

    **Example:** `buttress compare patients.csv --target diagnosis --noise 0,0.05,0.1 --cv 5x10`
    """
    say = options.output()
    rates = _rates(options.noise)
    repeats, folds = _folds(options.cv)
    check_cost(options.d)
    kinds = _kinds(options.models, options.d)
    guard_files([options.data], {"--report": options.report})
    with limit_threads(options.jobs):
        from sklearn.model_selection import RepeatedStratifiedKFold

        from buttress.model_selection.candidates import Request, takes_class_weight
        from buttress.model_selection.preparing import jobs_of_kinds

        read = options.read(options.data, options.target, folds)
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
        say.compile(jobs_of_kinds(kinds))
        splitter = RepeatedStratifiedKFold(
            n_splits=folds, n_repeats=repeats, random_state=options.seed
        )
        pairs = list(splitter.split(read.labels[:, None], read.labels))
        results = [_judge(options, read, kinds, rate, pairs, request) for rate in rates]
        table = _table(results, measure, 1.0 / (folds - 1))
        _print(say, table, rates, measure.title)
        if options.report is not None:
            from buttress.report import noise_report, write_report

            page = noise_report(
                str(options.data),
                read.table,
                read.labels,
                {TITLES[kind]: cells for kind, cells in table.items()},
                rates,
                measure,
                options.cv,
                options.seed,
                read.numbers,
            )
            write_report(page, options.report)
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
        rates = [float(rate) for rate in names(text)]
    except ValueError:
        rates = []
    if not rates or not all(0 <= rate < 0.5 for rate in rates):
        raise typer.BadParameter(f"--noise {text}: expected numbers in [0, 0.5), as 0,0.05,0.1")
    return sorted(set(rates))


def _folds(text: str) -> tuple[int, int]:
    said = re.fullmatch(r"(?:(\d+)x)?(\d+)", text.strip())
    repeats, folds = (int(said[1] or 1), int(said[2])) if said else (0, 0)
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
    options: CompareOptions,
    read: Data,
    kinds: list[str],
    rate: float,
    pairs: list[Any],
    request: Request,
) -> list[Judged]:
    """All models on the same pairs of training and test rows, with a share of labels flipped."""
    import numpy as np

    from buttress.datasets import flip_labels
    from buttress.model_selection.candidates import make_candidate
    from buttress.model_selection.judging import inner_folds, judge
    from buttress.tables.row_encoding import Encoding

    def flip(labels: Any, fold: int) -> Any:
        return flip_labels(labels, rate, random_state=np.random.RandomState([request.seed, fold]))

    flipped = [
        flip(read.labels[train], fold) if rate > 0 else read.labels[train]
        for fold, (train, _) in enumerate(pairs)
    ]
    inner = replace(request, folds=min(inner_folds(labels) for labels in flipped))
    return judge(
        {kind: make_candidate(kind, inner) for kind in kinds},
        Encoding(read.table, options.missing),
        read.labels,
        pairs,
        flip=flip if rate > 0 else None,
        seed=request.seed,
        jobs=options.jobs,
        verbose=options.output().verbose,
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
