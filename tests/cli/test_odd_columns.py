"""A column that is text by accident is pointed out before a model is made of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import typer

from buttress.cli import _console, main
from buttress.cli._inputs import read_data
from buttress.tables import TableError


def write(path, first):
    lines = [f"{value};{'no' if i % 2 else 'yes'}" for i, value in enumerate(first)]
    path.write_text("a;y\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["n/k", *(f"{i / 7:.4f}" for i in range(59))], "most are numbers, 'n/k' is not"),
        ([f"user{i}" for i in range(60)], "60 different values in 60 rows: each becomes a feature"),
        ([f"user{i}" for i in range(120)], "in 120 rows: too many for categories, .* letters"),
    ],
    ids=["one bad value", "names", "more names than categories"],
)
def test_a_column_with_a_text_for_every_row_is_a_warning(tmp_path, values, reason):
    path = write(tmp_path / "odd.csv", values)
    with pytest.warns(UserWarning, match=rf"odd.csv: the column 'a' is text.*{reason}"):
        read_data(path, "y")


@pytest.mark.parametrize("command", ["fit", "convert"])
def test_an_identifier_is_one_warning(tmp_path, capsys, monkeypatch, command):
    monkeypatch.setattr(_console, "_seen", set())
    path = tmp_path / "odd.csv"
    lines = [f"user{i},{i % 7},{'np'[i % 2]}\n" for i in range(120)]
    path.write_text("a,b,y\n" + "".join(lines))
    words = {
        "fit": ["fit", str(path), "-t", "y", "--model", "ramp", "-o", str(tmp_path / "m.skops")],
        "convert": ["convert", str(path), str(tmp_path / "o.svm"), "-t", "y"],
    }
    assert main(words[command]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "column 'a'" in line]
    assert len(told) == 1
    assert "the column 'a' is text with 120 different values" in told[0]


@pytest.mark.parametrize("missing", ["error", "impute", "drop-rows"])
def test_a_column_without_any_value_is_named_before_the_work(tmp_path, capsys, missing):
    path = tmp_path / "odd.csv"
    path.write_text("a,gone,y\n" + "1,,n\n2,NA,p\n" * 10)
    words = ["fit", str(path), "-t", "y", "--missing", missing, "-o", str(tmp_path / "m.skops")]
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "every row has a missing value in 'gone': say --ignore gone" in told.err


def test_the_remedy_for_a_column_without_values_is_one_that_there_is(tmp_path, capsys):
    path = tmp_path / "odd.csv"
    path.write_text("a,gone,y\n" + "1,,n\n2,,p\n" * 10)
    assert main(["convert", str(path), str(tmp_path / "o.svm"), "-t", "y"]) == 2
    assert "in 'gone': leave it out of the file" in capsys.readouterr().err
    # a comma separates names
    path.write_text('a,"go,ne",gone,y\n' + "1,,,n\n2,,,p\n" * 10)
    assert main(["fit", str(path), "-t", "y", "-o", str(tmp_path / "m.skops")]) == 2
    assert "in 'go,ne', 'gone': leave them out of the file" in capsys.readouterr().err


def test_categories_dates_and_columns_named_as_such_are_not(tmp_path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        read_data(write(tmp_path / "few.csv", ["u", "v", "w"] * 20), "y")
        names = write(tmp_path / "names.csv", [f"user{i}" for i in range(60)])
        read_data(names, "y", categorical="a")
        days = np.datetime64("2024-01-01") + np.arange(120)
        read_data(write(tmp_path / "dates.csv", map(str, days)), "y")
    assert [str(warning.message) for warning in told] == []


@pytest.mark.parametrize("mark", [",", "."])
def test_the_other_decimal_mark_is_one_message_with_the_remedy(tmp_path, mark, capsys):
    path = tmp_path / "odd.csv"
    rows = "".join(f"{i}{mark}5;{i}{mark}{i};{'uv'[i % 2]};{'np'[i % 2]}\n" for i in range(1, 61))
    path.write_text("a;b;city;y\n" + rows)
    other = "." if mark == "," else ","
    with pytest.raises(typer.BadParameter) as caught:
        read_data(path, "y", decimal=other)
    assert "'a', 'b' hold numbers" in str(caught.value)
    assert f"--decimal {mark}" in str(caught.value)
    read = read_data(path, "y", decimal=mark)
    assert read.table["a"].tolist() == [i + 0.5 for i in range(1, 61)]
    codes = read_data(path, "y", decimal=other, categorical="a,b")
    assert codes.table["a"][0] == f"1{mark}5"


def test_a_misspelt_column_is_suggested(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("age,Diagnosis\n" + "1,n\n2,p\n" * 10)
    for words, said in (
        ({"target": "diagnosis"}, "did you mean 'Diagnosis'"),
        ({"target": "Diagnosis", "ignore": "agee"}, "did you mean 'age'"),
        ({"target": "Diagnosis", "categorical": "aeg"}, "did you mean 'age'"),
    ):
        with pytest.raises((typer.BadParameter, TableError), match=said):
            read_data(path, **words)


@pytest.mark.parametrize("words", [["suspects"], ["convert", "out.svm"], ["compare"]])
def test_decimal_commas_are_refused_wherever_labels_are_judged(
    tmp_path, monkeypatch, capsys, words
):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},5;{i},{i};{'np'[i % 2]}\n" for i in range(1, 41))
    (tmp_path / "odd.csv").write_text("a;b;y\n" + rows)
    assert main([words[0], "odd.csv", *words[1:], "-t", "y"]) == 2
    assert "--decimal ," in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["odd.csv"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["warm-up", "rmp"], "ramp"),
        (["reproduce", "lhs-tabl2"], "lhs-table2"),
        (["datasets", "fetch", "sonarr"], "sonar"),
    ],
)
def test_a_misspelt_name_is_suggested(capsys, words, meant):
    assert main(words) == 2
    assert f"did you mean {meant!r}?" in capsys.readouterr().err


def test_the_remedy_works_where_commas_separate_quoted_numbers_too(tmp_path, capsys):
    rows = [f'"{i % 7},{i % 3}","{i % 5},5",{"ny"[i % 7 > 2]}\n' for i in range(60)]
    data, model = tmp_path / "sheet.csv", tmp_path / "m.skops"
    data.write_text("a,b,y\n" + "".join(rows))
    fit = ["fit", str(data), "-t", "y", "--model", "ramp", "-o", str(model), "-q"]
    assert main(fit) == 2
    assert "--decimal ," in capsys.readouterr().err
    assert main([*fit, "--decimal", ","]) == 0
    assert main(["predict", str(model), str(data), "--decimal", ",", "-q"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 61
    out = tmp_path / "out.csv"
    words = ["stream", data, "-t", "y", "--decimal", ",", "-o", out, "-q", "--classes", "n,y"]
    assert main([str(word) for word in words]) == 0
    assert len(out.read_text().splitlines()) == 61


def test_convert_names_no_options_that_it_has_not(tmp_path, capsys):
    path = write(tmp_path / "odd.csv", [f"user{i}" for i in range(60)])
    assert main(["convert", str(path), str(tmp_path / "o.svm"), "-t", "y"]) == 0
    said = capsys.readouterr().err
    assert said.rstrip().endswith("Correct it, or leave it out of the file.")
    assert "--ignore" not in said
