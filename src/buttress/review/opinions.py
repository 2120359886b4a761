"""What opinions make of a row: open, waiting for another opinion, disputed, done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OPEN, SECOND, DISPUTED, DONE = "open", "second", "disputed", "done"
KEEP, CHANGE, UNSURE = "keep", "change", "unsure"


@dataclass(frozen=True)
class ReviewOutcome:
    """Where a row stands.

    Attributes
    ----------
    state : {"open", "second", "disputed", "done"}
    label : str or None
        The label as decided so far; None when nobody knows.
    """

    state: str
    label: str | None


def outcome_of(
    opinions: Sequence[tuple[str | None, bool]], *, wants_two: bool = False
) -> ReviewOutcome:
    """Where a row stands after these opinions.

    An opinion is the label that is right in a reviewer's eyes (None for "unsure"), and whether it
    was given to settle a dispute, the other opinions in sight. One firm opinion decides, or two
    equal ones when the row is among those that two people see. Two firm opinions that differ are
    a dispute, which a second look settles. "Unsure" asks for another reviewer; two of them end
    the row without a label.

    Examples
    --------
    >>> outcome_of([("yes", False), ("no", False)])
    ReviewOutcome(state='disputed', label=None)
    >>> outcome_of([("yes", False), ("no", False), ("no", True)])
    ReviewOutcome(state='done', label='no')
    """
    settled = [label for label, second_look in opinions if second_look]
    if settled:
        return ReviewOutcome(DONE, settled[-1])
    if not opinions:
        return ReviewOutcome(OPEN, None)
    firm = [label for label, _ in opinions if label is not None]
    if len(set(firm)) > 1:
        return ReviewOutcome(DISPUTED, None)
    needed = 2 if wants_two or not firm else 1
    return ReviewOutcome(DONE if len(opinions) >= needed else SECOND, firm[0] if firm else None)
