"""Starting a server: where it may listen, and how it ends."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# A token shorter than this can be guessed.
_SHORTEST_TOKEN = 16


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(path: Path | None) -> str | None:
    """The token in a file; blanks around it do not count."""
    if path is None:
        return None
    token = path.read_text("utf-8").strip()
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ValueError(
            f"{path}: a token has at least {_SHORTEST_TOKEN} printable signs; make one with "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token


def check_host(host: str, token: str | None) -> None:
    """Refuse to listen where others can ask without a token."""
    if token is None and not is_loopback(host):
        raise ValueError(f"--host {host} can be reached by others: give a token with --token-file")


def open_socket(host: str, port: int) -> socket.socket:
    """A socket bound to an address; port 0 takes a free one.

    Examples
    --------
    >>> with open_socket("127.0.0.1", 0) as free:
    ...     free.getsockname()[1] > 0
    True
    """
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        reason = error.strerror or str(error)
        raise ValueError(
            f"cannot listen on {host}:{port} ({reason}): choose another --port"
        ) from None
    return opened


def run_server(
    app: Any,
    host: str,
    port: int,
    *,
    started: Callable[[str], None] | None = None,
    shutdown_seconds: int = 30,
) -> None:
    """Serve until interrupted; requests that were taken are finished first.

    Parameters
    ----------
    app : ASGI application
    host : str
    port : int
        0 takes a free one.
    started : callable, optional
        Told the address once requests are taken.
    shutdown_seconds : int
        How long to wait for open requests at the end.
    """
    try:
        import uvicorn
    except ImportError:
        raise ImportError("serving needs uvicorn: pip install 'buttress[serve]'") from None

    listening = open_socket(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if started is not None:
                started(address)

    config = uvicorn.Config(
        app,
        # Requests are not logged: their paths and headers may hold what nobody should read.
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        loop="uvloop" if find_spec("uvloop") else "asyncio",
        http="httptools" if find_spec("httptools") else "h11",
        timeout_graceful_shutdown=shutdown_seconds,
        timeout_keep_alive=65,
    )
    with listening:
        Server(config).run(sockets=[listening])
