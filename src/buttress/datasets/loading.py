"""Named benchmark sets, from a local folder or from their public sources."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from buttress.datasets._download import checksum, download
from buttress.datasets._records import Record
from buttress.datasets.registry import BY_NAME, RECORDS


def list_datasets(group: str | None = None) -> list[str]:
    """Names that `load_dataset` knows.

    Parameters
    ----------
    group : str, optional
        Only the sets of one paper: ``"ida"`` (uncertainty sets), ``"lhs15"`` (leaky hockey
        stick), ``"online5"`` (PA-RAMP), ``"reject2"`` (double ramp), or ``"large"``.

    Examples
    --------
    >>> from buttress.datasets import list_datasets
    >>> list_datasets("reject2")
    ['parkinsons', 'ionosphere']
    """
    groups = sorted({name for record in RECORDS for name in record.groups})
    if group is not None and group not in groups:
        raise ValueError(f"group must be one of {groups} or None, got {group!r}")
    return [record.name for record in RECORDS if group is None or group in record.groups]


def load_dataset(name: str, *, variant: str = "paper", categorical: str = "codes") -> Bunch:
    """Load a benchmark set by name.

    The file is looked for in the folder named by the environment variable
    ``BUTTRESS_DATA``, then in the cache (``BUTTRESS_CACHE``, by default
    ``~/.cache/buttress``); if it is in neither, it is downloaded into the cache once.
    Every file is compared with its checksum when it is read.

    Parameters
    ----------
    name : str
        One of `list_datasets()`.
    variant : {"paper", "raw"}
        ``"paper"`` drops the rows and columns that the paper using the set dropped, so that
        the number of rows and features is the printed one; ``"raw"`` keeps everything, with
        NaN for missing values. Most sets have no difference.
    categorical : {"codes", "onehot"}
        Text columns as one column of integer codes each, in alphabetical order (the feature
        counts of the papers imply this), or as one indicator column per level (a single one
        when there are two levels).

    Returns
    -------
    Bunch
        ``X`` (float64), ``y`` (-1 or +1), ``feature_names``, ``name``, ``splits``: a list of
        ``(train, test)`` row indices, the published realisations where they are available
        (for the raw rows; empty otherwise), and ``split_numbers``, which realisations they
        are (-1: unknown).

    Notes
    -----
    Positive classes follow the papers where they say so. A downloaded file must have the
    registered number of rows, features and positives; canonical splits come with it for the
    IDA sets.

    Examples
    --------
    >>> from buttress.datasets import load_dataset
    >>> sonar = load_dataset("sonar")  # doctest: +SKIP
    >>> sonar.X.shape  # doctest: +SKIP
    (208, 60)
    """
    record = find_record(name)
    if variant not in ("paper", "raw"):
        raise ValueError(f'variant must be "paper" or "raw", got {variant!r}')
    if categorical not in ("codes", "onehot"):
        raise ValueError(f'categorical must be "codes" or "onehot", got {categorical!r}')
    path = find_file(record) or _downloaded(record)
    names, columns, labels = _read(path, record)
    y = np.where(np.isin(labels, record.positive_labels), 1, -1)
    kept = np.arange(len(names))
    if variant == "paper":
        kept = np.setdiff1d(kept, record.variant.drop_columns)
    X, names = _encode(*columns, names, kept, categorical)
    if variant == "paper":
        X, names, y = _apply(record, X, names, y)
    splits, numbers = _splits(path, record)
    return Bunch(X=X, y=y, feature_names=names, name=name, splits=splits, split_numbers=numbers)


def fetch_dataset(name: str, *, force: bool = False) -> Path:
    """Make sure the file of a set is here, and say where.

    Parameters
    ----------
    name : str
    force : bool
        Download again even when there is a file.
    """
    record = find_record(name)
    stored = None if force else find_file(record)
    return stored or _downloaded(record)


def _downloaded(record: Record) -> Path:
    try:
        return download(record, cache_folder())
    except OSError as error:
        raise OSError(
            f"data set {record.name!r} is not in the folder that BUTTRESS_DATA names nor in "
            f"{cache_folder()}, and cannot be downloaded: {error}"
        ) from error


def find_record(name: str) -> Record:
    """The registry's entry, or a ValueError that lists the names."""
    if name not in BY_NAME:
        raise ValueError(f"name must be one of {sorted(BY_NAME)}, got {name!r}")
    return BY_NAME[name]


def cache_folder() -> Path:
    """Where downloads are kept."""
    folder = os.environ.get("BUTTRESS_CACHE")
    return Path(folder) if folder else Path.home() / ".cache" / "buttress"


def find_file(record: Record) -> Path | None:
    """The stored file of a set, checked, or None."""
    folder = os.environ.get("BUTTRESS_DATA")
    if folder:
        for suffix in (".csv", ".csv.gz"):
            path = Path(folder) / (record.name + suffix)
            if path.exists():
                _check(path, record.sha256)
                return path
    path = cache_folder() / f"{record.name}.csv"
    expected = path.with_suffix(".csv.sha256")
    # The checksum is written last: without it the download was interrupted.
    if not (path.exists() and expected.exists()):
        return None
    _check(path, expected.read_text().strip())
    return path


def _check(path: Path, expected: str) -> None:
    actual = checksum(path)
    if actual != expected:
        raise ValueError(f"{path} is damaged or another version: sha256 {actual}, not {expected}")


def _read(
    path: Path, record: Record
) -> tuple[list[str], tuple[NDArray[np.float64], dict[int, NDArray[Any]]], NDArray[Any]]:
    """Names, numbers (NaN where missing) with the text columns apart, and raw labels."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        names = next(csv.reader(file))[:-1]
        if not record.categorical and not record.missing:
            labels: list[str] = []

            def numbers() -> Iterator[str]:
                for line in file:
                    cells, _, label = line.rpartition(",")
                    labels.append(label.strip())
                    yield cells

            # NumPy's own parser is several times faster than splitting in Python.
            X = np.loadtxt(numbers(), delimiter=",", ndmin=2)
            return names, (X, {}), np.array(labels)
        table = np.array(list(csv.reader(file)), dtype=object)
    X = np.full((len(table), len(names)), np.nan)
    text: dict[int, NDArray[Any]] = {}
    for j in range(len(names)):
        column = table[:, j].astype(str)
        if j in record.categorical:
            text[j] = column
        else:
            filled = column != ""
            X[filled, j] = column[filled].astype(float)
    return names, (X, text), table[:, -1].astype(str)


def _encode(
    X: NDArray[np.float64],
    text: dict[int, NDArray[Any]],
    names: list[str],
    kept: NDArray[Any],
    categorical: str,
) -> tuple[NDArray[np.float64], list[str]]:
    columns: list[NDArray[np.float64]] = []
    new_names: list[str] = []
    for j in kept:
        levels, codes = _codes(text[j]) if j in text else ({}, X[:, j])
        if j not in text or categorical == "codes":
            columns.append(codes)
            new_names.append(names[j])
            continue
        shown = list(levels.items())[1:] if len(levels) == 2 else levels.items()
        for level, code in shown:
            columns.append(np.where(np.isnan(codes), np.nan, codes == code))
            new_names.append(f"{names[j]}={level}")
    return np.column_stack(columns), new_names


def _codes(column: NDArray[Any]) -> tuple[dict[str, float], NDArray[np.float64]]:
    """The code of every level, in order, and the column in codes; numerals are their own code."""
    present = set(column[column != ""])
    try:
        levels = {level: float(level) for level in sorted(present, key=float)}
    except ValueError:
        levels = {level: float(code) for code, level in enumerate(sorted(present))}
    return levels, np.array([levels.get(value, np.nan) for value in column])


def _apply(
    record: Record, X: NDArray[np.float64], names: list[str], y: NDArray[Any]
) -> tuple[NDArray[np.float64], list[str], NDArray[Any]]:
    rule = record.variant
    if rule.impute:
        X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    if rule.drop_incomplete:
        complete = ~np.isnan(X).any(axis=1)
        X, y = X[complete], y[complete]
    if rule.drop_constant:
        varies = np.ptp(X, axis=0) > 0
        X, names = X[:, varies], [n for n, keep in zip(names, varies, strict=True) if keep]
    return X, names, y


def _splits(
    path: Path, record: Record
) -> tuple[list[tuple[NDArray[Any], NDArray[Any]]], list[int]]:
    stored = path.parent / f"{record.name}.splits.npz"
    if not stored.exists():
        return [], []
    with np.load(stored) as arrays:
        pairs = list(zip(arrays["train"], arrays["test"], strict=True))
        return pairs, [int(number) for number in arrays["rep"]]
