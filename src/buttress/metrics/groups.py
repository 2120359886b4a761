"""Coverage, error and refusals by group, with intervals, and what can be told from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from buttress._numbers import check_number
from buttress.metrics.counts import Estimate, column, row_outcomes, share_estimate


@dataclass(frozen=True)
class GroupOutcome:
    """What happened to the rows of one group.

    Attributes
    ----------
    group : object
        The group's name.
    n, n_answered : int
        Rows, and answered rows.
    rejection_rate, coverage, risk : Estimate
        Share refused, share answered, and error rate among the answered, each with its
        Clopper-Pearson interval; the risk is NaN in (0, 1) where nothing is answered.
    refused_more, errs_more : str
        Against the rows of all other groups: "more", "less", "no difference seen", or "cannot
        tell" where the interval is wider than the difference that would matter.
    """

    group: Any
    n: int
    n_answered: int
    rejection_rate: Estimate
    coverage: Estimate
    risk: Estimate
    refused_more: str
    errs_more: str


def outcomes_by_group(
    y: Any,
    pred: Any,
    rejected: Any,
    groups: Any,
    *,
    confidence: float = 0.95,
    difference: float = 0.1,
) -> list[GroupOutcome]:
    """Rejection rate, coverage and error among the answers for every group.

    Parameters
    ----------
    y, pred, rejected
        As in `reject_risk`.
    groups : array-like of shape (n,)
        The group of every row.
    confidence : float in (0, 1), default=0.95
        Level of each interval.
    difference : float in (0, 1), default=0.1
        The smallest difference that matters. A group whose interval reaches this far on both
        sides of the others' rate is too small to say anything.

    Returns
    -------
    list of GroupOutcome
        In the order of the groups' names.

    Notes
    -----
    "more" and "less" are said when the intervals of the group and of the other rows are
    disjoint, which is stricter than a test of the difference at the same level. With many
    groups some differences are chance: ask for a higher `confidence`.

    Examples
    --------
    >>> y, pred = [1] * 90, [1] * 80 + [0] * 10
    >>> rejected = [False] * 40 + [True] * 45 + [False] * 5
    >>> groups = ["a"] * 42 + ["b"] * 45 + ["c"] * 3
    >>> [(one.group, one.refused_more) for one in outcomes_by_group(y, pred, rejected, groups)]
    [('a', 'less'), ('b', 'more'), ('c', 'cannot tell')]
    """
    check_number("difference", difference, "(0, 1)")
    outcome = row_outcomes(y, pred, rejected, None)
    groups = column(groups, "groups")
    check_consistent_length(outcome.wrong, groups)
    rows = []
    for name in np.unique(groups):
        inside = groups == name
        answered = ~outcome.rejected
        refusals, refused_more = _compare(outcome.rejected, inside, confidence, difference)
        errors, errs_more = _compare(
            outcome.wrong[answered], inside[answered], confidence, difference
        )
        coverage = Estimate(*(1.0 - x for x in (refusals.value, refusals.high, refusals.low)))
        rows.append(
            GroupOutcome(
                name.item() if hasattr(name, "item") else name,
                int(inside.sum()),
                int((inside & answered).sum()),
                refusals,
                coverage,
                errors,
                refused_more,
                errs_more,
            )
        )
    return rows


def _compare(hit: Any, inside: Any, confidence: float, difference: float) -> tuple[Estimate, str]:
    """The share of hits in a group, and how it stands to that of the other rows."""
    share_inside, others = (share_estimate(hit[mask], confidence) for mask in (inside, ~inside))
    if not (inside.any() and (~inside).any()):
        return share_inside, "cannot tell"
    if share_inside.low > others.high:
        return share_inside, "more"
    if share_inside.high < others.low:
        return share_inside, "less"
    wide = (
        share_inside.high - others.value > difference
        and others.value - share_inside.low > difference
    )
    one_sided = share_inside.high - share_inside.low > 2.0 * difference
    return share_inside, "cannot tell" if wide or one_sided else "no difference seen"
