"""A command is one file: found by its name, listed without being imported, run like the others."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from buttress import cli
from buttress.cli import main

HELLO = '''"""``buttress say-hello``: greet somebody."""

from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def say_hello(name: Annotated[str, typer.Argument()], loud: bool = False) -> None:
    typer.echo(f"hello {name}" + "!" * loud)
'''

BUSY = '''"""``buttress keep-busy``: work in a loop that no signal reaches, and in a thread."""

import hashlib
import sys
import threading
import time

import typer

app = typer.Typer()


@app.command()
def keep_busy(out: str) -> None:
    from buttress._files import replacing

    threading.Thread(target=time.sleep, args=(60,)).start()
    with replacing(out) as file:
        file.write(b"half")
        print("begun", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200_000_000)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    yield tmp_path
    sys.modules.pop("buttress.cli.say_hello", None)


def test_a_command_is_one_file(folder, capsys):
    (folder / "say_hello.py").write_text(HELLO)
    assert main(["say-hello", "Ada", "--loud"]) == 0
    assert capsys.readouterr().out == "hello Ada!\n"
    assert main(["say-hello", "Ada", "--lod"]) == 2
    assert "did you mean '--loud'" in capsys.readouterr().err
    assert main(["sayhello"]) == 2
    assert "did you mean 'say-hello'" in capsys.readouterr().err


def test_the_list_of_commands_imports_none_of_them(folder, capsys):
    (folder / "say_hello.py").write_text(HELLO + "raise AssertionError('imported')\n")
    assert main(["--help"]) == 0
    assert "say-hello  Greet somebody." in capsys.readouterr().out
    assert "buttress.cli.say_hello" not in sys.modules


def test_what_is_misspelt_is_suggested(capsys):
    for line, said in (
        ("fitt x.csv", "'fit'"),
        ("fit x.csv --tagret y", "'--target'"),
        ("stream x.csv --model pa-rmap", "'pa-ramp'"),
    ):
        assert main(line.split()) == 2
        assert f"did you mean {said}?" in capsys.readouterr().err


@pytest.mark.long
def test_a_wrong_file_is_told_before_anything_heavy_is_imported(tmp_path):
    code = (
        "import sys; from buttress.cli import main; code = main(sys.argv[1:]);"
        "heavy = {'numpy', 'sklearn', 'numba', 'scipy', 'pandas', 'rich.table'} & set(sys.modules);"
        "sys.exit(f'{heavy} imported' if heavy else code)"
    )
    for words in (
        ["fit", "nope.csv", "-t", "y"],
        ["compare", "nope.csv", "-t", "y"],
        ["predict", "nope.skops", "nope.csv"],
        ["stream", "nope.csv"],
        ["inspect", "nope.skops"],
        ["export", "nope.skops", "--onnx", "x"],
        ["suspects", "nope.csv", "-t", "y"],
        ["--help"],
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == (0 if words == ["--help"] else 2), done.stderr
        assert words == ["--help"] or "no such" in done.stderr


def test_ctrl_c_ends_a_loop_that_no_signal_reaches(tmp_path):
    (tmp_path / "keep_busy.py").write_text(BUSY)
    code = (
        f"import sys; from buttress import cli; cli.__path__.append({str(tmp_path)!r});"
        "sys.exit(cli.main())"
    )
    out = tmp_path / "out"
    out.write_text("old")
    process = subprocess.Popen(
        [sys.executable, "-c", code, "keep-busy", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"begun\n"
    time.sleep(0.3)  # it is in the loop now
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)  # the loop takes minutes, the thread one
    assert process.returncode == 1
    assert error == b"buttress: interrupted; no output file was changed\n"
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_interrupted_command_names_what_it_has_written(tmp_path, monkeypatch, capsys):
    from buttress._files import replacing
    from buttress.cli import predict

    def half(*paths):
        with replacing(tmp_path / "first") as file:
            file.write(b"done")
        raise KeyboardInterrupt

    monkeypatch.setattr(predict, "guard_files", half)
    assert main(["predict", "model", "data"]) == 1
    assert f"written before that: {tmp_path / 'first'}" in capsys.readouterr().err
