"""Feature maps and blocks at scale: memory, time per pass, growth, Dask, and peers.

Run ``python benchmarks/scale.py`` (all parts), ``--quick`` (smaller data, minutes less), or
``--part path`` for one of: pass, path, growth, dask, peers, accuracy.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from _common import report, seconds
from buttress.kernels import make_kernel
from buttress.kernels.approximate import nystroem_map, transform
from buttress.losses import LeakyHockeyStick
from buttress.solvers._blockwise.columns import Folds, column_grid, margin_rows
from buttress.solvers._blockwise.objective import make_objective
from buttress.solvers._blockwise.scan import scan
from buttress.solvers.blocks import ArrayBlocks, take_rows
from buttress.solvers.parquet import ParquetBlocks
from buttress.solvers.reduction import solve_columns

P, N_ALPHAS, N_FOLDS = 50, 20, 5
ALPHAS = np.logspace(-1, -5, N_ALPHAS)
PARTS = ("pass", "path", "growth", "dask", "peers", "accuracy")


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
    theta = np.zeros((objective.n_parameters, len(objective.columns)))
    took, _ = seconds(lambda: objective(theta, np.arange(theta.shape[1])), repeats=2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gemm = gemm_seconds(objective.source.n_rows, m, theta.shape[1])
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
    source = ParquetBlocks(folder, "y")
    start = time.perf_counter()
    objective = problem(source, m, Folds(N_FOLDS, seed=0), ALPHAS)
    prepared = time.perf_counter()
    found = solve_columns(objective, tol=1e-7)
    solved = time.perf_counter()
    one, _ = seconds(lambda: objective(found.theta, np.arange(found.theta.shape[1])), repeats=2)
    queue.put(
        {
            "prepare s": prepared - start,
            "solve s": solved - prepared,
            "pass s": one,
            "passes": found.n_iter,
            "method": found.method,
            "converged": bool(found.converged.all()),
            "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )


def path(n: int, m: int, folder: Path) -> dict[str, Any]:
    """20 penalties x 5 folds and the refit from Parquet, in a process of its own."""
    place = write_parquet(folder / f"rows{n}", n)
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_path_child, args=(str(place), m, queue))
    child.start()
    found = queue.get()
    child.join()
    columns = N_ALPHAS * (N_FOLDS + 1)
    gemm = gemm_seconds(n, m, columns)
    return {
        "rows": n,
        "components": m,
        **found,
        "GEMM s": gemm,
        "pass/GEMM": found["pass s"] / gemm,
    }


def dask_speed(n: int, m: int, folder: Path) -> list[dict[str, Any]]:
    """One pass for all columns on one and on two workers of one thread each."""
    from buttress.solvers.dask_blocks import DaskBlocks, connect

    place = write_parquet(folder / f"dask{n}", n, group=n // 8)
    table = []
    for workers in (1, 2):
        client = connect(n_workers=workers, threads_per_worker=1, processes=True)
        source = DaskBlocks(ParquetBlocks(place, "y"), client=client)
        objective = problem(source, m, Folds(N_FOLDS, seed=0), ALPHAS)
        theta = np.zeros((objective.n_parameters, len(objective.columns)))
        everything = np.arange(len(objective.columns))
        objective(theta, everything)
        took, _ = seconds(lambda o=objective, t=theta, e=everything: o(t, e), repeats=3)
        table.append({"rows": n, "components": m, "workers": workers, "pass s": took})
        client.cluster.close()
        client.close()
    table[1]["speed-up"] = table[0]["pass s"] / table[1]["pass s"]
    return table


def peers(n: int, m: int) -> list[dict[str, Any]]:
    """Other solvers on the same mapped rows: time, objective, test error."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    X, y = rows(n, 0)
    X_test, y_test = rows(20_000, 999)
    source = ArrayBlocks(X.astype(np.float64), y)
    alpha = 1e-3
    objective = problem(source, m, Folds(), [alpha])
    features = objective.reader.features
    phi, phi_test = transform(features, X.astype(np.float64)), transform(features, X_test)
    kept = ArrayBlocks(phi, y)
    from buttress.kernels.approximate import LinearMap

    direct = make_objective(
        kept,
        LinearMap(phi.shape[1]),
        scan(kept),
        margin_rows(LeakyHockeyStick()),
        column_grid(1, [0], [alpha]),
        Folds(),
    )
    best = solve_columns(direct, tol=1e-16).objective[0]

    def error(w: np.ndarray, b: float) -> float:
        return float(((phi_test @ w + b > 0) != y_test).mean())

    table = []
    took, found = seconds(lambda: solve_columns(direct, tol=1e-7))
    theta = found.theta[:, 0]
    table.append(
        {
            "solver": f"reduction ({found.method})",
            "s": took,
            "excess objective": found.objective[0] - best,
            "test error": error(theta[:-1], theta[-1]),
        }
    )
    signs = np.where(y == 1, 1.0, -1.0)
    loss = LeakyHockeyStick()

    def function(t: np.ndarray) -> tuple[float, np.ndarray]:
        u = signs * (phi @ t[:-1] + t[-1])
        slope = loss.derivative(u) * signs / n
        value = loss.value(u).mean() + alpha * t[:-1] @ t[:-1]
        return value, np.append(phi.T @ slope + 2 * alpha * t[:-1], slope.sum())

    reached: list[float] = []
    begin = time.perf_counter()

    def watch(t: np.ndarray) -> None:
        if not reached and function(t)[0] - best <= 1e-6 * (1 + abs(best)):
            reached.append(time.perf_counter() - begin)

    result = minimize(
        function,
        np.zeros(phi.shape[1] + 1),
        jac=True,
        method="L-BFGS-B",
        callback=watch,
        options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9},
    )
    table.append(
        {
            "solver": "SciPy L-BFGS-B, to 1e-6",
            # The watching evaluates the function once more per step: half the time is its own.
            "s": (reached or [time.perf_counter() - begin])[0] / 2,
            "excess objective": result.fun - best,
            "test error": error(result.x[:-1], result.x[-1]),
        }
    )
    for name, model in (
        ("SGDClassifier (hinge)", SGDClassifier(alpha=2 * alpha, random_state=0)),
        ("LinearSVC", LinearSVC(C=1 / (2 * alpha * n), random_state=0)),
    ):
        took, _ = seconds(lambda model=model: model.fit(phi, y))
        table.append(
            {
                "solver": name,
                "s": took,
                "test error": float((model.predict(phi_test) != y_test).mean()),
            }
        )
    folds = Folds(N_FOLDS, seed=0)
    grid_objective = make_objective(
        kept,
        LinearMap(phi.shape[1]),
        scan(kept, folds),
        margin_rows(LeakyHockeyStick()),
        column_grid(1, range(N_FOLDS + 1), ALPHAS),
        folds,
    )
    took, _ = seconds(lambda: solve_columns(grid_objective, tol=1e-7))
    table.append({"solver": "reduction, 20 penalties x 5 folds", "s": took})
    grid = GridSearchCV(
        LinearSVC(random_state=0), {"C": 1 / (2 * ALPHAS * n)}, cv=N_FOLDS, n_jobs=2
    )
    grid_took, _ = seconds(lambda: grid.fit(phi, y))
    table.append({"solver": "GridSearchCV(LinearSVC), same grid", "s": grid_took})
    table.append({"solver": "ratio of the last two", "s": grid_took / took})
    return table


def accuracy(components: tuple[int, ...], limit: int) -> list[dict[str, Any]]:
    """Test accuracy against the number of landmarks, beside the exact kernel."""
    from buttress import LeakyHockeyStickClassifier
    from buttress.datasets import load_dataset

    table = []
    for name in ("adult", "letter", "a9a", "w8a", "magic", "covtype_sample"):
        try:
            data = load_dataset(name)
        except (OSError, KeyError, ValueError) as problem_found:
            table.append({"data": name, "exact": str(problem_found)[:40]})
            continue
        X = np.asarray(data.X, dtype=np.float64)
        y = np.asarray(data.y)
        drawn = np.random.default_rng(0).permutation(len(X))[: 2 * limit]
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        train, test = drawn[:limit], drawn[limit:]
        row: dict[str, Any] = {"data": name, "train rows": len(train)}
        options = {"alpha": 1e-4, "tol": 1e-6}
        row["exact"] = (
            LeakyHockeyStickClassifier(**options).fit(X[train], y[train]).score(X[test], y[test])
        )
        for m in components:
            model = LeakyHockeyStickClassifier(**options, approximation="nystroem", n_components=m)
            row[f"m={m}"] = model.fit(X[train], y[train]).score(X[test], y[test])
        table.append(row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--part", choices=PARTS, action="append")
    chosen = parser.parse_args()
    parts = chosen.part or PARTS
    quick = chosen.quick
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if "pass" in parts:
            n, m = (200_000, 500) if quick else (1_000_000, 500)
            report("scale-pass", [one_pass(n, m, folder)], alphas=N_ALPHAS, folds=N_FOLDS)
        if "path" in parts:
            n, m = (100_000, 200) if quick else (1_000_000, 500)
            report("scale-path", [path(n, m, folder)], alphas=N_ALPHAS, folds=N_FOLDS)
        if "growth" in parts:
            sizes = (50_000, 100_000, 200_000) if quick else (100_000, 300_000, 1_000_000)
            grown = []
            for n in sizes:
                place = write_parquet(folder / f"grow{n}", n)
                objective = problem(ParquetBlocks(place, "y"), 200, Folds(N_FOLDS, seed=0), ALPHAS)
                theta = np.zeros((objective.n_parameters, len(objective.columns)))
                took, _ = seconds(
                    lambda o=objective, t=theta: o(t, np.arange(t.shape[1])), repeats=3
                )
                grown.append({"rows": n, "components": 200, "pass s": took})
            slope = np.polyfit(np.log(sizes), np.log([g["pass s"] for g in grown]), 1)[0]
            report("scale-growth", grown, exponent=float(slope))
            print(f"exponent {slope:.3f}")
        if "dask" in parts:
            report("scale-dask", dask_speed(100_000 if quick else 200_000, 300, folder))
        if "peers" in parts:
            report("scale-peers", peers(20_000 if quick else 50_000, 300))
        if "accuracy" in parts:
            report(
                "scale-accuracy",
                accuracy((50, 200, 1000) if quick else (50, 100, 200, 500, 1000), 2000),
            )


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main()
