"""The section on refusals: how they fall on groups of rows, and why rows are refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray, IntArray
from buttress.classifiers.refusal_reasons import RefusalReason, explain_held_out
from buttress.metrics import GroupOutcome, outcomes_by_group
from buttress.model_selection import Judged, Measure
from buttress.report.sections import Coverage, Refusals
from buttress.tables import Table
from buttress.tables.table import is_missing, is_number

# Columns whose values are groups: text, or few whole numbers. More would be no table to read.
_MOST_VALUES, _MOST_COLUMNS = 6, 3
# Rows among which neighbours are looked for, and refused rows that are shown.
_MOST_ROWS, _EXAMPLES = 3000, 5


def refusals_section(
    judged: Judged,
    table: Table,
    encoded: Array,
    measure: Measure,
    numbers: IntArray | None = None,
) -> Refusals | None:
    """Refusals of held-out rows by group, with reasons; None when nothing is refused.

    Parameters
    ----------
    judged : Judged
        Answers to rows that were held out.
    table : Table
        All rows; ``judged.rows`` are positions in it.
    encoded : array of shape (n_judged, n_features)
        The judged rows as numbers.
    measure : Measure
        Its cost `d` decides which rows a model that always answers should not answer.
    numbers : array of int, optional
        What the rows of the table are called; 1, 2, ... when not given.
    """
    rejected, how = _refused(judged, measure)
    if not rejected.any():
        return None
    groups = [
        _group_row(name, one)
        for name, values in [("label", judged.true), *_group_columns(table, judged.rows)]
        for one in outcomes_by_group(judged.true, judged.answers, rejected, values)
    ]
    reasons = _explained(judged, encoded, rejected)
    names = judged.rows + 1 if numbers is None else numbers[judged.rows]
    shown = reasons[:: max(1, len(reasons) // _EXAMPLES)][:_EXAMPLES]
    return Refusals(
        groups=groups,
        reasons=dict(Counter(one.reason for one in reasons).most_common()),
        examples=[_example(one, names) for one in shown],
        n_refused=int(rejected.sum()),
        n_rows=len(rejected),
        how=how,
    )


def _refused(judged: Judged, measure: Measure) -> tuple[BoolArray, str]:
    if judged.rejected.any():
        return judged.rejected, f"Refused by {judged.title} while they were held out."
    curve = Coverage.from_answers(judged.true, judged.answers, judged.confidence, measure.d)
    least = curve.thresholds[curve.best_level(measure.d)]
    how = (
        f"{judged.title[0].upper()}{judged.title[1:]} answers every row; these are the ones that "
        f"would be left unanswered if no answer cost {measure.d:g}."
    )
    return np.asarray(judged.confidence < least), how


def _group_columns(table: Table, rows: IntArray) -> list[tuple[str, NDArray[Any]]]:
    """Columns with few values, which may name groups of people or things."""
    described = []
    for name in table.names:
        values = table[name][rows]
        known = ~is_missing(values)
        if is_number(values) and not (values[known] == np.round(values[known])).all():
            continue
        if 2 <= len(np.unique(values[known].astype(str))) <= _MOST_VALUES:
            described.append((name, np.where(known, _texts(values), "missing")))
    return described[:_MOST_COLUMNS]


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    if is_number(values):
        return np.array([f"{value:g}" for value in values.tolist()])
    return values.astype(str)


def _group_row(name: str, one: GroupOutcome) -> tuple[Any, ...]:
    text = f"refused: {one.refused_more}; wrong: {one.errs_more}"
    return name, str(one.group), one.n, tuple(one.rejection_rate), tuple(one.risk), text


def _explained(judged: Judged, encoded: Array, rejected: BoolArray) -> list[RefusalReason]:
    kept = np.arange(len(rejected))
    if len(kept) > _MOST_ROWS:
        kept = np.sort(np.random.default_rng(0).choice(len(kept), _MOST_ROWS, replace=False))
    dense = np.asarray(encoded[kept], dtype=np.float64)
    if len(kept) < 3 or not np.isfinite(dense).all():
        return []
    reasons = explain_held_out(dense, judged.true[kept], rejected[kept])
    return [_moved(one, kept) for one in reasons]


def _moved(one: RefusalReason, kept: IntArray) -> RefusalReason:
    """With positions among all judged rows."""
    nearest = {label: kept[rows] for label, rows in one.nearest.items()}
    return RefusalReason(int(kept[one.row]), one.reason, one.distance, one.agreement, nearest)


def _example(one: RefusalReason, names: IntArray) -> tuple[int, str, str]:
    near = "; ".join(
        f"{label}: {', '.join(str(names[k]) for k in positions)}"
        for label, positions in one.nearest.items()
    )
    return int(names[one.row]), one.reason, near
