"""Rows without an answer: kept for reviewers, and given back with their labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.review.evidence import Feature, shown
from buttress.review.records import Item
from buttress.review.room import NEIGHBOURS, Room, RowView
from buttress.review.store import ReviewStore
from buttress.serve.model import ServedAnswers, ServedModel
from buttress.serve.rows import RequestRows
from buttress.serve.training import TrainingRows, in_words


class RefusedRows(Room):
    """The refused rows of a service, as a room of the review.

    The content of an item in the store is JSON: ``row`` (values by column), ``form`` (how they
    came), ``notes`` (sentences), and ``margin`` (the margin and the band that is refused) where
    there is one.

    Parameters
    ----------
    store : ReviewStore
    model : ServedModel
        Its classes are what reviewers choose from.
    title : str
        Of the page.
    learned : callable
        How the model does, for people.
    training : TrainingRows, optional
        To say why a row was refused, what is usual of the classes and what lies near it.
    files : Path, optional
        Folder of the images that columns name.
    """

    def __init__(
        self,
        store: ReviewStore,
        model: ServedModel,
        *,
        title: str,
        learned: Callable[[], str],
        training: TrainingRows | None = None,
        files: Path | None = None,
    ) -> None:
        classes = [str(label) for label in model.classes.tolist()]
        super().__init__(store, title, classes, "refused row", files)
        self.training = training
        self._learned = learned

    @property
    def busy(self) -> str:
        """How the model does; the service collects the labels by itself."""
        return self._learned()

    def view(self, item: Item) -> RowView:
        """The values that were sent, the margin and the reason; with evidence, what is near."""
        content = json.loads(item.content or "{}")
        row, margin = content.get("row", {}), content.get("margin")
        features = [Feature(str(name), shown(value), {}, 0.0) for name, value in row.items()]
        near = {}
        if self.training is not None:
            evidence = self.training.evidence
            row = evidence.as_columns(row)
            features = evidence.features_of(row, item.given, item.suggested)
            near = {
                label: evidence.neighbours_of(row, label, NEIGHBOURS) for label in evidence.classes
            }
        return RowView(
            item,
            f"Refused row {item.id}",
            features,
            near,
            content.get("notes", []),
            None if margin is None else (margin[0], margin[1], margin[2]),
        )

    def keep(self, model: ServedModel, rows: RequestRows, X: Array, answers: ServedAnswers) -> None:
        """Put refused rows into the review; a row that is there already stays one."""
        refused = np.flatnonzero(answers.refused)
        chances = model.chance_of_error(answers)
        notes: list[list[str]] = [[] for _ in refused]
        if self.training is not None:
            notes = [[in_words(reason)] for reason in self.training.reasons(model, X[refused])]
        items = []
        for index, told in zip(refused.tolist(), notes, strict=True):
            row = dict(zip(rows.names, rows.values[index], strict=True))
            content: dict[str, Any] = {"row": row, "notes": told, "form": rows.form}
            if answers.margins is not None and answers.margins.ndim == 1 and model.band:
                content["margin"] = [float(answers.margins[index]), *model.band]
            elif answers.margins is not None:
                margins = np.array2string(answers.margins[index], precision=3, separator=", ")
                told.append(f"The margin is {margins}.")
            label, chance = str(answers.labels[index]), float(chances[index])
            key = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:16]
            items.append((None, key, label, label, chance, chance, True, json.dumps(content)))
        self.store.add(items)

    def labelled(self, target: str, older_than: float) -> list[tuple[int, str, RequestRows]]:
        """Rows that reviewers have labelled and the model has not learned.

        Each with the number of its decision and a key that makes learning it twice impossible.
        """
        lessons = []
        for decision, item in self.store.untaken(older_than):
            content = json.loads(item.content or "{}")
            row = content["row"] | {target: decision.label}
            rows = RequestRows(tuple(row), [list(row.values())], content["form"])
            lessons.append((decision.id, f"review {item.key} {decision.id}", rows))
        return lessons
