"""The room of refused rows: what a running model would not answer, and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from buttress.review.corrections import Correction
from buttress.review.evidence import Evidence, Feature, shown
from buttress.review.room import NEIGHBOURS, RowView, corrections_of
from buttress.review.store import Item, ReviewStore


class RefusalRoom:
    """Rows that a running model would not answer.

    Parameters
    ----------
    store : ReviewStore
        The content of an item is JSON: ``row`` (values by column), ``notes`` (sentences), and
        ``margin`` (the margin and the band that is refused) where there is one.
    classes : sequence of str
    title : str
    learned : callable
        How the model does, for people.
    evidence : Evidence, optional
        The training rows, for what is usual of the classes and for the nearest of them.
    files : Path, optional
        Folder of the images that columns name.
    """

    def __init__(
        self,
        store: ReviewStore,
        classes: Sequence[str],
        *,
        title: str,
        learned: Callable[[], str],
        evidence: Evidence | None = None,
        files: Path | None = None,
    ) -> None:
        self.store = store
        self.title = title
        self.files = files
        self.evidence = evidence
        self._classes = list(classes)
        self._learned = learned

    @property
    def classes(self) -> Sequence[str]:
        """Labels to choose from."""
        return self._classes

    @property
    def busy(self) -> str:
        """How the model does."""
        return self._learned()

    def view(self, item: Item) -> RowView:
        """The values that were sent, the margin and the reason; with evidence, what is near."""
        content = json.loads(item.content or "{}")
        row, notes = content.get("row", {}), content.get("notes", [])
        margin = content.get("margin")
        features = [Feature(str(name), shown(value), {}, 0.0) for name, value in row.items()]
        near = {}
        if self.evidence is not None:
            row = self.evidence.as_columns(row)
            features = self.evidence.features_of(row, item.given, item.suggested)
            near = {
                label: self.evidence.neighbours_of(row, label, NEIGHBOURS)
                for label in self.evidence.classes
            }
        return RowView(
            item,
            f"Refused row {item.id}",
            features,
            near,
            notes,
            None if margin is None else (margin[0], margin[1], margin[2]),
        )

    def decided(self) -> None:
        """The service collects the labels by itself."""

    def corrections(self) -> list[Correction]:
        """The labels decided, for what the model would have answered."""
        return corrections_of(self.store, "refused row")


__all__ = ["RefusalRoom"]
