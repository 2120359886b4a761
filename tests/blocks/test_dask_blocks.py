"""The same model from an array, a memmap, Parquet files and Dask workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from buttress.blocks.base import ArrayBlocks, take_rows
from buttress.blocks.dask import DaskBlocks, connect, current_client, is_dask
from buttress.blocks.parquet import ParquetBlocks
from buttress.kernels import make_kernel
from buttress.kernels.approximate import nystroem_map, transform
from buttress.kernels.landmarks import candidate_rows
from buttress.losses import LeakyHockeyStick
from buttress.solvers.blockwise.columns import Folds, column_grid, margin_rows
from buttress.solvers.blockwise.objective import make_objective
from buttress.solvers.blockwise.reduction import solve_columns
from buttress.solvers.blockwise.scan import scan

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N, P = 900, 4
X = RNG.standard_normal((N, P))
Y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.standard_normal(N) > 0, "yes", "no")
NAMES = [f"f{j}" for j in range(P)]
FOLDS = Folds(2, seed=7)


def fit(source, alphas=(1e-2, 1e-4), method="auto"):
    """Landmarks, map and path of a source, as the classifiers make them."""
    seen = scan(source, FOLDS)
    kernel = make_kernel("rbf", gamma=1 / (P * seen.variance), center=seen.mean)
    rows = candidate_rows("uniform", source.n_rows, 40, seed=0)
    features = nystroem_map(kernel, take_rows(source, rows).X)
    columns = column_grid(1, range(3), alphas)
    objective = make_objective(
        source, features, seen, margin_rows(LeakyHockeyStick()), columns, FOLDS
    )
    return objective, solve_columns(objective, tol=1e-21, method=method)


@pytest.fixture(scope="module")
def expected():
    return fit(ArrayBlocks(X, Y))[1]


@pytest.fixture(scope="module")
def strong():
    """The model at one strong penalty: few passes, for the tests with worker processes."""
    return fit(ArrayBlocks(X, Y), [0.3])[1]


@pytest.fixture(scope="module")
def cluster():
    client = connect(n_workers=2, threads_per_worker=1, processes=True)
    yield client
    client.cluster.close()
    client.close()


@pytest.fixture(scope="module")
def frame():
    table = pd.DataFrame(X, columns=NAMES)
    table["y"] = Y
    return table


def test_a_memmap_is_read_in_blocks(tmp_path: Path, expected) -> None:
    stored = np.memmap(tmp_path / "x.bin", dtype=float, mode="w+", shape=X.shape)
    stored[:] = X
    found = fit(ArrayBlocks(stored, Y, block_size=128))[1]
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-8)


def test_parquet_files_give_the_same_model(tmp_path: Path, expected, frame) -> None:
    for i in range(2):
        part = frame.iloc[i * 500 : (i + 1) * 500]
        part.to_parquet(tmp_path / f"{i}.parquet", row_group_size=170)
    found = fit(ParquetBlocks(tmp_path, "y"))[1]
    np.testing.assert_allclose(found.theta, expected.theta, atol=1e-8)


def test_the_model_is_the_minimum_on_the_mapped_rows(expected) -> None:
    objective, found = fit(ArrayBlocks(X, Y, block_size=77))
    phi = transform(objective.reader.features, X)
    target = np.where(Y == "yes", 1.0, -1.0)
    train = FOLDS.train(np.arange(N))
    columns = objective.columns
    for c, (fold, alpha) in enumerate(zip(columns.fold, columns.alpha, strict=True)):
        w, b = found.theta[:-1, c], found.theta[-1, c]
        inside = train[:, fold]
        slope = LeakyHockeyStick().derivative(target * (phi @ w + b)) * target / inside.sum()
        np.testing.assert_allclose(phi[inside].T @ slope[inside], -2 * alpha * w, atol=1e-9)
        assert abs(slope[inside].sum()) < 1e-9


@pytest.mark.parametrize("chunks", [(200, 2), (1000, 4), (333, 4)])
def test_dask_arrays_without_a_cluster(chunks: tuple[int, int], expected) -> None:
    source = DaskBlocks(da.from_array(X, chunks=chunks), da.from_array(Y, chunks=150))
    assert (source.n_rows, source.n_features, source.dtype) == (N, P, np.float64)
    np.testing.assert_allclose(fit(source)[1].theta, expected.theta, atol=1e-8)


def test_two_worker_processes_give_the_same_model(cluster, strong, frame, tmp_path) -> None:
    frame.to_parquet(tmp_path / "all.parquet", row_group_size=450)
    sources = [
        DaskBlocks(da.from_array(X, chunks=(450, 4)), da.from_array(Y, chunks=450)),
        DaskBlocks(dd.from_pandas(frame, npartitions=2), "y", client=cluster),
        DaskBlocks(ParquetBlocks(tmp_path / "all.parquet", "y"), client=cluster),
    ]
    for source in sources:
        assert source.client is cluster
        np.testing.assert_allclose(fit(source, [0.3])[1].theta, strong.theta, atol=1e-8)


def test_a_lost_worker_changes_nothing(cluster, strong) -> None:
    """One of two workers is killed while passes are running."""
    rows, labels = da.from_array(X, chunks=(300, 4)), da.from_array(Y, chunks=300)
    source = _Killing(rows, labels, client=cluster)
    found = fit(source, [0.3], method="newton")[1]  # every step is a pass over the workers
    assert source.killed
    np.testing.assert_allclose(found.theta, strong.theta, atol=1e-8)


class _Killing(DaskBlocks):
    """Kills one worker process after a few passes."""

    passes, killed = 0, False

    def sum(self, task):
        self.passes += 1
        if self.passes == 4:
            worker = next(iter(self.client.scheduler_info(n_workers=-1)["workers"]))
            process = self.client.submit(os.getpid, pure=False, workers=[worker])
            os.kill(process.result(), signal.SIGKILL)
            self.killed = True
        return super().sum(task)


def test_weights_chunks_and_columns_that_do_not_match_are_named(frame) -> None:
    rows = da.from_array(X, chunks=(300, 4))
    with pytest.raises(ValueError, match="y has 5 rows, X has 900"):
        DaskBlocks(rows, da.zeros(5))
    unknown = rows[rows[:, 0] > 0]
    labels = da.from_array(Y, chunks=300)
    source = DaskBlocks(unknown, labels[rows[:, 0] > 0])
    assert source.n_rows == (X[:, 0] > 0).sum()
    with pytest.raises(ValueError, match="different numbers of chunks"):
        DaskBlocks(unknown, da.from_array(Y, chunks=100))
    table = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(ValueError, match="no column 'z'"):
        DaskBlocks(table, "z")
    with pytest.raises(ValueError, match="2 partitions, the dataframe 3"):
        DaskBlocks(table, dd.from_pandas(frame, npartitions=2).y)
    with pytest.raises(ValueError, match="no rows"):
        DaskBlocks(rows[:0], da.from_array(Y[:0], chunks=1))
    series = DaskBlocks(table[NAMES], table.y, columns=["f1", "f0"])
    assert series.feature_names == ["f1", "f0"]
    weighted = DaskBlocks(rows, labels, np.ones(N), verbose=1)
    assert take_rows(weighted, np.array([5])).weight == 1.0


def test_bad_values_name_chunk_and_column(frame) -> None:
    bad = frame.copy()
    bad.loc[400, "f2"] = np.nan
    with pytest.raises(ValueError, match="chunk 1: column 'f2' holds NaN"):
        scan(DaskBlocks(dd.from_pandas(bad, npartitions=3), "y"))


def test_no_scheduler_at_the_address() -> None:
    with pytest.raises(ConnectionError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        connect("tcp://127.0.0.1:9", timeout="1s")


def test_dask_is_recognised_without_importing_it() -> None:
    assert is_dask(da.zeros(3))
    assert not is_dask(X)
    assert current_client() is None or hasattr(current_client(), "compute")


def test_a_scheduler_that_disappears_is_one_error(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", str(port)]
    quiet = {"stderr": subprocess.DEVNULL, "cwd": tmp_path}
    scheduler = subprocess.Popen([*command, "--no-dashboard"], **quiet)
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-dashboard"]
    workers = subprocess.Popen([*worker, "--no-nanny", "--nthreads", "1"], **quiet)
    client = None
    try:
        client = connect(address, timeout="60s")
        client.wait_for_workers(1)
        rows, labels = da.from_array(X, chunks=(300, 4)), da.from_array(Y, chunks=300)
        source = DaskBlocks(rows, labels, client=client)
        assert scan(source).n_rows == N
        scheduler.kill()
        with pytest.raises(ConnectionError, match=f"scheduler at {address} has gone"):
            scan(source)
    finally:
        for process in (scheduler, workers):
            process.kill()
            process.wait()
        if client is not None:
            client.close()
