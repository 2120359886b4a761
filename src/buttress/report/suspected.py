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
    # rows as labels are wrong at least are shown, and the cautious list is marked in it.
    listed = found.top(max(len(found.selected), round(found.expected_errors.low)))
    flagged = np.zeros(len(labels), dtype=bool)
    flagged[listed] = True
    surely = set(found.selected.tolist())
    section = Suspects(
        columns=["row", "label", "suggested", "chance wrong", "score", "nearly sure"],
        rows=[
            [
                int(rows[position]) + 1,
                str(labels[position]),
                str(found.suggested[position]),
                round(float(found.probabilities[position]), 3),
                round(float(found.scores[position]), 4),
                "yes" if position in surely else "no",
            ]
            for position in listed.tolist()
        ],
        n_rows=len(rows),
        how=f"Each row was scored by ramp classifiers that had not seen it. About "
        f"{100 * found.noise_rate:.0f} % of all labels seem wrong; the rows that most likely are "
        f"come first. Chance wrong is the probability that the label is wrong. {len(surely)} of "
        f"them are nearly sure: among those at most "
        f"{100 * _FDR:.0f} % are expected to be false alarms.",
    )
    return section, flagged
