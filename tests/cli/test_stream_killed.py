"""A stream killed at any moment goes on to the very files that it would have made without that.

The other half of `test_stream_resume`: a crash leaves outputs that are longer than the checkpoint
says, and those are cut back, while anything else behind them is refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from buttress.classifiers.online.checkpoint import read_checkpoint
from buttress.cli import main

from .conftest import rows_of

# Kills a run over and over, when it has written a number of bytes drawn from a seed (time would
# depend on the machine) or a moment later, and resumes it until it ends by itself. Forked from a
# process that has imported and compiled everything, so that the moments fall into the work.
KILLER = """
import json, os, random, signal, sys, time
from pathlib import Path
from buttress.classifiers.online.checkpoint import read_checkpoint
from buttress.cli import main

folder, words, seed = Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
out, rejects, state = (folder / name for name in ("out", "rejects", "state"))
(folder / "whole").mkdir()
assert main([word.replace(f"{folder}/", f"{folder}/whole/") for word in words]) == 0
length = (folder / "whole" / "out").stat().st_size
draw = random.Random(seed)
seen = {"kills": 0, "longer": 0, "checkpoint": 0}

def resume():
    child = os.fork()
    if not child:
        os._exit(main([*words, "--resume"]))
    return child

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def kill(child):
    enough = sizes()[0] + draw.uniform(0, 0.3 * length)
    # left as a zombie, so that its number stays its own
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if out.exists() and out.stat().st_size >= enough:
            time.sleep(draw.uniform(0, 0.01))
            break
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    return ended(child)

def contents():
    # without a file that was not whole when its process was killed: the next one clears it away
    paths = [path for path in folder.iterdir() if path.suffix != ".buttress-part"]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}

def sizes():
    if not state.exists():
        return 0, 0
    run = read_checkpoint(state)["run"]
    return run["out"]["size"], run["rejects"]["size"]

def disturb():
    for path, size in zip((out, rejects), sizes()):
        if path.exists() and path.stat().st_size > size:
            seen["longer"] += 1
            if draw.random() < 0.5:  # a write that was cut short
                os.truncate(path, draw.randint(size, path.stat().st_size))
        if path.exists() and draw.random() < 0.2:
            right = path.read_bytes()
            # nothing that the run would have written next: a line may well begin with b"1"
            path.write_bytes(right + draw.choice((b"~", right[-70:] + b"x", b"total: 9\\n")))
            before = contents()
            assert ended(resume()) == 1
            lock = ".state.lock"  # of the killed process, until the next one ends
            assert {**contents(), lock: b""} == {**before, lock: b""}
            path.write_bytes(right)

while seen["kills"] < 20:
    code = kill(resume())
    assert code in (0, -signal.SIGKILL)
    if code == 0:  # was faster: once more
        for path in (out, rejects, state):
            path.unlink()
        continue
    seen["kills"] += 1
    seen["checkpoint"] += state.exists()
    disturb()
assert ended(resume()) == 0
print(json.dumps(seen))
"""


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="forks")
@pytest.mark.parametrize(("kind", "seed"), [("csv", 0), ("jsonl", 1)])
def test_killed_at_any_moment_it_makes_the_same_files(tmp_path, kind, seed):
    lines = rows_of(3000, kind)
    for number in range(20, 3000, 37):
        lines.insert(number, "broken\n")
    data = tmp_path.parent / f"{tmp_path.name}.{kind}"
    data.write_text("".join(lines))
    files = {"--out": "out", "--rejects": "rejects", "--checkpoint": "state"}
    words = ["stream", str(data), "--quiet", "--warm-up", "64", "--block-size", "16"]
    words += ["--every", "300", "--jobs", "1", "--budget", "100"]
    words += [word for flag, name in files.items() for word in (flag, str(tmp_path / name))]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path), json.dumps(words), str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["longer"], "no moment was between two checkpoints"
    assert 0 < seen["checkpoint"] <= seen["kills"], "no moment was behind a checkpoint"
    for name in files.values():
        assert (tmp_path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


class Stopped:
    """A stream whose learner failed in the middle, between two checkpoints."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, after: int = 6) -> None:
        self.folder = folder
        self.data, self.out, self.state = folder / "rows.csv", folder / "out", folder / "state"
        self.data.write_text("".join(rows_of(400, "csv")))
        self.ahead = folder / ".state.out.buttress-ahead"
        whole = folder / "whole"
        whole.mkdir()
        assert self.go(whole) == 0
        self.expected = (whole / "out").read_bytes()
        from buttress.tables.stream.run import StreamRun

        process, calls = StreamRun._process, []

        def failing(run, rows):
            calls.append(len(rows))
            if len(calls) > after:
                raise ValueError("the power went off")
            process(run, rows)

        with monkeypatch.context() as patch:
            patch.setattr(StreamRun, "_process", failing)
            assert self.go(folder) == 1
        self.saved = read_checkpoint(self.state)["run"]["out"]["size"] if after > 3 else 0
        assert self.out.stat().st_size > self.saved

    def go(self, folder: Path, *more: str) -> int:
        words = ["stream", self.data, "--out", folder / "out", "--checkpoint", folder / "state"]
        words += ["--quiet", "--warm-up", "64", "--block-size", "32", "--every", "100", *more]
        return main([str(word) for word in words])

    def contents(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}

    def refuses(self, capsys: pytest.CaptureFixture[str]) -> str:
        """The one line with which it refuses to go on, without having touched a file."""
        before = self.contents()
        capsys.readouterr()
        assert self.go(self.folder, "--resume") == 1
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1
        assert self.contents() == before
        return error

    def goes_on(self) -> bool:
        return (
            self.go(self.folder, "--resume") == 0
            and self.out.read_bytes() == self.expected
            and not self.ahead.exists()
        )


def test_an_error_between_two_checkpoints_is_gone_on_from(tmp_path, monkeypatch):
    assert Stopped(tmp_path, monkeypatch).goes_on()


def test_an_error_before_the_first_checkpoint_is_gone_on_from(tmp_path, monkeypatch):
    assert Stopped(tmp_path, monkeypatch, after=2).goes_on()


def test_every_cut_of_what_was_written_is_gone_on_from(tmp_path, monkeypatch):
    run = Stopped(tmp_path, monkeypatch)
    left = run.contents()
    for length in range(run.saved, len(left["out"]), 199):
        for name, data in left.items():
            (tmp_path / name).write_bytes(data)
        os.truncate(run.out, length)
        assert run.goes_on(), length


def test_lines_behind_those_that_were_to_be_written_are_refused(tmp_path, monkeypatch, capsys):
    run = Stopped(tmp_path, monkeypatch)
    written = run.out.read_bytes()
    run.out.write_bytes(written + b"total,192\n")
    error = run.refuses(capsys)
    assert f"from byte {len(written)} on: b'total,192" in error
    assert f"truncate -s {len(written)}" in error
    os.truncate(run.out, len(written))
    assert run.goes_on()


def test_a_changed_answer_behind_the_checkpoint_is_refused(tmp_path, monkeypatch, capsys):
    run = Stopped(tmp_path, monkeypatch)
    written = bytearray(run.out.read_bytes())
    written[run.saved + 40] ^= 1
    run.out.write_bytes(written)
    assert f"from byte {run.saved + 40} on" in run.refuses(capsys)


@pytest.mark.parametrize(
    "record", [None, b"", b"buttress stream ah", b"\0" * 4000, b"x" * 999, "cut", "later"]
)
def test_without_a_whole_record_longer_outputs_are_refused(tmp_path, monkeypatch, capsys, record):
    run = Stopped(tmp_path, monkeypatch)
    whole = run.ahead.read_bytes()
    if record is None:
        run.ahead.unlink()
    elif record == "cut":
        run.ahead.write_bytes(whole[:-9])
    elif record == "later":  # of a newer checkpoint than this one
        run.ahead.write_bytes(whole.replace(b" %d " % run.saved, b" %d " % (run.saved + 1), 1))
    else:
        run.ahead.write_bytes(record)
    assert "lines behind those of the run" in run.refuses(capsys)
    os.truncate(run.out, run.saved)
    assert run.goes_on()


def test_a_machine_that_went_down_may_have_lost_the_record_of_its_last_lines(
    tmp_path, monkeypatch, capsys
):
    run = Stopped(tmp_path, monkeypatch)
    header, _, _ = run.ahead.read_bytes().partition(b"\n")
    run.ahead.write_bytes(header.rsplit(b" ", 1)[0] + b" 01d\n")
    right = run.out.read_bytes()
    run.out.write_bytes(right + b"total,192\n")
    assert "lines behind those of the run" in run.refuses(capsys)
    run.out.write_bytes(right + b"29")
    assert run.goes_on()
    assert "the machine was started again" in capsys.readouterr().err


def test_a_checkpoint_that_was_interrupted_has_saved_nothing(tmp_path, monkeypatch, capsys):
    from buttress.tables.stream import run as module

    run = Stopped(tmp_path, monkeypatch)
    write, calls = module.write_checkpoint, []

    def interrupted(path, content):
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        write(path, content)

    monkeypatch.setattr(module, "write_checkpoint", interrupted)
    assert run.go(run.folder, "--resume") == 1
    rows = read_checkpoint(run.state)["run"]["rows"]
    assert f"--resume goes on from row {rows + 1}" in capsys.readouterr().err
    assert run.goes_on()
