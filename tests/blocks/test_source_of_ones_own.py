"""A source of blocks is one file that registers itself: Zarr groups, added here."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import buttress
from buttress.blocks.base import ArrayBlocks, BlockSource, take_rows
from buttress.blocks.sources import as_blocks, is_blocks

zarr = pytest.importorskip("zarr")

SOURCE = '''
from pathlib import Path

import numpy as np
import zarr

from buttress.blocks.base import Block, LocalBlocks, working_dtype


class ZarrBlocks(LocalBlocks):
    """A group whose array `X` has the rows; a chunk is a block."""

    from_files = True

    def __init__(self, path, target=None, columns=None):
        self.group = zarr.open_group(str(path), mode="r")
        self.target = target
        names = list(self.group["X"].attrs["names"])
        self.feature_names = names if columns is None else list(columns)
        self.chosen = [names.index(name) for name in self.feature_names]

    @classmethod
    def opens(cls, X):
        return isinstance(X, (str, Path)) and Path(X).suffix == ".zarr"

    @classmethod
    def open(cls, X, y, weight, columns):
        return cls(X, y, columns)

    @property
    def n_rows(self):
        return self.group["X"].shape[0]

    @property
    def n_features(self):
        return len(self.chosen)

    @property
    def dtype(self):
        return working_dtype(self.group["X"].dtype)

    @property
    def starts(self):
        return np.arange(0, self.n_rows, self.group["X"].chunks[0])

    def read(self, index):
        start = int(self.starts[index])
        rows = slice(start, start + self.group["X"].chunks[0])
        y = None if self.target is None else self.group[self.target][rows]
        X = np.asarray(self.group["X"][rows][:, self.chosen], dtype=self.dtype)
        return Block(X, y, None, start, f"chunk {index}", self.feature_names)
'''

RNG = np.random.default_rng(0)
X = RNG.normal(size=(210, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=210) > 0).astype(int)


def written(place: Path, rows: Any, names: list[str]) -> Path:
    """A Zarr group of seven chunks."""
    made = zarr.open_group(str(place), mode="w")
    for name, values in (("X", rows), ("label", Y)):
        chunks = (30, *values.shape[1:])
        made.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks)[:] = values
    made["X"].attrs["names"] = names
    return place


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Path]:
    """A Zarr group, and the source's module imported."""
    place = written(tmp_path / "rows.zarr", X, ["a", "b", "c"])
    file = tmp_path / "zarr_blocks.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("zarr_blocks", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["zarr_blocks"] = module
    assert not is_blocks(None)  # the library's own sources are registered now
    before = list(BlockSource.registered)
    spec.loader.exec_module(module)
    yield place
    BlockSource.registered[:] = before
    del sys.modules["zarr_blocks"]


def test_a_path_finds_the_source_that_opens_it(group: Path) -> None:
    assert is_blocks(group)
    source = as_blocks(group, "label")
    assert type(source).__name__ == "ZarrBlocks"
    assert [len(block) for block in source.map(lambda block: block)] == [30] * 7
    picked = take_rows(source, np.array([0, 29, 30, 209]))
    np.testing.assert_array_equal(picked.X, X[[0, 29, 30, 209]])
    np.testing.assert_array_equal(picked.y, Y[[0, 29, 30, 209]])
    # other paths are those of Parquet and Arrow files
    with pytest.raises(FileNotFoundError, match="no such file"):
        as_blocks(group.with_suffix(".parquet"), "label")


@pytest.mark.parametrize("name", ["LeakyHockeyStickClassifierCV", "RampClassifier"])
def test_estimators_fit_and_answer_from_it(group: Path, name: str) -> None:
    options = {"alphas": 5, "cv": 3} if name.endswith("CV") else {}
    model = getattr(buttress, name)(approximation="nystroem", n_components=20, **options)
    model.fit(group, "label")
    arrays = getattr(buttress, name)(approximation="nystroem", n_components=20, **options)
    arrays.fit(ArrayBlocks(X, Y, block_size=50), None)
    np.testing.assert_allclose(model.decision_function(group), arrays.decision_function(X))
    np.testing.assert_array_equal(model.predict(group), arrays.predict(X))


def test_a_model_finds_its_features_by_name(group: Path) -> None:
    model = buttress.LeakyHockeyStickClassifier(approximation="fourier", n_components=20)
    model.fit(group, "label")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    wider = np.column_stack([X[:, 2], Y, X[:, 0], X[:, 1]])
    again = written(group.with_name("again.zarr"), wider, ["c", "label", "a", "b"])
    np.testing.assert_allclose(model.decision_function(again), model.decision_function(group))


def test_a_source_that_ignores_the_names_is_refused(group: Path) -> None:
    class All(sys.modules["zarr_blocks"].ZarrBlocks):  # type: ignore[misc, name-defined]
        @classmethod
        def opens(cls, X: object) -> bool:
            return super().opens(X)

        @classmethod
        def open(cls, X: object, y: object, weight: object, columns: object) -> BlockSource:
            return cls(X, y)

    with pytest.raises(ValueError, match=r"All has 3 features where 2 were named: .* c, a\."):
        as_blocks(group, "label", columns=["c", "a"])


def test_workers_of_a_cluster_read_it(group: Path) -> None:
    pytest.importorskip("dask")
    from buttress.blocks.dask import DaskBlocks

    source = as_blocks(group, "label")
    far = DaskBlocks(source)
    assert not far.is_local
    np.testing.assert_array_equal(take_rows(far, np.arange(100, 120)).X, X[100:120])


def test_a_subclass_takes_over_only_when_it_says_so(group: Path) -> None:
    class Quiet(sys.modules["zarr_blocks"].ZarrBlocks):  # type: ignore[misc, name-defined]
        pass

    assert type(as_blocks(group, "label")).__name__ == "ZarrBlocks"

    class Loud(Quiet):
        @classmethod
        def opens(cls, X: object) -> bool:
            return super().opens(X)

    assert type(as_blocks(group, "label")) is Loud
