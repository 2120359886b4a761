"""The servers of benchmarks/serve.py: ours, a plain FastAPI application, MLServer, nginx."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from _serve_load import free_port, wait_until_ready

# Every server computes with one thread, so that none has more of the machine than another.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)

# Fits what the peers serve, in the environment that serves it.
FIT = """
import sys
import joblib
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

rows = np.load(sys.argv[1])
joblib.dump(make_pipeline(StandardScaler(), SVC()).fit(rows["X"], rows["y"]), sys.argv[2])
"""

# Label and margin of every row, from one pass over the support vectors.
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
    margins = model.decision_function(X)
    labels = model.classes_[(margins > 0).astype(int)]
    return {"labels": labels.tolist(), "margins": margins.tolist()}


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error", access_log=False)
"""

NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream replicas {{ {servers} keepalive 64; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host 127.0.0.1;
    }}
  }}
}}
"""


@contextmanager
def running(words: list[str], address: str, **settings: Any) -> Iterator[int]:
    """The process id of a server, from its first answer to its end."""
    process = subprocess.Popen(words, env=os.environ | ONE_THREAD, **settings)
    try:
        wait_until_ready(address, process)
        yield process.pid
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def buttress_server(folder: Path, *more: str, model: str = "model") -> Iterator[tuple[int, int]]:
    """Port and process id of the service."""
    port = free_port()
    code = "import sys; from buttress.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["serve", str(folder / f"{model}.skops"), "--port", str(port), "--quiet", *more]
    command = [sys.executable, "-c", code, *words]
    with running(command, f"http://127.0.0.1:{port}/readyz") as process:
        yield port, process


@contextmanager
def fastapi_server(folder: Path) -> Iterator[tuple[int, int]]:
    """FastAPI around scikit-learn's SVC."""
    port = free_port()
    subprocess.run(
        [sys.executable, "-c", FIT, str(folder / "rows.npz"), str(folder / "svc.joblib")],
        check=True,
    )
    command = [sys.executable, "-c", PLAIN, str(folder / "svc.joblib"), str(port)]
    with running(command, f"http://127.0.0.1:{port}/ready") as process:
        yield port, process


@contextmanager
def mlserver_server(folder: Path, interpreter: str) -> Iterator[tuple[int, int]]:
    """MLServer with its runtime for scikit-learn, in one process, with its adaptive batching.

    The interpreter is that of an environment of its own: MLServer asks for older versions of the
    packages that it shares with others.
    """
    port, home = free_port(), folder / "mlserver"
    home.mkdir(exist_ok=True)
    model = folder / "mlserver.joblib"
    subprocess.run(
        [interpreter, "-c", FIT, str(folder / "rows.npz"), str(model)],
        check=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    ports = {"http_port": port, "grpc_port": free_port(), "metrics_port": free_port()}
    settings = {"host": "127.0.0.1", "parallel_workers": 0, "debug": False, **ports}
    (home / "settings.json").write_text(json.dumps(settings))
    description = {
        "name": "svc",
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": str(model)},
        "max_batch_size": 64,
        "max_batch_time": 0.002,
    }
    (home / "model-settings.json").write_text(json.dumps(description))
    code = "from mlserver.cli.main import main; main()"
    command = [interpreter, "-c", code, "start", str(home)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with running(command, f"http://127.0.0.1:{port}/v2/models/svc/ready", **silent) as process:
        yield port, process


@contextmanager
def replicas(folder: Path, number: int, nginx: str) -> Iterator[tuple[int, list[int]]]:
    """Port of nginx in front of some replicas, and the processes of all of them."""
    home, port = folder / "nginx", free_port()
    home.mkdir(exist_ok=True)
    with ExitStack() as stack:
        made = [stack.enter_context(buttress_server(folder)) for _ in range(number)]
        servers = " ".join(f"server 127.0.0.1:{each};" for each, _ in made)
        (home / "nginx.conf").write_text(NGINX.format(folder=home, servers=servers, port=port))
        command = [nginx, "-p", str(home), "-c", str(home / "nginx.conf")]
        address = f"http://127.0.0.1:{port}/readyz"
        proxy = stack.enter_context(running(command, address))
        yield port, [proxy, *(process for _, process in made)]
