"""Load on an HTTP server: many connections, each sending the next request after an answer."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

try:
    from uvloop import run as run_loop
except ImportError:
    run_loop = asyncio.run


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_until_ready(address: str, process: subprocess.Popen[Any], most: float = 120.0) -> None:
    """Return when an address answers with 200."""
    end = time.monotonic() + most
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise TimeoutError(f"{address} does not answer")


def request_bytes(port: int, path: str, body: bytes) -> bytes:
    """A whole HTTP request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """Sends the next request whenever an answer is complete, and notes how long it took."""

    def __init__(self, requests: Iterator[bytes], end: float, pause: float = 0.0) -> None:
        self.requests, self.end, self.pause = requests, end, pause
        self.times: list[float] = []
        self.failures = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = next(self.requests, None)
        if request is None or time.perf_counter() >= self.end:
            self._transport.close()
            return
        self._start = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._buffer[:head_end].lower()
        place = head.find(b"content-length:")
        length = int(head[place + 15 :].split(b"\r\n", 1)[0])
        if len(self._buffer) < head_end + 4 + length:
            return
        self.failures += not head.startswith(b"http/1.1 200")
        self.times.append(time.perf_counter() - self._start)
        self._buffer = self._buffer[head_end + 4 + length :]
        if self.pause:
            asyncio.get_running_loop().call_later(self.pause, self._send)
        else:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


def load(
    port: int,
    path: str,
    body: bytes | list[bytes],
    connections: int,
    seconds: float,
    pause: float = 0.0,
) -> dict[str, Any]:
    """Requests per second and latencies under `connections` clients at once.

    One body is sent again and again for some seconds; of a list every body is sent once.
    """
    requests = (
        repeat(request_bytes(port, path, body))
        if isinstance(body, bytes)
        else iter([request_bytes(port, path, each) for each in body])
    )

    async def run() -> list[Connection]:
        loop = asyncio.get_running_loop()
        end = time.perf_counter() + seconds
        made = [
            (
                await loop.create_connection(
                    lambda: Connection(requests, end, pause), "127.0.0.1", port
                )
            )[1]
            for _ in range(connections)
        ]
        await asyncio.wait_for(asyncio.gather(*(each.done for each in made)), seconds + 60)
        return made

    gc.collect()
    gc.disable()  # pauses of the clients are none of the server's
    start = time.perf_counter()
    made = run_loop(run())
    elapsed = time.perf_counter() - start
    gc.enable()
    times = np.concatenate([each.times for each in made])
    return {
        "number": len(times),
        "seconds": elapsed,
        "requests": len(times) / elapsed,
        "p50": 1e3 * float(np.quantile(times, 0.5)),
        "p99": 1e3 * float(np.quantile(times, 0.99)),
        "failures": sum(each.failures for each in made),
    }


def processor_seconds(pid: int) -> float:
    """Processor time that a process and its children have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    total = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total + sum(map(processor_seconds, children_of(pid)))


def children_of(pid: int) -> list[int]:
    """Processes that a process has started."""
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in file.read_text().split()] if file.exists() else []


def resident(pid: int) -> float:
    """Resident memory of a process, in MB; of its children too."""
    total = 0.0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            total += float(line.split()[1]) / 1024
    return total + sum(map(resident, children_of(pid)))
