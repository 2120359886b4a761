"""Row groups of files as blocks, and errors that name the file, the row group and the column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from buttress.blocks.base import take_rows
from buttress.blocks.parquet import ParquetBlocks, find_files
from buttress.solvers.blockwise.scan import scan

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.standard_normal((50, 3)), columns=["a", "b", "c"])
FRAME["y"] = np.where(FRAME.a > 0, "yes", "no")
FRAME["w"] = RNG.uniform(1, 2, 50)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for i in range(3):
        part = FRAME.iloc[i * 20 : (i + 1) * 20]
        part.to_parquet(tmp_path / f"part{i}.parquet", row_group_size=7)
    (tmp_path / "_metadata.parquet").write_text("not data")
    (tmp_path / "notes.txt").write_text("not data")
    return tmp_path


def read(source: ParquetBlocks) -> list:
    return list(source.map(lambda block: block))


def test_a_directory_is_its_files_in_order_of_name(folder: Path) -> None:
    source = ParquetBlocks(folder, "y", columns=["c", "a"], weight="w")
    blocks = read(source)
    assert (source.n_rows, source.n_features, source.dtype) == (50, 2, np.float64)
    assert np.diff([*source.starts, source.n_rows]).tolist() == [7, 7, 6, 7, 7, 6, 7, 3]
    np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), FRAME[["c", "a"]])
    np.testing.assert_array_equal(np.concatenate([b.y for b in blocks]), FRAME.y)
    np.testing.assert_array_equal(np.concatenate([b.weight for b in blocks]), FRAME.w)
    np.testing.assert_array_equal(np.concatenate([b.numbers for b in blocks]), np.arange(50))
    assert blocks[4].where.endswith("part1.parquet, row group 1")


def test_all_other_numeric_columns_are_features_when_none_are_named(folder: Path) -> None:
    source = ParquetBlocks(folder / "part0.parquet", "y")
    assert source.feature_names == ["a", "b", "c", "w"]
    assert ParquetBlocks([folder / "part0.parquet"], "y", weight="w").feature_names == [*"abc"]


def test_rows_by_number_touch_only_their_row_groups(folder: Path) -> None:
    source = ParquetBlocks(folder, "y", columns=["a"])
    assert len(list(source.map(lambda b: b, rows=np.array([8, 48])))) == 2
    np.testing.assert_array_equal(take_rows(source, np.array([8, 48])).X[:, 0], FRAME.a[[8, 48]])


def test_arrow_files_and_single_precision(tmp_path: Path) -> None:
    table = pa.table({"a": FRAME.a.astype("float32"), "y": FRAME.y == "yes"})
    with (
        pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        for batch in table.to_batches(max_chunksize=16):
            writer.write_batch(batch)
    source = ParquetBlocks(tmp_path / "x.arrow", "y")
    assert source.dtype == np.float32
    blocks = read(source)
    assert [len(block) for block in blocks] == [16, 16, 16, 2]
    np.testing.assert_array_equal(np.concatenate([b.y for b in blocks]), FRAME.y == "yes")


def test_a_missing_column_names_file_and_column(folder: Path) -> None:
    FRAME.drop(columns="b").iloc[:5].to_parquet(folder / "part9.parquet")
    with pytest.raises(ValueError, match=r"part9.parquet: column 'b' is missing"):
        ParquetBlocks(folder, "y")
    with pytest.raises(ValueError, match=r"part0.parquet: column 'z' is missing; it has a, b"):
        ParquetBlocks(folder, "y", columns=["z"])


def test_a_changed_type_names_both_files(folder: Path) -> None:
    FRAME.iloc[:5].astype({"b": "float32"}).to_parquet(folder / "part9.parquet")
    with pytest.raises(ValueError, match=r"part9.parquet: column 'b' has type float, but double"):
        ParquetBlocks(folder, "y")


def test_text_is_no_feature(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"column 'y' has type .*string.*must be numbers"):
        ParquetBlocks(folder, columns=["a", "y"])


def test_a_missing_value_names_file_row_group_and_column(folder: Path) -> None:
    bad = FRAME.iloc[:20].copy()
    bad.loc[9, "b"] = np.nan
    bad.to_parquet(folder / "part0.parquet", row_group_size=7)
    with pytest.raises(ValueError, match=r"part0.parquet, row group 1: column 'b' holds NaN"):
        scan(ParquetBlocks(folder, "y"))
    bad = FRAME.iloc[:20].copy()
    bad.loc[15, "y"] = None
    bad.to_parquet(folder / "part0.parquet", row_group_size=7)
    with pytest.raises(ValueError, match=r"row group 2: column 'y' \(the target\) holds missing"):
        scan(ParquetBlocks(folder, "y"))


def test_what_is_no_data_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.parquet"):
        find_files(tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="no Parquet or Arrow files"):
        find_files(tmp_path)
    (tmp_path / "x.csv").write_text("a,b")
    with pytest.raises(ValueError, match="expected a file ending in"):
        find_files(tmp_path / "x.csv")
    (tmp_path / "x.parquet").write_text("a,b")
    with pytest.raises(ValueError, match=r"x.parquet: not a readable"):
        ParquetBlocks(tmp_path / "x.parquet")
    FRAME.iloc[:0].to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="no rows"):
        ParquetBlocks(tmp_path / "x.parquet", "y")


def test_a_damaged_file_and_a_doubled_column_are_named(tmp_path):
    import pyarrow
    import pyarrow.parquet as parquet

    path = tmp_path / "part.parquet"
    parquet.write_table(pyarrow.table({"a": list(range(10_000)), "y": [0, 1] * 5000}), path)
    content = bytearray(path.read_bytes())
    content[20:4000] = b"\xff" * 3980
    path.write_bytes(content)
    source = ParquetBlocks(path, "y")
    with pytest.raises(ValueError, match=r"part\.parquet: the file is damaged"):
        source.read(0)
    twice = [pyarrow.array([1, 2]), pyarrow.array([3, 4]), pyarrow.array([0, 1])]
    parquet.write_table(pyarrow.Table.from_arrays(twice, ["a", "a", "y"]), path)
    with pytest.raises(ValueError, match="'a' appears more than once"):
        ParquetBlocks(path, "y")
