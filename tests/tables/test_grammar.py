"""One grammar for fit, predict and stream: blanks, numbers, labels, lines."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.tables import TableClassifier, TableError, iter_table, read_table
from buttress.tables.grammar import (
    Malformed,
    class_labels,
    for_spreadsheet,
    json_fields,
    looks_numeric,
    to_label,
    to_number,
    to_numbers,
)


@given(st.integers())
def test_a_whole_label_comes_back_as_it_is_written(value):
    assert str(to_label(str(value))) == str(value)
    assert str(class_labels(np.array([to_label(str(value)), 0], dtype=object))[0]) == str(value)


@given(st.text(alphabet="0123456789+-.eE_ x", min_size=1, max_size=8))
def test_a_label_is_its_text(text):
    assert str(to_label(text)) == text.strip()


@given(st.floats(allow_nan=False))
def test_numbers_are_those_of_the_language_but_for_its_own_liberties(value):
    assert to_number(repr(value)) == value
    assert to_number(repr(value).replace(".", ","), ",") == value
    assert to_numbers([repr(value), None, "NA"])[0] == value


@pytest.mark.parametrize("text", ["1_000", "１２", "1,5", "0x10", "1 000", "--1", "1e", ".", "١٢"])
def test_what_only_a_programming_language_takes_for_a_number_is_none(text):
    assert not looks_numeric(text)
    with pytest.raises(ValueError, match="no number"):
        to_numbers(["1", text])


def test_a_column_with_an_underscore_is_text(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1_000,n\n2,p\n")
    assert read_table(tmp_path / "a.csv")["a"].tolist() == ["1_000", "2"]
    with pytest.raises(TableError, match="line 2: column 'a' is numeric, but holds '1_000'"):
        list(iter_table(tmp_path / "a.csv", numeric=["a"]))


@pytest.mark.parametrize("block_rows", [1, 2, 7, 100])
def test_blank_lines_end_nothing(tmp_path, block_rows):
    rows = [f"{i},x" for i in range(40)]
    text = "a,b\n" + "\n".join(rows[:10]) + "\n" * 30 + "  \n" + "\n".join(rows[10:]) + "\n\n\n"
    (tmp_path / "a.csv").write_text(text)
    table = read_table(tmp_path / "a.csv", block_rows=block_rows)
    np.testing.assert_array_equal(table["a"], np.arange(40.0))


def test_nul_bytes_are_named_with_their_line(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,x\n\x002,y\n")
    with pytest.raises(TableError, match="line 3: the line holds a NUL byte"):
        read_table(tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n{"a": "\x00"}\n')
    with pytest.raises(TableError, match="line 2: the line holds a NUL byte"):
        read_table(tmp_path / "a.jsonl")


def test_an_open_quote_does_not_swallow_the_rest_of_the_file(tmp_path):
    (tmp_path / "a.csv").write_text('a,b\n1,"x\n2,y\n3,z\n')
    with pytest.raises(TableError, match="not a CSV file"):
        read_table(tmp_path / "a.csv")


def test_parquet_with_two_columns_of_one_name_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    twice = pyarrow.Table.from_arrays([pyarrow.array([1, 2]), pyarrow.array([3, 4])], ["a", "a"])
    parquet.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(TableError, match="'a' appears more than once"):
        read_table(tmp_path / "a.parquet")


def test_broken_parquet_names_the_file(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "broken.parquet"
    parquet.write_table(pyarrow.table({"a": list(range(10_000))}), path)
    content = bytearray(path.read_bytes())
    content[20:4000] = b"\xff" * 3980
    path.write_bytes(content)
    with pytest.raises(TableError, match=r"broken\.parquet"):
        read_table(path)
    path.write_bytes(content[:100])
    with pytest.raises(TableError, match=r"broken\.parquet: not a Parquet file"):
        read_table(path)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["007", "07", "7"], ["007", "07", "7"]),
        (["9007199254740993", "9007199254740992", "1"], [2**53 + 1, 2**53, 1]),
        (["0", "1", "-1"], [0, 1, -1]),
        (["1.0", "0.0", "1"], ["1.0", "0.0", "1"]),
        (["+1", "-1", "+1"], ["+1", "-1", "+1"]),
        (["18446744073709551616", "1", "2"], ["18446744073709551616", "1", "2"]),
        (["True", "False", "abstain"], ["True", "False", "abstain"]),
    ],
)
def test_labels_come_back_exactly_as_they_are_written(tmp_path, kind, labels, expected):
    from sklearn.neighbors import KNeighborsClassifier

    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        path.write_text("a,y\n" + "".join(f"{i},{y}\n" for i, y in enumerate(labels)))
    elif kind == "jsonl":
        written = [
            y if isinstance(want, int) else json.dumps(y)
            for y, want in zip(labels, expected, strict=True)
        ]
        path.write_text("".join(f'{{"a": {i}, "y": {y}}}\n' for i, y in enumerate(written)))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        import pyarrow.parquet as parquet

        parquet.write_table(pyarrow.table({"a": [0, 1, 2], "y": expected}), path)
    table = read_table(path, target="y", block_rows=2)
    model = TableClassifier(KNeighborsClassifier(1), target="y").fit(table)
    assert model.predict(table).tolist() == expected


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_blanks_in_a_string_are_part_of_the_label(tmp_path, kind):
    labels = [" x", "x", "x "]
    path = tmp_path / f"a.{kind}"
    if kind == "jsonl":
        rows = [json.dumps({"a": i, "y": y}) + "\n" for i, y in enumerate(labels)]
        path.write_text("".join(rows))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        import pyarrow.parquet as parquet

        column = pyarrow.array(labels).dictionary_encode()
        parquet.write_table(pyarrow.table({"a": [0, 1, 2], "y": column}), path)
    assert read_table(path, target="y")["y"].tolist() == labels


def test_json_lines_and_csv_give_the_same_table(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c\n1.5,x,\n,y,3\n2,,4\n")
    lines = ['{"a": 1.5, "b": "x", "c": null}', "", '{"b": "y", "c": 3}', '{"a": "2", "c": 4}']
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    one = read_table(tmp_path / "a.csv")
    for block_rows in (1, 2, 10):
        two = read_table(tmp_path / "a.ndjson.gz", block_rows=block_rows)
        assert one.names == two.names
        for name in one.names:
            np.testing.assert_array_equal(one[name], two[name])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[" * 200_000, "brackets"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "brackets"),
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"a": [1]}', "holds list"),
        ('{"a": {"b": 1}}', "holds dict"),
        ('{"a": 1, "a": 2}', "more than once"),
        (r'{"a": "x\u0000"}', "NUL"),
        (r'{"a": "\ud800"}', "half of a character"),
        (r'{"\udc00": 1}', "half of a character"),
    ],
)
def test_a_line_that_is_no_row_has_a_reason(tmp_path, line, reason):
    with pytest.raises(Malformed, match=reason):
        json_fields(line)
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n' + line + "\n")
    with pytest.raises(TableError, match=f"line 2: .*{reason}"):
        read_table(tmp_path / "a.jsonl")


def test_a_character_in_two_escapes_is_one():
    assert json_fields(r'{"a": "\ud83d\ude00"}') == {"a": "\U0001f600"}


def test_brackets_within_a_string_are_text():
    text = "[{" * 100 + '\\"'
    assert json_fields(f'{{"a": "{text}"}}')["a"] == "[{" * 100 + '"'


def test_one_long_cell_does_not_multiply(tmp_path):
    # as an array of fixed width these rows would take 8 GB
    rows = "".join(f"{i},x\n" for i in range(20_000))
    (tmp_path / "a.csv").write_text("a,b\n" + rows + "x" * 100_000 + ",x\n")
    assert len(read_table(tmp_path / "a.csv", block_rows=30_000)) == 20_001


@given(st.text(max_size=10))
def test_a_cell_for_people_is_never_a_formula_and_loses_nothing(text):
    safe = for_spreadsheet(text)
    assert safe in (text, "'" + text)
    if safe[:1] in ("=", "+", "-", "@", "\t", "\r", "\n"):
        assert looks_numeric(safe)


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1"])
def test_what_a_spreadsheet_would_run_is_marked(text):
    assert for_spreadsheet(text) == "'" + text
