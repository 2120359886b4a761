"""The queue: nothing lost, nothing asked twice, two reviewers, undo, and kill -9."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from buttress.review.opinions import outcome_of
from buttress.review.records import ReviewError
from buttress.review.store import ReviewStore


def make(path, n=10, **settings):
    store = ReviewStore(path, **{"overlap": 0.0} | settings)
    store.add((i, str(i + 1), "no", "yes", 1 - i / n, 1 - i / n, True, None) for i in range(n))
    return store


@pytest.fixture
def store(tmp_path):
    store = make(tmp_path / "r.sqlite")
    yield store
    store.close()


def decide(store, item, who, verdict="keep", **more):
    request = f"{who}-{item}-{random.random()}"
    return store.decide(item, who, verdict, request=request, **more)


def test_rows_come_by_priority_and_only_once(store):
    seen = []
    while items := store.next("ada"):
        seen.append(items[0].id)
        decide(store, items[0].id, "ada", "change", label="yes")
    assert seen == list(range(10))
    assert store.outcomes() == dict.fromkeys(range(10), "yes")


def test_two_reviewers_never_hold_the_same_row(store):
    for _ in range(5):
        a, b = store.next("ada")[0], store.next("bob")[0]
        assert a.id != b.id
        # asking again gives the row still held
        assert store.next("ada")[0].id == a.id
        decide(store, a.id, "ada")
        decide(store, b.id, "bob")
    assert store.next("ada") == store.next("bob") == []


def test_a_lease_ends_and_the_late_decision_is_not_lost(tmp_path):
    store = make(tmp_path / "r.sqlite", n=1, lease_seconds=-1)
    assert store.next("ada")[0].id == store.next("bob")[0].id == 0
    decide(store, 0, "bob")
    decide(store, 0, "ada", "change", label="yes")
    assert store.item(0).state == "disputed"
    assert len(store.decisions()) == 2


def test_many_threads_decide_every_row_once(tmp_path):
    store = make(tmp_path / "r.sqlite", n=60)

    def work(who):
        while items := store.next(who):
            decide(store, items[0].id, who)

    threads = [threading.Thread(target=work, args=(f"r{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(d.item for d in store.decisions()) == list(range(60))


def test_overlap_rows_are_seen_by_two_and_disputes_get_a_second_look(tmp_path):
    store = make(tmp_path / "r.sqlite", n=2, overlap=1.0)
    decide(store, store.next("ada")[0].id, "ada", "change", label="yes")
    assert store.item(0).state == "second"
    assert store.item(0).label == "yes"
    decide(store, store.next("ada")[0].id, "ada")
    # nothing is asked of the same person twice
    assert store.next("ada") == []
    assert store.next("bob")[0].id == 0
    decide(store, 0, "bob", "keep")
    assert store.item(0).state == "disputed"
    decide(store, store.next("bob")[0].id, "bob", "keep")
    assert store.item(1).state == "done"
    # a third person settles it, else those involved once nothing is left
    store = ReviewStore(tmp_path / "r.sqlite", overlap=1.0, lease_seconds=-1)
    assert store.next("eve")[0].id == 0
    assert store.next("bob")[0].id == 0
    decide(store, 0, "bob", "change", label="yes", second_look=True)
    assert (store.item(0).state, store.item(0).label) == ("done", "yes")


def test_unsure_goes_to_another_reviewer(store):
    decide(store, 0, "ada", "unsure")
    assert store.item(0).state == "second"
    assert store.next("bob")[0].id == 0
    decide(store, 0, "bob", "unsure")
    assert (store.item(0).state, store.item(0).label) == ("done", None)


def test_undo_gives_the_row_back(store):
    for _ in range(3):
        decide(store, store.next("ada")[0].id, "ada")
    assert store.undo("ada").item == 2
    assert store.item(2).state == "open"
    assert store.next("ada")[0].id == 2
    assert store.next("bob")[0].id == 3
    assert store.undo("ada").item == 1
    assert [d.item for d in store.decisions()] == [0]
    store.undo("ada")
    with pytest.raises(ReviewError, match="nothing to undo"):
        store.undo("ada")


def test_a_repeated_request_changes_nothing(store):
    first = store.decide(0, "ada", "keep", request="same")
    assert store.decide(0, "ada", "change", label="yes", request="same") == first
    with pytest.raises(ReviewError, match="decided this row already"):
        store.decide(0, "ada", "keep", request="other")
    assert len(store.decisions()) == 1


def test_wrong_requests_change_nothing(store):
    for number, verdict, label in [(0, "maybe", None), (0, "change", None), (99, "keep", None)]:
        with pytest.raises(ReviewError):
            store.decide(number, "ada", verdict, label=label, request="x")
    assert store.decisions() == []
    assert store.decide(0, "ada", "change", label="no", request="x").verdict == "keep"


def test_reordering_moves_open_rows_only(store):
    held = store.next("ada")[0]
    decide(store, store.next("bob")[0].id, "bob")
    store.rescore([("yes", i / 10, i / 10, i != 9, i) for i in range(10)])
    assert store.next("ada")[0].id == held.id
    assert store.next("bob")[0].id == 8
    decided = [d.item for d in store.decisions()]
    rest = []
    while items := store.next("bob"):
        rest.append(items[0].id)
        decide(store, items[0].id, "bob")
    assert not set(rest) & {*decided, held.id, 9}
    assert rest == sorted(rest, reverse=True)


def test_pages(store):
    decide(store, 0, "ada")
    items, total = store.page(2, 4)
    assert [item.id for item in items] == [4, 5, 6, 7]
    assert total == 10
    assert store.page(1, 4, state="reviewed")[1] == 1
    assert store.page(1, 4, state="open")[1] == 9


def test_a_store_knows_what_it_is_about(store, tmp_path):
    store.remember("data", "abc")
    with pytest.raises(ReviewError, match="another data"):
        store.remember("data", "xyz")
    (tmp_path / "other").write_text("this is no database, but long enough to be looked at\n" * 50)
    with pytest.raises(ReviewError, match="not a review store"):
        ReviewStore(tmp_path / "other")


def test_learned_labels_cannot_be_undone(store):
    decision = decide(store, 0, "ada")
    assert store.untaken(older_than=60) == []
    assert [d.id for d, _ in store.untaken(older_than=-1)] == [decision.id]
    store.mark_taken([decision.id])
    assert store.untaken(older_than=-1) == []
    with pytest.raises(ReviewError, match="cannot be taken back"):
        store.undo("ada")


def test_the_last_opinion_of_a_second_look_counts():
    opinions = [("x", False), ("y", False), (None, True)]
    assert outcome_of(opinions).label is None
    assert outcome_of([*opinions, ("y", True)]).label == "y"
    assert outcome_of([("x", False)], wants_two=True).state == "second"


REVIEWER = """
import sys
from buttress.review.store import ReviewStore
store = ReviewStore(sys.argv[1], overlap=0.0)
round = sys.argv[2]
n = 0
while True:
    items = store.next("ada")
    if not items:
        break
    store.decide(items[0].id, "ada", "change", label="yes", request=f"{round}-{n}")
    print(items[0].id, flush=True)
    n += 1
    if n % 7 == 0:
        print("undone", store.undo("ada").item, flush=True)
print("end", flush=True)
"""


def kill_a_reviewer(path, rounds, n_rows):
    """Kill a reviewing process again and again; what it was told must be on disk."""
    make(path, n=n_rows).close()
    rng = random.Random(0)
    said: dict[int, bool] = {}
    kills = 0
    for number in range(10 * rounds):
        process = subprocess.Popen(
            [sys.executable, "-c", REVIEWER, str(path), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        lines = []
        for _ in range(rng.randrange(1, 12)):
            line = process.stdout.readline()
            if not line:
                break
            lines.append(line)
        process.send_signal(signal.SIGKILL)
        kills += 1
        lines += process.stdout.readlines()
        process.wait()
        store = ReviewStore(path, overlap=0.0)
        decided = [decision.item for decision in store.decisions()]
        # no row twice, and every row that was acknowledged
        assert len(decided) == len(set(decided))
        ended = False
        for line in lines:
            words = line.split()
            ended = words[0] == "end"
            if words[0] == "undone":
                said[int(words[1])] = False
            elif not ended:
                said[int(words[0])] = True
        # one decision or undo may be on disk whose acknowledgement was cut off
        unsaid = {i for i in range(n_rows) if said.get(i, False) != (i in set(decided))}
        assert len(unsaid) <= 1
        said.update({i: i in set(decided) for i in unsaid})
        store.close()
        base = sqlite3.connect(path)
        assert base.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        base.close()
        if ended or kills >= rounds:
            break
    return kills


def test_kill_9_loses_nothing(tmp_path):
    assert kill_a_reviewer(tmp_path / "r.sqlite", 4, 1000) == 4


@pytest.mark.slow
def test_a_hundred_kills_lose_nothing(tmp_path):
    assert kill_a_reviewer(tmp_path / "r.sqlite", 100, 100_000) == 100
