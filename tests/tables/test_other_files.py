"""Files that are no tables of text are named for what they are, with the remedy."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile

import pytest

from buttress.cli import main
from buttress.tables import TableError, column_names, read_table

TEXT = "a,b,y\n" + "".join(f"{i},{(i * 7) % 5},{'no' if i % 2 else 'yes'}\n" for i in range(40))


def zipped(text):
    import io

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("rows.csv", text)
    return buffer.getvalue()


OTHERS = [
    ("rows.csv", gzip.compress(TEXT.encode()), "compressed with gzip: end its name in .gz"),
    ("rows.csv.bz2", bz2.compress(TEXT.encode()), "bzip2: unpack it first"),
    ("rows.csv.xz", lzma.compress(TEXT.encode()), "xz: unpack it first"),
    ("rows.zip", zipped(TEXT), "ZIP archive: unpack it first"),
    ("rows.xlsx", zipped(TEXT), "spreadsheet: save it as CSV"),
    ("rows.csv", b"PAR1 and so on", "Parquet file: end its name in .parquet"),
    ("rows.feather", b"ARROW1\0\0", "Arrow .Feather. file: write it as Parquet"),
    ("rows.csv", TEXT.encode("utf-16"), "UTF-16: save it as UTF-8"),
    ("rows.csv", (TEXT + "1,2,été\n").encode("latin-1"), "not a text file in UTF-8: save it as"),
    ("rows.json", json.dumps([{"a": 1}]).encode(), "one object per line with jq"),
]


@pytest.mark.parametrize(("name", "content", "remedy"), OTHERS, ids=[what for *_, what in OTHERS])
def test_what_a_file_is_and_what_to_do_is_said(tmp_path, name, content, remedy):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError, match=remedy):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("rows.csv.gz", gzip.compress(TEXT.encode()), "is compressed with gzip"),
        ("rows.parquet", b"PAR1 and so on", "is a Parquet file"),
    ],
)
def test_a_stream_names_them_too(tmp_path, capsys, name, content, what):
    path = tmp_path / name
    path.write_bytes(content)
    assert main(["stream", str(path), "-t", "y", "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert what in said
    assert f"buttress convert {path} rows.csv" in said
    assert not (tmp_path / "out").exists()


def test_a_stream_of_no_rows_says_how_it_was_read(tmp_path, capsys):
    path = tmp_path / "rows"
    path.write_text(TEXT)
    words = ["-t", "y", "--format", "jsonl", "-o", str(tmp_path / "out")]
    assert main(["stream", str(path), *words]) == 1
    assert "read as JSON lines; --format says otherwise" in capsys.readouterr().err


def test_json_files_of_lines_are_json_lines(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('{"a": 1}\n{"a": 2}\n')
    assert read_table(path)["a"].tolist() == [1.0, 2.0]


def test_blank_lines_before_the_header_are_skipped_and_counted(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_text("\ufeff\n\n   \n" + TEXT)
    assert column_names(path) == ["a", "b", "y"]
    assert len(read_table(path)) == 40
    path.write_text("\n\n" + TEXT + "1,2\n")
    with pytest.raises(TableError, match="line 44: 2 fields"):
        read_table(path)
    path.write_text("\n\n" + TEXT)
    out = tmp_path / "out.csv"
    assert main(["stream", str(path), "-t", "y", "-o", str(out), "-q"]) == 0
    assert out.read_text().splitlines()[1].startswith("4,")  # the line of the first row
    assert len(out.read_text().splitlines()) == 41
    capsys.readouterr()


def test_lines_that_end_in_cr_alone_have_a_message_for_people(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_bytes(TEXT.replace("\n", "\r").encode())
    assert len(read_table(path)) == 40
    assert main(["stream", str(path), "-t", "y", "-o", str(tmp_path / "out")]) == 1
    assert "its lines end in CR alone" in capsys.readouterr().err


def test_an_infinite_value_is_named_with_its_file_and_row(tmp_path, capsys):
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(TEXT)
    bad.write_text(TEXT + "inf,2,no\n")
    model = tmp_path / "m.skops"
    fit = ["-t", "y", "--model", "ramp", "-q", "-o", str(model)]
    assert main(["fit", str(bad), *fit]) == 1
    assert f"{bad}, row 41: column 'a' holds an infinite value" in capsys.readouterr().err
    assert main(["fit", str(good), *fit]) == 0
    capsys.readouterr()
    answer = ["predict", str(model), str(bad), "--block-rows", "15"]
    assert main(answer) == 1
    assert f"{bad}, row 41: column 'a' holds an infinite value" in capsys.readouterr().err
    bad.write_text(TEXT + "1,2,no\n-1e308,1e308,no\n")
    assert main(answer) == 1
    assert (
        f"{bad}, row 42: column 'a' is too large to compute with: -1e+308"
        in capsys.readouterr().err
    )
