"""A served model: rows per second, latency, replicas, learning, and memory over time.

    python benchmarks/serve.py [--docs] [--part predict|replicas|learn|soak] [--seconds 6]
        [--mlserver-python ENV/bin/python] [--nginx /usr/sbin/nginx]

The same rows are sent to Buttress, to a plain FastAPI application around scikit-learn's SVC of
about as many support vectors, and to MLServer with the same SVC where an interpreter is named
that has it. Servers and load run on this machine, on the loopback address, one server at a time;
every server computes with one thread and uses uvloop and httptools where they are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import buttress
from _common import RESULTS, report
from _serve_load import load, processor_seconds, resident
from _serve_servers import (
    ONE_THREAD,
    buttress_server,
    fastapi_server,
    mlserver_server,
    replicas,
)
from buttress.tables import TableClassifier

N_FEATURES = 20
# Rows of one request to learn.
LESSON_ROWS = 64


def make_rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with features on different scales, and noisy labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, N_FEATURES))
    y = np.where(z[:, 0] * z[:, 1] + z[:, 2] + 0.4 * rng.normal(size=n) > 0, "yes", "no")
    return z * np.linspace(1, 50, N_FEATURES), y


def make_models(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Our models, and the rows for those of others; returns rows to ask about, and labels."""
    X, y = make_rows(1000)
    np.savez(folder / "rows.npz", X=X, y=y)
    table = {f"x{i}": X[:, i] for i in range(N_FEATURES)} | {"y": y}
    for name, estimator in (
        ("model", buttress.RampClassifier()),
        ("online", buttress.PARampClassifier()),
    ):
        model = TableClassifier(estimator, target="y").fit(table)
        buttress.save(model, folder / f"{name}.skops")
    return X, y


def rows_body(X: np.ndarray, n: int) -> bytes:
    """Rows as objects with names."""
    rows = [{f"x{i}": float(v) for i, v in enumerate(row)} for row in X[:n]]
    return json.dumps({"rows": rows}).encode()


def tensor_body(X: np.ndarray, n: int) -> bytes:
    """The same rows as one tensor of the V2 protocol."""
    tensor = {
        "name": "x",
        "shape": [n, X.shape[1]],
        "datatype": "FP64",
        "data": X[:n].ravel().tolist(),
    }
    return json.dumps({"inputs": [tensor]}).encode()


def measured(
    port: int, processes: list[int], path: str, body: bytes, connections: int, s: float
) -> dict[str, Any]:
    """Half a second to warm up, then the best of three rounds: what the machine allows."""
    load(port, path, body, connections, 0.5)
    before = sum(map(processor_seconds, processes))
    rounds = [load(port, path, body, connections, s / 3) for _ in range(3)]
    used = sum(map(processor_seconds, processes)) - before
    found = max(rounds, key=lambda each: each["requests"])
    return {
        "connections": connections,
        "requests/s": found["requests"],
        "CPU ms per request": 1e3 * used / sum(each["number"] for each in rounds),
        "p50 ms": found["p50"],
        "p99 ms": found["p99"],
        "p99/p50": found["p99"] / found["p50"],
        "failures": sum(each["failures"] for each in rounds),
    }


def earlier(name: str) -> list[dict[str, Any]]:
    """The rows of a table as they were reported before."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def predict(folder: Path, X: np.ndarray, asked: argparse.Namespace) -> None:
    """Rows per second and latency, for single rows and batches."""
    servers: dict[str, tuple[Callable[[Path], Any], str, Callable[[np.ndarray, int], bytes]]] = {
        "buttress": (buttress_server, "/v1/predict", rows_body),
    }
    if find_spec("fastapi"):
        servers["FastAPI + SVC"] = (fastapi_server, "/predict", rows_body)
    if asked.mlserver_python:
        start = partial(mlserver_server, interpreter=asked.mlserver_python)
        servers["MLServer + SVC"] = (start, "/v2/models/svc/infer", tensor_body)
    results = []
    for name, (start, path, body) in servers.items():
        if asked.server not in (None, name):
            continue
        with start(folder) as (port, process):
            for size in (1, 100):
                for connections in (1, 8, 64):
                    question = body(X, size)
                    line = measured(port, [process], path, question, connections, asked.seconds)
                    rate = {"rows/s": size * line.pop("requests/s")}
                    results.append({"server": name, "rows per request": size, **rate, **line})
    if asked.server is not None:  # beside what was measured of the others before
        results = [
            row for row in earlier("serve_predict") if row["server"] != asked.server
        ] + results
    report("serve_predict", results, docs=asked.docs, seconds=asked.seconds, threads=1)


def replicated(folder: Path, X: np.ndarray, asked: argparse.Namespace) -> None:
    """One process alone, then one and two replicas behind nginx."""
    results = []
    question = rows_body(X, 1)
    with buttress_server(folder) as (port, process):
        line = measured(port, [process], "/v1/predict", question, 64, asked.seconds)
        results.append({"how": "one process", **line})
    for number in (1, 2):
        with replicas(folder, number, asked.nginx) as (port, processes):
            line = measured(port, processes, "/v1/predict", question, 64, asked.seconds)
            results.append({"how": f"nginx before {number}", **line})
    report("serve_replicas", results, docs=asked.docs, seconds=asked.seconds, threads=1)


def learn(folder: Path, asked: argparse.Namespace) -> None:
    """Rows learned per second, each once: over HTTP, by `buttress stream`, by `partial_fit`."""
    X, y = make_rows(asked.rows, seed=1)
    results = [{"how": "partial_fit", "rows/s": _in_process(folder, X, y)}]
    results.append({"how": "buttress stream", "rows/s": _by_stream(folder, X, y)})
    streamed = results[-1]["rows/s"]
    bodies = [
        json.dumps(
            {
                "columns": [*(f"x{i}" for i in range(N_FEATURES)), "y"],
                "rows": [
                    [*row, str(label)]
                    for row, label in zip(X[i : i + LESSON_ROWS].tolist(), y[i:], strict=False)
                ],
            }
        ).encode()
        for i in range(0, len(X), LESSON_ROWS)
    ]
    for connections in (1, 8):
        log = folder / f"learned-{connections}"
        options = ("--learn", "--learn-dir", str(log))
        with buttress_server(folder, *options, model="online") as (port, _):
            found = load(port, "/v1/learn", bodies, connections, 600.0)
        rate = len(X) / found["seconds"]
        results.append(
            {
                "how": f"POST /v1/learn, {connections} connection{'s' * (connections > 1)}",
                "rows/s": rate,
                "of stream": rate / streamed,
                "p50 ms": found["p50"],
                "p99 ms": found["p99"],
                "failures": found["failures"],
            }
        )
    report("serve_learn", results, docs=asked.docs, n_rows=len(X), rows_per_request=LESSON_ROWS)


def _in_process(folder: Path, X: np.ndarray, y: np.ndarray) -> float:
    model = buttress.load(folder / "online.skops")
    Z = model.encoder_.transform({f"x{i}": X[:, i] for i in range(N_FEATURES)})
    model.estimator_.partial_fit(Z[:LESSON_ROWS], y[:LESSON_ROWS])  # compiles
    model = buttress.load(folder / "online.skops")
    start = time.perf_counter()
    for i in range(0, len(Z), LESSON_ROWS):
        model.estimator_.partial_fit(Z[i : i + LESSON_ROWS], y[i : i + LESSON_ROWS])
    return len(Z) / (time.perf_counter() - start)


def _by_stream(folder: Path, X: np.ndarray, y: np.ndarray) -> float:
    """The rate of the command, without its start: that of a run of one block is taken off."""
    header = ",".join([*(f"x{i}" for i in range(N_FEATURES)), "y"])
    lines = [
        ",".join([*map(repr, row), label])
        for row, label in zip(X.tolist(), y.tolist(), strict=True)
    ]
    times = []
    for number, n in enumerate((LESSON_ROWS, LESSON_ROWS, len(X))):
        (folder / "rows.csv").write_text("\n".join([header, *lines[:n]]) + "\n")
        code = "import sys; from buttress.cli import main; sys.exit(main(sys.argv[1:]))"
        words = ["stream", str(folder / "rows.csv"), "--from", str(folder / "online.skops")]
        words += ["--out", str(folder / "answers.csv"), "--quiet", "--jobs", "1"]
        words += ["--checkpoint", str(folder / f"{number}.ckpt")]
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", code, *words], check=True, env=os.environ | ONE_THREAD
        )
        times.append(time.perf_counter() - start)
    return (len(X) - LESSON_ROWS) / (times[2] - times[1])


def soak(folder: Path, X: np.ndarray, asked: argparse.Namespace) -> None:
    """Memory over time at about four fifths of the load that eight connections reach."""
    results = []
    with buttress_server(folder) as (port, process):
        body = rows_body(X, 1)
        full = load(port, "/v1/predict", body, 8, 5.0)
        pause = 8 / (0.8 * full["requests"]) - 8 / full["requests"]
        steps = 10
        for step in range(steps + 1):
            results.append(
                {
                    "minutes": step * asked.soak_seconds / steps / 60,
                    "resident MB": resident(process),
                }
            )
            if step < steps:
                found = load(port, "/v1/predict", body, 8, asked.soak_seconds / steps, pause)
                share = found["requests"] / full["requests"]
                results[-1] |= {"rows/s": found["requests"], "of full load": share}
                results[-1] |= {"p99 ms": found["p99"], "failures": found["failures"]}
    report("serve_soak", results, docs=asked.docs, seconds=asked.soak_seconds)


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", action="store_true", help="write the tables of the documentation")
    parser.add_argument("--part", choices=["predict", "replicas", "learn", "soak"])
    parser.add_argument("--seconds", type=float, default=6.0, help="per measurement")
    parser.add_argument("--soak-seconds", type=float, default=600.0)
    parser.add_argument("--rows", type=int, default=20_000, help="to learn")
    parser.add_argument("--mlserver-python", help="interpreter of an environment with MLServer")
    parser.add_argument("--server", help="only this one of part predict, by its name in the table")
    parser.add_argument("--nginx", help="nginx, for the replicas")
    asked = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path(buttress.__file__).parents[1]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, _ = make_models(folder)
        if asked.part in (None, "predict"):
            predict(folder, X, asked)
        if asked.part == "replicas" or (asked.part is None and asked.nginx):
            replicated(folder, X, asked)
        if asked.part in (None, "learn"):
            learn(folder, asked)
        if asked.part in (None, "soak"):
            soak(folder, X, asked)


if __name__ == "__main__":
    main()
