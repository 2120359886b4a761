"""The rows a model was trained on, beside a running service: why it refuses, and what is near."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array
from buttress.classifiers.refusal_reasons import RefusalReason, RefusalReasons
from buttress.review.evidence import Evidence
from buttress.serve.model import ServedModel
from buttress.tables import column_names, read_table
from buttress.tables.grammar import class_labels
from buttress.tables.table import Table, is_missing, listed

# Of longer tables so many rows are drawn: neighbours of a row are found among them in some
# milliseconds, and the shares they speak of are known to about one in a hundred.
_MOST_ROWS = 20_000


class TrainingRows:
    """The training table of a served model.

    Parameters
    ----------
    table : Table
        The model's columns.
    labels : ndarray
    numbers : ndarray of int
        Where the rows stand in the file, counted from 1.
    """

    def __init__(self, table: Table, labels: NDArray[Any], numbers: NDArray[np.intp]) -> None:
        self.table, self.labels, self.numbers = table, labels, numbers
        texts = np.array([str(label) for label in labels.tolist()], dtype=object)
        self.evidence = Evidence(table, texts, list(table.names), numbers)
        self._reasons: tuple[ServedModel, RefusalReasons] | None = None

    @classmethod
    def read(cls, path: Path, model: ServedModel, seed: int = 0) -> TrainingRows:
        """The rows of a file that has the columns of a model and its labels."""
        target = model.target or "label"
        present = column_names(path)
        absent = [name for name in [*model.columns.names, target] if name not in present]
        if absent:
            raise ValueError(f"{path}: there is no column {listed(absent, 3)} (--training)")
        texts = [*model.columns.categories, *model.columns.derived]
        table = read_table(path, target=target, text=texts)
        usable = ~is_missing(table[target])
        for name in model.columns.names:
            if name not in model.columns.fill:
                usable &= ~is_missing(table[name])
        rows = np.flatnonzero(usable)
        if len(rows) > _MOST_ROWS:
            drawn = np.random.default_rng(seed).choice(len(rows), _MOST_ROWS, replace=False)
            rows = rows[np.sort(drawn)]
        if len(rows) < 2:
            raise ValueError(f"{path}: fewer than two rows without a missing value (--training)")
        features = Table({name: table[name][rows] for name in model.columns.names})
        return cls(features, class_labels(table[target][rows]), rows + 1)

    def prepare(self, model: ServedModel) -> None:
        """Be ready to give reasons for the refusals of a model."""
        encoded = model.encoded(self.table)
        self._reasons = model, RefusalReasons(encoded, self.labels)

    def reasons(self, model: ServedModel, X: Array) -> list[RefusalReason]:
        """Why these encoded rows were refused; the nearest rows by their number in the file."""
        if self._reasons is None or self._reasons[0] is not model:
            self.prepare(model)
        assert self._reasons is not None
        reasons = self._reasons[1].of(X, np.arange(len(X)))
        return [
            RefusalReason(
                each.row,
                each.reason,
                each.distance,
                each.agreement,
                {str(label): self.numbers[rows] for label, rows in each.nearest.items()},
            )
            for each in reasons
        ]


def in_words(reason: RefusalReason) -> str:
    """A reason as a sentence for people."""
    return (
        f"Refused because it lies {reason.reason}: {reason.distance:.1f} times as far from its "
        f"nearest training rows as usual, {100 * reason.agreement:.0f} % of which have one label."
    )


def as_record(reason: RefusalReason) -> dict[str, Any]:
    """A reason for programs."""
    return {
        "reason": reason.reason,
        "distance": reason.distance,
        "agreement": reason.agreement,
        "nearest": {label: rows.tolist() for label, rows in reason.nearest.items()},
    }
