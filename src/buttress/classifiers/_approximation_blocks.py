"""Predictions for rows in files or on a cluster, block by block."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from buttress.blocks.base import Block
from buttress.blocks.sources import as_blocks


def by_blocks(model: Any, X: Any, method: str) -> Any:
    """Run a prediction method on files or on a Dask collection, block by block.

    Parameters
    ----------
    model : fitted classifier
    X : path, source of blocks, Dask array or Dask dataframe
    method : {"decision_function", "predict"}
    """
    names = getattr(model, "feature_names_in_", None)
    call = partial(_predict_rows, model, method, names)
    if hasattr(X, "__dask_graph__"):
        if hasattr(X, "columns"):
            X = X[list(names) if names is not None else list(X.columns)].to_dask_array()
        sample = call(np.zeros((1, model.n_features_in_)))
        X = X.rechunk({1: -1})
        if sample.ndim == 1:
            return X.map_blocks(call, dtype=sample.dtype, drop_axis=1, meta=sample[:0])
        chunks = (X.chunks[0], (sample.shape[1],))
        return X.map_blocks(call, dtype=sample.dtype, chunks=chunks, meta=sample[:0])
    source = as_blocks(X, columns=None if names is None else list(names))
    return np.concatenate(list(source.map(partial(_predict_block, call))))


def _predict_block(call: Any, block: Block) -> Any:
    return call(block.X)


def _predict_rows(model: Any, method: str, names: Any, rows: Any) -> Any:
    if names is not None:
        import pandas as pd

        rows = pd.DataFrame(rows, columns=names)
    return getattr(model, method)(rows)
