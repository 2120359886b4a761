"""Rows in whatever form users have them: counted, chosen, taken apart by column.

Data frames of pandas, polars, pyarrow, Modin, DuckDB relations and whatever else narwhals knows are
one kind of thing here; lazy ones are collected. Dask collections are not collected: they are read
block by block.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.utils.validation import validate_data as _validate_data


def _narwhals(X: Any, *, series: bool = False) -> Any:
    """`X` as narwhals' frame, or series, or None when it is none to be held in memory."""
    if isinstance(X, (np.ndarray, list, tuple, str, Mapping)) or sparse.issparse(X):
        return None
    if type(X).__module__.partition(".")[0] in ("builtins", "numpy"):
        return None
    if hasattr(X, "__dask_graph__"):
        return None
    import narwhals as nw

    frame = nw.from_native(X, pass_through=True, allow_series=series)
    return frame if isinstance(frame, (nw.DataFrame, nw.LazyFrame, nw.Series)) else None


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame, eager or lazy.

    Examples
    --------
    >>> is_frame([[1.0, 2.0]])
    False
    """
    return _narwhals(X) is not None


def collected(X: Any) -> Any:
    """A lazy frame or a database's relation as a frame in memory; everything else as it is.

    Parameters
    ----------
    X : object
        A polars `LazyFrame` becomes a polars `DataFrame`; a DuckDB relation, and other lazy
        frames that narwhals knows, a pyarrow `Table`.
    """
    frame = _narwhals(X)
    if frame is None:
        return X
    import narwhals as nw

    return frame.collect().to_native() if isinstance(frame, nw.LazyFrame) else X


def n_rows(X: Any) -> int:
    """How many rows an array, sparse matrix, list, or frame in memory has.

    Raises
    ------
    TypeError
        When `X` has no rows.

    Examples
    --------
    >>> n_rows([[1.0, 2.0], [3.0, 4.0]]), n_rows(np.zeros((3, 1)))
    (2, 3)
    """
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and shape and isinstance(shape[0], Integral):
        return int(shape[0])
    if shape == () or hasattr(X, "fit") or not (hasattr(X, "__len__") or hasattr(X, "__array__")):
        raise TypeError(f"Expected sequence or array-like, got {type(X)}")
    return len(X if hasattr(X, "__len__") else np.asarray(X))


def rows_of(X: Any, rows: Any) -> Any:
    """Some rows of what users have one entry a row of, as the kind of thing that it is.

    Parameters
    ----------
    X : array, sparse matrix, list, data frame or series
        A sparse matrix that cannot be indexed becomes a CSR matrix.
    rows : array of int or bool, or slice

    Examples
    --------
    >>> rows_of(["a", "b", "c"], [2, 0]), rows_of(np.arange(3), np.array([True, False, True]))
    (['c', 'a'], array([0, 2]))
    """
    positions = np.arange(n_rows(X))[list(rows) if isinstance(rows, tuple) else rows]
    if sparse.issparse(X):
        return (X if X.format in ("csr", "csc", "lil") else X.tocsr())[positions]
    if hasattr(X, "iloc"):
        # a copy, where iloc may give a view that warns when it is written to
        return X.take(positions, axis=0)
    frame = _narwhals(X, series=True)
    if frame is not None:
        return frame[positions.tolist()].to_native()
    if hasattr(X, "shape"):
        return X[positions]
    return X.take(positions) if hasattr(X, "take") else [X[row] for row in positions]


def validate_data(estimator: Any, X: Any, *args: Any, **settings: Any) -> Any:
    """scikit-learn's `validate_data`, for lazy frames too.

    Parameters
    ----------
    estimator : estimator
    X : array-like, sparse matrix or data frame
    *args, **settings
        As scikit-learn has them.
    """
    if get_config()["array_api_dispatch"] and _is_foreign(X):
        raise TypeError(
            f"{type(estimator).__name__} computes with NumPy here: convert {type(X).__name__} by "
            "numpy.asarray. With array_api_dispatch only decision_function and predict of kernels "
            "made of products take arrays of other libraries."
        )
    return _validate_data(estimator, collected(X), *args, **settings)


def _is_foreign(X: Any) -> bool:
    """Whether `X` is an array of another library than NumPy."""
    if isinstance(X, np.ndarray):
        return False
    return hasattr(X, "__array_namespace__") or type(X).__module__.partition(".")[0] == "torch"


def columns_of(X: Any) -> dict[str, NDArray[Any]] | None:
    """The columns of a data frame as arrays by name; None when `X` is no data frame.

    Numbers, decimals included, become float64 with NaN; days and times datetime64; everything
    else objects, None where a value is missing. Categories are text, whatever they are made of.

    Raises
    ------
    ValueError
        When two columns have one name.

    Examples
    --------
    >>> import pandas as pd
    >>> columns_of(pd.DataFrame({"n": [1, 2], "when": pd.to_datetime(["2024-01-01", None])}))
    {'n': array([1., 2.]), 'when': array(['2024-01-01T00:00:00.000000', 'NaT'],
      dtype='datetime64[us]')}
    """
    # narwhals refuses doubled names in words of its own
    names = [str(name) for name in getattr(X, "columns", ())] if _is_pandas(X) else []
    if len(set(names)) != len(names):
        doubled = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"column names are not unique: {', '.join(map(repr, doubled))}")
    frame = _narwhals(X)
    if frame is None:
        return None
    import narwhals as nw

    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return {str(name): _column(frame[name]) for name in frame.columns}


def like(X: Any, columns: Mapping[str, NDArray[Any]]) -> Any:
    """A frame of these columns, made by the library that `X` belongs to.

    Examples
    --------
    >>> import pandas as pd
    >>> like(pd.DataFrame({"a": [1]}), {"b": np.array([2.0])})["b"].tolist()
    [2.0]
    """
    import narwhals as nw

    backend = nw.get_native_namespace(collected(X))
    return nw.from_dict(dict(columns), backend=backend).to_native()


def with_columns(
    X: Any, columns: Mapping[str, NDArray[Any]], rows: NDArray[Any] | None = None
) -> Any:
    """A frame with columns added behind its own, in the library it came in.

    Parameters
    ----------
    X : data frame
    columns : mapping of str to ndarray
        One whose name the frame has already is called ``label_<name>``.
    rows : ndarray of int, optional
        Positions of the rows to keep, in this order.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
    >>> with_columns(frame, {"a": np.array([5, 6])}, np.array([1]))
       a  label_a
    y  2        6
    """
    import narwhals as nw

    frame = nw.from_native(collected(X), eager_only=True)
    backend = nw.get_native_namespace(frame)
    taken = set(frame.columns)
    named = {f"label_{name}" if name in taken else name: v for name, v in columns.items()}
    if _is_pandas(X):
        # narwhals would match the rows by their index
        result = X.assign(**named)
        return result if rows is None else result.iloc[rows]
    added = [
        nw.new_series(name, np.asarray(values).tolist(), backend=backend)
        for name, values in named.items()
    ]
    frame = frame.with_columns(*added)
    return (frame if rows is None else frame[np.asarray(rows).tolist()]).to_native()


def _is_pandas(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pandas"


def _column(series: Any) -> NDArray[Any]:
    import narwhals as nw

    kind = series.dtype
    if kind.is_numeric():
        values = series.cast(nw.Float64)
        if values.is_null().any():
            return np.array([np.nan if e is None else e for e in _entries(values)], dtype=float)
        return np.asarray(values.to_numpy(), dtype=float)
    if kind.is_temporal() and kind != nw.Time:
        return _times(series)
    entries = _entries(series)
    if kind in (nw.Categorical, nw.Enum):
        entries = [None if entry is None else str(entry) for entry in entries]
    column = np.empty(len(entries), dtype=object)
    column[:] = entries
    return column


def _entries(series: Any) -> list[Any]:
    """The values, None for every way of being missing."""
    gone = series.is_null().to_list()
    return [None if g else e for g, e in zip(gone, series.to_list(), strict=True)]


def _times(series: Any) -> NDArray[Any]:
    import narwhals as nw

    if isinstance(series.dtype, nw.Duration):
        return np.array(_entries(series), dtype="timedelta64[us]")
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return np.array(_entries(series), dtype="datetime64[us]")
