"""What a cell is for `fit` it is for `predict` and for `stream`, in CSV and in JSON lines."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import typer
from sklearn.base import BaseEstimator, ClassifierMixin

from buttress.cli import main
from buttress.cli._inputs import read_data
from buttress.tables import TableClassifier, TableError, read_table
from buttress.tables.grammar import Malformed
from buttress.tables.prediction import FilePrediction
from buttress.tables.stream import Columns, LineReader, RowParser, guess_kind
from buttress.tables.table import is_missing

FILL = 12345.0
REFUSED, MISSING, TEXT = "refused", "missing", "text"
NANS = [sign + nan for sign in ("", "+", "-") for nan in ("nan", "NaN", "NAN", "Nan", "nAn")]

# A cell as CSV has it, the field of a JSON line that says the same, and what it is among numbers.
CELLS = [
    *((nan, json.dumps(nan), MISSING) for nan in NANS),
    *((word, json.dumps(word), MISSING) for word in ("", "NA", " ? ", "null", "#N/A", "n/a")),
    ("NaN", "NaN", MISSING),
    ("", "null", MISSING),
    ("1", "1", 1.0),
    (" -1.5e3 ", '" -1.5e3 "', -1500.0),
    ("1.50", "1.50", 1.5),
    ("1e100", "1e100", 1e100),
    ("-1e101", "-1e101", REFUSED),
    ("1e101", '"1e101"', REFUSED),
    ("1" + "0" * 400, "1" + "0" * 400, REFUSED),
    ("inf", '"inf"', REFUSED),
    ("-Infinity", "-Infinity", REFUSED),
    ("True", "true", TEXT),
    ("False", "false", TEXT),
    ("1_000", '"1_000"', TEXT),
    ("1.500,5", '"1.500,5"', TEXT),
    ("١", '"١"', TEXT),
    ("0x10", '"0x10"', TEXT),
    ("None", '"None"', TEXT),
    ("nano", '"nano"', TEXT),
    ("--nan", '"--nan"', TEXT),
    ("nan(1)", '"nan(1)"', TEXT),
]


class Echo(ClassifierMixin, BaseEstimator):
    """Its margin is the first number that it sees."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def model_of_numbers():
    """A model of one column whose missing values are `FILL`."""
    table = {"a": [FILL, FILL, FILL, 1.0], "y": ["n", "p", "n", "p"]}
    model = TableClassifier(Echo(), target="y", missing="impute", standardize=False)
    return model.fit(table)


@pytest.fixture(params=["csv", "jsonl"])
def form(request):
    return request.param


def write(path, form, rows):
    """Rows of pairs (as in CSV, as in JSON) below the names a, y."""
    if form == "csv":
        lines = ["a;y", *(f"{a};{y}" for (a, _), (y, _) in rows)]
    else:
        lines = [f'{{"a": {a}, "y": {y}}}' for (_, a), (_, y) in rows]
    path.write_text("\n".join([*lines, ""]))
    return path


def by_fit(path):
    try:
        read = read_data(path, "y", missing="impute", checked=False)
    except (TableError, typer.BadParameter):
        return REFUSED
    column = read.table["a"]
    if column.dtype.kind != "f":
        return TEXT
    return MISSING if np.isnan(column[-1]) else column[-1]


def by_predict(path):
    try:
        [block] = FilePrediction(model_of_numbers(), path)
    except TableError as error:
        return TEXT if "is numeric, but holds" in str(error) else REFUSED
    return MISSING if block.margins[-1] == FILL else block.margins[-1]


def rows_of_stream(path, columns):
    """What a stream makes of the lines of a file."""
    parser = RowParser(guess_kind(path, None), "y", None, columns)
    with path.open("rb") as file:
        reader = LineReader(file, seekable=True)
        if parser.kind == "csv":
            parser.header(reader.next())
        while (text := reader.next()) is not None:
            yield parser.parse(text, reader.lines)


def by_stream(path):
    try:
        *_, row = rows_of_stream(path, Columns(["a"], {}, impute=True))
    except Malformed as reason:
        return TEXT if "is no number" in str(reason) else REFUSED
    return MISSING if row.values == [None] else row.values[0]


@pytest.mark.parametrize(("cell", "field", "expected"), CELLS)
def test_a_cell_is_the_same_for_all_readers(tmp_path, form, cell, field, expected):
    rows = [(("7", "7"), ("n", '"n"')), ((cell, field), ("p", '"p"'))]
    path = write(tmp_path / f"rows.{form}", form, rows)
    found = {reader.__name__: reader(path) for reader in (by_fit, by_predict, by_stream)}
    assert found == dict.fromkeys(found, expected)


@pytest.mark.parametrize(("cell", "field", "kind"), CELLS)
def test_a_label_is_the_same_for_all_readers(tmp_path, form, cell, field, kind):
    path = write(tmp_path / f"rows.{form}", form, [(("7", "7"), (cell, field))])
    [fitted] = read_table(path, target="y")["y"]
    [block] = FilePrediction(model_of_numbers(), path)
    [row] = rows_of_stream(path, Columns(["a"]))
    assert fitted == block.truth[0] == row.label
    assert (fitted is None) == (kind == MISSING)


@pytest.mark.parametrize(("cell", "field", "kind"), CELLS)
def test_a_category_is_the_same_for_all_readers(tmp_path, form, cell, field, kind):
    rows = [(("x", '"x"'), ("n", '"n"')), ((cell, field), ("p", '"p"'))]
    path = write(tmp_path / f"rows.{form}", form, rows)
    fitted = read_table(path, target="y", text=["a"])["a"]
    known = sorted(set(fitted) - {None})
    *_, row = rows_of_stream(path, Columns(["a"], {"a": known}, impute=True))
    model = TableClassifier(Echo(), target="y", missing="impute")
    model.fit({"a": [*known, *known], "y": ["n"] * len(known) + ["p"] * len(known)})
    [block] = FilePrediction(model, path)  # whose categories must all be known
    assert row.values == [fitted[-1]]
    assert is_missing(fitted)[-1] == (kind == MISSING)
    assert len(block.labels) == 2


def booleans(path, n, seed):
    """A table of a number, a flag and a boolean label, as CSV or JSON lines."""
    rng = np.random.default_rng(seed)
    numbers, flags = rng.normal(size=n), rng.random(n) < 0.5
    rows = [(float(a), bool(f), bool(f == (a > 0))) for a, f in zip(numbers, flags, strict=True)]
    if path.suffix == ".csv":
        path.write_text("a,f,y\n" + "".join(f"{a},{f},{y}\n" for a, f, y in rows))
    else:
        lines = (json.dumps({"a": a, "f": f, "y": y}) + "\n" for a, f, y in rows)
        path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("first", ["csv", "jsonl"])
def test_booleans_of_json_are_those_of_csv(tmp_path, capsys, first):
    pytest.importorskip("skops")
    old, model = booleans(tmp_path / f"old.{first}", 120, 0), tmp_path / "m.skops"
    fit = ["fit", old, "-t", "y", "--model", "online", "-o", model, "-q"]
    assert main([str(word) for word in fit]) == 0
    told, streamed = {}, {}
    for form in ("csv", "jsonl"):
        new, out = booleans(tmp_path / f"new.{form}", 80, 1), tmp_path / f"out.{form}"
        capsys.readouterr()
        assert main(["predict", str(model), str(new), "--json", "--keep", "f"]) == 0
        told[form] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        words = ["stream", new, "--from", model, "-o", out, "--json", "-q"]
        assert main([str(word) for word in words]) == 0
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        streamed[form] = [(line["answer"], line["score"], line["label"]) for line in lines]
    assert told["csv"] == told["jsonl"]
    assert streamed["csv"] == streamed["jsonl"]
    assert len(told["csv"]) == len(streamed["csv"]) == 80
    assert {line["label"] for line in told["csv"]} == {"True", "False"}


CSV, JSON = "a,b,y\n1,2,n\n3,4,p\n", '{"a": 1, "b": 2, "y": "n"}\n{"a": 3, "b": 4, "y": "p"}\n'


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (CSV, "csv"),
        ("\n  \n" + CSV, "csv"),
        (CSV.replace("a,b", "[a],[b]"), "csv"),
        (JSON, "jsonl"),
        ("\ufeff\n \t\n" + JSON, "jsonl"),
        ("\ufeff" + JSON, "jsonl"),
    ],
)
@pytest.mark.parametrize("name", ["rows.dat", "rows", "rows.2024"])
def test_a_file_whose_name_tells_nothing_is_looked_into(tmp_path, name, text, kind):
    path = tmp_path / name
    path.write_text(text)
    table = read_table(path, target="y")
    assert table["y"].tolist() == ["n", "p"]
    assert guess_kind(path, None) == kind
    out = tmp_path / "out.csv"
    words = ["stream", str(path), "-t", "y", "--classes", "n,p", "-o", str(out), "-q"]
    assert main(words) == 0
    assert len(out.read_text().splitlines()) == 2 + (kind == "csv")


def test_arrays_of_json_are_named_whatever_the_file_is_called(tmp_path):
    path = tmp_path / "rows.dat"
    for text in ("[" + JSON.replace("}\n{", "},\n{") + "]", "[\n" + JSON + "]"):
        path.write_text(text)
        assert guess_kind(path, None) == "jsonl"
        with pytest.raises(TableError, match="an array becomes one object per line"):
            read_table(path)


def test_the_option_and_the_suffix_come_before_the_first_character(tmp_path):
    for name in ("rows.csv", "rows.txt", "rows.jsonl", "rows.json"):
        (tmp_path / name).write_text(JSON if name.endswith(("csv", "txt")) else CSV)
    assert guess_kind(tmp_path / "rows.csv", None) == guess_kind(tmp_path / "rows.txt", None)
    assert guess_kind(tmp_path / "rows.csv", None) == "csv"
    assert guess_kind(tmp_path / "rows.json", None) == "jsonl"
    assert guess_kind(tmp_path / "rows.jsonl", "csv") == "csv"
    assert guess_kind(None, None) == "jsonl"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_looked_into(tmp_path):
    os.mkfifo(tmp_path / "rows")
    assert guess_kind(tmp_path / "rows", None) == "jsonl"


def test_a_line_break_within_a_cell_is_one_row_of_a_file_and_two_rejects_of_a_stream(tmp_path):
    path, rejects = tmp_path / "rows.csv", tmp_path / "rejects"
    path.write_text('a,note,y\n1,x,n\n2,"two\nlines",p\n3,x,p\n')
    assert read_table(path)["note"].tolist() == ["x", "two\nlines", "x"]
    words = ["stream", path, "-t", "y", "--features", "a", "--rejects", rejects, "-q"]
    words += ["--classes", "n,p", "-o", tmp_path / "out"]
    assert main([str(word) for word in words]) == 0
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [line["line"] for line in told] == [3, 4]
    assert told[0]["reason"] == "not CSV: a quote is opened and not closed in this line"
    assert told[1]["reason"] == (
        "2 fields, expected 3; is it part of a row with a line break in quotes?"
    )
    assert len((tmp_path / "out").read_text().splitlines()) == 3


def test_a_quote_that_is_never_closed_is_named_with_the_line_it_is_in(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n1,"x\ny"\n2,"y\n3,z\n')
    with pytest.raises(TableError, match="line 4: not a CSV file: a quote is opened and not"):
        read_table(path)
    path.write_text('a,b\n1,"x\n' + "2,y\n" * 50_000)
    with pytest.raises(TableError, match=r"line 2: .*field limit.*is a quote not closed"):
        read_table(path)
