"""LIBSVM files: one row a line, ``label index:value index:value``, zeros left out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from buttress._files import replacing
from buttress.tables._columns import Kinds
from buttress.tables._text import lines_without_nul, opened, suffix_of
from buttress.tables.grammar import to_label, to_number
from buttress.tables.table import Table, TableError, objects

SUFFIXES = (".svm", ".libsvm", ".svmlight")
# The column of labels in a table made of such a file.
LABEL = "label"
# Columns of a table in memory; wider files stay sparse, in the library.
_MOST_COLUMNS = 20_000

# Whole numbers as others write them there: +1, 1, 1.0. Digits with zeros before them are a code.
_WHOLE = re.compile(r"\+?(-?(?:0|[1-9][0-9]*))(?:\.0*)?")

_Row = tuple[int, str, list[int], list[float]]


def is_libsvm(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of LIBSVM's, by its suffix.

    Examples
    --------
    >>> is_libsvm("a9a.svm.gz"), is_libsvm("a9a.csv")
    (True, False)
    """
    return suffix_of(Path(path)) in SUFFIXES


def read_libsvm(
    path: str | os.PathLike[str], *, n_features: int | None = None
) -> tuple[sparse.csr_array, NDArray[Any]]:
    """Read a LIBSVM file, plain or gzipped.

    Parameters
    ----------
    path : path-like
    n_features : int, optional
        Number of columns; the largest index of the file when not given.

    Returns
    -------
    X : csr_array of shape (n, n_features)
        Index 1 is the first column.
    y : ndarray of shape (n,)
        Labels: int where all are whole numbers (``+1`` and ``1.0`` are 1), text as written
        otherwise (``007`` is not 7).

    Raises
    ------
    TableError
        Naming the line that is no row.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.svm"
    >>> write_libsvm(file, [[0.5, 0.0], [0.0, -2.0]], [1, -1])
    >>> file.read_text()
    '1 1:0.5\\n-1 2:-2\\n'
    >>> X, y = read_libsvm(file)
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0], [0.0, -2.0]], [1, -1])
    """
    source = Path(path)
    if not source.is_file():
        raise TableError(f"{path}: no such file")
    labels: list[Any] = []
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    with opened(source) as file:
        for line, label, indices, entries in _rows(source, file):
            if n_features is not None and indices and indices[-1] > n_features:
                raise TableError(
                    f"{path}, line {line}: index {indices[-1]} is beyond n_features={n_features}"
                )
            labels.append(_label(label))
            columns += indices
            values += entries
            ends.append(len(columns))
    if not labels:
        raise TableError(f"{path}: the file has no rows")
    width = n_features if n_features is not None else max(columns, default=1)
    X = sparse.csr_array(
        (np.array(values), np.array(columns, dtype=np.int64) - 1, np.array(ends)),
        shape=(len(labels), width),
    )
    whole = all(isinstance(label, int) for label in labels)
    return X, np.array(labels if whole else [str(label) for label in labels])


def write_libsvm(path: str | os.PathLike[str], X: Any, y: Any) -> None:
    """Write rows and labels as a LIBSVM file; numbers come back exactly.

    Parameters
    ----------
    path : path-like
    X : array-like or sparse matrix of shape (n, p)
    y : array-like of shape (n,)
        Numbers, or text without blanks.
    """
    rows = sparse.csr_array(X)
    rows.sort_indices()
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"y has shape {labels.shape}, X has {rows.shape[0]} rows.")
    if not np.isfinite(rows.data).all():
        raise ValueError("X holds NaN or infinity, which the format has no word for.")
    with replacing(path, "w") as file:
        for i, label in enumerate(labels.tolist()):
            word = _number(label) if isinstance(label, float) else str(label)
            if not word or word.split() != [word] or ":" in word or "#" in word:
                raise ValueError(f"the label {label!r} cannot stand in a LIBSVM file.")
            inside = slice(rows.indptr[i], rows.indptr[i + 1])
            entries = zip(rows.indices[inside].tolist(), rows.data[inside].tolist(), strict=True)
            cells = "".join(f" {j + 1}:{_number(float(v))}" for j, v in entries if v)
            file.write(f"{word}{cells}\n")


def libsvm_names(path: Path) -> list[str]:
    """The columns of the table that such a file is: ``label``, ``x1``, ``x2``, ..."""
    width = 0
    with opened(path) as file:
        for _, _, indices, _ in _rows(path, file):
            width = max(width, indices[-1] if indices else 0)
    return [LABEL, *_columns(path, width)]


def iter_libsvm(path: Path, block_rows: int, kinds: Kinds) -> Iterator[Table]:
    """Blocks of rows of a LIBSVM file as a table with a column for every index.

    Columns that `kinds` expects and the file does not reach are zero, as everything is there that
    is not written.
    """
    written = libsvm_names(path)[1:]
    unwritten = [name for name in sorted(kinds.numeric) if _index_of(name) and name not in written]
    names = [*written, *unwritten]
    positions = {name: index - 1 for name in names if (index := _index_of(name))}
    width = 1 + max(positions.values(), default=0)
    with opened(path) as file:
        rows = _rows(path, file)
        n_read = 0
        while block := list(islice(rows, block_rows)):
            n_read += len(block)
            yield _table(block, positions, width, kinds)
        if n_read == 0:
            raise TableError(f"{path}: the file has no rows")


def _table(block: Sequence[_Row], positions: dict[str, int], width: int, kinds: Kinds) -> Table:
    matrix = np.zeros((len(block), width))
    for i, (_, _, indices, entries) in enumerate(block):
        matrix[i, np.array(indices, dtype=int) - 1] = entries
    labels = [_label(label) for _, label, _, _ in block]
    columns: dict[str, NDArray[Any]] = {LABEL: objects(labels)}
    if kinds.target != LABEL:
        columns[LABEL] = objects([str(label) for label in labels])
    columns |= {name: matrix[:, j].copy() for name, j in positions.items()}
    written = {
        name: objects([str(label) for label in labels] if name == LABEL else columns[name].tolist())
        for name in kinds.keep
    }
    return Table({n: v for n, v in columns.items() if n not in kinds.skip}, written)


def _rows(path: Path, file: Any) -> Iterator[_Row]:
    """Line, label, indices and values of every row."""
    for number, line in enumerate(lines_without_nul(path, file), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            pairs = [word.split(":") for word in words[1:] if not word.startswith("qid:")]
            indices = [_index(index) for index, _ in pairs]
            entries = [to_number(value) for _, value in pairs]
        except ValueError:
            raise TableError(f"{path}, line {number}: expected 'label index:value ...'") from None
        if any(later <= before for before, later in zip([0, *indices], indices, strict=False)):
            raise TableError(
                f"{path}, line {number}: indices begin at 1 and must increase, got {indices[:5]}"
            )
        if not np.isfinite(entries).all():
            raise TableError(f"{path}, line {number}: a value is not a finite number")
        yield number, words[0], indices, entries


def _columns(path: Path, width: int) -> list[str]:
    if width > _MOST_COLUMNS:
        raise TableError(
            f"{path}: {width} columns are too many for a table; buttress.tables.read_libsvm keeps "
            "them sparse"
        )
    return [f"x{j}" for j in range(1, width + 1)]


def _index_of(name: str) -> int:
    """The index of a column ``x12``; 0 for any other name."""
    return _index(name[1:]) if re.fullmatch("x[0-9]+", name) else 0


def is_libsvm_column(name: str) -> bool:
    """Whether a column can stand in such a file: ``x1``, ``x2``, ..."""
    return _index_of(name) > 0


def _index(word: str) -> int:
    """Python's own ``1_0`` and the digits of other scripts are no indices."""
    if not (word.isascii() and word.isdigit()):
        raise ValueError(f"{word!r} is no index")
    return int(word)


def _label(word: str) -> int | str:
    whole = _WHOLE.fullmatch(word)
    return to_label(whole[1] if whole else word)


def _number(value: float) -> str:
    """The shortest digits that read back as this number."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
