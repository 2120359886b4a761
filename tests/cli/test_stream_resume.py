"""A resumed stream checks what it was left with; what does not fit is one line, nothing written."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from buttress._files import held_by_one
from buttress.classifiers.online.checkpoint import read_checkpoint
from buttress.cli import main

from .conftest import rows_of


class Run:
    """A stream stopped at half, and the files it would have made without that."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.data, self.out = folder / f"rows.{kind}", folder / "out"
        self.state, self.rejects = folder / "state", folder / "rejects"
        self.lines = rows_of(400, kind)
        self.lines[150:150] = ["broken\n"]
        self.lines[350:350] = ["broken\n"]
        whole = folder / "whole"
        whole.mkdir()
        self.data.write_text("".join(self.lines))
        assert self.go(whole) == 0
        self.expected = [(whole / name).read_bytes() for name in ("out", "rejects", "state")]
        # at the end of a block: cut elsewhere, scores may differ in their last digits
        self.data.write_text("".join(self.lines[: 193 + (kind == "csv")]))
        assert self.go(folder) == 0
        self.data.write_text("".join(self.lines))

    def go(self, folder: Path, *more: str) -> int:
        files = {"--out": "out", "--rejects": "rejects", "--checkpoint": "state"}
        given = [word for flag, name in files.items() for word in (flag, str(folder / name))]
        return main(["stream", str(self.data), *given, "--quiet", "--warm-up", "64", *more])

    def contents(self) -> list[bytes | None]:
        files = (self.out, self.rejects, self.state, self.data)
        return [file.read_bytes() if file.exists() else None for file in files]


@pytest.fixture(params=["csv", "jsonl"])
def run(tmp_path, request):
    return Run(tmp_path, request.param)


def test_half_and_half_make_a_whole(run):
    assert run.go(run.folder, "--resume") == 0
    made = [(run.folder / name).read_bytes() for name in ("out", "rejects", "state")]
    assert made == run.expected


CHANGES = {
    "output missing": (lambda run: run.out.unlink(), "out is missing"),
    "output empty": (lambda run: run.out.write_bytes(b""), "out was cut"),
    "output cut": (lambda run: run.out.write_bytes(run.out.read_bytes()[:-5]), "out was cut"),
    "output changed": (
        lambda run: run.out.write_bytes(run.out.read_bytes().replace(b"yes", b"no!", 1)),
        "out is not what the run has written",
    ),
    "output longer": (
        lambda run: run.out.write_bytes(run.out.read_bytes() + b"total: 200\n"),
        "lines behind those of the run",
    ),
    "output with old answers behind it": (
        lambda run: run.out.write_bytes(run.out.read_bytes() * 2),
        "lines behind those of the run",
    ),
    "output with answers as the run would give them": (
        lambda run: run.out.write_bytes(run.expected[0][: run.out.stat().st_size + 700]),
        "lines behind those of the run",
    ),
    "output with half a line behind it": (
        lambda run: run.out.write_bytes(run.out.read_bytes() + b"19"),
        "lines behind those of the run",
    ),
    "rejects longer": (
        lambda run: run.rejects.write_bytes(run.rejects.read_bytes() * 2),
        "lines behind those of the run",
    ),
    "checkpoint missing": (lambda run: run.state.unlink(), "move the file away"),
    "rejects cut": (lambda run: run.rejects.write_bytes(b"{}"), "rejects was cut"),
    "rejects missing": (lambda run: run.rejects.unlink(), "rejects is missing"),
    "input shorter": (
        lambda run: run.data.write_text("".join(run.lines[:150])),
        "shorter than what was read",
    ),
    "input empty": (lambda run: run.data.write_text(""), "shorter than what was read"),
    "another input": (
        lambda run: run.data.write_text(
            "".join(rows_of(400, run.data.suffix[1:], seed=1)) + "broken\n" * 9
        ),
        "not the input that the run began with",
    ),
    "checkpoint cut": (
        lambda run: run.state.write_bytes(run.state.read_bytes()[:-9]),
        "damaged",
    ),
    "checkpoint of format 1": (
        lambda run: run.state.write_bytes(b"buttress stream checkpoint 1\n" + bytes(99)),
        "another version",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_as_it_was_left_is_refused(run, change, capsys):
    alter, reason = CHANGES[change]
    alter(run)
    before = run.contents()
    assert run.go(run.folder, "--resume") == 1
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert reason in error
    assert run.contents() == before
    assert not [path for path in run.folder.iterdir() if path.name.startswith(".")]


def test_another_format_of_the_output_is_refused(tmp_path, capsys):
    run = Run(tmp_path, "csv")
    before = run.contents()
    assert run.go(run.folder, "--resume", "--json") == 1
    assert "with another json (False)" in capsys.readouterr().err
    assert run.contents() == before


def test_a_last_line_that_was_still_being_written_is_noticed(tmp_path, capsys):
    run = Run(tmp_path, "csv")
    for path in (run.out, run.state, run.rejects):
        path.unlink()
    text = "".join(run.lines[:194])
    run.data.write_text(text[:-1])  # whole but for its end
    assert run.go(run.folder) == 0
    run.data.write_text(text[:-1] + "ly\n")
    assert run.go(run.folder, "--resume") == 1
    assert "goes on" in capsys.readouterr().err
    run.data.write_text("".join(run.lines))
    assert run.go(run.folder, "--resume") == 0
    assert run.out.read_bytes() == run.expected[0]


def test_one_process_at_a_time(run, capsys):
    before = run.contents()
    with held_by_one(run.state, "busy"):
        assert run.go(run.folder, "--resume") == 1
    assert "state is in use by another process" in capsys.readouterr().err
    assert run.contents() == before


def test_the_next_start_removes_what_a_killed_checkpoint_left(run):
    (run.folder / ".state.killed12.buttress-part").write_bytes(b"half")
    run.data.write_text("")
    assert run.go(run.folder, "--resume") == 1  # even one that finds nothing to do
    assert not [path for path in run.folder.iterdir() if path.name.startswith(".")]


def test_bad_lines_are_rejects_and_end_nothing(tmp_path):
    data = tmp_path / "rows.jsonl"
    lines = [line.encode() for line in rows_of(100, "jsonl")]
    bad = {
        11: b"[" * 200_000 + b"\n",
        21: b'{"a": 1, "b": "\x00", "label": "no"}\n',
        31: b'{"a": 1, "b": "1_000", "label": "no"}\n',
        41: b'{"a": 1, "b": 1, "label": "\xff\xfe"}\n',
        51: b'{"a": 1, "a": 2, "b": 1, "label": "no"}\n',
        61: b'{"a": [1], "b": 1, "label": "no"}\n',
    }
    for number, line in bad.items():
        lines[number - 1 : number - 1] = [line]
    data.write_bytes(b"".join(lines))
    out, rejects = tmp_path / "out", tmp_path / "rejects"
    assert main(["stream", str(data), "-o", str(out), "--rejects", str(rejects), "-q"]) == 0
    aside = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [record["line"] for record in aside] == list(bad)
    assert len(out.read_text().splitlines()) == 100


def test_missing_means_the_same_in_a_stream_as_in_a_file(tmp_path):
    data, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    lines = rows_of(80, "csv")
    lines[10] = lines[10].rsplit(",", 1)[0] + ",NA\n"
    lines[20] = "?," + lines[20].split(",", 1)[1]
    data.write_text("".join(lines))
    assert main(["stream", str(data), "-o", str(out), "-q"]) == 0
    answers = out.read_text().splitlines()
    assert len(answers) == 80
    assert answers[10].endswith(",,unlabelled")


def test_labels_of_a_stream_come_back_as_they_are_written(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    for labels in (["007", "7"], ["9007199254740993", "9007199254740992"], ["0", "10"]):
        y = np.where(X[:, 0] > 0, *labels)
        data, out = tmp_path / "rows.csv", tmp_path / "out"
        data.write_text(
            "a,b,label\n" + "".join(f"{p},{q},{t}\n" for (p, q), t in zip(X, y, strict=True))
        )
        assert main(["stream", str(data), "-o", str(out), "-q"]) == 0
        answers = [line.split(",") for line in out.read_text().splitlines()[1:]]
        assert {answer[1] for answer in answers} == set(labels)
        assert [answer[3] for answer in answers] == y.tolist()


def test_the_first_rows_of_one_class_are_pointed_out(tmp_path, capsys):
    lines = rows_of(300, "csv")
    header, rest = lines[0], sorted(lines[1:], key=lambda line: line.rsplit(",", 1)[1])
    (tmp_path / "rows.csv").write_text(header + "".join(rest))
    words = ["stream", str(tmp_path / "rows.csv"), "--classes", "no,yes", "--warm-up", "64", "-q"]
    assert main(words) == 0
    assert "all of the class 'no'" in capsys.readouterr().err


def interrupted(words, feed):
    code = "import sys; from buttress.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(feed)
    process.stdin.flush()
    return process


def test_ctrl_c_tells_the_truth_and_the_stream_goes_on_from_there(tmp_path):
    lines = [line.encode() for line in rows_of(400, "jsonl")]
    out, state = tmp_path / "out", tmp_path / "state"
    common = ["stream", "-o", str(out), "--checkpoint", str(state), "--warm-up", "64"]
    process = interrupted(common, b"".join(lines[:190]))
    while not out.exists() or out.read_bytes().count(b"\n") < 128:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 1
    assert f"128 rows are answered in {out}; --resume goes on from row 129" in error.decode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "state"]
    assert read_checkpoint(state)["run"]["rows"] == 128
    again = interrupted([*common, "--resume"], b"".join(lines))
    _, error = again.communicate(timeout=300)
    assert again.returncode == 0, error
    assert [json.loads(line)["line"] for line in out.read_text().splitlines()] == list(
        range(1, 401)
    )


def test_a_number_too_large_to_compute_with_is_a_reject(tmp_path):
    data, rejects = tmp_path / "rows.csv", tmp_path / "rejects"
    data.write_text("".join(rows_of(100, "csv")) + "1e200,-1e300,yes\n0.1,0.2,no\n")
    words = ["stream", data, "-o", tmp_path / "out", "--rejects", rejects, "-q"]
    assert main([str(word) for word in words]) == 0
    assert "too large to compute with" in rejects.read_text()
    assert len((tmp_path / "out").read_text().splitlines()) == 102
