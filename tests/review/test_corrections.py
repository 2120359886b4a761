"""Corrections apply where the old label stands, wholly or not at all; nothing else moves."""

from __future__ import annotations

import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.cli import main
from buttress.review import (
    Correction,
    CorrectionError,
    apply_corrections,
    corrected_labels,
    read_corrections,
    write_corrections,
)
from buttress.review._csv_edit import field_spans
from buttress.tables.table import TableError

DATA = 'id;when ;y\r\n"a;1";  1.50; "no"\r\n\r\nb""2; 007 ;yes\r\nc;3;no\r\n'


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"\xef\xbb\xbf" + DATA.encode())
    return path


def test_only_the_corrected_labels_change(data, tmp_path):
    out = tmp_path / "clean.csv"
    given_ = [Correction("1", "no", 'say "yes"; now'), Correction("2", "yes", "yes", who="ada")]
    assert apply_corrections(data, given_, out, target="y") == 1
    expected = DATA.replace('"no"', '"say ""yes""; now"')
    assert out.read_bytes() == b"\xef\xbb\xbf" + expected.encode()


def test_without_corrections_the_file_is_the_same_bytes(data, tmp_path):
    apply_corrections(data, [], tmp_path / "same.csv", target="y")
    assert (tmp_path / "same.csv").read_bytes() == data.read_bytes()


def test_the_file_may_replace_itself_and_be_compressed(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n1,x\n2,z\n"))
    apply_corrections(path, [Correction("2", "z", "x")], path)
    assert gzip.decompress(path.read_bytes()) == b"a,y\n1,x\n2,x\n"


@pytest.mark.parametrize(
    ("correction", "reason"),
    [
        (Correction("1", "yes", "no"), "correction 1, row 1: the label is 'no', not 'yes'"),
        (Correction("9", "yes", "no"), "correction 1, row 9: there is no such row"),
        (Correction("0", "yes", "no"), "correction 1, row 0: there is no such row"),
        (Correction("x", "no", "yes", key_column="id"), "id=x: there is no such row"),
        (Correction("2", "no", "yes"), "already corrected"),
    ],
)
def test_a_conflict_is_one_line_and_nothing_is_written(correction, reason, data, tmp_path):
    out = tmp_path / "clean.csv"
    out.write_text("before")
    with pytest.raises(CorrectionError) as caught:
        apply_corrections(data, [correction], out, target="y")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert out.read_text() == "before"


def test_all_conflicts_are_told_and_good_corrections_wait(data, tmp_path, capsys):
    file = tmp_path / "corrections.csv"
    write_corrections(
        file,
        [Correction("1", "no", "yes"), Correction("2", "no", "x"), Correction("7", "no", "x")],
    )
    out = tmp_path / "clean.csv"
    assert main(["apply", str(data), str(file), "-o", str(out), "--target", "y"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "buttress: correction 2, row 2: the label is 'yes', not 'no'",
        "buttress: correction 3, row 7: there is no such row",
        f"buttress: 2 conflicts: {file} does not apply to {data}; nothing written",
    ]
    assert not out.exists()


def test_corrections_are_taken_in_order():
    chain = [Correction("1", "a", "b"), Correction("1", "b", "c")]
    assert corrected_labels(["a"], chain).tolist() == ["c"]
    with pytest.raises(CorrectionError, match="correction 2, row 1: the label is 'b', not 'a'"):
        corrected_labels(["a"], [Correction("1", "a", "b"), Correction("1", "a", "c")])


def test_keys_of_a_column(data, tmp_path):
    file = tmp_path / "corrections.csv"
    write_corrections(file, [Correction("a;1", "no", "yes", "ada", "today", "x,y", "id")])
    assert main(["apply", str(data), str(file), "-o", str(tmp_path / "clean.csv"), "-q"]) == 0
    assert "; yes\r\n" in (tmp_path / "clean.csv").read_bytes().decode("utf-8-sig")
    with pytest.raises(CorrectionError, match="its key is of 'id', not of 'y'"):
        apply_corrections(data, read_corrections(file), tmp_path / "o.csv", target="y", key="y")
    unnamed = [Correction("c", "no", "yes")]
    assert apply_corrections(data, unnamed, tmp_path / "o.csv", target="y", key="id") == 1
    twice = tmp_path / "twice.csv"
    twice.write_text("id,y\na,1\na,0\n")
    with pytest.raises(CorrectionError, match="correction 1, id=a: 2 rows have this key"):
        apply_corrections(twice, [Correction("a", "1", "0", key_column="id")], twice, target="y")


def test_blank_lines_and_lines_of_blanks_are_kept_and_no_rows(tmp_path):
    source, goal = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("\ufeff\n  \nx;y\n1;a\n   \n\n2;b\n")
    apply_corrections(source, [Correction("2", "b", "a")], goal, target="y")
    assert goal.read_text() == "\ufeff\n  \nx;y\n1;a\n   \n\n2;a\n"


def test_labels_are_compared_as_written(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,y\n5,1.0\n6,01\n7,1\n")
    with pytest.raises(CorrectionError, match=r"the label is '1\.0', not '1'"):
        apply_corrections(path, [Correction("1", "1", "2")], path, target="y")
    apply_corrections(path, [Correction("2", "01", "1.0")], path, target="y")
    assert path.read_text() == "a,y\n5,1.0\n6,1.0\n7,1\n"


def test_the_target_is_found_or_asked_for(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\nx,x,q\nz,x,r\n")
    apply_corrections(path, [Correction("1", "q", "r")], path)
    assert path.read_text() == "a,b,y\nx,x,r\nz,x,r\n"
    with pytest.raises(TableError, match="fit the columns 'a', 'b'; name the target"):
        apply_corrections(path, [Correction("1", "x", "q")], path)
    with pytest.raises(TableError, match="no column holds the old labels"):
        apply_corrections(path, [Correction("1", "k", "q")], path)


def test_files_of_corrections_round_trip(tmp_path):
    file = tmp_path / "c.csv"
    given_ = [Correction("1", "a,b", '"', "w", "t", "line\nbreak"), Correction("é", "x", "y")]
    write_corrections(file, given_)
    assert read_corrections(file) == given_
    file.write_text("key,old_label\n1,2\n")
    with pytest.raises(TableError, match="no column 'new_label'"):
        read_corrections(file)
    file.write_text("key,old_label,new_label\n1,2,\n")
    with pytest.raises(TableError, match="line 2"):
        read_corrections(file)


@pytest.mark.parametrize("kind", ["int64", "float64", "string", "bool", "dictionary"])
def test_parquet_keeps_types_and_metadata(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    values, old, new, becomes = {
        "int64": ([1, 2, None], "2", "1", 1),
        "float64": ([0.5, 2.0, None], "2", "0.5", 0.5),
        "string": (["a", "b", None], "b", "a", "a"),
        "bool": ([True, False, None], "False", "True", True),
        "dictionary": (["a", "b", None], "b", "a", "a"),
    }[kind]
    labels = pa.array(values)
    if kind == "dictionary":
        labels = labels.dictionary_encode()
    table = pa.table({"x": [1, 2, 3], "y": labels}).replace_schema_metadata({"made": "here"})
    path, out = tmp_path / "d.parquet", tmp_path / "o.parquet"
    parquet.write_table(table, path)
    assert apply_corrections(path, [Correction("2", old, new)], out, target="y") == 1
    result = parquet.read_table(out)
    assert result.schema == table.schema
    assert result.schema.metadata[b"made"] == b"here"
    assert result["y"].to_pylist() == [values[0], becomes, None]
    assert result["x"].to_pylist() == [1, 2, 3]


def test_a_label_that_the_column_cannot_hold(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    parquet.write_table(pa.table({"x": [1.0], "y": [1]}), path)
    with pytest.raises(TableError, match="'no' cannot be a label"):
        apply_corrections(path, [Correction("1", "1", "no")], path, target="y")
    with pytest.raises(TableError, match="same ending"):
        apply_corrections(path, [], tmp_path / "o.csv", target="y")


@given(
    st.lists(st.text(alphabet='ab," \n\t;', max_size=6), min_size=2, max_size=5),
    st.sampled_from([",", ";"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_spans_find_the_fields_that_the_reader_finds(fields, delimiter, quoting):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerow(fields)
    record = buffer.getvalue()
    expected = next(csv.reader(io.StringIO(record), delimiter=delimiter, skipinitialspace=True))
    spans = field_spans(record, delimiter)
    found = []
    for start, end in spans:
        text = record[start:end]
        quoted = text.startswith('"') and text.endswith('"') and len(text) > 1
        found.append(text[1:-1].replace('""', '"') if quoted else text)
    assert [f.strip() for f in found] == [e.strip() for e in expected]


def test_a_correction_behind_an_open_quote_is_not_lost(data, tmp_path, capsys):
    path = tmp_path / "corrections.csv"
    path.write_text('key,old_label,new_label,note\n1,no,yes,"open\n2,yes,no,\n3,no,yes,\n')
    words = ["apply", str(data), str(path), "-t", "y", "-o", str(tmp_path / "out.csv")]
    assert main(words) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "corrections.csv, line 2: not a CSV file: a quote is opened and not closed" in said
    assert not (tmp_path / "out.csv").exists()


def test_columns_that_are_not_there_are_named_with_what_may_have_been_meant(data, tmp_path, capsys):
    path, out = tmp_path / "corrections.csv", tmp_path / "out.csv"
    write_corrections(path, [Correction("1", "no", "yes")])
    for words, meant in ((["-t", "yy"], "'y'"), (["-t", "y", "--key", "wen"], "'when'")):
        assert main(["apply", str(data), str(path), "-o", str(out), *words]) == 2
        assert meant in capsys.readouterr().err.split("there is no column", 1)[1]
    assert not out.exists()


def test_files_of_other_kinds_are_named_for_what_they_are(tmp_path):
    for name, text, kind in (
        ("rows.jsonl", '{"a": 1, "y": "n"}\n', "JSON lines"),
        ("rows.data", '{"a": 1, "y": "n"}\n', "JSON lines"),
        ("rows.svm", "1 1:2\n", "LIBSVM"),
    ):
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(TableError, match=f"holds {kind}; corrections are applied to CSV"):
            apply_corrections(path, [Correction("1", "n", "p")], tmp_path / f"new{path.suffix}")
