"""Feature maps and blocks at scale: memory, time per pass, growth, Dask, and peers.

Run ``python benchmarks/scale.py`` (all parts), ``--quick`` (smaller data, minutes less), or
``--part path`` for one of: pass, path, growth, dask, peers, grid, accuracy. ``--docs`` writes the
tables where the documentation includes them. Rows from files, in 3 GB and linear time (2 GB of
files for ten million):

python benchmarks/scale.py --part path --rows 1000000 10000000
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _common import report, seconds
from _scale_peers import grid, peers
from _scale_problem import ALPHAS, N_ALPHAS, N_FOLDS, P, problem, write_parquet
from buttress._threads import one_blas_thread
from buttress.blocks.parquet import ParquetBlocks
from buttress.solvers.blockwise.columns import Folds

COMPONENTS = (50, 100, 200, 500, 1000)
PARTS = ("pass", "path", "growth", "dask", "peers", "grid", "accuracy")


def pass_seconds(objective: Any, repeats: int) -> float:
    """One pass for all columns, with BLAS threads as the solver sets them."""
    theta = np.zeros((objective.n_parameters, len(objective.columns)))
    with one_blas_thread():
        return seconds(lambda: objective(theta, np.arange(theta.shape[1])), repeats=repeats)[0]


def gemm_seconds(n: int, m: int, columns: int) -> float:
    """Time of the matrix products of one pass, measured on tiles with the same shapes."""
    tile = 1_000_000 // m
    X = np.ones((tile, P + 2), dtype=np.float32)
    Z = np.ones((P + 2, m), dtype=np.float32)
    K = np.ones((tile, m), dtype=np.float32)
    W = np.ones((m, columns), dtype=np.float32)
    D = np.ones((tile, columns), dtype=np.float32)

    def products() -> None:
        for _ in range(20):
            X @ Z
            K @ W
            K.T @ D

    return seconds(products, repeats=3)[0] / 20 * n / tile


def _pass_child(folder: str, m: int, queue: Any) -> None:
    objective = problem(ParquetBlocks(folder, "y"), m, Folds(N_FOLDS, seed=0), ALPHAS)
    took = pass_seconds(objective, repeats=3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gemm = gemm_seconds(objective.source.n_rows, m, len(objective.columns))
    queue.put({"pass s": took, "GEMM s": gemm, "pass/GEMM": took / gemm, "peak MB": peak})


def one_pass(n: int, m: int, folder: Path) -> dict[str, Any]:
    """One pass for 20 penalties x 5 folds and the refit, from Parquet."""
    place = write_parquet(folder / f"pass{n}", n)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_pass_child, args=(str(place), m, queue))
    child.start()
    found = queue.get()
    child.join()
    return {"rows": n, "components": m, "columns": N_ALPHAS * (N_FOLDS + 1), **found}


def _path_child(folder: str, m: int, queue: Any) -> None:
    from buttress import LeakyHockeyStickClassifierCV

    model = LeakyHockeyStickClassifierCV(
        alphas=ALPHAS,
        cv=N_FOLDS,
        approximation="nystroem",
        n_components=m,
        memory_limit="3 GB",
        random_state=0,
    )
    took, _ = seconds(lambda: model.fit(folder, "y"))
    queue.put(
        {
            "fit s": took,
            "passes": int(model.path_.n_iter[0]),
            "converged": bool(model.path_.converged.all()),
            "CV accuracy": float(model.cv_mean_.max()),
            "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )


def path(n: int, m: int, folder: Path) -> dict[str, Any]:
    """20 penalties x 5 folds, scores and refit from Parquet, in a process of its own."""
    place = write_parquet(folder / f"rows{n}", n)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_path_child, args=(str(place), m, queue))
    child.start()
    found = queue.get()
    child.join()
    shutil.rmtree(place)
    return {"rows": n, "components": m, "columns": N_ALPHAS * (N_FOLDS + 1), **found}


def paths(sizes: list[int], m: int, folder: Path) -> list[dict[str, Any]]:
    """`path` for several numbers of rows, and the exponent of time."""
    table = [path(n, m, folder) for n in sizes]
    if len(sizes) > 1:
        slope = np.polyfit(np.log(sizes), np.log([row["fit s"] for row in table]), 1)[0]
        table[-1]["exponent"] = float(slope)
    return table


def growth(sizes: tuple[int, ...], m: int, folder: Path) -> list[dict[str, Any]]:
    """Time of a pass from Parquet for several numbers of rows, and the exponent."""
    grown: list[dict[str, Any]] = []
    for n in sizes:
        place = write_parquet(folder / f"grow{n}", n, group=25_000)
        objective = problem(ParquetBlocks(place, "y"), m, Folds(N_FOLDS, seed=0), ALPHAS)
        took = pass_seconds(objective, repeats=6)
        grown.append({"rows": n, "components": m, "pass s": took})
    slope = np.polyfit(np.log(sizes), np.log([g["pass s"] for g in grown]), 1)[0]
    grown[-1]["exponent"] = float(slope)
    return grown


def dask_speed(n: int, m: int, folder: Path) -> list[dict[str, Any]]:
    """One pass for all columns on one and on two workers of one thread each."""
    from buttress.blocks.dask import DaskBlocks, connect

    place = write_parquet(folder / f"dask{n}", n, group=n // 32)
    table = []
    for workers in (1, 2):
        client = connect(n_workers=workers, threads_per_worker=1, processes=True)
        source = DaskBlocks(ParquetBlocks(place, "y"), client=client)
        objective = problem(source, m, Folds(N_FOLDS, seed=0), ALPHAS)
        took = pass_seconds(objective, repeats=4)
        table.append({"rows": n, "components": m, "workers": workers, "pass s": took})
        client.cluster.close()
        client.close()
    table[1]["speed-up"] = table[0]["pass s"] / table[1]["pass s"]
    return table


def accuracy(components: tuple[int, ...], limit: int) -> list[dict[str, Any]]:
    """Test accuracy against the number of landmarks, beside the exact kernel."""
    from buttress import LeakyHockeyStickClassifier
    from buttress.datasets import load_dataset

    table = []
    for name in ("adult", "letter", "a9a", "w8a", "magic", "covtype_sample"):
        data = load_dataset(name)
        X, y = data.X, np.asarray(data.y)
        drawn = np.random.default_rng(0).permutation(X.shape[0])[: limit + 8000]
        X, y = X[drawn], y[drawn]
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        mean, std = X[:limit].mean(axis=0), X[:limit].std(axis=0)
        X = (X - mean) / np.where(std > 0, std, 1.0)
        train, test = slice(0, limit), slice(limit, None)
        row: dict[str, Any] = {"data": name, "train": limit, "test": len(y) - limit}
        # What a model that always gives the commonest label reaches: below it nothing is learned.
        row["majority"] = float(np.unique(y[test], return_counts=True)[1].max() / len(y[test]))
        options = {"alpha": 1e-4, "tol": 1e-6}
        exact = LeakyHockeyStickClassifier(**options).fit(X[train], y[train])
        row["exact"] = exact.score(X[test], y[test])
        for m in components:
            model = LeakyHockeyStickClassifier(
                **options, approximation="nystroem", n_components=m, random_state=0
            )
            row[f"m={m}"] = model.fit(X[train], y[train]).score(X[test], y[test])
        row["points lost at the last"] = 100 * (row["exact"] - row[f"m={components[-1]}"])
        table.append(row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--docs", action="store_true", help="write docs/benchmarks/scale-*.inc")
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--rows", type=int, nargs="+", help="rows of the part path, in files")
    chosen = parser.parse_args()
    quick, docs = chosen.quick, chosen.docs
    big = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        work: dict[str, Callable[[], list[dict[str, Any]]]] = {
            "pass": lambda: [one_pass(big, 500, folder)],
            "path": lambda: paths(chosen.rows or [big], 500, folder),
            "growth": lambda: growth((big // 10, big // 3, big), 500, folder),
            "dask": lambda: dask_speed(big // 2, 300, folder),
            "peers": lambda: [
                line for n in ((5_000,) if quick else (20_000, 100_000)) for line in peers(n, 300)
            ],
            "grid": lambda: grid(5_000 if quick else 20_000, 300),
            "accuracy": lambda: accuracy((50, 200, 1000) if quick else COMPONENTS, 2000),
        }
        for part in chosen.part or PARTS:
            report(f"scale-{part}", work[part](), docs=docs, alphas=N_ALPHAS, folds=N_FOLDS)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main()
