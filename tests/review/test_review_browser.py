"""The review in a real browser: by keys alone, by two people, on a phone, under attack."""

from __future__ import annotations

import importlib.util
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from buttress.review.page import review_app
from buttress.serve.running import open_socket

# Seconds that a loaded machine may need for what a test waits for.
PATIENCE = 60.0

uvicorn = pytest.importorskip("uvicorn")


def _load_chromium():
    path = Path(__file__).parents[1] / "report" / "chromium.py"
    spec = importlib.util.spec_from_file_location("review_chromium", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


chromium = _load_chromium()

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        None in chromium.programs(),
        reason="no Chromium with ChromeDriver: apt-get install chromium chromium-driver",
    ),
]


@contextmanager
def served(room):
    """The page of a room on a free port of this machine."""
    server = uvicorn.Server(uvicorn.Config(review_app(room), log_level="error"))
    with open_socket("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        end = time.monotonic() + PATIENCE
        while not server.started and time.monotonic() < end:
            time.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


@contextmanager
def browsing(folder, **settings):
    browser = chromium.Chromium(folder, **{"width": 1280, "height": 900} | settings)
    try:
        yield browser
    finally:
        browser.close()


def enter(browser, address, name):
    browser.open(f"{address}/enter")
    browser.run("document.querySelector('[name=name]').value = ''")
    browser.type("[name=name]", name + "\n")
    until(browser, "return document.querySelector('.progress') !== null")


def until(browser, script, *arguments):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if browser.run(script, *arguments):
            return
        time.sleep(0.03)
    raise AssertionError(f"did not become true: {script}")


def press(browser, key):
    """Press a key with nothing focused, and wait for the page after it."""
    browser.run("document.body.dataset.old = 'yes'")
    browser.type("body", key)
    until(
        browser,
        "return document.readyState === 'complete' && document.body.dataset.old === undefined",
    )


def value(browser, name):
    return browser.run(
        "const e = document.querySelector(`[name=${arguments[0]}]`); return e ? e.value : null",
        name,
    )


def review_all(browser, room, truth):
    for _ in range(80):
        item = value(browser, "item")
        if item is None:
            return
        row = room.store.item(int(item))
        press(browser, "k" if row.given == truth[row.id] else "c")
    raise AssertionError("the review did not end")


def test_a_whole_session_by_keys_alone(planted_room, tmp_path):
    room, truth = planted_room(tmp_path, n=24, n_wrong=5, top=12, every=4)
    with served(room) as address, browsing(tmp_path) as browser:
        enter(browser, address, "ada")
        first = value(browser, "item")
        press(browser, "u")
        assert "unsure" in browser.text(".saved")
        press(browser, "z")
        assert value(browser, "item") == first
        # N goes to the note, where letters are letters; Escape leaves it
        browser.type("body", "n")
        assert browser.run("return document.activeElement.name") == "note"
        browser.type("[name=note]", "kcuz")
        assert value(browser, "note") == "kcuz"
        browser.run("document.activeElement.blur()")
        review_all(browser, room, truth)
        assert "Nothing is left" in browser.text("h1")
        assert browser.console() == []
        asked = [a for a in browser.requests() if a.startswith("http")]
        assert all(a.startswith(address) for a in asked)
    assert sorted(room.store.given_where_decided()) == sorted(
        d.item for d in room.store.decisions()
    )
    assert room.store.decisions()[0].note == "kcuz"
    assert all(room.store.outcomes()[d.item] == truth[d.item] for d in room.store.decisions())


def test_two_reviewers_at_once(planted_room, tmp_path):
    room, _ = planted_room(tmp_path, n=20, n_wrong=4, top=4, overlap=1.0)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with (
        served(room) as address,
        browsing(tmp_path / "a") as ada,
        browsing(tmp_path / "b") as bob,
    ):
        enter(ada, address, "ada")
        enter(bob, address, "bob")
        for _ in range(4):
            assert value(ada, "item") != value(bob, "item")
            for browser, key in ((ada, "k"), (bob, "c")):
                browser.open(address)
                if value(browser, "second_look") == "0":
                    press(browser, key)
        # a row that the other one is looking at comes when it is free again
        for browser, key in ((ada, "k"), (bob, "c"), (ada, "k"), (bob, "c")):
            browser.open(address)
            while value(browser, "second_look") == "0":
                press(browser, key)
        # every row was seen by both, who never agreed: all need a second look
        assert room.store.counts()["disputed"] == 4
        for browser in (bob, ada):
            browser.open(address)
            while value(browser, "item") is not None:
                assert "Reviewers disagree" in browser.text(".dispute")
                press(browser, "c")
        assert room.store.counts()["done"] == 4
        assert "agree on 0 % of 4 rows" in bob.text("main")


EVIL = '"><img src=x onerror="window.hurt=1"><script>window.hurt=1</script>\'{{7*7}}'


def test_nothing_in_the_data_is_executed(planted_room, tmp_path):
    cells = np.array([EVIL, "javascript:window.hurt=1"] * 30, dtype=object)
    room, _ = planted_room(tmp_path, columns={EVIL: cells}, labels=("no", EVIL), title=EVIL)
    with served(room) as address, browsing(tmp_path) as browser:
        enter(browser, address, EVIL[:70])
        for path in ("/", "/table", "/enter"):
            browser.open(address + path)
            assert browser.run("return window.hurt === undefined")
            assert browser.run("return document.querySelectorAll('img, body script').length") == 0
            assert EVIL in browser.text("header")
        browser.open(address)
        press(browser, "k")
        assert browser.run("return window.hurt === undefined")
        # and if something did get in, the policy would not run it
        browser.run(
            "const s = document.createElement('script'); s.textContent = 'window.hurt = 1';"
            "document.body.append(s)"
        )
        assert browser.run("return window.hurt === undefined")
        assert any("Content Security Policy" in line for line in browser.console())


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_phone_nothing_is_cut_off(planted_room, tmp_path, dark):
    long = np.array(["a long story " * 30 + "w" * 300] * 40, dtype=object)
    room, _ = planted_room(tmp_path, n=40, columns={"story": long}, overlap=1.0)
    with served(room) as address, browsing(tmp_path, width=390, height=844, dark=dark) as browser:
        enter(browser, address, "ada")
        press(browser, "c")
        for path in ("/", "/table", "/enter"):
            browser.open(address + path)
            assert browser.run("return document.documentElement.scrollWidth") <= 390
        browser.open(address)
        small = browser.run(
            "return [...document.querySelectorAll('button')].filter(b => "
            "b.getBoundingClientRect().height < 40).map(b => b.innerText)"
        )
        assert small == []
        background = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(20, 23, 26)" if dark else "rgb(251, 250, 248)")


def test_every_control_has_a_name_for_screen_readers(planted_room, tmp_path):
    room, _ = planted_room(tmp_path, n=40)
    with served(room) as address, browsing(tmp_path) as browser:
        enter(browser, address, "ada")
        press(browser, "k")
        for path in ("/", "/table", "/enter"):
            browser.open(address + path)
            browser.command("Accessibility.enable", {})
            nodes = browser.command("Accessibility.getFullAXTree", {})["nodes"]
            roles = ("button", "link", "textbox", "progressbar", "image", "region", "table")
            unnamed = [
                node["role"]["value"]
                for node in nodes
                if not node.get("ignored")
                and node.get("role", {}).get("value") in roles[:-1]
                and not node.get("name", {}).get("value")
            ]
            assert unnamed == []
            assert browser.run("return document.querySelectorAll('h1').length") == 1
            assert browser.run("return document.documentElement.lang") == "en"
