"""A room of the review: its rows, what stands beside each, and the refits in the background."""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from buttress._arrays import Array, BoolArray
from buttress.review.corrections import ROW_NUMBER, Correction
from buttress.review.evidence import Evidence, Feature, Neighbour
from buttress.review.records import Item
from buttress.review.store import ReviewStore
from buttress.tables.table import Table

# Rows are queued from this P(wrong) on: below it the advice would be to stop at once.
QUEUED_FROM = 0.05
# And at least this many, so that a person can see for themselves.
QUEUED_LEAST = 20
# Neighbours shown of every class.
NEIGHBOURS = 3


@dataclass(frozen=True, eq=False)
class Ranking:
    """What a judge of labels says of every row.

    Attributes
    ----------
    wrong : ndarray
        Probability that the label is wrong.
    suggested : ndarray of object
        The most probable label.
    order : ndarray of int
        Positions of the rows, the most valuable to look at first.
    """

    wrong: Array
    suggested: NDArray[Any]
    order: NDArray[np.intp]


class Judge(Protocol):
    """Anything that ranks the labels of a table: `buttress.review.judges` has the usual one."""

    def __call__(self, labels: NDArray[Any]) -> Ranking:
        """Rank the rows under these labels (text, as written)."""
        ...


@dataclass(frozen=True)
class RowView:
    """All that a page shows of one row.

    Attributes
    ----------
    item : Item
    title : str
    features : list of Feature
    neighbours : dict of str to list of Neighbour
        By class; what is usual is shown of the same classes.
    notes : list of str
        Further facts, one sentence each.
    margin : tuple of float or None
        Of a refused row: its margin, and the ends of the band of margins that are refused.
    """

    item: Item
    title: str
    features: list[Feature]
    neighbours: dict[str, list[Neighbour]]
    notes: list[str]
    margin: tuple[float, float, float] | None = None


def corrections_of(store: ReviewStore, key_column: str) -> list[Correction]:
    """What the review in a store has decided, in order; kept labels are included."""
    deciding = {decision.item: decision for decision in store.decisions()}
    outcomes = store.outcomes()
    items = []
    for number, decision in deciding.items():
        item = store.item(number)
        if number in outcomes and item.given is not None:
            items.append(
                Correction(
                    item.key,
                    item.given,
                    outcomes[number],
                    decision.reviewer,
                    decision.at,
                    decision.note,
                    key_column,
                )
            )
    return items


class Room(ABC):
    """Rows to look at, and what the page shows beside each.

    Parameters
    ----------
    store : ReviewStore
    title : str
    classes : sequence of str
        Labels to choose from.
    key_column : str
        What the keys of the rows are.
    files : Path, optional
        Folder of the images that columns name.
    """

    def __init__(
        self,
        store: ReviewStore,
        title: str,
        classes: Sequence[str],
        key_column: str,
        files: Path | None,
    ) -> None:
        self.store = store
        self.title = title
        self.classes = classes
        self.key_column = key_column
        self.files = files

    @property
    def busy(self) -> str:
        """What happens in the background, for people; empty when nothing does."""
        return ""

    @abstractmethod
    def view(self, item: Item) -> RowView:
        """What stands beside a row."""

    def decided(self) -> None:  # noqa: B027  a room may have nothing to do then
        """Called after every decision and undo."""

    def corrections(self) -> list[Correction]:
        """The labels decided, as corrections of what was given."""
        return corrections_of(self.store, self.key_column)


class SuspectRoom(Room):
    """The rows of a training table whose labels are doubted.

    Parameters
    ----------
    store, title, key_column, files
        As in `Room`.
    table : Table
        All columns but the labels.
    labels : ndarray of object
        As written; None where missing (those rows are never asked about).
    judge : Judge
    features : list of str
        The columns that speak for or against a label; the others are only shown.
    keys : sequence of str, optional
        One for every row; its number when not given.
    every : int
        Decisions between two refits.
    top : int, optional
        Rows to review in all; by default those that are wrong with probability .05 or more.
    """

    def __init__(
        self,
        store: ReviewStore,
        table: Table,
        labels: NDArray[Any],
        judge: Judge,
        *,
        title: str,
        features: list[str],
        keys: Sequence[str] | None = None,
        key_column: str = ROW_NUMBER,
        every: int = 20,
        top: int | None = None,
        files: Path | None = None,
    ) -> None:
        classes = sorted({label for label in labels if label is not None})
        super().__init__(store, title, classes, key_column, files)
        self.every = every
        self.top = top
        self._labels = labels
        self._judge = judge
        self._keys = keys
        self._lock = threading.Lock()
        self._refit: threading.Thread | None = None
        self._failed = ""
        self._closed = False
        self.evidence = Evidence(table, self._current(), features)
        if store.counts()["open"] == 0 and not store.decisions():
            self._fill(judge(labels))
        self._seen = store.version()
        self._ranked = self._current()

    @property
    def busy(self) -> str:
        """What happens in the background."""
        if self._refit is not None and self._refit.is_alive():
            return "The model is learning your decisions; the queue will reorder."
        return self._failed

    def view(self, item: Item) -> RowView:
        """The row's values beside the class medians, and its nearest rows."""
        classes = [item.given, item.suggested] if item.given != item.suggested else [item.given]
        return RowView(
            item,
            f"Row {item.id + 1}" + (f" ({item.key})" if self.key_column != ROW_NUMBER else ""),
            self.evidence.row(item.id, item.given, item.suggested),
            {c: self.evidence.neighbours(item.id, c, NEIGHBOURS) for c in classes if c},
            [],
        )

    # -- the ranking -----------------------------------------------------------------------

    def _fill(self, ranking: Ranking) -> None:
        priority = _priority(ranking.order)
        known = np.array([label is not None for label in self._labels])
        queued = self._queued(ranking, known, 0)
        self.store.add(
            (
                row,
                str(row + 1) if self._keys is None else self._keys[row],
                self._labels[row],
                ranking.suggested[row],
                float(ranking.wrong[row]),
                float(priority[row]),
                bool(queued[row]),
                None,
            )
            for row in np.flatnonzero(known).tolist()
        )

    def _queued(self, ranking: Ranking, free: BoolArray, n_done: int) -> BoolArray:
        """Which of the rows nobody has looked at are in the queue."""
        queued = np.zeros(len(free), dtype=bool)
        order = ranking.order[free[ranking.order]]
        if self.top is not None:
            queued[order[: max(0, self.top - n_done)]] = True
            return queued
        queued[order[: max(0, QUEUED_LEAST - n_done)]] = True
        return queued | (free & (ranking.wrong >= QUEUED_FROM))

    def _current(self) -> NDArray[Any]:
        """The labels as corrected so far."""
        labels = self._labels.copy()
        for row, label in self.store.outcomes().items():
            labels[row] = label
        return labels

    def decided(self) -> None:
        """Start a refit in the background when enough has been decided since the last."""
        with self._lock:
            version = self.store.version()
            if sum(version) - sum(self._seen) < self.every:
                return
            if self._refit is not None and self._refit.is_alive():
                return
            self._seen = version
            self._refit = threading.Thread(target=self._refit_quietly, daemon=True)
            self._refit.start()

    def close(self) -> None:
        """Close the store; a refit that is under way is not waited for, and is lost."""
        self._closed = True
        self.store.close()

    def wait(self) -> None:
        """Wait for the refit in the background, if there is one."""
        if self._refit is not None:
            self._refit.join()

    def _refit_quietly(self) -> None:
        """Rank again; a store that was closed meanwhile ends it without a word."""
        try:
            self._rank_again()
        except sqlite3.ProgrammingError:
            if not self._closed:
                raise

    def _rank_again(self) -> None:
        labels = self._current()
        if np.array_equal(labels, self._ranked):
            return  # all labels were kept: the model has nothing new to learn
        try:
            ranking = self._judge(labels)
        except Exception as error:  # the review goes on with the order it has
            self._failed = f"The queue was not reordered: {error}"
            return
        self._failed = ""
        decided = self.store.given_where_decided()
        free = np.array([label is not None for label in self._labels])
        free[list(decided)] = False
        queued = self._queued(ranking, free, len(decided))
        priority = _priority(ranking.order)
        self.store.rescore(
            (
                ranking.suggested[row],
                float(ranking.wrong[row]),
                float(priority[row]),
                bool(queued[row]),
                row,
            )
            for row in np.flatnonzero(free).tolist()
        )
        self.evidence.update(labels)
        self._ranked = labels


def _priority(order: NDArray[np.intp]) -> Array:
    """Larger for the rows to look at first."""
    priority = np.empty(len(order))
    priority[order] = np.arange(len(order), 0, -1)
    return priority
