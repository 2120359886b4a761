"""A service as a process: it ends cleanly, changes its model, and survives what is no request."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals need a POSIX system")


def _load_nursery():
    path = Path(__file__).parent / "nursery.py"
    spec = importlib.util.spec_from_file_location("serve_nursery", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


nursery = _load_nursery()


@pytest.fixture
def serve():
    """Starts `buttress serve`; what still runs at the end of a test is ended."""
    made = []

    def start(*words):
        process, address = nursery.started(["serve", *words])
        made.append(process)
        return process, address

    yield start
    for process in made:
        if process.poll() is None:
            nursery.ended(process)


def connection(address):
    host, port = address.removeprefix("http://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=nursery.PATIENCE)


def received(opened):
    """All that comes until the other side closes; what came before a reset counts."""
    parts = []
    try:
        while part := opened.recv(65536):
            parts.append(part)
    except (ConnectionResetError, BrokenPipeError):
        pass
    return b"".join(parts)


def head(path, length, *more, method="POST"):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def test_sigterm_finishes_the_request_that_was_taken(models, rows, serve):
    process, address = serve(models / "reject.skops")
    body = json.dumps({"rows": rows(3)}).encode()
    with connection(address) as opened:
        opened.sendall(head("/v1/predict", len(body)) + body[:20])
        # the head has been read when a second request, sent later, is answered
        assert httpx.get(f"{address}/healthz", timeout=nursery.PATIENCE).status_code == 200
        process.send_signal(signal.SIGTERM)

        def refuses():
            try:
                connection(address).close()
            except OSError:
                return True
            return False

        nursery.until(refuses, "closing the door")
        opened.sendall(body[20:])
        answer = received(opened)
    assert answer.startswith(b"HTTP/1.1 200")
    told = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    assert len(told["answers"]) == 3
    assert process.wait(nursery.PATIENCE) in (0, -signal.SIGTERM, 128 + signal.SIGTERM)


def test_a_new_model_costs_no_request(models, rows, serve, tmp_path):
    path = tmp_path / "model.skops"
    shutil.copy(models / "reject.skops", path)
    _, address = serve(path)
    body = {"rows": rows(1)}
    statuses, versions, stop = [], set(), threading.Event()

    def ask():
        with httpx.Client(base_url=address, timeout=nursery.PATIENCE) as client:
            while not stop.is_set():
                answer = client.post("/v1/predict", json=body)
                statuses.append(answer.status_code)
                versions.add(answer.json()["model"])

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        try:
            nursery.until(lambda: len(versions) == 1, "the first answer")
            for number, name in enumerate(("impute", "three"), start=2):
                shutil.copy(models / f"{name}.skops", tmp_path / "new")
                (tmp_path / "new").replace(path)
                nursery.until(lambda number=number: len(versions) >= number, f"taking up {name}")
        finally:
            stop.set()
        for each in asking:
            each.result(nursery.PATIENCE)
    assert set(statuses) == {200}
    assert len(versions) == 3


def test_a_port_that_is_taken_is_one_line(models, capsys):
    from buttress.cli import main

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(models / "reject.skops"), "--port", str(port)]) == 1
    told = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}" in told
    assert len(told.splitlines()) == 1


PATHS = [
    "/v1/../../etc/passwd",
    "/v1/%2e%2e/%2e%2e/etc/passwd",
    "//v1/predict",
    "/v1//predict",
    "/v1/predict/",
    "/v1/predict%00",
    "/v1/predict%2f..",
    "/V1/PREDICT",
    "/review/",
    "/review/files/../../token",
    "/static/../../../etc/passwd",
    "/v2/models/../v1/model",
    "/v2/models/%ff%fe/infer",
    "/v1/predict;x=1",
    "/" + "a" * 4000,
    "/.git/config",
]
ENCODINGS = ["gzip", "br", "deflate", "gzip, gzip", "compress", "x-unknown"]
CHARSETS = ["utf-16", "latin-1", "utf-7", "ebcdic", "utf-32"]
BROKEN = [
    b"GET\r\n\r\n",
    b"NONSENSE / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"POST /v1/predict HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: many\r\n\r\n",
    b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /v1/predict HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n",
    b"POST /v1/pre\x00dict HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
]


def malformed(rng, good):
    """The bytes of a request that must be refused."""
    kind = rng.integers(7)
    if kind == 0:
        return head(str(rng.choice(PATHS)), len(good), "Connection: close") + good
    if kind == 1:
        more = f"Content-Encoding: {rng.choice(ENCODINGS)}"
        return head("/v1/predict", len(good), "Connection: close", more) + good
    if kind == 2:
        more = f"Content-Type: application/json; charset={rng.choice(CHARSETS)}"
        return head("/v1/predict", len(good), "Connection: close", more) + good
    if kind == 3:
        return BROKEN[int(rng.integers(len(BROKEN)))]
    if kind == 4:  # larger than allowed, declared or not
        if rng.random() < 0.5:
            return head("/v1/predict", 10**9, "Connection: close") + good
        body = b" " * 30_000
        return (
            b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" + b"7530\r\n" + body + b"\r\n0\r\n\r\n"
        )
    if kind == 5:
        method = str(rng.choice(["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"]))
        return head("/v1/predict", len(good), "Connection: close", method=method) + good
    cut = good[: int(rng.integers(0, len(good)))]
    return head("/v1/predict", len(cut), "Connection: close") + cut


def slowly(address, good):
    """Half a body, and no more of it."""
    with connection(address) as opened:
        opened.sendall(head("/v1/predict", len(good)) + good[: len(good) // 2])
        return received(opened)


def refused(answer):
    """Whether an answer is a 4xx with one line."""
    top, _, body = answer.partition(b"\r\n\r\n")
    if not 400 <= int(top.split(b" ", 2)[1]) < 500:
        return False
    if b"application/json" in top.lower():
        body = json.loads(body)["error"].encode()
    return 0 < len(body) < 300 and b"\n" not in body.strip()


def attack(address, good, number, n_slow, seed):
    rng = np.random.default_rng(seed)
    with ThreadPoolExecutor(8) as pool:
        slow = [pool.submit(slowly, address, good) for _ in range(n_slow)]
        for _ in range(number):
            request = malformed(rng, good)
            with connection(address) as opened:
                try:
                    opened.sendall(request)
                    opened.shutdown(socket.SHUT_WR)
                except (ConnectionResetError, BrokenPipeError):
                    pass
                answer = received(opened)
            # a body that is too large may be answered, or only cut off
            if answer or b"1000000000" not in request:
                assert refused(answer), (request[:200], answer[:300])
        for each in slow:
            answer = each.result(nursery.PATIENCE)
            assert answer.startswith(b"HTTP/1.1 408"), answer[:300]
            assert refused(answer)


def memory(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(x for x in text.splitlines() if x.startswith("VmRSS")).split()[1])


@pytest.mark.parametrize(
    ("number", "n_slow"),
    [(150, 8), pytest.param(10_000, 300, marks=pytest.mark.slow)],
)
def test_bytes_that_are_no_request(models, rows, serve, number, n_slow):
    limits = ("--timeout", 3.0, "--max-body", 20_000, "--max-rows", 40)
    process, address = serve(models / "reject.skops", *limits)
    good = json.dumps({"rows": rows(2)}).encode()
    attack(address, good, number // 10, 2, seed=1)
    before = memory(process) if Path("/proc").exists() else 0
    attack(address, good, number, n_slow, seed=2)
    after = memory(process) if Path("/proc").exists() else 0
    assert after - before < 30_000  # kB; nothing piles up
    lines = httpx.get(f"{address}/metrics", timeout=nursery.PATIENCE).text.splitlines()
    assert not [line for line in lines if 'status="5' in line]

    def answers():
        answer = httpx.post(f"{address}/v1/predict", content=good, timeout=nursery.PATIENCE)
        return answer.status_code == 200

    nursery.until(answers, "an answer")
