"""Answers to the rows of a file, block by block: label, margin, probability, or no answer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray, IntArray
from buttress._words import did_you_mean
from buttress.metrics.scorer import answers
from buttress.tables.classifier import TableClassifier
from buttress.tables.libsvm import is_libsvm, is_libsvm_column
from buttress.tables.reading import column_names, iter_table
from buttress.tables.table import (
    AbsentColumn,
    Table,
    TableError,
    is_missing,
    lacking,
    refuse_too_large,
)

# How an error of a model names a row: by its place in what it was given.
_ROW = re.compile(r"\brow (\d+) ")


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says to a block of rows.

    Attributes
    ----------
    labels : list
        The label of every row, also of those rejected; None for a row with missing values that
        the model was told to leave out.
    margins : list of float or None
        The decision value: with two classes positive for the second of them, with more the
        largest.
    probabilities : list of float or None
        Of the label given; an empty list when the model has none.
    rejected : list of bool
        Rows that the model would rather not answer.
    kept : dict of str to list
        Columns carried along as they stand in the file.
    truth : ndarray or None
        The labels in the file, if it has them.
    """

    labels: list[Any]
    margins: list[float | None]
    probabilities: list[float | None]
    rejected: list[bool]
    kept: dict[str, list[Any]]
    truth: NDArray[Any] | None


class FilePrediction:
    """A model and a file of rows for it.

    Everything that can be checked without reading the rows is checked here: the columns of the
    model must be in the file, and so must those to keep.

    Parameters
    ----------
    model : TableClassifier
        Fitted. Its encoder is told to ignore extra columns.
    path : path-like
        CSV, JSON lines or Parquet.
    keep : sequence of str
        Columns to carry along.
    lenient : bool
        Whether a new category counts as none of the known ones, instead of an error.
    decimal : {".", ","}
    block_rows : int

    Attributes
    ----------
    extra : list of str
        Columns of the file that the model does not know; they are not looked at.
    has_probabilities : bool

    Raises
    ------
    TableError
        Naming the column that is missing.
    """

    def __init__(
        self,
        model: TableClassifier,
        path: str | os.PathLike[str],
        *,
        keep: Sequence[str] = (),
        lenient: bool = False,
        decimal: str = ".",
        block_rows: int = 10_000,
    ) -> None:
        self.model, self.path, self.keep = model, path, list(keep)
        self.decimal, self.block_rows = decimal, block_rows
        self._encoder = model.encoder_
        self._encoder.set_params(extra_columns="ignore")
        if lenient:
            self._encoder.set_params(new_categories="ignore")
        present = column_names(path, decimal=decimal)
        features = [str(name) for name in self._encoder.feature_names_in_]
        if is_libsvm(path):  # what is not written there is zero
            unwritten = [name for name in features if is_libsvm_column(name)]
            present = list(dict.fromkeys([*present, *unwritten]))
        unclaimed = [name for name in present if name not in features]
        for names, what, meant, error in (
            (features, " of the model", unclaimed, TableError),
            (self.keep, " to keep", present, AbsentColumn),
        ):
            absent = [name for name in names if name not in present]
            if absent:
                hint = did_you_mean(absent[0], meant)
                raise error(f"{path}: {lacking(absent, what)} in the data{hint}")
        known = {*features, *model.known_extras()}
        self.extra = [name for name in present if name not in known]
        self._skip = [name for name in present if name not in features and name != model.target]
        inner = model.estimator_
        self._probability = getattr(inner, "predict_proba", getattr(inner, "implied_proba", None))
        self.has_probabilities = self._probability is not None

    def __iter__(self) -> Iterator[Answers]:
        encoder, model = self._encoder, self.model
        first = 1
        for block in iter_table(
            self.path,
            target=model.target,
            text=[*encoder.categories_, *encoder.derived_columns()],
            numeric=encoder.numeric_,
            keep=self.keep,
            skip=self._skip,
            decimal=self.decimal,
            block_rows=self.block_rows,
        ):
            yield self._answers(block, first)
            first += len(block)

    def _answers(self, block: Table, first: int) -> Answers:
        model = self.model
        truth = None if model.target is None else block.columns.get(model.target)
        features = block if truth is None else block.without(str(model.target))
        refuse_too_large(features, str(self.path), first)
        rows = np.arange(len(block))
        if self._encoder.missing == "drop-rows":
            rows = np.flatnonzero(features.complete())
        labels: list[Any] = [None] * len(block)
        margins: list[float | None] = [None] * len(block)
        probabilities: list[float | None] = [None] * len(block) if self.has_probabilities else []
        rejected = [False] * len(block)
        if len(rows):
            given, scores, chances, refused = self._judge(features.take(rows), first + rows)
            for position, row in enumerate(rows.tolist()):
                labels[row] = given[position]
                margins[row] = scores[position]
                rejected[row] = refused[position]
                if self.has_probabilities:
                    probabilities[row] = chances[position]
        kept = {name: list(block.written[name]) for name in self.keep}
        return Answers(labels, margins, probabilities, rejected, kept, truth)

    def _judge(
        self, table: Table, numbers: IntArray
    ) -> tuple[list[Any], list[float], list[float], list[bool]]:
        """Labels, margins, chances and refusals of the rows of the file with these numbers."""
        model = self.model
        try:
            encoded = model.encode(table)
            scores = np.asarray(model.estimator_.decision_function(encoded))
            labels, refused = answers(model.estimator_, encoded)
            chances = np.zeros(0) if self._probability is None else self._probability(encoded)
        except ValueError as error:
            reason = str(error).replace(
                "; choose missing='impute' or missing='drop-rows'",
                "; the model was fitted with --missing error",
            )
            reason = _ROW.sub(lambda said: f"row {numbers[int(said[1])]} ", reason)
            first, last = numbers[0], numbers[-1]
            where = f"row {first}" if first == last else f"rows {first} to {last}"
            raise TableError(f"{self.path}, {where}: {reason}") from None
        best = scores if scores.ndim == 1 else scores.max(axis=1)
        _refuse_scores(best, chances, table, f"{self.path}, row ", numbers)
        codes = np.searchsorted(model.classes_, labels)
        chance = chances[np.arange(len(labels)), codes] if len(chances) else []
        return labels.tolist(), best.tolist(), list(map(float, chance)), refused.tolist()


def share_right(answers: Answers) -> tuple[int, int]:
    """How many answers agree with the labels in the file, of how many that can be compared."""
    if answers.truth is None:
        return 0, 0
    known = ~is_missing(answers.truth)
    right = compared = 0
    rows = zip(answers.labels, answers.truth, known, answers.rejected, strict=True)
    for label, true, is_known, rejected in rows:
        if is_known and not rejected and label is not None:
            compared += 1
            right += str(label) == str(true)
    return right, compared


def _refuse_scores(
    scores: Array, chances: Array, table: Table, where: str, numbers: IntArray
) -> None:
    """Raise when a score or a chance is no finite number."""
    bad: BoolArray = ~np.isfinite(scores)
    if len(chances):
        bad |= ~np.isfinite(chances).all(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        largest = max(
            (abs(values[row]), name)
            for name, values in table.columns.items()
            if values.dtype.kind == "f"
        )
        raise TableError(
            f"{where}{numbers[row]}: the score is not a finite number; the row's largest value "
            f"is {largest[0]:g} in {largest[1]!r}"
        )
