"""What one command refuses, or says of a model, the others do too."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import buttress
from buttress import DoubleHingeClassifier, PARampClassifier, RampClassifier
from buttress.classifiers.reject import may_refuse
from buttress.cli import main
from buttress.cli.inspect import describe_model
from buttress.serve.model import ServedModel
from buttress.tables import TableClassifier, column_names, read_table
from buttress.tables.stream import guess_kind

pytest.importorskip("skops")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 60))
    lines = [f"{p!r},{q!r},{int(p + q > 0)}" for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *lines, ""]))
    return tmp_path


def fitted(folder, estimator):
    model = TableClassifier(estimator, target="y").fit(read_table(folder / "rows.csv", target="y"))
    buttress.save(model, folder / "m.skops")
    return model


def run(*words):
    return main([str(word) for word in words])


# -- a rule for refusing inside of a search or a pipeline ----------------------------------------

INSIDE = {
    "search": lambda: GridSearchCV(DoubleHingeClassifier(d=0.2), {"C": [1.0, 10.0]}, cv=3),
    "pipeline": lambda: make_pipeline(StandardScaler(), DoubleHingeClassifier(C=10.0, d=0.2)),
    "search of a pipeline": lambda: GridSearchCV(
        make_pipeline(StandardScaler(), DoubleHingeClassifier(C=10.0, d=0.2)),
        {"doublehingeclassifier__C": [1.0, 10.0]},
        cv=3,
    ),
}


@pytest.mark.parametrize("inside", INSIDE)
def test_a_rule_inside_of_a_search_or_a_pipeline_refuses_everywhere(folder, capsys, inside):
    model = fitted(folder, INSIDE[inside]())
    table = read_table(folder / "rows.csv", target="y")
    refused = model.reject(table)
    assert 0 < refused.sum() < 60
    assert model.rejects
    assert may_refuse(model.estimator_)
    assert describe_model(model)["abstains"]
    served = ServedModel(model, "1")
    assert served.rejects
    np.testing.assert_array_equal(served.answer(model.encode(table)).refused, refused)
    assert run("predict", folder / "m.skops", folder / "rows.csv", "--json", "-q") == 0
    told = [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()]
    assert [label == "abstain" for label in told] == refused.tolist()
    assert run("predict", folder / "m.skops", folder / "rows.csv", "--abstain", "1") == 2
    assert "the model has a class '1'" in capsys.readouterr().err


def test_a_search_that_never_refuses_is_known_as_such(folder):
    model = fitted(folder, GridSearchCV(RampClassifier(), {"C": [0.1, 1.0]}, cv=3))
    assert not model.rejects
    assert not may_refuse(model.estimator_)
    assert not model.reject(read_table(folder / "rows.csv", target="y")).any()


# -- numbers that cannot be computed with --------------------------------------------------------


def test_numbers_too_large_to_compute_with_are_refused_by_every_reader(folder, capsys):
    fitted(folder, RampClassifier())
    large = folder / "large.csv"
    large.write_text((folder / "rows.csv").read_text() + "1e150,0,1\n")
    for words in (
        ["fit", large, "-t", "y", "-o", folder / "new.skops"],
        ["suspects", large, "-t", "y", "-o", folder / "new.csv"],
        ["card", folder / "m.skops", "--data", large, "-o", folder / "new.md"],
        ["predict", folder / "m.skops", large, "-o", folder / "new.csv"],
    ):
        assert run(*words) != 0
        said = " ".join(capsys.readouterr().err.split())
        assert "large.csv, row 61: column 'a' is too large to compute with: 1e+150" in said
    assert not list(folder.glob("new.*"))


def test_numbers_too_large_in_a_directory_are_refused(folder, capsys):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    (folder / "rows").mkdir()
    frame = pd.read_csv(folder / "rows.csv")
    frame.loc[5, "a"] = -1e150
    frame.to_parquet(folder / "rows" / "one.parquet")
    words = ["--model", "leaky", "--folds", 2, "-o", folder / "new.skops"]
    assert run("fit", folder / "rows", "-t", "y", *words) == 1
    assert "column 'a' holds numbers too large to compute with" in capsys.readouterr().err
    assert not (folder / "new.skops").exists()


# -- what a file is ------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="open files have no names here")
@pytest.mark.parametrize(("text", "kind"), [("a,y\n1,n\n", "csv"), ('{"a": 1}\n', "jsonl")])
def test_a_file_behind_the_name_of_an_open_one_is_looked_into(tmp_path, text, kind):
    (tmp_path / "rows").write_text(text)
    with open(tmp_path / "rows") as file:
        path = Path(f"/dev/fd/{file.fileno()}")
        assert guess_kind(path, None) == kind
        assert column_names(path)[0] == "a"


def test_a_stream_refuses_a_header_that_is_not_utf8(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_bytes("größe,b,y\n1,2,no\n3,4,yes\n".encode("latin1"))
    words = ["--classes", "no,yes", "--checkpoint", tmp_path / "c", "-o", tmp_path / "out"]
    assert run("stream", path, "-t", "y", *words) == 1
    assert "not a text file in UTF-8" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["rows.csv"]


def test_an_open_quote_in_a_header_is_named_with_its_line(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_text('\n"a,y\n1,n\n2,p\n')
    assert run("fit", path, "-t", "y", "-o", tmp_path / "m.skops") == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "rows.csv, line 2: not a CSV file: a quote is opened and not closed" in said


# -- true and false of JSON ----------------------------------------------------------------------


def test_where_true_of_json_meets_another_spelling_the_message_says_so(tmp_path, capsys):
    rng = np.random.default_rng(0)
    numbers, flags = rng.normal(size=40), rng.random(40) < 0.5
    rows = list(zip(numbers.tolist(), flags.tolist(), strict=True))
    csv = [f"{a},{str(f).lower()},{'p' if a > 0 else 'n'}" for a, f in rows]
    (tmp_path / "rows.csv").write_text("\n".join(["a,f,y", *csv, ""]))
    lines = [json.dumps({"a": a, "f": f, "y": "p" if a > 0 else "n"}) for a, f in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    model = TableClassifier(PARampClassifier(), target="y")
    model.fit(read_table(tmp_path / "rows.csv", target="y"))
    buttress.save(model, tmp_path / "m.skops")
    hint = "true and false of JSON are the texts 'True' and 'False'"
    assert run("predict", tmp_path / "m.skops", tmp_path / "rows.jsonl") == 1
    assert hint in " ".join(capsys.readouterr().err.split())
    streams = (
        ["--from", tmp_path / "m.skops"],
        ["-t", "f", "--features", "a", "--classes", "true,false"],
    )
    for words in streams:
        assert run("stream", tmp_path / "rows.jsonl", *words, "-o", tmp_path / "out", "-q") == 1
        assert hint in " ".join(capsys.readouterr().err.split())


# -- columns that are not there ------------------------------------------------------------------


@pytest.mark.parametrize("command", ["fit", "suspects"])
def test_a_categorical_column_that_is_not_there_is_named_with_the_option(folder, capsys, command):
    words = ["--categorical", "a,bb", "-o", folder / "new"]
    assert run(command, folder / "rows.csv", "-t", "y", *words) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no column 'bb' (--categorical)" in said
    assert not (folder / "new").exists()
