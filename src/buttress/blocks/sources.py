"""Which source of blocks a user's data are, and sources made from other sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buttress import blocks
from buttress._arrays import Array, IntArray
from buttress.blocks.base import ArrayBlocks, Block, BlockSource, Result
from buttress.kernels.approximate import FeatureMap, LinearMap


def is_blocks(X: Any) -> bool:
    """Whether `X` is a source of blocks, or something that a source opens.

    Examples
    --------
    >>> is_blocks("part.parquet"), is_blocks(np.zeros((2, 2)))
    (True, False)
    """
    return isinstance(X, BlockSource) or _opener(X) is not None


def as_blocks(
    X: Any, y: Any = None, weight: Any = None, *, columns: Sequence[str] | None = None
) -> BlockSource:
    """Make a source of blocks.

    Parameters
    ----------
    X : source, path, or Dask collection
        A path stands for a Parquet or Arrow file or a directory of them, unless a source for
        its ending is registered.
    y : str, array or Dask collection, optional
        The column of labels by name (files, dataframes), or the labels (Dask arrays). A source
        has its labels already.
    weight : as `y`
        Row weights.
    columns : sequence of str, optional
        Features by name (files, dataframes).
    """
    opener = _opener(X)
    if opener is not None:
        opened = opener.open(X, y, weight, columns)
        if columns is not None and opened.n_features != len(columns):
            raise ValueError(
                f"{opener.__name__} has {opened.n_features} features where {len(columns)} were "
                f"named: its `open` must select the columns {', '.join(map(str, columns))}."
            )
        return opened
    if y is not None or weight is not None:
        raise ValueError("A source of blocks has its own labels and weights: pass y=None.")
    source: BlockSource = X
    return source


def _opener(X: Any) -> type[BlockSource] | None:
    """The source for a user's data: the youngest that opens them."""
    _import_room()
    openers = [source for source in BlockSource.registered if source.opens(X)]
    return min(reversed(openers), key=lambda source: source.asked_last, default=None)


@cache
def _import_room() -> None:
    """Let the sources that are files of this package register themselves."""
    for module in iter_modules(blocks.__path__, f"{blocks.__name__}."):
        import_module(module.name)


@dataclass(frozen=True, eq=False)
class ClassFactors:
    """Multiplies a block's weights by a factor of the row's class."""

    classes: NDArray[Any]
    factors: Array

    def __call__(self, block: Block) -> Block:
        factor = self.factors[block.codes(self.classes)]
        return replace(block, weight=factor if block.weight is None else block.weight * factor)


@dataclass(frozen=True, eq=False)
class Standardize:
    """Brings the features to mean 0 and variance 1."""

    mean: Array
    scale: Array

    def __call__(self, block: Block) -> Block:
        X = (block.X - self.mean) / self.scale
        return replace(block, X=X.astype(block.X.dtype, copy=False))


@dataclass(frozen=True, eq=False)
class _Composed:
    change: Callable[[Block], Block]
    task: Callable[[Block], Any]

    def __call__(self, block: Block) -> Any:
        return self.task(self.change(block))


class Changed(BlockSource):
    """A source whose blocks are changed on the way.

    Parameters
    ----------
    source : BlockSource
    change : callable
        From a block to a block of as many rows and features, such as `ClassFactors`.
    """

    def __init__(self, source: BlockSource, change: Callable[[Block], Block]) -> None:
        self.source, self.change = source, change
        self.feature_names, self.dtype = source.feature_names, source.dtype
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.is_local, self.from_files = source.is_local, source.from_files

    def map(
        self, task: Callable[[Block], Result], rows: IntArray | None = None
    ) -> Iterator[Result]:
        return self.source.map(_Composed(self.change, task), rows)

    def sum(self, task: Callable[[Block], tuple[Any, ...]]) -> tuple[Any, ...]:
        return self.source.sum(_Composed(self.change, task))


def mapped_once(
    source: BlockSource, features: FeatureMap, classes: NDArray[Any], limit: float
) -> tuple[BlockSource, FeatureMap]:
    """Keep the raw features of all rows in memory when they take at most `limit` bytes.

    Rows from files that fit where their features do not are kept as they are, so that files
    are read once. Returns the source to go through and the map to apply to its rows: the given
    ones when memory does not suffice or the rows live elsewhere.
    """
    each = float(source.n_rows) * source.dtype.itemsize
    if not source.is_local:
        return source, features
    if each * features.n_raw <= limit and not isinstance(features, LinearMap):
        return _in_memory(source, features, classes), _Remapped(features)
    if each * source.n_features <= limit and source.from_files:
        return _in_memory(source, LinearMap(source.n_features), classes), features
    return source, features


def _in_memory(source: BlockSource, features: FeatureMap, classes: NDArray[Any]) -> ArrayBlocks:
    raw = np.empty((source.n_rows, features.n_raw), dtype=source.dtype)
    codes = np.empty(source.n_rows, dtype=np.intp)
    weight = np.ones(source.n_rows)
    for _ in source.map(partial(_fill, features, classes, raw, codes, weight)):
        pass
    weights = None if (weight == 1).all() else weight
    return ArrayBlocks(raw, classes[codes], weights, keep=True)


def _fill(
    features: FeatureMap,
    classes: NDArray[Any],
    raw: Array,
    codes: IntArray,
    weight: Array,
    block: Block,
) -> None:
    rows = slice(block.start, block.start + len(block))
    raw[rows] = features.raw(block.X)
    codes[rows] = block.codes(classes)
    if block.weight is not None:
        weight[rows] = block.weight


@dataclass(frozen=True, eq=False)
class _Remapped:
    """The rest of a map whose first factor has been applied already."""

    features: FeatureMap
    flops_per_row = 0.0

    @property
    def basis(self) -> Array | None:
        return self.features.basis

    @property
    def n_raw(self) -> int:
        return self.features.n_raw

    def raw(self, X: Any, out: Array | None = None, /) -> Array:
        return np.asarray(X)
