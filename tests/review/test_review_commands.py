"""The loop on the command line: suspects, review, corrections, a clean table."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from starlette.testclient import TestClient

from buttress.cli import main
from buttress.review.judges import WITNESSES, AuditJudge, make_witness
from buttress.tables.grammar import csv_text

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A file with 12 wrong labels in 160 rows, and the rows (from 1) whose labels are wrong."""
    folder = tmp_path_factory.mktemp("planted")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    truth = np.where(X[:, 0] > 0, "1.0", "02")
    X[:, 0] += np.where(X[:, 0] > 0, 1.2, -1.2)
    given = truth.copy()
    flipped = rng.choice(160, 12, replace=False)
    given[flipped] = np.where(truth[flipped] == "1.0", "02", "1.0")
    with open(folder / "data.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "a", "b", "c", "team", "label"])
        for i in range(160):
            writer.writerow([f"p{i}", *map(repr, X[i].tolist()), f"t{i % 20}", given[i]])
    return folder, {int(i) + 1 for i in flipped}, truth


def run(*words):
    return main([str(word) for word in words])


FAST = ("--witnesses", "logistic", "--ignore", "team")


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_suspects_lists_the_wrong_labels_with_reasons(planted, tmp_path, capsys):
    folder, flipped, _ = planted
    out = tmp_path / "suspects.csv"
    words = ("suspects", folder / "data.csv", "-t", "label", "--keep", "id", "-o", out)
    assert run(*words, "--fdr", 0.25, *FAST) == 0
    listed = rows_of(out)
    found = [int(row["row"]) for row in listed]
    assert len(set(found) & flipped) >= 0.8 * len(flipped)
    assert len(set(found) - flipped) <= 4
    for row in listed:
        assert row["id"] == f"p{int(row['row']) - 1}"
        assert {row["given_label"], row["suggested_label"]} == {"1.0", "02"}
        assert f"nearest {row['suggested_label']!r}: rows " in row["reason"]
    assert "against" in listed[0]["reason"]
    probabilities = [float(row["wrong_probability"]) for row in listed]
    assert probabilities == sorted(probabilities, reverse=True)
    line = capsys.readouterr().out
    assert re.search(r"160 labels, about \d+ probably wrong \(90 % interval \d+–\d+\)", line)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_kept_columns_are_listed_as_they_are_written(planted, tmp_path, suffix):
    """Another number of digits would be another row's key, also where --ignore names it too."""
    records = rows_of(planted[0] / "data.csv")
    for i, record in enumerate(records):
        record["id"] = f"{i:04d}"
        record["code"] = str(9007199254740993 + 2 * i)
    data = tmp_path / f"data{suffix}"
    columns = {name: [record[name] for record in records] for name in records[0]}
    if suffix == ".csv":
        data.write_text(csv_text(list(columns), zip(*columns.values(), strict=True)))
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        pyarrow = pytest.importorskip("pyarrow")
        numbers = {name: list(map(float, columns[name])) for name in "abc"}
        numbers["code"] = list(map(int, columns["code"]))
        parquet.write_table(pyarrow.table(columns | numbers), data)
    out = tmp_path / "suspects.csv"
    words = ["suspects", data, "-t", "label", "--keep", "id,code", "--top", 5, "-o", out]
    assert run(*words, "--witnesses", "logistic", "--ignore", "team,id") == 0
    for row in rows_of(out):
        number = int(row["row"]) - 1
        assert (row["id"], row["code"]) == (f"{number:04d}", str(9007199254740993 + 2 * number))


def test_keys_of_a_review_are_those_of_the_file(planted, tmp_path, monkeypatch):
    """Keys with leading zeros come out of a review as `apply` looks for them."""
    data = tmp_path / "data.csv"
    data.write_text(
        re.sub(r"^p(\d+),", r"00\1,", (planted[0] / "data.csv").read_text(), flags=re.MULTILINE)
    )

    def change_one(app):
        client = TestClient(app, base_url="http://127.0.0.1:8010")
        client.post("/enter", data={"name": "ada"})
        page = client.get("/").text
        form = dict(re.findall(r'name="(item|request|second_look)" value="([^"]*)"', page))
        form["decision"] = re.search(r'value="(change:[^"]*)"', page)[1]
        assert client.post("/decide", data=form).status_code == 200

    monkeypatch.setattr("buttress.serve.running.run_server", lambda app, *_, **__: change_one(app))
    words = ["review", data, "-t", "label", "--key", "id", "--no-browser", *FAST]
    assert run(*words) == 0
    out, clean = tmp_path / "corrections.csv", tmp_path / "clean.csv"
    assert run("review", data, "-t", "label", "--key", "a", "--export", out) == 1
    assert not out.exists()
    assert run("review", data, "-t", "label", "--export", out) == 0
    assert rows_of(out)[0]["key"].startswith("00")
    written = out.read_bytes()
    assert run("review", data, "-t", "label", "--key", "id", "--export", out) == 0
    assert out.read_bytes() == written
    assert run("apply", data, out, "-o", clean) == 0
    assert clean.read_bytes() != data.read_bytes()


def test_top_groups_parquet_and_json(planted, tmp_path, capsys):
    folder, flipped, _ = planted
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "suspects.parquet"
    words = ("suspects", folder / "data.csv", "-t", "label", "--groups", "team", "--keep", "id")
    more = ("--top", 5, "-o", out, "--witnesses", "logistic", "--json")
    assert run(*words, *more) == 0
    table = parquet.read_table(out)
    assert table.num_rows == 5
    assert set(table["row"].to_pylist()) <= flipped
    told = json.loads(capsys.readouterr().out)
    assert told["listed"] == 5
    assert told["interval"][0] <= told["expected_errors"] <= told["interval"][1]
    assert set(told["noise_rates"]) == {"1.0", "02"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("suspects {data} --target lable", "no column 'lable'"),
        ("suspects {data} --target label --keep nothing", "no column 'nothing' (--keep)"),
        ("suspects {data} --target label --groups nothing", "no column 'nothing' (--groups)"),
        ("suspects {data} --target label --keep label", "that is the target"),
        ("suspects {data} --target label --witnesses magic", "--witnesses magic"),
        ("suspects {data} --target label --fdr 2", "--fdr 2"),
        ("suspects {data} --target id", "these are no classes"),
        ("suspects {data} --target label --ignore id,a,b,c,team", "no column left"),
        ("review {data} --target label --files {data}", "no such directory"),
        ("review {data} --target label --host 0.0.0.0", "--token-file"),
        ("review {data} --target label --export x.csv", "no such review"),
        ("apply {data} {data} -o {data}", ""),
    ],
)
def test_wrong_use_is_one_line(planted, words, reason, capsys):
    data = planted[0] / "data.csv"
    before = data.read_bytes()
    assert run(*words.format(data=data).split()) in (1, 2)
    told = capsys.readouterr().err
    assert reason in told
    assert len(told.splitlines()) == 1
    assert data.read_bytes() == before


@pytest.mark.parametrize("key", [None, "id"])
def test_the_whole_loop(planted, tmp_path, monkeypatch, capsys, key):
    """Review on the page, export, apply: the table has its true labels."""
    folder, flipped, truth = planted
    cookies = {}

    def decide(app):
        client = TestClient(app, base_url="http://127.0.0.1:8010")
        client.post("/enter", data={"name": "ada"})
        cookies.update(client.cookies)
        for _ in range(160):
            page = client.get("/").text
            form = dict(re.findall(r'name="(item|request|second_look)" value="([^"]*)"', page))
            if not form:
                return
            form["decision"] = f"change:{truth[int(form['item'])]}"
            assert client.post("/decide", data=form).status_code == 200

    def find_nothing_left(app):
        client = TestClient(app, base_url="http://127.0.0.1:8010", cookies=cookies)
        assert "Nothing is left" in client.get("/").text

    visits = iter([decide, find_nothing_left])
    monkeypatch.setattr(
        "buttress.serve.running.run_server", lambda app, *_, **__: next(visits)(app)
    )
    data, store = folder / "data.csv", tmp_path / "review.sqlite"
    words = ["review", data, "-t", "label", "--store", store, "--no-browser", *FAST, "--keep", "id"]
    words += ["--overlap", 0, "--every", 15 if key else 1000] + (["--key", key] if key else [])
    assert run(*words) == 0
    # the journals of the store are gone with the page
    assert [path.name for path in tmp_path.glob("review.sqlite*")] == ["review.sqlite"]
    # started again, the review is where it was
    assert run(*words) == 0
    out, clean = tmp_path / "corrections.csv", tmp_path / "clean.csv"
    capsys.readouterr()
    assert run("review", data, "-t", "label", "--store", store, "--export", out) == 0
    assert re.search(r"\d+ of \d+ reviewed, about \d+ errors left", capsys.readouterr().out)
    assert run("apply", data, out, "-o", clean) == 0
    labels = [row["label"] for row in rows_of(clean)]
    reviewed = {row["key"] for row in rows_of(out)}
    changed = {row["key"] for row in rows_of(out) if row["old_label"] != row["new_label"]}
    names = {i: f"p{i - 1}" if key else str(i) for i in range(1, 161)}
    assert changed == {names[i] for i in flipped if names[i] in reviewed}
    assert len(changed) >= 11
    for i, label in enumerate(labels, start=1):
        if names[i] in reviewed:
            assert label == truth[i - 1]
    # a changed file is another review
    other = tmp_path / "data.csv"
    other.write_bytes(data.read_bytes() + b"p999,1,1,1,t1,02\n")
    words[1] = other
    assert run(*words) == 1
    assert "another data" in capsys.readouterr().err


def test_rows_without_a_label_come_last(planted):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    labels = np.where(X[:, 0] > 0, "a", "b").astype(object)
    labels[[3, 4]] = None
    ranking = AuditJudge(X, ["logistic"])(labels)
    assert set(ranking.order[-2:].tolist()) == {3, 4}
    assert (ranking.wrong[[3, 4]] == 0).all()
    assert sorted(ranking.order.tolist()) == list(range(60))


@pytest.mark.parametrize("name", WITNESSES)
def test_every_witness_is_a_classifier(name):
    from sklearn.base import is_classifier

    assert is_classifier(make_witness(name))


def test_unknown_witnesses_are_named():
    with pytest.raises(ValueError, match="'magic' is not accepted"):
        make_witness("magic")
