"""``buttress predict``: labels for the rows of a file, block by block."""

from __future__ import annotations

import csv
import json as json_lines
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import STDOUT, Jobs, Output, Quiet, Seed, limit_threads, plain
from buttress.cli._inputs import (
    DecimalMark,
    as_table_model,
    existing_file,
    fingerprint,
    guard_files,
    load_model,
    names,
)

if TYPE_CHECKING:
    from buttress.tables.prediction import Answers, FilePrediction

app = typer.Typer(rich_markup_mode="markdown")

# Bytes of answers held in memory before they go to a temporary file.
_IN_MEMORY = 16_000_000


@app.command()
def predict(
    model: Annotated[
        Path, typer.Argument(help="A model saved by 'buttress fit', or a stream's checkpoint.")
    ],
    data: Annotated[Path, typer.Argument(help="CSV, JSON lines or Parquet, with its columns.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; the screen if not given.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns of the file to carry along: id,name.")
    ] = None,
    abstain: Annotated[
        str, typer.Option(help="The word for no answer; must not be a class.")
    ] = "abstain",
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Take new categories as none of the known ones.")
    ] = False,
    decimal: DecimalMark = ".",
    block_rows: Annotated[
        int, typer.Option("--block-rows", min=1, help="Rows in memory at a time.")
    ] = 10_000,
    json: Annotated[bool, typer.Option("--json", help="Write JSON lines instead of CSV.")] = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Label the rows of a file: label, margin, and "abstain" where the model rejects.

    The margin is the decision value: with two classes positive for the second of them, with
    more the largest of the classes' values. A model with probabilities adds that of the label.
    The file may be the one the model was trained on: target and ignored columns are known, other
    columns are named once and not looked at. Rows are read in blocks, so the file may be larger
    than memory; nothing is written before all of them are answered. With --missing drop-rows at
    fit, an incomplete row gets an empty label. --seed is accepted as everywhere; a prediction
    has nothing random.

    **Example:** `buttress predict model.skops new.csv --keep id -o answers.csv`
    """
    guard_files([model, data], {"--out": out})
    existing_file(data)
    say = Output(json=False, quiet=quiet)
    with limit_threads(jobs):
        fitted = as_table_model(load_model(model)[0])
        _check_word(fitted, abstain)
        from buttress.tables.prediction import FilePrediction, share_right
        from buttress.tables.table import AbsentColumn

        reading: dict[str, Any] = {"decimal": decimal, "block_rows": block_rows}
        try:
            answers = FilePrediction(fitted, data, keep=_kept(keep), lenient=lenient, **reading)
        except AbsentColumn as error:
            raise typer.BadParameter(f"{error} (--keep)") from None
        ignored = [name for name in answers.extra if name not in answers.keep]
        if ignored:
            from buttress.tables.table import listed

            say.note(f"not looked at, unknown to the model: {listed(ignored)}")
        rows = abstained = unanswered = right = known = 0
        with _opened(out) as file:
            write = _writer(file, answers, abstain, json)
            for block in answers:
                write(block)
                rows += len(block.labels)
                abstained += sum(block.rejected)
                unanswered += sum(label is None for label in block.labels)
                agreed, compared = share_right(block)
                right, known = right + agreed, known + compared
    message = f"{rows} rows, {abstained} without an answer ({abstain})"
    if unanswered:
        message += f", {unanswered} with missing values"
    if known:
        message += (
            f"; {100 * right / known:.2f} % of the answers agree with {fitted.target!r} in the file"
        )
        if getattr(fitted, "record_", {}).get("data sha256") == fingerprint(data):
            message += ", which the model was trained on: new rows will fare worse"
    say.note(message + (f"; wrote {out}" if out else ""))


def _check_word(model: Any, abstain: str) -> None:
    """The word for no answer must not be an answer, nor the empty label of an incomplete row."""
    if not abstain.strip():
        raise typer.BadParameter(
            "--abstain: an empty word stands for a row with missing values; choose another"
        )
    from buttress.classifiers.reject import may_refuse

    if may_refuse(model.estimator_) and abstain in {str(label) for label in model.classes_}:
        raise typer.BadParameter(
            f"the model has a class {abstain!r}: choose another word for no answer with --abstain"
        )


def _kept(keep: str | None) -> list[str]:
    kept = names(keep)
    doubled = sorted({name for name in kept if kept.count(name) > 1})
    taken = [name for name in kept if name in ("label", "margin", "probability")]
    if doubled or taken:
        raise typer.BadParameter(f"--keep: the output would have {(doubled + taken)[0]!r} twice")
    return kept


@contextmanager
def _opened(out: Path | None) -> Iterator[IO[str]]:
    """The file to write, or the screen; either gets everything at once, or nothing."""
    from buttress._files import naming, replacing

    if out is not None:
        with replacing(out, "w") as file:
            yield file
        return
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="") as spool:
        yield spool
        spool.seek(0)
        with naming(STDOUT):
            shutil.copyfileobj(spool, sys.stdout)
            sys.stdout.flush()


def _writer(file: IO[str], answers: FilePrediction, abstain: str, as_json: bool) -> Any:
    fields = [*answers.keep, "label", "margin"]
    fields += ["probability"] if answers.has_probabilities else []
    table = csv.writer(file, lineterminator="\n")
    if not as_json:
        table.writerow(fields)

    def write(block: Answers) -> None:
        labels = [
            abstain if rejected else label
            for label, rejected in zip(block.labels, block.rejected, strict=True)
        ]
        columns = [*block.kept.values(), labels, block.margins]
        columns += [block.probabilities] if answers.has_probabilities else []
        for row in zip(*columns, strict=True):
            if as_json:
                record = dict(zip(fields, map(plain, row), strict=True))
                file.write(json_lines.dumps(record, allow_nan=False) + "\n")
            else:
                table.writerow(["" if cell is None else cell for cell in row])

    return write
