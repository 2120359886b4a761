"""What opinions make of a row: open, waiting for another opinion, disputed, done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OPEN, SECOND, DISPUTED, DONE = "open", "second", "disputed", "done"
KEEP, CHANGE, UNSURE = "keep", "change", "unsure"


@dataclass(frozen=True)
class Opinion:
    """What one reviewer said of one row.

    Attributes
    ----------
    reviewer : str
    label : str or None
        The label that is right in the reviewer's eyes; None for "unsure".
    second_look : bool
        Whether it was given to settle a dispute, the other opinions in sight.
    """

    reviewer: str
    label: str | None
    second_look: bool = False


@dataclass(frozen=True)
class Outcome:
    """Where a row stands.

    Attributes
    ----------
    state : {"open", "second", "disputed", "done"}
    label : str or None
        The label as decided so far; None when nobody knows.
    """

    state: str
    label: str | None


def outcome_of(opinions: Sequence[Opinion], *, wants_two: bool = False) -> Outcome:
    """Where a row stands after these opinions.

    One firm opinion decides, or two equal ones when the row is among those that two people see.
    Two firm opinions that differ are a dispute, which a second look settles. "Unsure" asks for
    another reviewer; two of them end the row without a label.

    Examples
    --------
    >>> outcome_of([Opinion("ada", "yes"), Opinion("bob", "no")])
    Outcome(state='disputed', label=None)
    >>> outcome_of([Opinion("ada", "yes"), Opinion("bob", "no"), Opinion("eve", "no", True)])
    Outcome(state='done', label='no')
    """
    settled = [opinion for opinion in opinions if opinion.second_look]
    if settled:
        return Outcome(DONE, settled[-1].label)
    if not opinions:
        return Outcome(OPEN, None)
    firm = [opinion.label for opinion in opinions if opinion.label is not None]
    if len(set(firm)) > 1:
        return Outcome(DISPUTED, None)
    label = firm[0] if firm else None
    needed = 2 if wants_two or not firm else 1
    return Outcome(DONE if len(opinions) >= needed else SECOND, label)
