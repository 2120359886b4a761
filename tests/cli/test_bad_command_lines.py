"""Fifty ways to call the program wrongly: an exit code, one line with the reason, no traceback."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from buttress.cli import main

pytest.importorskip("skops")

FIT = "fit {dir}/good.csv --target y -o {dir}/out.skops"

# The command line, the exit code, and what the reason must name.
BAD = [
    # the program
    ("frobnicate", 2, "No such command 'frobnicate'"),
    ("--frobnicate", 2, "No such option: --frobnicate"),
    ("fit", 2, "Missing"),
    ("fit {dir}/good.csv", 2, "--target"),
    ("predict", 2, "Missing"),
    ("predict {dir}/good.skops", 2, "Missing"),
    ("inspect", 2, "Missing"),
    ("export {dir}/good.skops", 2, "--onnx"),
    ("export {dir}/good.skops --format xml --out {dir}/m.xml", 2, "--format"),
    ("export {dir}/good.skops --format json --onnx {dir}/m.json", 2, "--out"),
    ("compare", 2, "Missing"),
    ("inspect {dir}/good.skops extra", 2, "extra"),
    # options
    (FIT + " --model magic", 2, "magic"),
    (FIT + " --missing guess", 2, "guess"),
    (FIT + " --d 0.7", 2, "--d 0.7"),
    (FIT + " --d 0", 2, "--d 0 "),
    (FIT + " --d much", 2, "--d"),
    (FIT + " --folds 1", 2, "--folds"),
    (FIT + " --seed -1", 2, "--seed"),
    (FIT + " --seed x", 2, "--seed"),
    (FIT + " --jobs 0", 2, "--jobs 0"),
    (FIT + " --jobs many", 2, "--jobs"),
    (FIT + " --approximation pixels", 2, "pixels"),
    (FIT + " --model online --approximation nystroem", 2, "--approximation"),
    ("compare {dir}/good.csv --target y --noise 0.9", 2, "--noise 0.9"),
    ("compare {dir}/good.csv --target y --noise a,b", 2, "--noise a,b"),
    ("compare {dir}/good.csv --target y --cv 1", 2, "--cv 1"),
    ("compare {dir}/good.csv --target y --cv 5by10", 2, "--cv 5by10"),
    ("compare {dir}/good.csv --target y --models svc,magic", 2, "magic"),
    ("compare {dir}/good.csv --target y --d 2", 2, "--d 2"),
    ("predict {dir}/good.skops {dir}/good.csv --block-rows 0", 2, "--block-rows"),
    # columns
    ("fit {dir}/good.csv --target label", 2, "no column 'label'"),
    (FIT + " --ignore nothing", 2, "no column 'nothing'"),
    (FIT + " --ignore y", 2, "that is the target"),
    (FIT + " --categorical nothing", 2, "no column 'nothing'"),
    ("fit {dir}/only.csv --target y", 2, "only column"),
    ("fit {dir}/one_class.csv --target y", 2, "one value only"),
    ("fit {dir}/regression.csv --target y", 2, "60 different values"),
    ("fit {dir}/rare.csv --target y", 2, "2 rows of class c"),
    ("fit {dir}/missing.csv --target y", 2, "'a' 2, 'b' 1"),
    ("fit {dir}/unlabelled.csv --target y", 2, "1 rows have no 'y'"),
    ("fit {dir}/all_missing.csv --target y --missing drop-rows", 2, "every row"),
    ("fit {dir}/infinite.csv --target y --model leaky -o {dir}/out.skops", 1, "'a' holds an infin"),
    # files to learn from
    ("fit {dir}/none.csv --target y", 2, "none.csv: no such file"),
    ("fit {dir} --target y", 1, "no.parquet"),
    ("inspect {dir}", 2, "is a directory"),
    ("fit {dir}/empty.csv --target y", 1, "empty"),
    ("fit {dir}/header.csv --target y", 1, "no rows"),
    ("fit {dir}/numbers.csv --target y", 1, "first line holds numbers"),
    ("fit {dir}/ragged.csv --target y", 1, "line 3: 4 fields"),
    ("fit {dir}/twice.csv --target y", 1, "'a' appears more than once"),
    ("fit {dir}/binary.csv --target y", 1, "UTF-8"),
    ("fit {dir}/damaged.csv.gz --target y", 1, "damaged"),
    ("fit {dir}/no.parquet --target y", 1, "no.parquet"),
    # models
    ("inspect {dir}/none.skops", 2, "no such model file"),
    ("inspect {dir}/good.csv", 1, "not a model saved by buttress"),
    ("inspect {dir}/changed.skops", 1, "checksum"),
    ("inspect {dir}/foreign.skops", 1, "untrusted type"),
    ("export {dir}/changed.skops --onnx {dir}/m.onnx", 1, "checksum"),
    ("predict {dir}/good.csv {dir}/good.csv", 1, "not a model saved by buttress"),
    ("predict {dir}/numbers.skops {dir}/good.csv", 1, "without names of columns"),
    # files to predict
    ("predict {dir}/good.skops {dir}/none.csv", 2, "no such file"),
    ("predict {dir}/good.skops {dir}/no_b.csv", 1, "column 'b'"),
    ("predict {dir}/good.skops {dir}/extra.csv", 1, "column 'b' of the model is missing"),
    ("predict {dir}/good.skops {dir}/good.csv --keep idd", 2, "column 'idd' to keep is missing"),
    ("predict {dir}/good.skops {dir}/good.csv --keep a,a", 2, "'a' twice"),
    ("predict {dir}/good.skops {dir}/new_city.csv", 1, "'city' holds a category"),
    ("predict {dir}/good.skops {dir}/text_a.csv", 1, "column 'a' is numeric, but holds 'old'"),
    ("predict {dir}/good.skops {dir}/missing_a.csv", 1, "missing values: 'a' 1"),
    # where to write
    ("fit {dir}/good.csv --target y -o {dir}/none/m.skops", 2, "no directory"),
    ("fit {dir}/good.csv --target y -o {dir}", 2, "is a directory"),
    (FIT + " --report {dir}/none/r.html", 2, "no directory"),
    ("predict {dir}/good.skops {dir}/good.csv -o {dir}/none/p.csv", 2, "no directory"),
    ("export {dir}/good.skops --onnx {dir}/none/m.onnx", 2, "no directory"),
    ("demo --out {dir}/none/r.html", 2, "no directory"),
    ("compare {dir}/good.csv --target y --report {dir}/none/r.html", 2, "no directory"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that are wrong, each in its own way, and one good file with its model."""
    import skops.io
    from sklearn.svm import SVC

    import buttress
    from buttress.persistence import container
    from buttress.tables import TableClassifier, read_table

    path = tmp_path_factory.mktemp("bad")
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal() + 2 * (i % 2):.3f},{rng.normal():.3f},{'uv'[i % 2]},{'np'[i % 2]}"
        for i in range(40)
    ]
    good = "a,b,city,y\n" + "\n".join(rows) + "\n"
    files = {
        "good.csv": good,
        "only.csv": "y\n" + "n\np\n" * 10,
        "one_class.csv": "a,y\n" + "1,n\n2,n\n" * 10,
        "regression.csv": "a,y\n" + "".join(f"{i},{i}.5\n" for i in range(60)),
        "rare.csv": "a,y\n" + "1,n\n2,p\n" * 10 + "3,c\n4,c\n",
        "missing.csv": "a,b,y\n" + "1,2,n\n3,4,p\n" * 10 + ",,n\n?,1,p\n",
        "unlabelled.csv": "a,y\n" + "1,n\n2,p\n" * 10 + "1,\n",
        "all_missing.csv": "a,y\n" + ",n\n,p\n" * 10,
        "infinite.csv": "a,y\n" + "1,n\n2,p\n" * 10 + "inf,n\n",
        "empty.csv": "",
        "header.csv": "a,y\n",
        "numbers.csv": "1,2\n3,4\n",
        "ragged.csv": "a,b,y\n1,2,n\n1,2,3,n\n",
        "twice.csv": "a,a,y\n1,2,n\n",
        "no.parquet": "a,y\n1,n\n",
        "no_b.csv": "a,city\n1,u\n",
        "extra.csv": "a,city,z\n1,u,3\n",
        "new_city.csv": "a,b,city\n1,2,w\n",
        "text_a.csv": "a,b,city\n1,2,u\nold,2,u\n",
        "missing_a.csv": "a,b,city\n,2,u\n",
    }
    for name, text in files.items():
        (path / name).write_text(text)
    (path / "binary.csv").write_bytes(b"a,y\n\xff\xfe\x00,n\n")
    (path / "damaged.csv.gz").write_bytes(gzip.compress(good.encode())[:-30])
    model = TableClassifier(SVC(), target="y").fit(read_table(path / "good.csv"))
    buttress.save(model, path / "good.skops")
    buttress.save(SVC().fit(rng.normal(size=(20, 2)), [0, 1] * 10), path / "numbers.skops")
    content = bytearray((path / "good.skops").read_bytes())
    content[100] ^= 1
    (path / "changed.skops").write_bytes(content)
    archive = skops.io.dumps({"f": os.path.join})
    (path / "foreign.skops").write_bytes(container.seal(archive))
    return path


def test_the_table_holds_at_least_fifty_cases():
    assert len({line for line, _, _ in BAD}) == len(BAD) >= 50


@pytest.mark.parametrize(("line", "code", "reason"), BAD, ids=[line for line, _, _ in BAD])
def test_a_bad_command_line_gives_one_line_and_no_file(folder, capsys, line, code, reason):
    before = set(folder.iterdir())
    assert main([word.replace("{dir}", str(folder)) for word in line.split()]) == code
    error = capsys.readouterr().err
    said = [text for text in error.splitlines() if "warning:" not in text]
    assert len(said) == 1, error
    assert said[0].startswith("buttress: ")
    assert reason in said[0]
    assert "Traceback" not in error
    assert set(folder.iterdir()) == before


def test_a_directory_said_to_be_closed_is_asked_before_the_work(folder, monkeypatch, capsys):
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and allowed(path, mode))
    line = ["fit", str(folder / "good.csv"), "--target", "y", "-o", str(folder / "m.skops")]
    assert main(line) == 2
    assert "no permission to write" in capsys.readouterr().err
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert main(["inspect", str(folder / "good.skops")]) == 2
    assert "read" in capsys.readouterr().err


def test_a_full_disk_is_reported_and_leaves_no_half_file(folder, monkeypatch, capsys):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    out = folder / "p.csv"
    line = ["predict", str(folder / "good.skops"), str(folder / "good.csv"), "-o", str(out)]
    assert main(line) == 1
    assert "p.csv: no space left on device" in capsys.readouterr().err
    assert not out.exists()
    assert not [name for name in folder.iterdir() if name.name.startswith(".p.csv")]
