"""``buttress predict``: labels for the rows of a file, block by block."""

from __future__ import annotations

import csv
import io
import json as json_lines
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from buttress.cli._console import CommandError, Jobs, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import as_table_model, existing_file, guard_files, load_model

app = typer.Typer(rich_markup_mode="markdown")

ABSTAIN = "abstain"


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model saved by 'buttress fit'.")],
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file with the model's columns.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File to write; the screen if not given.")
    ] = None,
    lenient: Annotated[
        bool,
        typer.Option("--lenient", help="Ignore extra columns; take new categories as unknown."),
    ] = False,
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
    more the largest of the classes' values. Rows are read and written in blocks, so the file
    may be larger than memory. With --missing drop-rows at fit, an incomplete row gets an
    empty label. --seed is accepted as everywhere; a prediction has nothing random.

    **Example:** `buttress predict model.skops new.csv -o answers.csv`
    """
    guard_files([model, data], {"--out": out})
    existing_file(data)
    fitted, _ = load_model(model)
    say = Output(json=False, quiet=quiet)
    counts = {"rows": 0, "abstained": 0, "unanswered": 0, "right": 0, "known": 0}
    with limit_threads(jobs), _opened(out) as file:
        write = _json_writer(file) if json else _csv_writer(file)
        for labels, margins, truth in _answers(fitted, data, lenient, block_rows, counts):
            write(labels, margins)
            _score(labels, truth, counts)
    message = f"{counts['rows']} rows, {counts['abstained']} without an answer (abstain)"
    if counts["unanswered"]:
        message += f", {counts['unanswered']} with missing values"
    if counts["known"]:
        share = counts["right"] / counts["known"]
        message += f"; accuracy of the answers {100 * share:.2f} %"
    say.note(message + (f"; wrote {out}" if out else ""))


@contextmanager
def _opened(out: Path | None) -> Iterator[IO[str]]:
    from buttress._files import replacing

    if out is None:
        yield sys.stdout
        return
    with replacing(out, "w") as file:
        yield file


def _csv_writer(file: IO[str]) -> Any:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["label", "margin"])

    def write(labels: list[Any], margins: list[Any]) -> None:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(
            (label, "" if margin is None else repr(margin))
            for label, margin in zip(labels, margins, strict=True)
        )
        file.write(buffer.getvalue())

    return write


def _json_writer(file: IO[str]) -> Any:
    def write(labels: list[Any], margins: list[Any]) -> None:
        for label, margin in zip(labels, margins, strict=True):
            file.write(json_lines.dumps({"label": label or None, "margin": margin}) + "\n")

    return write


def _answers(
    model: Any, data: Path, lenient: bool, block_rows: int, counts: dict[str, int]
) -> Iterator[tuple[list[Any], list[Any], Any]]:
    """Labels, margins and (when the file has them) true labels, block by block."""
    import numpy as np

    from buttress.tables import iter_table

    model = as_table_model(model)
    encoder = model.encoder_
    if lenient:
        encoder.set_params(new_categories="ignore", extra_columns="ignore")
    blocks = iter_table(
        data, text=list(encoder.categories_), numeric=encoder.numeric_, block_rows=block_rows
    )
    for block in blocks:
        truth = block.columns.get(model.target) if model.target else None
        known = [name for name in encoder.feature_names_in_ if name in block.columns]
        rows = np.arange(len(block))
        if encoder.missing == "drop-rows":
            complete = block.without(*(n for n in block.names if n not in known)).complete()
            rows = np.flatnonzero(complete)
            counts["unanswered"] += len(block) - len(rows)
        labels: list[Any] = [""] * len(block)
        margins: list[Any] = [None] * len(block)
        if len(rows):
            try:
                encoded = model.encode(block.take(rows))
            except ValueError as error:
                first = counts["rows"] + 1
                where = f"{data}, rows {first} to {first + len(block) - 1}"
                hint = str(error).replace(
                    "; choose missing='impute' or missing='drop-rows'",
                    "; the model was fitted with --missing error",
                )
                raise CommandError(f"{where}: {hint}") from None
            scores = np.asarray(model.estimator_.decision_function(encoded))
            answers = model.estimator_.predict(encoded).tolist()
            best = (scores if scores.ndim == 1 else scores.max(axis=1)).tolist()
            rejected = (
                np.asarray(model.estimator_.reject(encoded)).tolist()
                if model.rejects
                else [False] * len(rows)
            )
            for position, row in enumerate(rows):
                labels[row] = ABSTAIN if rejected[position] else answers[position]
                margins[row] = best[position]
            counts["abstained"] += sum(rejected)
        counts["rows"] += len(block)
        yield labels, margins, truth


def _score(labels: list[Any], truth: Any, counts: dict[str, int]) -> None:
    """Count right answers where the file has the labels too."""
    if truth is None:
        return
    from buttress.tables.table import as_text

    for label, true in zip(labels, as_text(truth), strict=True):
        if true is not None and label not in ("", ABSTAIN):
            counts["known"] += 1
            counts["right"] += str(label) == true
