"""``buttress suspects``: list the labels of a file that are probably wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import Output, limit_threads
from buttress.cli._inputs import guard_files, names
from buttress.cli._labelled import JudgingOptions, Labelled, make_judge, read_labelled
from buttress.cli._options import DataFile, Target, command

if TYPE_CHECKING:
    from buttress.noise import LabelSuspects

app = typer.Typer(rich_markup_mode="markdown")

_COLUMNS = ("row", "given_label", "suggested_label", "wrong_probability", "reason")


@dataclass(frozen=True)
class SuspectsOptions(JudgingOptions):
    """The options of the command, by their names."""

    data: DataFile
    target: Target
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="CSV or Parquet file to write; a short table if not."),
    ] = None
    fdr: Annotated[
        float, typer.Option("--fdr", help="Share of right labels that the list may hold.")
    ] = 0.1
    top: Annotated[
        int | None, typer.Option(min=1, help="The most suspicious rows, whatever --fdr says.")
    ] = None


@command(app, SuspectsOptions)
def suspects(options: SuspectsOptions) -> None:
    """List the labels that are probably wrong, with the reason, and say how many there are.

    Every label is judged by models that have not seen its row. The list holds the rows (their
    numbers count from 1), the columns of --keep, the given and the suggested label, the
    probability that the given one is wrong, and why: the nearest rows of the suggested class
    and the columns that speak against the given one. Missing values are filled in.

    **Example:** `buttress suspects patients.csv --target diagnosis --keep id -o suspects.csv`
    """
    out, top = options.out, options.top
    guard_files([options.data], {"--out": out})
    with limit_threads(options.jobs):
        read = read_labelled(options.data, options.target, options)
        judge = make_judge(read, options, fdr=options.fdr)
        ranking = judge(read.labels)
    suspected, rows = judge.suspected, judge.rows
    assert suspected is not None
    assert rows is not None
    named = rows[suspected.selected if top is None else suspected.top(top)]
    columns = _listing(read, ranking, named, names(options.keep))
    if out is not None:
        _write(out, columns)
    _tell(options.output(), suspected, columns, named, out, top)


def _listing(read: Labelled, ranking: Any, named: Any, keep: list[str]) -> dict[str, list[Any]]:
    """The columns of the list."""
    from buttress.review.evidence import Evidence, shown

    evidence = Evidence(read.table, read.labels, read.features)
    columns: dict[str, list[Any]] = {"row": [int(row) + 1 for row in named]}
    for name in dict.fromkeys(keep):
        # A column of the table keeps its name unless the list has one like it.
        title = name
        while title in _COLUMNS or title in columns or (title != name and title in keep):
            title = f"kept_{title}"
        columns[title] = [shown(read.table[name][row]) for row in named]
    columns["given_label"] = [read.labels[row] for row in named]
    columns["suggested_label"] = [ranking.suggested[row] for row in named]
    columns["wrong_probability"] = [round(float(ranking.wrong[row]), 6) for row in named]
    columns["reason"] = [
        evidence.reason(int(row), read.labels[row], ranking.suggested[row])
        if read.labels[row] != ranking.suggested[row]
        else ""
        for row in named
    ]
    return columns


def _write(out: Path, columns: dict[str, list[Any]]) -> None:
    from buttress._files import replacing

    if out.suffix.lower() in (".parquet", ".pq"):
        import pyarrow
        import pyarrow.parquet as parquet

        with replacing(out) as file:
            parquet.write_table(pyarrow.table(columns), file)
        return
    import csv

    from buttress.tables.grammar import for_spreadsheet

    with replacing(out, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(map(for_spreadsheet, columns))
        for row in zip(*columns.values(), strict=True):
            writer.writerow(map(for_spreadsheet, row))


def _tell(
    say: Output,
    suspected: LabelSuspects,
    columns: dict[str, list[Any]],
    named: Any,
    out: Path | None,
    top: int | None,
) -> None:
    errors, n_rows = suspected.expected_errors, len(suspected.probabilities)
    if out is None and len(named):
        shown = [name for name in columns if name != "reason"]
        say.table(shown, list(zip(*(columns[name] for name in shown), strict=True))[:50])
    if not len(named):
        say.say(suspected.why_empty().replace("top(k)", "the rows of --top"))
    asked = f"the {len(named)} most suspicious" if top is not None else f"{len(named)} listed"
    line = (
        f"{n_rows} labels, about {float(errors):.0f} probably wrong "
        f"({100 * errors.level:.0f} % interval {errors.low:.0f}–{errors.high:.0f}); {asked}"
    )
    say.say(line + (f"; wrote {out}" if out is not None else ""))
    say.result(
        {
            "rows": n_rows,
            "expected_errors": float(errors),
            "interval": [errors.low, errors.high],
            "level": errors.level,
            "listed": len(named),
            "noise_rates": {
                str(label): {"rate": float(rate), "interval": [rate.low, rate.high]}
                for label, rate in suspected.noise_rates.items()
            },
            "out": None if out is None else str(out),
            **({} if out is not None else {"suspects": columns}),
        }
    )
