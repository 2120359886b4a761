"""Predictions of files: the training file too, columns carried along, and never a false answer."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import buttress
from buttress.cli import main
from buttress.tables import TableClassifier, read_table

pytest.importorskip("skops")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 60))
    lines = [
        f"{i:03d},{p!r},{q!r},{'uv'[i % 2]},{int(p + q > 0)}\n"
        for i, (p, q) in enumerate(zip(a.tolist(), b.tolist(), strict=True))
    ]
    (tmp_path / "rows.csv").write_text("id,a,b,city,y\n" + "".join(lines))
    return tmp_path


def fitted(folder, estimator, **options):
    table = read_table(folder / "rows.csv", target="y")
    options = {"target": "y", "ignore": ["id"]} | options
    model = TableClassifier(estimator, **options).fit(table)
    buttress.save(model, folder / "m.skops")
    return model, table


def predict(folder, *words, data="rows.csv"):
    return main(["predict", str(folder / "m.skops"), str(folder / data), *map(str, words)])


def test_class_0_is_an_answer_in_json(folder, capsys):
    model, table = fitted(folder, SVC())
    assert predict(folder, "--json", "-q") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["label"] for row in rows] == model.predict(table).tolist()
    assert {row["label"] for row in rows} == {0, 1}


def test_the_training_file_is_taken_and_extra_columns_are_named_once(folder, capsys):
    fitted(folder, SVC())
    assert predict(folder, "--block-rows", 7) == 0
    error = capsys.readouterr().err
    assert "unknown to the model" not in error  # target and ignored column are known
    text = (folder / "rows.csv").read_text().splitlines()
    more = [text[0] + ",when", *(line + ",noon" for line in text[1:])]
    (folder / "more.csv").write_text("\n".join(more))
    assert predict(folder, "--block-rows", 7, data="more.csv") == 0
    error = capsys.readouterr().err
    assert error.count("unknown to the model: 'when'") == 1
    assert predict(folder, "-q", data="more.csv") == 0
    assert capsys.readouterr().err == ""


def test_fit_remembers_the_columns_it_was_told_to_ignore(folder, capsys):
    words = ["--target", "y", "--ignore", "id", "--model", "online", "--folds", "2", "-q"]
    assert main(["fit", str(folder / "rows.csv"), *words, "-o", str(folder / "m.skops")]) == 0
    assert predict(folder) == 0
    assert "unknown to the model" not in capsys.readouterr().err


def test_columns_are_carried_along_as_they_are_written(folder, capsys):
    fitted(folder, SVC())
    text = (folder / "rows.csv").read_text().replace("000,", "NA,", 1)
    (folder / "rows.csv").write_text(text)
    assert predict(folder, "--keep", "id,city,y", "-q") == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "id,city,y,label,margin"
    ids = [line.split(",")[0] for line in lines]
    assert ids == ["NA", *(f"{i:03d}" for i in range(1, 60))]
    assert predict(folder, "--keep", "id", "--json", "-q") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[1])["id"] == "001"


def test_a_misspelt_column_to_keep_is_recognised(folder, capsys):
    fitted(folder, SVC())
    assert predict(folder, "--keep", "ctiy") == 2
    assert "the column 'ctiy' to keep is missing in the data; did you mean 'city'?" in (
        capsys.readouterr().err
    )


def test_columns_of_parquet_and_json_lines_are_carried_along(folder, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    fitted(folder, SVC())
    frame = pandas.read_csv(folder / "rows.csv", dtype={"id": str})
    frame["when"] = pandas.Timestamp("2020-01-01")  # no number and no text, and not looked at
    frame.to_parquet(folder / "rows.parquet")
    assert predict(folder, "--keep", "id,when", "-q", "--json", data="rows.parquet") == 0
    by_parquet = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert by_parquet[7]["id"] == "007"
    assert by_parquet[7]["when"].startswith("2020-01-01")
    frame.drop(columns="when").to_json(folder / "rows.jsonl", orient="records", lines=True)
    assert predict(folder, "--keep", "id", "-q", "--json", data="rows.jsonl") == 0
    by_lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in by_lines] == [row["id"] for row in by_parquet]
    np.testing.assert_allclose(
        [row["margin"] for row in by_lines], [row["margin"] for row in by_parquet]
    )


@pytest.mark.parametrize("estimator", [LogisticRegression(), buttress.LeakyHockeyStickClassifier()])
def test_a_model_with_probabilities_adds_that_of_its_label(folder, capsys, estimator):
    model, table = fitted(folder, estimator)
    inner, encoded = model.estimator_, model.encode(table)
    proba = getattr(inner, "predict_proba", getattr(inner, "implied_proba", None))(encoded)
    assert predict(folder, "--json", "-q") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    wanted = proba[np.arange(60), np.searchsorted(model.classes_, model.predict(table))]
    np.testing.assert_allclose([row["probability"] for row in rows], wanted)


def test_nothing_is_written_before_every_row_has_passed(folder, capsys):
    fitted(folder, SVC())
    text = (folder / "rows.csv").read_text()
    (folder / "late.csv").write_text(text + "900,1.0,old,u,1\n")
    assert predict(folder, "--block-rows", 5, data="late.csv") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "line 62: column 'b' is numeric, but holds 'old'" in captured.err


def test_a_class_of_that_name_cannot_be_taken_for_no_answer(folder, capsys):
    text = (folder / "rows.csv").read_text().replace(",1\n", ",abstain\n")
    (folder / "rows.csv").write_text(text)
    model, table = fitted(folder, buttress.ChowRejector(LogisticRegression(), d=0.3))
    assert predict(folder) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "choose another word" in captured.err
    assert predict(folder, "--abstain", "???", "-q") == 0
    labels = [line.split(",")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert labels.count("???") == model.reject(table).sum() > 0
    assert "abstain" in labels
    # a model that always answers has no word to mistake it for
    for always in (SVC(), buttress.PARampClassifier(), buttress.DoubleRampClassifier(d=0.5)):
        fitted(folder, always)
        assert predict(folder, "-q") == 0


@pytest.mark.parametrize("huge", ["1e100,-1e99", "1e200,-1e220"])
@pytest.mark.parametrize(
    "estimator",
    [
        buttress.LeakyHockeyStickClassifier(),
        buttress.RampClassifier(),
        buttress.DoubleHingeClassifier(),
        buttress.PARampClassifier(),
        buttress.RampClassifier(kernel="poly"),
        buttress.LeakyHockeyStickClassifier(kernel="linear"),
        SVC(),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{estimator.kernel}",
)
def test_a_score_that_overflows_is_an_error_or_finite_never_class_0(
    folder, capsys, estimator, huge
):
    fitted(folder, estimator)
    capsys.readouterr()
    (folder / "huge.csv").write_text(f"a,b,city\n1,2,u\n{huge},v\n")
    code = predict(folder, "--json", data="huge.csv")
    captured = capsys.readouterr()
    assert "NaN" not in captured.out
    if code == 0:
        rows = [json.loads(line) for line in captured.out.splitlines()]
        assert all(np.isfinite(row["margin"]) for row in rows)
    else:
        assert code == 1
        assert captured.out == ""
        assert "huge.csv" in captured.err
        assert "too large to compute with" in captured.err or "finite" in captured.err


def test_an_error_of_one_row_names_one_row(folder, capsys):
    fitted(folder, SVC())
    for rows, named in (("1,,u\n", "row 1:"), ("1,2,u\n1,,u\n", "rows 1 to 2:")):
        (folder / "short.csv").write_text("a,b,city\n" + rows)
        assert predict(folder, data="short.csv") == 1
        assert f"short.csv, {named}" in capsys.readouterr().err


def test_decimal_commas_are_read_when_said_and_pointed_out_when_not(folder, capsys):
    model, table = fitted(folder, SVC())
    text = (folder / "rows.csv").read_text().replace(",", ";").replace(".", ",")
    (folder / "commas.csv").write_text(text)
    assert predict(folder, data="commas.csv") == 1
    assert "--decimal ," in capsys.readouterr().err
    assert predict(folder, "--decimal", ",", "-q", "--json", data="commas.csv") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose([row["margin"] for row in rows], model.decision_function(table))


@pytest.mark.long
def test_a_reader_that_has_enough_is_no_error(folder):
    fitted(folder, SVC())
    text = (folder / "rows.csv").read_text().splitlines(keepends=True)
    (folder / "long.csv").write_text(text[0] + "".join(text[1:]) * 200)
    code = "import sys; from buttress.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "predict", folder / "m.skops", folder / "long.csv", "-q"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"label,margin\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 1
