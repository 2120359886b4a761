"""The section of labels that look wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import BoolArray, IntArray
from buttress.noise import LabelSuspects
from buttress.report.sections import Suspects


def suspects_section(
    suspects: LabelSuspects, labels: NDArray[Any], rows: IntArray, who: str
) -> tuple[Suspects, BoolArray]:
    """The list of rows whose label looks wrong.

    Parameters
    ----------
    suspects : LabelSuspects
        Of a search, a noise-aware classifier or an audit.
    labels : array
        The labels that were looked at.
    rows : array of int
        Where these rows stand in the file.
    who : str
        The models that judged them, in the plural.

    Returns
    -------
    Suspects
        The section of the report; rows are counted from 1.
    ndarray of bool
        Which of the rows are listed.
    """
    # The list for a false discovery rate is a cautious one. To look through by hand, as many
    # rows as labels are wrong at least are shown, and the cautious list is marked in it.
    listed = suspects.top(max(len(suspects.selected), round(suspects.expected_errors.low)))
    flagged = np.zeros(len(labels), dtype=bool)
    flagged[listed] = True
    surely = set(suspects.selected.tolist())
    rate = suspects.noise_rate
    shares = (
        f"About {100 * rate:.0f} % of all labels seem wrong "
        f"({100 * rate.low:.0f} to {100 * rate.high:.0f} %)"
    )
    meaning = (
        f"{shares}; the rows that most likely are come first. Chance wrong is the probability that "
        f"the label is wrong, score its log-odds. {len(surely)} of the rows are nearly sure: among "
        f"those about {100 * suspects.asked:.0f} % false alarms are allowed."
        if len(listed)
        else f"{shares}, but no row stands out enough to be named."
    )
    section = Suspects(
        columns=["row", "label", "suggested", "chance wrong", "score", "nearly sure"],
        rows=[
            [
                int(rows[position]) + 1,
                str(labels[position]),
                str(suspects.suggested[position]),
                round(float(suspects.probabilities[position]), 3),
                round(float(suspects.scores[position]), 4),
                "yes" if position in surely else "no",
            ]
            for position in listed.tolist()
        ],
        n_rows=len(rows),
        how=f"Each row was judged by {who} that had not seen it. {meaning}",
    )
    return section, flagged
