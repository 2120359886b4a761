"""Checked files, columns and labels: what is wrong is said before any work is done."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress._files import FileClash, is_special, refuse_clashes
from buttress._words import did_you_mean
from buttress.cli._console import CommandError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from buttress.tables import Table


class Missing(StrEnum):
    """What ``--missing`` accepts."""

    error = "error"
    impute = "impute"
    drop_rows = "drop-rows"


class Decimal(StrEnum):
    """What ``--decimal`` accepts."""

    point = "."
    comma = ","


DecimalMark = Annotated[Decimal, typer.Option("--decimal", help="Decimal mark of the file.")]


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
    """

    table: Table
    labels: NDArray[Any]
    classes: dict[str, int]
    n_read: int


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
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


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
    from buttress.tables.table import is_missing, listed, refuse_infinite

    present = column_names(existing_file(path), decimal=decimal)
    if target not in present:
        hint = did_you_mean(target, present) or f"; it has {listed(present)}"
        raise typer.BadParameter(f"{path}: there is no column {target!r} (--target){hint}")
    for name in names(ignore):
        if name not in present:
            hint = did_you_mean(name, present)
            raise typer.BadParameter(f"{path}: there is no column {name!r} (--ignore){hint}")
        if name == target:
            raise typer.BadParameter(f"--ignore {name}: that is the target")
    table = read_table(
        path, target=target, text=names(categorical), skip=names(ignore), decimal=decimal
    )
    refuse_infinite(table, str(path))
    n_read = len(table)
    labels = table[target]
    unlabelled = int(is_missing(labels).sum())
    if missing == "drop-rows":
        complete = table.complete()
        if not complete.any():
            raise typer.BadParameter(f"{path}: every row has a missing value")
        table = table.take(complete)
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
    warn_of_many_texts(path, features.without(*names(categorical)))
    found, counts = np.unique(labels, return_counts=True)
    if checked:
        _check_classes(path, target, found, counts, len(labels), folds)
    classes = {str(label): int(count) for label, count in zip(found, counts, strict=True)}
    return Data(features, labels, classes, n_read)


def refuse_decimal_commas(path: Path, table: Table, decimal: str) -> None:
    """Refuse numbers with decimal commas, which would be taken for as many categories."""
    from buttress.tables.grammar import has_decimal_comma, looks_numeric
    from buttress.tables.table import is_number, listed

    found = []
    for name, values in table.columns.items():
        if is_number(values):
            continue
        texts = {value for value in values if value is not None}
        mark = "." if decimal == "," else ","
        odd = [text for text in texts if not looks_numeric(text, decimal)]
        other = [text for text in texts if looks_numeric(text, mark) or has_decimal_comma(text)]
        if odd and len(other) == len(texts):
            found.append(name)
    if found:
        raise typer.BadParameter(
            f"{path}: {listed(found)} {'hold' if len(found) > 1 else 'holds'} numbers with "
            f"{'decimal commas' if decimal == '.' else 'decimal points'}: say --decimal "
            f"{',' if decimal == '.' else '.'} (or name them in --categorical if they are codes)"
        )


def warn_of_many_texts(path: Path, table: Table) -> None:
    """Say which text columns have a value of their own for most rows."""
    from buttress.tables.table import is_number

    for name, values in table.columns.items():
        if is_number(values):
            continue
        different = {value for value in values if value is not None}
        if not _too_many(len(different), len(values)):
            continue
        odd = sorted(text for text in different if not _reads_as_number(text))
        what = "each becomes a feature of its own"
        if len(odd) < len(different) / 2:
            what = "most are numbers" + (f", {odd[0]!r} is not" if odd else "")
        warnings.warn(
            f"{path}: the column {name!r} is text with {len(different)} different values in "
            f"{len(values)} rows: {what}. Correct it, leave it out with --ignore, or name it in "
            "--categorical if it is meant.",
            UserWarning,
            stacklevel=2,
        )


def _too_many(different: int, n_rows: int) -> bool:
    """Whether there are too many values for classes or categories."""
    return different > 20 and different > n_rows / 5


def _reads_as_number(text: str) -> bool:
    from buttress.tables.grammar import has_decimal_comma, looks_numeric

    return looks_numeric(text) or has_decimal_comma(text)


def _check_classes(
    path: Path, target: str, found: Any, counts: Any, n_rows: int, folds: int
) -> None:
    where = f"{path}: the target {target!r}"
    if len(found) < 2:
        raise typer.BadParameter(f"{where} has one value only, {found[0]!s}")
    if _too_many(len(found), n_rows):
        raise typer.BadParameter(
            f"{where} has {len(found)} different values in {n_rows} rows: these are no classes"
        )
    if counts.min() < folds:
        rare = found[counts.argmin()]
        raise typer.BadParameter(
            f"{where} has {counts.min()} rows of class {rare!s}, fewer than the {folds} folds"
        )


def load_model(path: Path) -> tuple[Any, dict[str, Any]]:
    """A saved model, or that of a stream's checkpoint, with the description of its file."""
    existing_file(path, "model file")
    from buttress.classifiers.online.checkpoint import describe_checkpoint, is_checkpoint

    if is_checkpoint(path):
        from buttress.tables.stream import model_of_checkpoint

        return model_of_checkpoint(path), describe_checkpoint(path)
    from buttress.persistence import describe

    model, about = describe(path)
    return model, about


def as_table_model(model: Any) -> Any:
    """Any fitted classifier of numbers as a model of tables; a model of tables as it is."""
    from buttress.tables import TableClassifier
    from buttress.tables.encoder import TableEncoder

    if isinstance(model, TableClassifier):
        return model
    if not hasattr(model, "n_features_in_") or not hasattr(model, "decision_function"):
        raise CommandError(f"{type(model).__name__} is not a fitted classifier with a margin")
    columns = getattr(model, "feature_names_in_", None)
    if columns is None:
        raise CommandError(
            f"the {type(model).__name__} was fitted without names of columns; fit it on a data "
            "frame, or with 'buttress fit'"
        )
    wrapped = TableClassifier(model, standardize=False)
    wrapped.encoder_ = TableEncoder(standardize=False).fit({name: [0.0] for name in columns})
    wrapped.estimator_, wrapped.classes_ = model, model.classes_
    wrapped.feature_names_in_ = columns
    return wrapped
