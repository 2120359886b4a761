"""Refits in the background: the queue reorders, and nothing is lost or asked twice."""

from __future__ import annotations

import numpy as np

from buttress.review.corrections import corrected_labels
from buttress.review.progress import progress_of
from buttress.review.room import SuspectRoom
from buttress.review.store import ReviewStore


def work(room, truth, reviewer="ada", most=10_000):
    asked = []
    while len(asked) < most and (items := room.store.next(reviewer)):
        (item,) = items
        asked.append(item.id)
        right = truth[item.id]
        verdict = "keep" if right == item.given else "change"
        room.store.decide(item.id, reviewer, verdict, label=right, request=f"{reviewer}{item.id}")
        room.decided()
    return asked


def test_a_whole_review_corrects_every_planted_error(planted_room, tmp_path):
    room, truth = planted_room(tmp_path, every=5)
    asked = work(room, truth)
    room.wait()
    assert len(asked) == len(set(asked))
    assert room._judge.calls > 1
    assert (corrected_labels(room._labels, room.corrections()) == truth).all()
    assert progress_of(room.store).n_wrong == 12


def test_refits_reorder_and_shorten_the_queue(planted_room, tmp_path):
    room, truth = planted_room(tmp_path, every=10)
    before = room.store.counts()["open"]
    work(room, truth, most=10)
    room.wait()
    # the judge is surer now, so that fewer rows are worth a look
    assert room.store.counts()["open"] < before - 10
    assert room.evidence.labels is room._ranked


def test_kept_labels_need_no_refit(planted_room, tmp_path):
    room, truth = planted_room(tmp_path, n_wrong=0, every=3)
    work(room, truth)
    room.wait()
    assert room._judge.calls == 1


def test_a_failed_refit_leaves_the_order_and_is_told(planted_room, tmp_path):
    room, truth = planted_room(tmp_path, every=2)
    judge, room._judge = room._judge, lambda labels: 1 / 0
    work(room, truth, most=4)
    room.wait()
    assert "division by zero" in room.busy
    room._judge = judge
    work(room, truth)
    room.wait()
    assert room.busy == ""
    assert (corrected_labels(room._labels, room.corrections()) == truth).all()


def test_a_restart_continues(planted_room, tmp_path):
    room, truth = planted_room(tmp_path)
    first = work(room, truth, most=7)
    room.store.close()
    again, _ = planted_room(tmp_path)
    assert again._judge.calls == 0
    assert not set(first) & set(work(again, truth))


def test_top_is_a_budget(planted_room, tmp_path):
    room, truth = planted_room(tmp_path, every=5, top=15)
    assert len(work(room, truth)) == 15
    room.wait()
    assert room.store.next("ada") == []


def test_rows_without_a_label_are_not_asked(planted_room, tmp_path):
    room, _ = planted_room(tmp_path)
    labels = room._labels.copy()
    labels[:3] = None
    other = SuspectRoom(
        ReviewStore(tmp_path / "b.sqlite", overlap=0.0),
        room.evidence.table,
        labels,
        lambda given: room._judge(np.where(given == None, "no", given)),  # noqa: E711
        title="t",
        features=["x", "z"],
        top=100,
    )
    assert other.store.counts()["open"] == 57
