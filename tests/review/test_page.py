"""The page over HTTP: decisions, exports, and everything that must not get through."""

from __future__ import annotations

import csv
import html
import io
import re
import time

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

from buttress.review.page import review_app
from buttress.review.room import Ranking, SuspectRoom
from buttress.review.store import ReviewStore
from buttress.tables.table import Table


def client_of(room, name="ada", **settings):
    client = TestClient(review_app(room, **settings), base_url="http://127.0.0.1:8000")
    if name:
        assert client.post("/enter", data={"name": name}).status_code == 200
    return client


def hidden(page):
    return dict(re.findall(r'name="(item|request|second_look)" value="([^"]*)"', page))


def decide(client, decision, **more):
    form = hidden(client.get("/").text) | {"decision": decision} | more
    return client.post("/decide", data=form)


@pytest.fixture
def room(planted_room, tmp_path):
    return planted_room(tmp_path, top=20)[0]


def test_a_session_from_the_name_to_the_corrections(planted_room, tmp_path):
    room, truth = planted_room(tmp_path)
    client = client_of(room, name=None)
    assert "Who reviews?" in client.get("/").text
    client.post("/enter", data={"name": "Ada L."})
    for _ in range(60):
        page = client.get("/").text
        if "Nothing is left" in page:
            break
        form = hidden(page)
        item = room.store.item(int(form["item"]))
        right = truth[item.id]
        form["decision"] = "keep" if item.given == right else f"change:{right}"
        form["note"] = "seen, twice"
        assert client.post("/decide", data=form).status_code == 200
    rows = list(csv.DictReader(io.StringIO(client.get("/export/corrections.csv").text)))
    changed = {int(r["key"]) - 1: r["new_label"] for r in rows if r["old_label"] != r["new_label"]}
    assert changed == {i: truth[i] for i in range(60) if room._labels[i] != truth[i]}
    assert {r["who"] for r in rows} == {"Ada L."}
    assert rows[0]["note"] == "seen, twice"
    assert rows[0]["key_column"] == "row number"
    decisions = client.get("/export/decisions.csv").text
    assert len(decisions.splitlines()) == len(rows) + 1


def test_the_page_says_saved_and_undo_takes_it_back(room):
    client = client_of(room)
    page = decide(client, "keep").text
    assert "Saved: " in page
    assert "1 of 20 reviewed" in page
    assert "0 of 20 reviewed" in client.post("/undo").text
    answer = client.post("/undo")
    assert answer.status_code == 409
    assert "there is nothing to undo" in answer.text


def test_a_repeated_form_is_one_decision(room):
    client = client_of(room)
    form = hidden(client.get("/").text) | {"decision": "keep"}
    client.post("/decide", data=form)
    client.post("/decide", data=form)
    assert len(room.store.decisions()) == 1


def test_two_reviewers_get_different_rows_and_a_dispute_is_shown(planted_room, tmp_path):
    room, _ = planted_room(tmp_path, overlap=1.0, top=1)
    ada, bob = client_of(room, "ada"), client_of(room, "bob")
    assert decide(ada, "keep").status_code == 200
    assert "Nothing is left" in ada.get("/").text
    item = room.store.item(int(hidden(bob.get("/").text)["item"]))
    decide(bob, f"change:{item.suggested}", note="the scan says so")
    page = bob.get("/").text
    assert "Second look" in page
    assert "ada: " in page
    assert "the scan says so" in page
    assert "agree on 0 % of 1 rows" in page
    decide(bob, "keep")
    assert room.store.item(item.id).state == "done"


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"item": "0", "decision": "keep"},
        {"item": "x", "decision": "keep", "request": "12345678"},
        {"item": "999", "decision": "keep", "request": "12345678"},
        {"item": "-1", "decision": "keep", "request": "12345678"},
        {"item": "0", "decision": "maybe", "request": "12345678"},
        {"item": "0", "decision": "change:<script>", "request": "12345678"},
        {"item": "0", "decision": "change", "request": "12345678"},
        {"item": "0", "decision": "keep", "request": "1" * 99},
        {"item": "0", "decision": "keep", "request": "12345678", "note": "x" * 70_000},
        {"item": "0" * 40, "decision": "keep", "request": "12345678"},
    ],
)
def test_bad_forms_change_nothing(room, form):
    answer = client_of(room).post("/decide", data=form)
    assert answer.status_code == 409
    assert "Nothing was changed" in answer.text
    assert room.store.decisions() == []


def test_other_sites_and_other_names_are_refused(room):
    client = client_of(room)
    form = hidden(client.get("/").text) | {"decision": "keep"}
    for headers in ({"origin": "http://evil.test"}, {"sec-fetch-site": "cross-site"}):
        assert client.post("/decide", data=form, headers=headers).status_code == 403
    assert client.get("/", headers={"host": "evil.test"}).status_code == 421
    assert room.store.decisions() == []


def test_a_token_is_asked_for_and_never_shown(room):
    client = client_of(room, name=None, token="s3cret-token")
    assert client.get("/table", follow_redirects=False).status_code == 303
    wrong = client.post("/enter", data={"name": "eve", "token": "guess"})
    assert wrong.status_code == 403
    assert client.post("/decide", data={}).status_code == 403
    client.cookies.set("reviewer", b"eve".hex())
    client.cookies.set("pass", "guess")
    assert client.get("/export/corrections.csv", follow_redirects=False).status_code == 303
    right = client.post("/enter", data={"name": "ada", "token": "s3cret-token"})
    assert right.status_code == 200
    assert "is" in right.text
    assert "s3cret-token" not in right.text + str(right.headers) + str(client.cookies)


def test_headers_are_strict(room):
    client = client_of(room)
    for path in ("/", "/table", "/static/review.js", "/enter", "/files/x.png", "/nothing"):
        answer = client.get(path)
        if path == "/nothing":
            assert answer.status_code == 404
            continue
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert "://" not in answer.text.replace("http://www.w3.org", "")


EVIL = "<img src=x onerror=alert(1)>\"'><script>alert(1)</script>{{7*7}}"


def test_everything_is_escaped(planted_room, tmp_path):
    cells = np.array([EVIL] * 60, dtype=object)
    room, _ = planted_room(
        tmp_path, columns={EVIL: cells}, labels=("no", EVIL), title=EVIL, overlap=1.0, top=3
    )
    ada, bob = client_of(room, EVIL), client_of(room, "bob")
    pages = [ada.get("/").text, ada.get("/table").text, ada.get("/enter").text]
    pages.append(decide(ada, "keep", note=EVIL).text)
    item = room.store.next("bob")[0]
    room.store.decide(item.id, "bob", "change", label=item.suggested, request="bob's")
    pages.append(bob.get(f"/?row={item.id}").text)
    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert html.escape(EVIL, quote=False)[:20] in page
        assert "49" not in re.findall(r"alert\(1\)&lt;/script&gt;(\S\S)", page)


def test_images_only_below_the_folder(planted_room, tmp_path):
    folder = tmp_path / "files"
    (folder / "deep").mkdir(parents=True)
    picture = b"\x89PNG\r\n\x1a\n...."
    (folder / "deep" / "a b.png").write_bytes(picture)
    (folder / "page.svg").write_text("<svg onload='alert(1)'/>")
    (folder / "notes.txt").write_text("private")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "kind.png").symlink_to(folder / "notes.txt")
    (folder / "out").symlink_to(tmp_path)
    names = np.array(["deep/a b.png"] * 60, dtype=object)
    room, _ = planted_room(tmp_path, columns={"scan": names}, files=folder)
    client = client_of(room)
    page = client.get("/").text
    source = re.search(r'<img src="([^"]+)"', page).group(1)
    answer = client.get(source)
    assert (answer.status_code, answer.content) == (200, picture)
    assert answer.headers["content-type"] == "image/png"
    for name in (
        "../secret.png",
        "..%2fsecret.png",
        "%2e%2e/secret.png",
        "deep/../../secret.png",
        "link.png",
        "kind.png",
        "out/secret.png",
        "/etc/x.png",
        f"/{tmp_path}/secret.png",
        "notes.txt",
        "page.svg",
        "deep",
        "a%00.png",
        "..\\secret.png",
        "x" * 3000 + ".png",
    ):
        answer = client.get(httpx.URL(f"http://127.0.0.1:8000/files/{name}"))
        assert answer.status_code == 404, name
        assert b"secret" not in answer.content


def test_without_a_folder_no_file_is_served(room):
    assert client_of(room).get("/files/a.png").status_code == 404


def test_the_table_is_paged_and_links_to_rows(room):
    client = client_of(room)
    page = client.get("/table").text
    assert "Page 1 of 1, 20 rows" in page
    assert client.get("/table?page=7").status_code == 200
    assert client.get("/table?page=x").status_code == 409
    assert client.get("/table?state=secret").status_code == 409
    link = re.search(r'href="(/\?row=\d+)"', page).group(1)
    assert "is <q" in client.get(link).text
    assert client_of(room, "bob").get(link).status_code == 409


def test_a_hundred_thousand_rows(tmp_path, record_property):
    n = 100_000
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=n) for i in range(20)}
    labels = rng.choice(["a", "b"], n).astype(object)
    wrong = rng.random(n)
    other = np.where(labels == "a", "b", "a").astype(object)
    room = SuspectRoom(
        ReviewStore(tmp_path / "r.sqlite"),
        Table(columns),
        labels,
        lambda given: Ranking(wrong, other, np.argsort(-wrong)),
        title="large",
        features=list(columns),
    )
    client = client_of(room)
    start = time.perf_counter()
    page = client.get("/").text
    record_property("seconds", time.perf_counter() - start)
    assert len(page) < 60_000
    assert len(client.get("/table?page=1900").text) < 60_000
