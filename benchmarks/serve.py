"""A served model: rows per second, latency, learning, and memory over time.

    python benchmarks/serve.py [--quick] [--docs] [--part predict|learn|soak] [--seconds 5]

The same rows are sent to Buttress, to a plain FastAPI application around scikit-learn's SVC of
about as many support vectors, and to MLServer where it is installed. Servers and load
run on this machine, on the loopback address, one server at a time, in turn; every server uses
uvloop and httptools where they are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import buttress
from _common import report
from _serve_load import (
    free_port,
    load,
    processor_seconds,
    python,
    resident,
    wait_until_ready,
)
from buttress.tables import TableClassifier

PLAIN = """
import sys
import joblib
import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

model = joblib.load(sys.argv[1])
app = FastAPI()


class Question(BaseModel):
    rows: list[dict[str, float]]


@app.get("/ready")
def ready():
    return {}


@app.post("/predict")
def predict(question: Question):
    X = np.array([list(row.values()) for row in question.rows])
    return {"labels": model.predict(X).tolist(), "margins": model.decision_function(X).tolist()}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error", access_log=False)
"""


def make_models(folder: Path, n: int = 1000, p: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Both models on the same rows; returns rows to ask about, and labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * np.linspace(1, 50, p)
    z = X / np.linspace(1, 50, p)
    y = np.where(z[:, 0] * z[:, 1] + z[:, 2] + 0.4 * rng.normal(size=n) > 0, "yes", "no")
    table = {f"x{i}": X[:, i] for i in range(p)}
    model = TableClassifier(buttress.RampClassifier(), target="y").fit(table | {"y": y})
    buttress.save(model, folder / "model.skops")
    online = TableClassifier(buttress.PARampClassifier(), target="y").fit(table | {"y": y})
    buttress.save(online, folder / "online.skops")
    joblib.dump(make_pipeline(StandardScaler(), SVC()).fit(X, y), folder / "svc.joblib")
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


@contextmanager
def buttress_server(folder: Path, *more: str, model: str = "model") -> Iterator[tuple[int, int]]:
    """Port and process id of the service."""
    port = free_port()
    code = "import sys; from buttress.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["serve", str(folder / f"{model}.skops"), "--port", str(port), "--quiet", *more]
    with running(python("-c", code, *words), f"http://127.0.0.1:{port}/readyz") as process:
        yield port, process


@contextmanager
def fastapi_server(folder: Path) -> Iterator[tuple[int, int]]:
    """FastAPI around scikit-learn."""
    port = free_port()
    process = python("-c", PLAIN, str(folder / "svc.joblib"), str(port))
    with running(process, f"http://127.0.0.1:{port}/ready") as number:
        yield port, number


@contextmanager
def mlserver_server(folder: Path) -> Iterator[tuple[int, int]]:
    """MLServer with its runtime for scikit-learn, in one process."""
    port, home = free_port(), folder / "mlserver"
    home.mkdir(exist_ok=True)
    ports = {"http_port": port, "grpc_port": free_port(), "metrics_port": free_port()}
    settings = {"host": "127.0.0.1", "parallel_workers": 0, "debug": False, **ports}
    (home / "settings.json").write_text(json.dumps(settings))
    model = {
        "name": "svc",
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": str(folder / "svc.joblib")},
        "max_batch_size": 64,
        "max_batch_time": 0.002,
    }
    (home / "model-settings.json").write_text(json.dumps(model))
    code = "from mlserver.cli.main import main; main()"
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = python("-c", code, "start", str(home), **silent)
    with running(process, f"http://127.0.0.1:{port}/v2/models/svc/ready") as number:
        yield port, number


@contextmanager
def running(process: subprocess.Popen[Any], address: str) -> Iterator[int]:
    """A server from its first answer to its end."""
    try:
        wait_until_ready(address, process)
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


def predict(folder: Path, X: np.ndarray, length: float, quick: bool, docs: bool) -> None:
    """Rows per second and latency, for single rows and batches."""
    servers: dict[str, tuple[Callable[[Path], Any], str, Callable[[np.ndarray, int], bytes]]] = {
        "buttress": (buttress_server, "/v1/predict", rows_body),
    }
    if find_spec("fastapi"):
        servers["FastAPI + SVC"] = (fastapi_server, "/predict", rows_body)
    if find_spec("mlserver") and find_spec("mlserver_sklearn"):
        servers["MLServer + SVC"] = (mlserver_server, "/v2/models/svc/infer", tensor_body)
    results = []
    for name, (start, path, body) in servers.items():
        with start(folder) as (port, process):
            for size in (1, 100):
                for connections in (1, 8) if quick else (1, 8, 64):
                    load(port, path, body(X, size), connections, min(1.0, length))
                    before = processor_seconds(process)
                    found = load(port, path, body(X, size), connections, length)
                    used = processor_seconds(process) - before
                    results.append(
                        {
                            "server": name,
                            "rows per request": size,
                            "connections": connections,
                            "rows/s": size * found["requests"],
                            "CPU ms per request": 1e3 * used / found["number"],
                            "p50 ms": found["p50"],
                            "p99 ms": found["p99"],
                            "p99/p50": found["p99"] / found["p50"],
                            "failures": found["failures"],
                        }
                    )
    report("serve_predict", results, docs=docs, seconds=length)


def learn(folder: Path, X: np.ndarray, y: np.ndarray, length: float, docs: bool) -> None:
    """Rows learned per second over HTTP, beside `partial_fit` of the same blocks."""
    size = 64
    rows = [
        {f"x{i}": float(v) for i, v in enumerate(row)} | {"y": str(label)}
        for row, label in zip(X[:size], y[:size], strict=True)
    ]
    body = json.dumps({"rows": rows}).encode()
    model = buttress.load(folder / "online.skops")
    encoded, labels = (
        model.encoder_.transform({f"x{i}": X[:size, i] for i in range(X.shape[1])}),
        y[:size],
    )
    model.estimator_.partial_fit(encoded, labels)
    start, n_rows = time.perf_counter(), 0
    while time.perf_counter() - start < length:
        model.estimator_.partial_fit(encoded, labels)
        n_rows += size
    results = [{"how": "partial_fit", "rows/s": n_rows / (time.perf_counter() - start)}]
    options = ("--learn", "--learn-dir", str(folder / "learned"))
    with buttress_server(folder, *options, model="online") as (port, _):
        for connections in (1, 8):
            load(port, "/v1/learn", body, connections, min(1.0, length))
            found = load(port, "/v1/learn", body, connections, length)
            results.append(
                {
                    "how": f"POST /v1/learn, {connections} connections",
                    "rows/s": size * found["requests"],
                    "p50 ms": found["p50"],
                    "p99 ms": found["p99"],
                    "failures": found["failures"],
                }
            )
    report("serve_learn", results, docs=docs, seconds=length, rows_per_request=size)


def soak(folder: Path, X: np.ndarray, length: float, docs: bool) -> None:
    """Memory over time at about four fifths of the load that eight connections reach."""
    results = []
    with buttress_server(folder) as (port, process):
        body = rows_body(X, 1)
        full = load(port, "/v1/predict", body, 8, 5.0)
        pause = 8 / (0.8 * full["requests"]) - 8 / full["requests"]
        steps = 10
        for step in range(steps + 1):
            results.append(
                {"minutes": step * length / steps / 60, "resident MB": resident(process)}
            )
            if step < steps:
                found = load(port, "/v1/predict", body, 8, length / steps, pause)
                results[-1] |= {"rows/s": found["requests"], "p99 ms": found["p99"]}
                results[-1]["failures"] = found["failures"]
    report("serve_soak", results, docs=docs, seconds=length)


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs, few connections")
    parser.add_argument("--docs", action="store_true", help="write the tables of the documentation")
    parser.add_argument("--part", choices=["predict", "learn", "soak"])
    parser.add_argument("--seconds", type=float, default=5.0, help="of every measurement")
    parser.add_argument("--soak-seconds", type=float, default=600.0)
    asked = parser.parse_args()
    length = 1.0 if asked.quick else asked.seconds
    os.environ.setdefault("PYTHONPATH", str(Path(buttress.__file__).parents[1]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, y = make_models(folder)
        if asked.part in (None, "predict"):
            predict(folder, X, length, asked.quick, asked.docs)
        if asked.part in (None, "learn"):
            learn(folder, X, y, length, asked.docs)
        if asked.part in (None, "soak"):
            soak(folder, X, 30.0 if asked.quick else asked.soak_seconds, asked.docs)


if __name__ == "__main__":
    main()
