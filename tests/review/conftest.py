"""A table with planted errors and a judge that knows them, for tests of the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from buttress.review.room import Ranking, SuspectRoom
from buttress.review.store import ReviewStore
from buttress.tables.table import Table


class Planted:
    """Ranks the rows by the distance of their label to what it should be."""

    def __init__(self, truth, seed=0):
        self.truth = truth
        self.calls = 0
        self.noise = np.random.default_rng(seed).random(len(truth))

    def __call__(self, labels):
        self.calls += 1
        wrong = np.where(labels != self.truth, 0.55 + 0.4 * self.noise, 0.12 * self.noise)
        # every refit is surer of the rows that are right
        wrong = np.where(wrong < 0.5, wrong / self.calls, wrong)
        order = np.argsort(-wrong, kind="stable")
        first, second = sorted(set(self.truth))
        suggested = np.where(labels == first, second, first).astype(object)
        return Ranking(wrong, suggested, order)


def make_planted_room(
    folder: Path, n=60, n_wrong=12, columns=None, labels=("no", "yes"), **settings
):
    """A room, and the true labels of its rows."""
    rng = np.random.default_rng(1)
    truth = np.where(np.arange(n) % 2 == 0, labels[0], labels[1]).astype(object)
    given = truth.copy()
    flipped = rng.choice(n, n_wrong, replace=False)
    given[flipped] = np.where(truth[flipped] == labels[0], labels[1], labels[0])
    x = np.where(truth == labels[1], 2.0, -2.0) + rng.normal(size=n)
    made = {"x": x, "z": rng.normal(size=n)} | (columns or {})
    store_settings = {
        key: settings.pop(key) for key in ("overlap", "lease_seconds") if key in settings
    }
    store = ReviewStore(folder / "review.sqlite", **{"overlap": 0.0} | store_settings)
    room = SuspectRoom(
        store,
        Table(made),
        given,
        Planted(truth),
        title=settings.pop("title", "planted.csv"),
        features=["x", "z"],
        **settings,
    )
    return room, truth


@pytest.fixture
def planted_room():
    """Makes a room, and the true labels of its rows."""
    return make_planted_room
