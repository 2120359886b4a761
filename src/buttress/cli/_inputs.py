"""Checked files, columns and labels: what is wrong is said before any work is done."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from buttress._files import FileClash, is_special, refuse_clashes
from buttress._words import did_you_mean
from buttress.cli._console import CommandError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from buttress._arrays import IntArray
    from buttress.tables import Table


# What ``--missing`` accepts.
Missing = Literal["error", "impute", "drop-rows"]
DecimalMark = Annotated[
    Literal[".", ","], typer.Option("--decimal", help="Decimal mark of the file.")
]


@dataclass(frozen=True, eq=False)
class Data:
    """A file, ready to learn from.

    Attributes
    ----------
    table : Table
        The features.
    labels : ndarray
    classes : dict of str to int
        Rows of every class.
    n_read : int
        Rows in the file, those left out included.
    numbers : ndarray of int
        Where the rows stand in the file, counted from 1.
    """

    table: Table
    labels: NDArray[Any]
    classes: dict[str, int]
    n_read: int
    numbers: IntArray


def existing_file(path: Path, what: str = "file") -> Path:
    """The path, when it is a file that can be read."""
    if not path.exists():
        raise typer.BadParameter(f"{path}: no such {what}")
    if path.is_dir():
        raise typer.BadParameter(f"{path}: is a directory, expected a {what}")
    if not os.access(path, os.R_OK):
        raise typer.BadParameter(f"{path}: no permission to read it")
    return path


def guard_files(inputs: Iterable[Path | None], outputs: Mapping[str, Path | None]) -> None:
    """Refuse what cannot be read or written, before anything heavy is imported or touched.

    Every command calls it first, with all files it will read and write.

    Parameters
    ----------
    inputs : iterable of Path or None
        A directory is passed on to whoever reads it.
    outputs : mapping of str to Path or None
        By the option that names them: ``{"--out": out, "--report": report}``.

    Raises
    ------
    typer.BadParameter
        When an input cannot be read, an output cannot be written, or an output is an input or
        another output, also through links.
    """
    reads = [path for path in inputs if path is not None]
    for path in reads:
        if not path.is_dir():
            existing_file(path)
    for written in outputs.values():
        writable(written)
    try:
        refuse_clashes(reads, outputs)
    except FileClash as error:
        raise typer.BadParameter(str(error)) from None


def writable(path: Path | None) -> Path | None:
    """The path, when a file can be made there; asked before the work, not after it."""
    if path is None or (is_special(path) and path.exists()):
        return path
    # A link that leads nowhere is written where it leads.
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise typer.BadParameter(f"{path}: there is no directory {folder}")
    if path.is_dir():
        raise typer.BadParameter(f"{path}: is a directory, expected a file name")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"{path}: no permission to write in {folder}")
    if path.exists() and not os.access(path, os.W_OK):
        raise typer.BadParameter(f"{path}: is protected against writing")
    return path


def fingerprint(path: Path) -> str:
    """What tells a file from every other: the SHA-256 of its bytes."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def names(text: str | None) -> list[str]:
    """A list given as ``a,b,c``."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def refuse_absent(path: Path, name: str, present: Collection[str], option: str) -> None:
    """Refuse a column that a file does not have."""
    from buttress.tables.table import listed

    if name not in present:
        hint = did_you_mean(name, present) or f"; it has {listed(present)}"
        raise typer.BadParameter(f"{path}: there is no column {name!r} ({option}){hint}")


def read_data(
    path: Path,
    target: str,
    *,
    missing: str = "error",
    categorical: str | None = None,
    ignore: str | None = None,
    folds: int = 5,
    decimal: str = ".",
    checked: bool = True,
) -> Data:
    """Read a file to learn from, and check everything that can be checked.

    Without `checked` the labels need not be classes that a model can learn.
    """
    import numpy as np

    from buttress.tables import column_names, read_table
    from buttress.tables.encoder import refuse_missing
    from buttress.tables.grammar import class_labels
    from buttress.tables.table import is_missing, refuse_too_large

    present = column_names(existing_file(path), decimal=decimal)
    refuse_absent(path, target, present, "--target")
    for name in names(ignore):
        refuse_absent(path, name, present, "--ignore")
        if name == target:
            raise typer.BadParameter(f"--ignore {name}: that is the target")
    for name in names(categorical):
        refuse_absent(path, name, present, "--categorical")
    table = read_table(
        path, target=target, text=names(categorical), skip=names(ignore), decimal=decimal
    )
    refuse_too_large(table, str(path))
    n_read = len(table)
    _refuse_without_values(path, table.without(target), can_ignore=checked)
    labels = table[target]
    unlabelled = int(is_missing(labels).sum())
    numbers = np.arange(1, n_read + 1)
    if missing == "drop-rows":
        complete = table.complete()
        if not complete.any():
            raise typer.BadParameter(f"{path}: every row has a missing value")
        table, numbers = table.take(complete), numbers[complete]
    elif unlabelled:
        raise typer.BadParameter(
            f"{path}: {unlabelled} rows have no {target!r}; use --missing drop-rows"
        )
    features, labels = table.without(target), class_labels(table[target])
    if not features.names:
        raise typer.BadParameter(f"{path}: {target!r} is the only column, there are no features")
    if missing == "error":
        try:
            refuse_missing(features)
        except ValueError as error:
            reason = str(error).split(";")[0]
            raise typer.BadParameter(
                f"{path}: {reason}; use --missing impute or --missing drop-rows"
            ) from None
    refuse_decimal_commas(path, features.without(*names(categorical)), decimal)
    warn_of_many_texts(path, features.without(*names(categorical)), can_ignore=checked)
    values, counts = np.unique(labels, return_counts=True)
    classes = {str(label): int(n) for label, n in zip(values, counts, strict=True)}
    if checked:
        _check_classes(f"{path}: the target {target!r}", classes, len(labels), folds)
    return Data(features, labels, classes, n_read, numbers)


def _refuse_without_values(path: Path, features: Table, can_ignore: bool) -> None:
    """Refuse columns that can neither be filled in nor leave a row that is complete.

    Whether the command has ``--ignore``, whose names cannot hold a comma, is `can_ignore`.
    """
    from buttress.tables.table import listed

    missing = features.missing()
    without = [name for name, count in missing.items() if count == len(features)]
    if without:
        remedy = f"say --ignore {','.join(without)}"
        if not can_ignore or any("," in name for name in without):
            remedy = (
                "leave it out of the file" if len(without) == 1 else "leave them out of the file"
            )
        raise typer.BadParameter(
            f"{path}: every row has a missing value in {listed(without)}: {remedy}"
        )


def refuse_decimal_commas(path: Path, table: Table, decimal: str) -> None:
    """Refuse numbers with decimal commas, which would be taken for as many categories."""
    from buttress.tables.grammar import has_decimal_comma, looks_numeric
    from buttress.tables.table import listed

    mark, marks = (",", "decimal commas") if decimal == "." else (".", "decimal points")

    def by_mark(text: str) -> bool:
        return looks_numeric(text, mark) or has_decimal_comma(text)

    mistaken = [
        name
        for name, texts in _texts(table)
        if all(map(by_mark, texts)) and not all(looks_numeric(text, decimal) for text in texts)
    ]
    if mistaken:
        raise typer.BadParameter(
            f"{path}: {listed(mistaken)} {'hold' if len(mistaken) > 1 else 'holds'} numbers with "
            f"{marks}: say --decimal {mark} (or name them in --categorical if they are codes)"
        )


def warn_of_many_texts(path: Path, table: Table, *, can_ignore: bool = True) -> None:
    """Say which text columns, dates aside, have a value of their own for most rows.

    Whether the command has ``--ignore`` and ``--categorical`` is `can_ignore`.
    """
    from buttress.tables.derived import looks_like_dates
    from buttress.tables.encoder import MOST_CATEGORIES
    from buttress.tables.grammar import has_decimal_comma, looks_numeric

    for name, different in _texts(table):
        if not _too_many(len(different), len(table)) or looks_like_dates(different):
            continue
        odd = sorted(
            text for text in different if not (looks_numeric(text) or has_decimal_comma(text))
        )
        what = "each becomes a feature of its own"
        if len(different) > MOST_CATEGORIES:
            what = "too many for categories, they are encoded by their letters"
        if len(odd) < len(different) / 2:
            what = "most are numbers" + (f", {odd[0]!r} is not" if odd else "")
        remedy = "or leave it out of the file"
        if can_ignore:
            remedy = "leave it out with --ignore, or name it in --categorical if it is meant"
        warnings.warn(
            f"{path}: the column {name!r} is text with {len(different)} different values in "
            f"{len(table)} rows: {what}. Correct it, {remedy}.",
            UserWarning,
            stacklevel=2,
        )


def _too_many(different: int, n_rows: int) -> bool:
    """Whether there are too many values for classes or categories."""
    return different > 20 and different > n_rows / 5


def _texts(table: Table) -> Iterator[tuple[str, set[str]]]:
    """The columns of text, each with its different values."""
    from buttress.tables.table import is_number

    for name, values in table.columns.items():
        if not is_number(values):
            yield name, set(values) - {None}


def refuse_many_classes(where: str, n_classes: int, n_rows: int) -> None:
    """Refuse labels with too many different values for classes."""
    if _too_many(n_classes, n_rows):
        raise typer.BadParameter(
            f"{where} has {n_classes} different values in {n_rows} rows: these are no classes"
        )


def _check_classes(where: str, classes: Mapping[str, int], n_rows: int, folds: int) -> None:
    if len(classes) < 2:
        raise typer.BadParameter(f"{where} has one value only, {next(iter(classes))}")
    refuse_many_classes(where, len(classes), n_rows)
    rare = min(classes, key=lambda name: classes[name])
    if classes[rare] < folds:
        raise typer.BadParameter(
            f"{where} has {classes[rare]} rows of class {rare}, fewer than the {folds} folds"
        )


def load_model(path: Path) -> tuple[Any, dict[str, Any]]:
    """A saved model, or that of a stream's checkpoint, with the description of its file."""
    existing_file(path, "model file")
    from buttress.classifiers.online.checkpoint import describe_checkpoint, is_checkpoint

    if is_checkpoint(path):
        from buttress.tables.stream import model_of_checkpoint

        return model_of_checkpoint(path), describe_checkpoint(path)
    from buttress.persistence import describe

    saved: tuple[Any, dict[str, Any]] = describe(path)
    return saved


def as_table_model(model: Any) -> Any:
    """Any fitted classifier with a margin as a model of tables."""
    from buttress.tables import TableClassifier
    from buttress.tables.row_encoding import as_table_classifier

    kind = type(model).__name__
    if not isinstance(model, TableClassifier):
        if not hasattr(model, "n_features_in_") or not hasattr(model, "decision_function"):
            raise CommandError(f"{kind} is not a fitted classifier with a margin")
        if not hasattr(model, "feature_names_in_"):
            raise CommandError(
                f"the {kind} was fitted without names of columns; fit it on a data frame, or with "
                "'buttress fit'"
            )
    return as_table_classifier(model)
