"""``buttress serve``: answer, and learn, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import existing_file, writable
from buttress.cli._web import check_listening

app = typer.Typer(rich_markup_mode="markdown")


@app.command()
def serve(
    model: Annotated[Path, typer.Argument(help="A model saved by 'buttress fit' or save().")],
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=1, max=65535, help="Its port.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the token requests must carry.")
    ] = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn from POST /v1/learn; needs an online model.")
    ] = False,
    learn_dir: Annotated[
        Path | None, typer.Option("--learn-dir", help="Log and checkpoints; MODEL.learn.")
    ] = None,
    review: Annotated[
        bool, typer.Option("--review", help="Keep refused rows and show them under /review.")
    ] = False,
    store: Annotated[
        Path | None, typer.Option("--store", help="Where --review keeps them; MODEL.review.sqlite.")
    ] = None,
    refuse_below: Annotated[
        float | None, typer.Option(min=0, help="Refuse answers with a smaller margin.")
    ] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Ignore extra columns; new categories are unknown.")
    ] = False,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of one request.")] = 100_000,
    max_body: Annotated[int, typer.Option(min=1000, help="Bytes of one request.")] = 16_000_000,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Rows that may wait; beyond, 429 and Retry-After.")
    ] = 200_000,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for a body, an answer.")] = 30.0,
    checkpoint_rows: Annotated[
        int, typer.Option(min=1, help="Rows learned between two checkpoints.")
    ] = 10_000,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
) -> None:
    """Serve a model: POST rows to /v1/predict, see /docs for the rest.

    Listens on this machine only unless --host says otherwise, and then refuses to start without
    a token. A new model file under the same name is taken up while running, without a lost
    request. With --learn every acknowledged row is on disk, and a killed process resumes
    exactly. SIGTERM finishes what was taken. Answers are computed by one thread: for small batches
    more of them wait for each other; use replicas, or --jobs for large batches. --seed is
    accepted as everywhere.

    **Example:** `buttress serve model.skops --port 8000 --token-file token`
    """
    say = Output(json, quiet)
    existing_file(model, "model file")
    token = check_listening(host, token_file)
    from buttress.serve.app import make_app
    from buttress.serve.running import run_server
    from buttress.serve.service import Service, Settings

    if learn_dir is not None and not learn:
        raise typer.BadParameter("--learn-dir needs --learn")
    if store is not None and not review:
        raise typer.BadParameter("--store needs --review")
    settings = Settings(
        token=token,
        most_body=max_body,
        most_rows=max_rows,
        most_waiting=max_waiting,
        timeout=timeout,
        lenient=lenient,
        refuse_below=refuse_below,
        learn=(learn_dir or model.with_suffix(".learn")) if learn else None,
        checkpoint_rows=checkpoint_rows,
        review=writable(store or model.with_suffix(".review.sqlite")) if review else None,
    )
    with limit_threads(jobs):
        service = Service(model, settings)
        address = f"http://{host}:{port}"
        say.say(
            f"serving {service.name} ({service.model.version}) on {address}, see {address}/docs"
        )
        say.result({"address": address, "model": service.model.version, "learns": learn})
        run_server(make_app(service), host, port)
