"""What a command that was interrupted says it leaves."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from buttress._files import forget_published, note_written, replacing
from buttress.cli._interrupt import what_is_left


def test_files_in_their_place_and_stores_are_named(tmp_path):
    forget_published()
    assert what_is_left() == "interrupted; no output file was changed"
    note_written(tmp_path / "data.csv.review.sqlite")
    with replacing(tmp_path / "out.csv", "w") as file:
        file.write("x\n")
    said = what_is_left()
    forget_published()
    assert said.startswith("interrupted; written before that: ")
    assert "data.csv.review.sqlite" in said
    assert "out.csv" in said


def test_an_error_that_knows_better_says_it_itself():
    assert what_is_left(KeyboardInterrupt("300 rows were written")) == "300 rows were written"


ROWS = "height,weight,ill\n" + "".join(
    f"{(37 * i) % 101},{(53 * i) % 89},{'yes' if (37 * i) % 101 > 50 else 'no'}\n"
    for i in range(300)
)
# Starts a process as an installation's script does, and says when it listens: before that, while
# Python itself starts and imports the package, Ctrl-C is Python's.
SCRIPT = """
import os, signal, sys
from buttress.cli import main
listen = signal.signal
def listening(*how):
    signal.signal = listen
    before = listen(*how)
    os.write(1, b"!")
    return before
signal.signal = listening
sys.exit(main())
"""
COMMANDS = {
    "fit": ["fit", "rows.csv", "-t", "ill", "--model", "ramp", "-o", "model.skops"],
    "stream": ["stream", "rows.csv", "-t", "ill", "-o", "answers.csv"],
    "wrong": ["fit", "nope.csv", "-t", "ill"],
}


def _begin(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    )
    assert process.stdout is not None
    assert process.stdout.read(1) == b"!"
    return process


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_at_any_moment_ends_with_a_code_of_this_program(command, tmp_path):
    words, moments = COMMANDS[command], 8
    (tmp_path / "rows.csv").write_text(ROWS)
    start = time.perf_counter()
    whole = _begin(words, tmp_path)
    whole.communicate(timeout=120)
    length = time.perf_counter() - start
    for moment in range(moments):
        process = _begin(words, tmp_path)
        # the first at once, and some when all is over but the interpreter's own end
        time.sleep(1.1 * length * moment / (moments - 1))
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        said = error.decode()
        assert process.returncode in (1, whole.returncode), said
        assert "Traceback" not in said
        if process.returncode == 1 and whole.returncode != 1:
            assert [line.split(";")[0] for line in said.splitlines()[-1:]] == [
                "buttress: interrupted"
            ]
            assert said.count("interrupted") == 1
        assert not [path for path in tmp_path.iterdir() if ".buttress-part" in path.name]


def test_ctrl_c_before_the_first_import_is_said_in_one_line(tmp_path):
    code = (
        "import os, signal, sys\n"
        "import buttress.cli as cli\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'buttress.cli._interrupt':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "sys.exit(cli.main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True)
    assert done.returncode == 1
    assert done.stderr == b"buttress: interrupted; no output file was changed\n"


@pytest.mark.parametrize("module", ["typer", "buttress.cli.fit"])
def test_ctrl_c_while_modules_are_imported_is_said_in_one_line(module, tmp_path):
    code = (
        "import os, signal, sys\n"
        "import buttress.cli as cli\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            try:\n"
        "                os.kill(os.getpid(), signal.SIGINT)\n"
        "            except KeyboardInterrupt:\n"
        "                raise ImportError('this module is broken') from None\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "sys.exit(cli.main())\n"
    )
    words = ["fit", "nope.csv", "-t", "y"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == b"buttress: interrupted; no output file was changed\n"


def test_ctrl_c_in_a_callback_of_c_code_is_not_forgotten(tmp_path):
    code = (
        "import ctypes, os, signal, sys, time\n"
        "import buttress.cli as cli\n"
        "@ctypes.CFUNCTYPE(None)\n"
        "def press():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'buttress.cli.fit':\n"
        "            press()\n"
        "            time.sleep(60)\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "sys.exit(cli.main())\n"
    )
    words = ["fit", "nope.csv", "-t", "y"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == b"buttress: interrupted; no output file was changed\n"


def test_ctrl_c_at_the_interpreters_end_changes_nothing(tmp_path):
    code = (
        "import atexit, os, signal, sys\n"
        "import buttress.cli as cli\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        "sys.exit(cli.main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True)
    assert done.returncode == 0
    assert done.stderr == b""


def test_ctrl_c_names_the_store_of_a_service(tmp_path):
    pytest.importorskip("uvicorn")
    pytest.importorskip("skops")
    from sklearn.svm import SVC

    import buttress
    from buttress.tables import TableClassifier, read_table

    (tmp_path / "rows.csv").write_text(ROWS)
    model = TableClassifier(SVC(), target="ill").fit(read_table(tmp_path / "rows.csv"))
    buttress.save(model, tmp_path / "model.skops")
    words = ["serve", "model.skops", "--port", "0", "--review", "--refuse-below", "0.5"]
    process = _begin(words, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"serving")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert (tmp_path / "model.review.sqlite").exists()
    assert said.strip() == b"buttress: interrupted; written before that: model.review.sqlite"
