"""What is odd about a table before any model sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import IntArray
from buttress.report.sections import Health
from buttress.tables.table import Table, is_missing, is_number

_MOST_LISTED = 20


def data_health(table: Table, labels: NDArray[Any], numbers: IntArray | None = None) -> Health:
    """Count missing values, duplicates, conflicting labels, constant columns, classes.

    Parameters
    ----------
    table : Table
        The features.
    labels : ndarray
        The label of every row.
    numbers : ndarray of int, optional
        What the rows are called; 1, 2, ... when not given.

    Notes
    -----
    Costs O(rows x columns).

    Examples
    --------
    >>> from buttress.tables import as_table
    >>> table = as_table({"a": [1, 1, 2], "b": ["x", "x", "x"]})
    >>> health = data_health(table, np.array(["no", "yes", "no"]))
    >>> health.constant, health.n_duplicates, health.conflicts
    (['b'], 1, [1, 2])
    """
    classes, codes = np.unique(labels.astype(str), return_inverse=True)
    group = _groups(table)
    n_groups = int(group.max()) + 1 if len(group) else 0
    # A group conflicts when its labels are not all the label of its first row.
    lowest, highest = np.full(n_groups, len(classes)), np.full(n_groups, -1)
    np.minimum.at(lowest, group, codes)
    np.maximum.at(highest, group, codes)
    conflicting = np.flatnonzero(lowest[group] != highest[group])
    return Health(
        n_rows=len(table),
        n_numeric=sum(is_number(values) for values in table.columns.values()),
        n_text=sum(not is_number(values) for values in table.columns.values()),
        classes=dict(zip(classes.tolist(), np.bincount(codes).tolist(), strict=True)),
        missing=table.missing(),
        constant=[name for name, values in table.columns.items() if _is_constant(values)],
        n_duplicates=len(table) - n_groups,
        n_conflicts=len(conflicting),
        conflicts=(conflicting + 1 if numbers is None else numbers[conflicting])[
            :_MOST_LISTED
        ].tolist(),
    )


def _groups(table: Table) -> NDArray[np.int64]:
    """A number for every row, equal for rows with equal features."""
    group = np.zeros(len(table), dtype=np.int64)
    for values in table.columns.values():
        if is_number(values):
            _, codes = np.unique(values, return_inverse=True)
        else:
            text = np.array(["\0" if value is None else value for value in values], dtype=str)
            _, codes = np.unique(text, return_inverse=True)
        pairs = group * (int(codes.max(initial=0)) + 1) + codes
        _, group = np.unique(pairs, return_inverse=True)
    return group


def _is_constant(values: NDArray[Any]) -> bool:
    present = values[~is_missing(values)]
    return len(present) > 0 and bool(np.all(present == present[0]))
