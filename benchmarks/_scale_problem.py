"""Rows and problems of `scale.py`: generated, in files, mapped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from buttress.blocks.base import ArrayBlocks, take_rows
from buttress.kernels import make_kernel
from buttress.kernels.approximate import LinearMap, nystroem_map, transform
from buttress.losses import LeakyHockeyStick
from buttress.solvers.blockwise.columns import Folds, column_grid, margin_rows
from buttress.solvers.blockwise.objective import make_objective
from buttress.solvers.blockwise.scan import scan

P, N_ALPHAS, N_FOLDS = 50, 20, 5
ALPHAS = np.logspace(-1, -5, N_ALPHAS)


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Generated rows with a curved boundary and 10 % wrong labels, in single precision."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P), dtype=np.float32)
    score = np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3:8].sum(axis=1)
    y = (score > 0) ^ (rng.random(n) < 0.1)
    return X, y.astype(np.int8)


def write_parquet(folder: Path, n: int, group: int = 50_000) -> Path:
    """Write `n` rows in files of four row groups."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for part in range(-(-n // (4 * group))):
        size = min(4 * group, n - part * 4 * group)
        X, y = rows(size, part)
        table = pa.table({f"f{j}": X[:, j] for j in range(P)} | {"y": y})
        pq.write_table(table, folder / f"part{part:04d}.parquet", row_group_size=group)
    return folder


def problem(source: Any, m: int, folds: Folds, alphas: Any) -> Any:
    """The objective of the whole path, with `m` uniform landmarks."""
    seen = scan(source, folds)
    kernel = make_kernel("rbf", gamma=1 / (P * seen.variance), center=seen.mean)
    drawn = np.sort(np.random.default_rng(0).choice(source.n_rows, m, replace=False))
    features = nystroem_map(kernel, take_rows(source, drawn).X)
    columns = column_grid(1, range(folds.n_folds + 1), alphas)
    return make_objective(source, features, seen, margin_rows(LeakyHockeyStick()), columns, folds)


def mapped_rows(n: int, m: int) -> tuple[Any, ...]:
    """Training and test rows with their Nyström features, in double precision."""
    X, y = rows(n, 0)
    X_test, y_test = rows(20_000, 999)
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    features = problem(ArrayBlocks(X, y), m, Folds(), [1.0]).reader.features
    return X, y, transform(features, X), X_test, y_test, transform(features, X_test)


def direct(phi: np.ndarray, y: np.ndarray, folds: Folds, alphas: Any) -> Any:
    """The problem on rows that are mapped already."""
    kept = ArrayBlocks(phi, y, keep=True)
    columns = column_grid(1, range(folds.n_folds + 1) if folds.n_folds else [0], alphas)
    return make_objective(
        kept,
        LinearMap(phi.shape[1]),
        scan(kept, folds),
        margin_rows(LeakyHockeyStick()),
        columns,
        folds,
    )
