"""What commands that listen check before they start: the packages, the token, the address."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from buttress.cli._console import CommandError
from buttress.cli._inputs import existing_file

# Options that `serve` and `review` share.
Host = Annotated[str, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[
    int, typer.Option("--port", "-p", min=0, max=65535, help="Its port; 0 takes a free one.")
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="File with the token that must be given.")
]
Files = Annotated[
    Path | None, typer.Option("--files", help="Folder of the images that a column names.")
]


def check_files(files: Path | None) -> None:
    """Refuse a folder of images that is none."""
    if files is not None and not files.is_dir():
        raise typer.BadParameter(f"{files}: no such directory (--files)")


def check_listening(host: str, token_file: Path | None) -> str | None:
    """The token, if there is one; what cannot be served is said at once."""
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise CommandError(f"this needs {package}: pip install 'buttress[serve]'")
    from buttress.serve.running import check_host, read_token

    if token_file is not None:
        existing_file(token_file, "token file")
    try:
        token = read_token(token_file)
        check_host(host, token)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return token
