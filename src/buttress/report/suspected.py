"""The section of labels that look wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray, IntArray
from buttress.report.sections import Suspects

# Share of false alarms allowed among the suspects that are called nearly sure.
_FDR = 0.1


def suspects_section(
    search: Any, encoded: Array, labels: NDArray[Any], rows: IntArray, folds: int
) -> tuple[Suspects, BoolArray]:
    """Rows whose label looks wrong, by cross-fitted scores of the ramp classifier.

    Parameters
    ----------
    search : fitted RampClassifierCV
        Where the parameters come from.
    encoded, labels
        The rows to look at.
    rows : array of int
        Where these rows stand in the file.
    folds : int

    Returns
    -------
    Suspects
        The section of the report; rows are counted from 1.
    ndarray of bool
        Which of the rows are listed.
    """
    found = search.suspects(encoded, labels, cv=folds, fdr=_FDR)
    # The list for a false discovery rate is a cautious one. To look through by hand, as many
    # rows as labels are estimated to be wrong are shown, and the cautious list is marked in it.
    order = np.lexsort((-found.scores, -found.probabilities))
    listed = order[: max(len(found.selected), round(found.noise_rate * len(rows)))]
    flagged = np.zeros(len(labels), dtype=bool)
    flagged[listed] = True
    surely = set(found.selected.tolist())
    section = Suspects(
        columns=["row", "label", "suggested", "chance wrong", "score", "nearly sure"],
        rows=[
            [
                int(rows[position]) + 1,
                str(labels[position]),
                other,
                round(float(found.probabilities[position]), 3),
                round(float(found.scores[position]), 4),
                "yes" if position in surely else "no",
            ]
            for position, other in zip(
                listed.tolist(), _suggested(search, encoded, labels, listed), strict=True
            )
        ],
        n_rows=len(rows),
        how=f"Each row was scored by ramp classifiers that had not seen it. About "
        f"{100 * found.noise_rate:.0f} % of all labels seem wrong, and as many rows are listed, "
        f"the most suspicious first. Chance wrong is the probability that the label is wrong; "
        "score is how far the row lies on the wrong side of the boundary, in units of the margin "
        f"(0 on the boundary). {len(surely)} of them are nearly sure: among those at most "
        f"{100 * _FDR:.0f} % are expected to be false alarms.",
    )
    return section, flagged


def _suggested(search: Any, X: Array, y: NDArray[Any], selected: IntArray) -> list[str]:
    """The most likely of the other labels of every suspected row."""
    if len(selected) == 0:
        return []
    scores = np.asarray(search.decision_function(X[selected]))
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    given = np.searchsorted(search.classes_, y[selected])
    scores[np.arange(len(given)), given] = -np.inf
    return [str(label) for label in search.classes_[scores.argmax(axis=1)]]
