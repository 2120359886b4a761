"""No command destroys what it reads, or what was there before its work could succeed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from buttress._files import FileClash, Part, held_by_one, refuse_clashes, replacing, sweep
from buttress.cli import main

pytest.importorskip("skops")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal() + 2 * (i % 2):.3f},{rng.normal():.3f},{'np'[i % 2]}\n" for i in range(40)
    ]
    (tmp_path / "rows.csv").write_text("a,b,y\n" + "".join(rows))
    (tmp_path / "link.csv").symlink_to(tmp_path / "rows.csv")
    os.link(tmp_path / "rows.csv", tmp_path / "hard.csv")
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent.csv")
    (tmp_path / "old.txt").write_text("precious")
    from sklearn.svm import SVC

    import buttress
    from buttress.tables import TableClassifier, read_table

    model = TableClassifier(SVC(), target="y").fit(read_table(tmp_path / "rows.csv"))
    buttress.save(model, tmp_path / "model.skops")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() or path.is_dir()
        if not path.is_dir()
    }


CLASHES = [
    "stream {dir}/rows.csv -t y -o {dir}/rows.csv",
    "stream {dir}/rows.csv -t y -o {dir}/link.csv",
    "stream {dir}/link.csv -t y -o {dir}/hard.csv",
    "stream {dir}/rows.csv -t y -o {dir}/up/rows.csv",
    "stream {dir}/rows.csv -t y --rejects {dir}/hard.csv",
    "stream {dir}/rows.csv -t y --checkpoint {dir}/x --out {dir}/x",
    "stream {dir}/rows.csv -t y --checkpoint {dir}/absent.csv --out {dir}/nowhere",
    "stream {dir}/rows.csv -t y --checkpoint {dir}/x --rejects {dir}/up/x",
    "stream {dir}/rows.csv -t y --key a --label-stream {dir}/old.txt --out {dir}/old.txt",
    "fit {dir}/rows.csv -t y -o {dir}/rows.csv",
    "fit {dir}/rows.csv -t y -o {dir}/hard.csv",
    "fit {dir}/link.csv -t y -o {dir}/m.skops --report {dir}/rows.csv",
    "fit {dir}/rows.csv -t y -o {dir}/m --report {dir}/m",
    "fit {dir}/rows.csv -t y -o {dir}/m --report {dir}/up/m",
    "compare {dir}/rows.csv -t y --report {dir}/link.csv",
    "predict {dir}/model.skops {dir}/rows.csv -o {dir}/rows.csv",
    "predict {dir}/model.skops {dir}/rows.csv -o {dir}/up/model.skops",
    "export {dir}/model.skops --onnx {dir}/model.skops",
    "apply {dir}/rows.csv {dir}/old.txt -o {dir}/link.csv",
    "apply {dir}/rows.csv {dir}/old.txt -o {dir}/old.txt",
    "suspects {dir}/rows.csv -t y -o {dir}/hard.csv",
    "review {dir}/rows.csv -t y --store {dir}/link.csv",
    "review {dir}/rows.csv -t y --store {dir}/x --export {dir}/up/x",
    *(
        [
            "predict {dir}/model.skops {dir}/rows.csv -o /proc/self/root{dir}/rows.csv",
            "fit {dir}/rows.csv -t y -o /proc/self/root{dir}/hard.csv",
        ]
        if os.path.exists("/proc/self/root")
        else []
    ),
]


@pytest.mark.parametrize("line", CLASHES)
def test_an_output_that_is_an_input_or_another_output_is_refused(folder, capsys, line):
    before = contents(folder)
    assert main([word.replace("{dir}", str(folder)) for word in line.split()]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "--" in error
    assert contents(folder) == before


def run(words, folder, **streams):
    """The command line in a process of its own, whose streams are what a shell makes of them."""
    return subprocess.run(
        [sys.executable, "-m", "buttress", *words], cwd=folder, check=False, timeout=300, **streams
    )


@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="needs names of open files")
@pytest.mark.parametrize(
    "line",
    [
        "stream -t y --format csv -o rows.csv",
        "stream - -t y --format csv -o out.csv --checkpoint hard.csv",
        "stream /dev/stdin -t y --format csv --rejects link.csv",
        "fit /dev/stdin -t y -o rows.csv",
        "predict model.skops /dev/stdin -o up/rows.csv",
    ],
)
def test_a_file_that_the_shell_opens_as_standard_input_is_an_input(folder, line):
    before = contents(folder)
    with (folder / "rows.csv").open("rb") as rows:
        done = run(line.split(), folder, stdin=rows, capture_output=True)
    assert done.returncode == 2
    assert b"is the input" in done.stderr
    assert contents(folder) == before


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs names of open files")
@pytest.mark.parametrize("word", ["predict model.skops rows.csv", "stream rows.csv -t y"])
def test_an_output_that_is_the_standard_output_is_added_to_it(folder, word):
    """``>> log`` keeps what is in the log."""
    with (folder / "log").open("ab") as log:
        log.write(b"what was there\n")
        log.flush()
        assert run([*word.split(), "-q", "-o", "/dev/stdout"], folder, stdout=log).returncode == 0
    lines = (folder / "log").read_text().splitlines()
    assert lines[0] == "what was there"
    assert len(lines) == 42


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="needs a disk under /dev")
def test_a_file_on_a_disk_in_memory_is_a_file():
    """/dev/shm is a place for files, not for devices."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        target = Path(folder) / "rows.csv"
        target.write_text("old")
        with pytest.raises(FileClash):
            refuse_clashes([target], {"-o": target})
        with replacing(target, "w") as file:
            file.write("half")
            file.flush()
            assert target.read_text() == "old"
        assert target.read_text() == "half"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is full")
def test_a_full_device_and_a_full_standard_output_are_named(folder):
    predict = ["predict", "model.skops", "rows.csv", "-q"]
    done = run([*predict, "-o", "/dev/full"], folder, stderr=subprocess.PIPE)
    assert done.stderr.startswith(b"buttress: /dev/full: no space")
    with open("/dev/full", "wb") as full:
        for words in (predict, ["inspect", "model.skops"]):
            done = run(words, folder, stdout=full, stderr=subprocess.PIPE)
            assert done.stderr.startswith(b"buttress: standard output: no space")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes streams")
def test_streams_that_the_shell_has_closed_are_no_surprise(folder):
    command = f"exec '{sys.executable}' -m buttress"
    for line, code, said in (
        ("inspect model.skops >&-", 0, ""),
        ("inspect nothing.skops 2>&-", 2, ""),
        ("stream --format csv <&-", 2, "there is no standard input: name the file of rows"),
    ):
        done = subprocess.run(
            f"{command} {line}", shell=True, cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert said in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_of_rows_is_refused_with_the_remedy(folder, capsys):
    os.mkfifo(folder / "rows.pipe")
    line = ["predict", str(folder / "model.skops"), str(folder / "rows.pipe")]
    assert main(line) == 1
    assert "save it in a file" in capsys.readouterr().err


IMPOSSIBLE = [
    "stream {dir}/rows.csv -t nothing -o {dir}/old.txt",
    "stream {dir}/rows.csv -t y --features a,zz -o {dir}/old.txt",
    "stream {dir}/rows.csv -t y --classes n,n --features a,b -o {dir}/old.txt",
    "stream {dir}/rows.csv -t y --kernel nothing --features a,b -o {dir}/old.txt",
    "stream {dir}/model.skops -t y --format csv -o {dir}/old.txt --rejects {dir}/old.txt2",
    "fit {dir}/rows.csv -t nothing -o {dir}/old.txt",
    "fit {dir}/rows.csv -t a -o {dir}/old.txt",
    "predict {dir}/model.skops {dir}/model.skops -o {dir}/old.txt",
    "predict {dir}/rows.csv {dir}/rows.csv -o {dir}/old.txt",
    "export {dir}/rows.csv --onnx {dir}/old.txt",
]


@pytest.mark.parametrize("line", IMPOSSIBLE)
def test_work_that_cannot_be_done_touches_nothing(folder, capsys, line):
    before = contents(folder)
    assert main([word.replace("{dir}", str(folder)) for word in line.split()]) in (1, 2)
    assert contents(folder) == before


def test_a_directory_of_inputs_protects_its_files(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "0.parquet").write_text("x")
    with pytest.raises(FileClash, match="a file of the input"):
        refuse_clashes([tmp_path / "parts"], {"-o": tmp_path / "parts" / "0.parquet"})
    refuse_clashes([tmp_path / "parts"], {"-o": tmp_path / "parts" / "new.skops"})
    refuse_clashes(["/dev/stdin"], {"-o": "/dev/null", "--report": "/dev/null"})


def test_a_link_stays_a_link_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "real").write_text("old")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "deep" / "real")
    with replacing(link, "w") as file:
        file.write("new")
    assert link.is_symlink()
    assert (tmp_path / "deep" / "real").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "link"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    with replacing(pipe, "w") as file:
        file.write("hello")
    assert reader.communicate(timeout=20)[0] == b"hello"
    assert pipe.is_fifo()


def test_what_a_killed_writer_left_is_removed_by_the_next_and_nothing_else(tmp_path):
    target = tmp_path / "state"
    code = (
        "import os, sys; from buttress._files import Part; part = Part(sys.argv[1]);"
        "os.write(part.descriptor, b'half'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    for name in (".state.abc", "state.buttress-part", ".state.x.y.buttress-part"):
        (tmp_path / name).write_text("a user's own")
    running = Part(target)  # of a process that lives: must stay
    with replacing(target, "w") as file:
        file.write("whole")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert Path(running.name).name in left
    assert len(left) == 5
    running.close()
    assert sweep(target) == []
    assert target.read_text() == "whole"


def test_a_block_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")

    def interrupted():
        with replacing(target, "w") as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert target.read_text() == "old"


def test_a_lock_is_for_one_and_is_taken_over_from_the_dead(tmp_path):
    target = tmp_path / "state"
    with (
        held_by_one(target, "busy"),
        pytest.raises(BlockingIOError, match="busy"),
        held_by_one(target, "busy"),
    ):
        raise AssertionError("two had it")
    code = (
        "import os, sys; from buttress._files import held_by_one\n"
        "with held_by_one(sys.argv[1], 'busy'): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    with held_by_one(target, "busy"):
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught, replacing(tmp_path / "f") as file:
        file.write(b"x")
    assert caught.value.filename == str(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the size of files")
def test_a_stream_that_meets_a_full_disk_names_its_file(tmp_path):
    rows = "".join(f"{i % 7},{i % 2}\n" for i in range(600))
    (tmp_path / "rows.csv").write_text("a,label\n" + rows)
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from buttress.tables.stream import Lines\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "from pathlib import Path\n"
        "lines = Lines(Path(sys.argv[1]))\n"
        "lines.write(['first'])\n"
        "try:\n"
        "    lines.write(['x' * 200])\n"
        "except OSError as error:\n"
        "    print(error.filename)\n"
    )
    out = tmp_path / "out.csv"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(out)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(out), done.stderr


def test_a_key_that_is_not_one_leaves_no_store(folder, capsys):
    (folder / "double.csv").write_text("id,a,y\n" + "k,1,n\nk,2,p\n" * 20)
    before = contents(folder)
    line = ["review", str(folder / "double.csv"), "-t", "y", "--key", "id", "--no-browser"]
    assert main(line) == 2
    assert "two rows have the same value" in capsys.readouterr().err
    assert contents(folder) == before


def test_no_kept_column_of_suspects_takes_the_place_of_another(folder, capsys):
    header, *rows = (folder / "rows.csv").read_text().splitlines()
    lines = [f"reason,kept_reason,{header}", *(f"r{i},k{i},{row}" for i, row in enumerate(rows))]
    (folder / "named.csv").write_text("\n".join(lines))
    line = ["suspects", str(folder / "named.csv"), "-t", "y", "--top", "3", "--witnesses", "svc"]
    assert main([*line, "--keep", "reason,kept_reason", "-o", str(folder / "list.csv")]) == 0
    listed = (folder / "list.csv").read_text().splitlines()
    assert listed[0].split(",")[:3] == ["row", "kept_kept_reason", "kept_reason"]
    number, reason, kept = listed[1].split(",")[:3]
    assert (reason, kept) == (f"r{int(number) - 1}", f"k{int(number) - 1}")


def test_no_answer_has_a_word(folder, capsys):
    line = ["predict", str(folder / "model.skops"), str(folder / "rows.csv"), "--abstain", " "]
    assert main(line) == 2
    assert "--abstain" in capsys.readouterr().err
