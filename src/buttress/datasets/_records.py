"""How a named data set is described: shape, checksum, positive class, where to get it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """Delimited text files, one record per line, possibly inside a zip archive."""

    urls: tuple[str, ...]
    label: int = -1
    separator: str | None = ","
    header: int | tuple[int, ...] = 0
    drop: tuple[int, ...] = ()
    member: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenML:
    """A data set of openml.org, by its number."""

    data_id: int
    drop: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ida:
    """One of the thirteen IDA benchmarks, with all its canonical splits (Diethe, 2015)."""

    key: str


@dataclass(frozen=True)
class Libsvm:
    """Files in the sparse text format of LIBSVM."""

    urls: tuple[str, ...]


@dataclass(frozen=True)
class Bundled:
    """The Wisconsin set that comes with scikit-learn."""


Source = Text | OpenML | Ida | Libsvm | Bundled


@dataclass(frozen=True)
class Variant:
    """What a paper did to the raw rows before it counted them."""

    drop_columns: tuple[int, ...] = ()
    drop_incomplete: bool = False
    drop_constant: bool = False
    impute: bool = False


@dataclass(frozen=True)
class Record:
    """One data set.

    `rows`, `features`, `positives` and `sha256` describe the raw file in the folder that
    ``BUTTRESS_DATA`` names; `split` is the size of the training part and the number of
    published realisations, where there are such.
    """

    name: str
    sha256: str
    rows: int
    features: int
    positives: int
    positive_labels: tuple[str, ...]
    source: Source
    categorical: tuple[int, ...] = ()
    missing: int = 0
    variant: Variant = Variant()
    groups: tuple[str, ...] = ()
    split: tuple[int, int] | None = None
