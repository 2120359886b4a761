"""kill -9 of the review page: what it called saved is on disk, and is not asked again."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import signal
import sqlite3
import threading
from pathlib import Path

import httpx
import pytest

from buttress.review.store import ReviewStore

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kill -9 needs a POSIX system")


def _load_nursery():
    path = Path(__file__).parents[1] / "serve" / "nursery.py"
    spec = importlib.util.spec_from_file_location("review_nursery", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


nursery = _load_nursery()

N_ROWS = 3000

PREPARE = """
from pathlib import Path
import numpy as np
from buttress.review.page import review_app
from buttress.review.room import Ranking, SuspectRoom
from buttress.review.store import ReviewStore
from buttress.tables.table import Table
n = int(sys.argv[2])
rng = np.random.default_rng(0)
wrong, x = 0.1 + 0.9 * rng.random(n), rng.normal(size=n)
labels = np.where(x > 0, "yes", "no").astype(object)
other = np.where(x > 0, "no", "yes").astype(object)

def make(_):
    room = SuspectRoom(
        ReviewStore(sys.argv[1], overlap=0.0),
        Table({"x": x}),
        labels,
        lambda given: Ranking(wrong, other, np.argsort(-wrong)),
        title="planted",
        features=["x"],
        every=5,
    )
    return review_app(room)
"""


def answered(client, method, path, **more):
    """The page, None when the server died meanwhile."""
    try:
        answer = client.request(method, path, follow_redirects=True, **more)
    except httpx.TransportError:
        return None
    assert answer.status_code == 200, answer.text
    return answer.text


def form_of(page):
    return dict(re.findall(r'name="(item|request|second_look)" value="([^"]*)"', page))


def kill_the_page(path, kills):
    """Review, be killed, repeat what was not acknowledged; the rows acknowledged, in order."""
    rng = random.Random(0)
    saved, open_form = [], None
    cookies = {"reviewer": b"ada".hex()}
    with nursery.Nursery(PREPARE, path, N_ROWS) as home:
        for _ in range(kills):
            process, address = home.start()
            with httpx.Client(
                base_url=address, timeout=nursery.PATIENCE, cookies=cookies
            ) as client:
                if open_form is not None:
                    # a browser sends a form again whose answer did not come
                    page = answered(client, "POST", "/decide", data=open_form)
                    saved.append(int(open_form["item"]))
                    assert int(form_of(page)["item"]) not in saved
                killed_at = rng.randrange(1, 8)
                for step in range(killed_at + 1):
                    form = form_of(answered(client, "GET", "/"))
                    assert int(form["item"]) not in saved
                    open_form = form | {"decision": rng.choice(["keep", "unsure"])}
                    killer = threading.Timer(
                        rng.random() * 0.03, os.kill, (process, signal.SIGKILL)
                    )
                    if step == killed_at:
                        killer.start()
                    page = answered(client, "POST", "/decide", data=open_form)
                    if page is not None:
                        assert "Saved: row" in page
                        saved.append(int(form["item"]))
                        open_form = None
                    if step == killed_at:
                        killer.join()
            home.wait()
    return saved, open_form


def check(path, kills):
    saved, open_form = kill_the_page(path, kills)
    assert len(saved) == len(set(saved))
    store = ReviewStore(path, overlap=0.0)
    decided = [decision.item for decision in store.decisions()]
    store.close()
    # the very last form may be on disk, though its answer did not come
    assert decided[: len(saved)] == saved
    assert decided[len(saved) :] in ([], [int((open_form or {}).get("item", -1))])
    base = sqlite3.connect(path)
    assert base.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    base.close()


def test_what_the_page_called_saved_is_on_disk(tmp_path):
    check(tmp_path / "review.sqlite", 4)


@pytest.mark.slow
def test_a_hundred_kills_of_the_page(tmp_path):
    check(tmp_path / "review.sqlite", 100)
