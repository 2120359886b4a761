"""The stream command: every row answered once, whatever happens in between."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from buttress import PARampClassifier
from buttress.classifiers.online.checkpoint import read_checkpoint, write_checkpoint
from buttress.cli import main


def write_rows(path: Path, n: int = 600, every_label: int = 1, seed: int = 0) -> Any:
    """A stream as CSV or JSON lines; every `every_label`-th row has a label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + 5.0
    y = np.where((X[:, 0] - 5) * (X[:, 1] - 5) > 0, "yes", "no")
    with path.open("w") as file:
        if path.suffix == ".csv":
            file.write("id,a,b,c,label\n")
        for i, row in enumerate(X.tolist()):
            label = y[i] if i % every_label == 0 else ""
            if path.suffix == ".csv":
                file.write(f"r{i},{row[0]!r},{row[1]!r},{row[2]!r},{label}\n")
            else:
                record = {"id": f"r{i}", "a": row[0], "b": row[1], "c": row[2]}
                file.write(json.dumps(record | ({"label": str(label)} if label else {})) + "\n")
    return X, y


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    write_rows(path)
    return path


def run(*words: Any) -> int:
    return main(["stream", *(str(word) for word in words)])


def test_one_line_per_row_and_the_library_s_model(rows: Path, tmp_path: Path) -> None:
    X, y = write_rows(rows)
    out = tmp_path / "out.jsonl"
    options = ("--features", "a,b,c", "--no-scale", "--gamma", 0.02, "--classes", "no,yes")
    assert run(rows, "-o", out, *options, "--checkpoint", tmp_path / "c", "--quiet") == 0
    answers = lines(out)
    assert [line["line"] for line in answers] == list(range(1, 601))
    model = PARampClassifier(gamma=0.02)
    given = model.answer_and_learn(X, y, classes=["no", "yes"])
    assert [line["answer"] for line in answers] == given.tolist()
    assert [line["label"] for line in answers] == y.tolist()
    events = [line["event"] for line in answers]
    assert events.count("updated") == model.n_updates_
    assert events.count("skipped") == model.n_skipped_
    loaded = PARampClassifier.load_checkpoint(tmp_path / "c")
    np.testing.assert_allclose(loaded.decision_function(X), model.decision_function(X), atol=1e-9)


def test_refused_rows_have_no_answer(tmp_path: Path, capsys: Any) -> None:
    path, out = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    X, y = write_rows(path, n=1500)
    options = ("--features", "a,b,c", "--no-scale", "--gamma", 0.02, "--classes", "no,yes")
    assert run(path, *options, "--target-coverage", 0.7, "--json", "--out", out) == 0
    answers = [line["answer"] for line in lines(out)]
    learner = PARampClassifier(gamma=0.02, target_coverage=0.7)
    expected = learner.answer_or_refuse(X, y, classes=["no", "yes"])
    assert answers == expected.tolist()  # a masked entry is None
    assert 0.6 < 1 - answers.count(None) / 1500 < 0.8
    summary = json.loads(capsys.readouterr().out)
    assert summary["coverage"] == pytest.approx(learner.coverage_)
    assert run(path, *options, "--target-coverage", 0.7, "--out", tmp_path / "told.csv") == 0
    assert f"1500 rows, {100 * learner.coverage_:.2f} % answered" in capsys.readouterr().err
    wrong = (*options, "--target-coverage", 0.7, "--target-risk", 0.1)
    assert run(path, *wrong, "--out", tmp_path / "no.csv") == 2


def test_csv_in_and_out_with_a_scale_frozen_after_the_warm_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    X, y = write_rows(data, every_label=2)
    assert run(data, "--key", "id", "--out", out, "--warm-up", 100, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["rows"], summary["labelled"], summary["rejected"]) == (600, 300, 0)
    assert summary["progressive_error"] < 0.3
    text = lines(out)
    assert text[0]["key"] == "r0"
    assert text[1]["event"] == "unlabelled"
    scaled = (X - X[:100].mean(axis=0)) / X[:100].std(axis=0)
    known = y.astype(object)
    known[1::2] = None
    model = PARampClassifier(gamma=1 / (3 * scaled[:100].var()))
    given = model.answer_and_learn(scaled, known, classes=["no", "yes"])
    assert [line["answer"] for line in text] == given.tolist()


def test_csv_lines_come_out_of_csv(tmp_path: Path, capfdbinary: Any) -> None:
    data = tmp_path / "rows.csv"
    write_rows(data, 80)
    assert run(data, "--features", "a,b,c", "--model", "perceptron") == 0
    captured = capfdbinary.readouterr()
    text = captured.out.decode().splitlines()
    assert text[0] == "line,answer,score,label,event"
    assert len(text) == 81
    assert text[1].startswith("2,no,0.0,")
    assert b"80 rows answered" in captured.err


def test_malformed_rows_are_put_aside_with_line_and_reason(tmp_path: Path) -> None:
    data, out, rejects = (tmp_path / name for name in ("rows.jsonl", "out", "rejects"))
    write_rows(data, 300)
    good = data.read_text().splitlines()
    bad = {
        3: "{not json",
        10: "[1, 2]",
        20: '{"id": "x", "a": 1, "b": 2, "label": "yes"}',
        30: '{"id": "x", "a": "one", "b": 2, "c": 3, "label": "yes"}',
        40: '{"id": "x", "a": true, "b": 2, "c": 3, "label": "yes"}',
        50: '{"id": "x", "a": NaN, "b": 2, "c": 3, "label": "yes"}',
        60: '{"a": 1, "b": 2, "c": 3, "label": "yes"}',
        70: '{"id": "x", "a": 1, "b": 2, "c": 3, "label": "maybe"}',
        80: '{"id": "x", "a": 1' + "0" * 400 + ', "b": 2, "c": 3, "label": "yes"}',
    }
    mixed = list(good)
    for line, text in bad.items():
        mixed.insert(line - 1, text)
    mixed.insert(100, "")
    data.write_text("\n".join(mixed))
    options = ("--key", "id", "--classes", "yes,no", "--quiet")
    assert run(data, "-o", out, "--rejects", rejects, *options) == 0
    assert [line["key"] for line in lines(out)] == [f"r{i}" for i in range(300)]
    put_aside = lines(rejects)
    assert {line["line"]: line["text"] for line in put_aside} == bad
    reasons = " ".join(line["reason"] for line in put_aside)
    for word in ("not JSON", "not a JSON object", "'c' is missing", "no number", "not finite"):
        assert word in reasons
    assert "the key 'id' is missing" in reasons
    assert "'maybe' was not announced" in reasons


def test_broken_csv_lines_are_put_aside(tmp_path: Path) -> None:
    data, out, rejects = (tmp_path / name for name in ("rows.csv", "out", "rejects"))
    write_rows(data, 100)
    with data.open("a") as file:
        file.write('1,2\n"open,1,2,3,yes\nr,1,2,,yes\n')
    assert run(data, "--key", "id", "-o", out, "--rejects", rejects, "--quiet") == 0
    assert [line["line"] for line in lines(rejects)] == [102, 103, 104]
    assert len(out.read_text().splitlines()) == 101


def test_labels_that_come_later_are_joined_by_their_key(tmp_path: Path) -> None:
    data, later, out = (tmp_path / name for name in ("rows.csv", "later.csv", "out"))
    _, y = write_rows(data, 400, every_label=4)
    missing = [i for i in range(400) if i % 4]
    with later.open("w") as file:
        file.write("id,label\n")
        for i in missing:
            file.write(f"r{i},{y[i]}\n")
        file.write("r1,perhaps\nstranger,yes\nr2\nr3,\n")
    options = ("--key", "id", "--label-stream", later, "--checkpoint", tmp_path / "c")
    rejects = tmp_path / "rejects"
    assert run(data, "-o", out, *options, "--rejects", rejects, "--quiet") == 0
    content = read_checkpoint(tmp_path / "c")
    counters = content["learner"]["counters"]
    assert counters["n_seen_"] == counters["n_labelled_"] == 400
    assert content["run"]["labels"]["keys"] == []
    assert content["run"]["labels"]["early_keys"] == ["stranger"]
    reasons = [line["reason"] for line in lines(rejects)]
    assert len(reasons) == 3
    assert all(line["stream"] == "labels" for line in lines(rejects))
    support = content["learner"]["model"]["position"]
    assert len(np.unique(support)) == len(support)
    wrong = sum(line.split(",")[2] != y[i] for i, line in enumerate(out.read_text().split()[1:]))
    assert counters["n_mistakes_"] == wrong


def test_rows_that_wait_too_long_are_given_up(tmp_path: Path, capsys: Any) -> None:
    data, later = tmp_path / "rows.csv", tmp_path / "later.jsonl"
    write_rows(data, 300, every_label=3)
    later.write_text("".join(f'{{"id": "s{i}", "label": "no"}}\n' for i in range(50)))
    options = ("--key", "id", "--label-stream", later, "--max-pending", 20, "--json")
    assert run(data, "-o", tmp_path / "out", *options) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["waiting"], summary["given_up"]) == (20, 180)


def _child(words: list[str]) -> None:
    os._exit(main(["stream", *words]))


@pytest.mark.parametrize("late", [False, True])
def test_killed_at_random_moments_and_resumed_nothing_is_lost_or_doubled(
    late: bool, tmp_path: Path
) -> None:
    data = tmp_path / "rows.csv"
    _, y = write_rows(data, 3000, every_label=2 if late else 1)
    with data.open("a") as file:
        file.write("broken\n")
    options = ["--every", "128", "--key", "id", "--quiet", "--block-size", "32"]
    options += ["--drift", "page-hinkley", "--budget", "150"]
    if late:
        later = tmp_path / "later.csv"
        later.write_text("id,label\n" + "".join(f"r{i},{y[i]}\n" for i in range(1, 3000, 2)))
        options += ["--label-stream", str(later)]

    def words(name: str) -> list[str]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        files = {"--out": "out", "--rejects": "rejects", "--checkpoint": "state"}
        given = [word for flag, file in files.items() for word in (flag, str(folder / file))]
        return [str(data), *options, *given]

    assert main(["stream", *words("whole")]) == 0
    whole, out = (tmp_path / name / "out" for name in ("whole", "killed"))
    generator = random.Random(1)
    context = multiprocessing.get_context("fork")

    def written() -> int:
        return out.stat().st_size if out.exists() else 0

    kills = 0
    for _ in range(200):
        process = context.Process(target=_child, args=([*words("killed"), "--resume"],))
        # moments are counted in what is written: a time means another moment on every machine
        moment = written() + generator.randrange(whole.stat().st_size // 4)
        process.start()
        while process.exitcode is None and written() < moment:
            time.sleep(0.001)
        time.sleep(0.01 * generator.random())
        process.kill()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        kills += 1
    assert kills >= 1
    for name in ("out", "rejects", "state"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    keys = [line.split(",")[1] for line in (tmp_path / "killed/out").read_text().splitlines()]
    assert keys == ["key", *(f"r{i}" for i in range(3000))]


def test_both_streams_are_taken_up_where_they_were_left(tmp_path: Path) -> None:
    data, later, out = (tmp_path / name for name in ("rows.csv", "later.csv", "out"))
    _, y = write_rows(data, 500, every_label=2)
    rows_text = data.read_text()
    labels = "id,label\n" + "".join(f"r{i},{y[i]}\n" for i in range(1, 500, 2))
    # the first run sees some of both, and a label line whose end is still to come
    data.write_text("".join(rows_text.splitlines(keepends=True)[:321]))
    later.write_text("\n" + labels[:1200])
    options = ("--key", "id", "--label-stream", later, "--checkpoint", tmp_path / "c", "--quiet")
    rejects = ("--rejects", tmp_path / "rejects")
    assert run(data, "-o", out, *options, *rejects) == 1  # the labels have no header
    (tmp_path / "rejects").unlink(missing_ok=True)
    later.write_text(labels[:1200])
    assert run(data, "-o", out, *options, *rejects) == 0
    data.write_text(rows_text)
    later.write_text(labels)
    assert run(data, "-o", out, *options, *rejects, "--resume") == 0
    counters = read_checkpoint(tmp_path / "c")["learner"]["counters"]
    assert counters["n_seen_"] == counters["n_labelled_"] == 500
    assert (tmp_path / "rejects").read_text() == ""
    keys = [line.split(",")[1] for line in out.read_text().splitlines()]
    assert keys == ["key", *(f"r{i}" for i in range(500))]


def test_standard_input_is_skipped_to_the_checkpoint(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = rows.read_bytes()
    half = b"".join(everything.splitlines(keepends=True)[:320])
    out, state = tmp_path / "out", tmp_path / "state"
    common = ("--key", "id", "-o", out, "--checkpoint", state, "--quiet")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(half)))
    assert run(*common) == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(everything)))
    assert run("-", *common, "--resume") == 0
    assert [line["key"] for line in lines(out)] == [f"r{i}" for i in range(600)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(half)))
    before = out.read_bytes()
    assert run(*common, "--resume") == 1  # the input was longer before
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resume"], "--resume needs --checkpoint and --out"),
        (["--label-stream", "x.csv"], "--label-stream needs --key"),
        (["--gamma", "wide"], "--gamma wide is not accepted"),
        (["--eta", "0.1"], "--eta does not belong to --model pa-ramp"),
        (["--s", "0"], "s=0 is refused"),
        (["--kernel", "precomputed"], "precomputed"),
        (["--kernel", "magic"], "Unknown kernel 'magic'"),
    ],
)
def test_wrong_use_is_named(
    words: list[str], message: str, rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(rows, *words) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_failures_have_one_line_and_code_one(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    common = ("--key", "id", "-o", out, "--checkpoint", state)
    assert run(rows, *common, "--quiet") == 0
    assert run(rows, *common) == 2
    assert "give --resume" in capsys.readouterr().err
    assert run(rows, *common, "--resume", "--s", -0.5) == 1
    assert "with another s" in " ".join(capsys.readouterr().err.split())
    write_checkpoint(state, {"learner": {}})
    assert run(rows, *common, "--resume") == 1
    assert "not written by `buttress stream`" in capsys.readouterr().err
    state.write_bytes(b"x")
    assert run(rows, *common, "--resume") == 1
    assert "not a checkpoint" in capsys.readouterr().err
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert run(empty) == 1
    assert "empty" in capsys.readouterr().err
    empty.write_text("a,b,label\n")
    assert run(empty) == 0
    assert run(empty, "--features", "z") == 1
    assert "no column 'z'" in capsys.readouterr().err
    empty.write_text("a,b,label\n1,2,x\n")
    assert run(empty) == 1
    assert "--classes a,b" in capsys.readouterr().err
    empty.write_text("a,b,label\nx,2,x\n")
    assert run(empty) == 1
    assert "none of the 1 lines is a row" in capsys.readouterr().err


def test_a_pipe_of_labels_does_not_block(tmp_path: Path) -> None:
    data, pipe = tmp_path / "rows.csv", tmp_path / "pipe.csv"
    _, y = write_rows(data, 200, every_label=2)
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, b"id,label\n" + f"r1,{y[1]}\nr3,{y[3]}\nr5,".encode())
    options = ("--key", "id", "--label-stream", pipe, "--checkpoint", tmp_path / "c", "--quiet")
    assert run(data, "-o", tmp_path / "out", *options) == 0
    os.close(writer)
    assert read_checkpoint(tmp_path / "c")["learner"]["counters"]["n_labelled_"] == 102
