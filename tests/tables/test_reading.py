"""Files become tables; what is wrong with a file is said with its line or column."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buttress.tables import TableError, iter_table, read_table


@pytest.mark.smoke
def test_numbers_text_and_missing_values_are_told_apart(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('age, city ,n\n31,"Oslo, N",NA\n,?,4\n2.5e1,Bergen,5\n\n')
    table = read_table(file)
    assert table.names == ["age", "city", "n"]
    np.testing.assert_array_equal(table["age"], [31.0, np.nan, 25.0])
    assert table["city"].tolist() == ["Oslo, N", None, "Bergen"]
    assert table.missing() == {"age": 1, "city": 1, "n": 1}
    assert table.complete().tolist() == [False, False, True]
    assert table.shape == (3, 3)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    file = tmp_path / "a.csv"
    file.write_text(delimiter.join("abc") + "\n" + delimiter.join("123") + "\n")
    assert read_table(file).names == ["a", "b", "c"]


def test_compressed_files_and_a_byte_order_mark(tmp_path):
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress("\ufeffa,b\n1,x\n".encode()))
    table = read_table(file)
    assert table.names == ["a", "b"]
    assert table["a"].tolist() == [1.0]


@given(st.lists(st.sampled_from(["1", "2.5", "", "red", "?"]), min_size=1, max_size=12))
def test_the_kind_of_a_column_does_not_depend_on_the_blocks(tmp_path_factory, values):
    file = tmp_path_factory.mktemp("blocks") / "a.csv"
    file.write_text("key,x\n" + "".join(f"k,{value}\n" for value in values))
    whole = read_table(file)["x"]
    for block_rows in (1, 2, 3):
        blocks = read_table(file, block_rows=block_rows)["x"]
        assert blocks.dtype == whole.dtype
        np.testing.assert_array_equal(blocks, whole)


@pytest.mark.parametrize("option", ["text", "keep"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_columns_that_are_asked_for_and_absent_are_named(tmp_path, name, option):
    (tmp_path / name).write_text("a,b\n1,2\n" if name == "rows.csv" else '{"a": 1, "b": 2}\n')
    with pytest.raises(TableError, match="there is no column 'bb'; did you mean 'b'"):
        read_table(tmp_path / name, **{option: ["a", "bb"]})


def test_a_column_can_be_made_text(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("a,code\n1,07\n2,08\n")
    assert read_table(file, text=["code"])["code"].tolist() == ["07", "08"]
    with pytest.raises(TableError, match="no column 'kode'"):
        read_table(file, text=["kode"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "empty"),
        ("\n", "empty"),
        ("a,b\n", "no rows"),
        ("1,2\n3,4\n", "first line holds numbers"),
        ("a,a\n1,2\n", "'a' appears more than once"),
        ("a,,c\n1,2,3\n", "column 2 has no name"),
        ("a,b\n1,2\n1,2,3\n", "line 3: 3 fields, the header has 2"),
    ],
)
def test_malformed_files_are_named_with_the_reason(tmp_path, content, reason):
    file = tmp_path / "bad.csv"
    file.write_text(content)
    with pytest.raises(TableError, match=f"bad.csv.*{reason}"):
        read_table(file)


def test_binary_and_damaged_files_are_refused(tmp_path):
    binary = tmp_path / "a.csv"
    binary.write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(TableError, match="UTF-8"):
        read_table(binary)
    nul = tmp_path / "nul.csv"
    nul.write_bytes(b'a,b\n"' + b"x" * 200_000 + b'",1\n')
    with pytest.raises(TableError, match="not a CSV file"):
        read_table(nul)
    damaged = tmp_path / "a.csv.gz"
    damaged.write_bytes(gzip.compress(b"a,b\n1,2\n" * 99)[:-20])
    with pytest.raises(TableError, match="damaged"):
        read_table(damaged)
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="directory"):
        read_table(tmp_path)


def test_a_value_of_the_wrong_kind_is_named_with_its_line(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("age\n31\n?\nold\n")
    with pytest.raises(TableError, match=r"line 4: column 'age' is numeric, but holds 'old'"):
        list(iter_table(file, numeric=["age"]))


def test_parquet_and_csv_give_the_same_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {
            "age": [31, 40, 52],
            "size": [1.5, None, 3.0],
            "city": pandas.Categorical(["Oslo", "Bergen", "Oslo"]),
            "member": [True, False, True],
            "empty": [None, None, None],
        }
    )
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    one, two = read_table(tmp_path / "a.parquet"), read_table(tmp_path / "a.csv", block_rows=2)
    assert one.names == two.names
    for name in one.names:
        np.testing.assert_array_equal(one[name], two[name])
    text = next(iter_table(tmp_path / "a.parquet", text=["age"]))
    assert text["age"].tolist() == ["31", "40", "52"]
    with pytest.raises(TableError, match="'city' is numeric, but holds"):
        list(iter_table(tmp_path / "a.parquet", numeric=["city"]))


def test_parquet_that_cannot_be_used_is_named(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    (tmp_path / "no.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="not a Parquet file"):
        read_table(tmp_path / "no.parquet")
    pandas.DataFrame({"what": [b"1", b"2"]}).to_parquet(tmp_path / "t.pq")
    with pytest.raises(TableError, match="'what' has the type binary"):
        read_table(tmp_path / "t.pq")
    pandas.DataFrame({"a": []}).to_parquet(tmp_path / "e.parquet")
    with pytest.raises(TableError, match="no rows"):
        read_table(tmp_path / "e.parquet")


def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(TableError, match=r"buttress\[data\]"):
        read_table(tmp_path / "a.parquet")
