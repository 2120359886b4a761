"""``buttress serve``: answer, and learn, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from buttress._files import note_written
from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import existing_file, guard_files, names
from buttress.cli._web import Files, Host, Port, TokenFile, check_files, check_listening

app = typer.Typer(rich_markup_mode="markdown")

Learn = Annotated[
    bool, typer.Option("--learn", help="Learn from POST /v1/learn; needs an online model.")
]
LearnDir = Annotated[
    Path | None, typer.Option("--learn-dir", help="Log and checkpoints; MODEL.learn.")
]
Review = Annotated[
    bool, typer.Option("--review", help="Keep refused rows and show them under /review.")
]
Store = Annotated[
    Path | None, typer.Option("--store", help="Where --review keeps them; MODEL.review.sqlite.")
]
Training = Annotated[
    Path | None,
    typer.Option("--training", help="The table it was trained on, to say why it refuses."),
]
Keep = Annotated[
    str | None, typer.Option("--keep", help="Columns for reviewers, not the model's: id,scan.")
]
RefuseBelow = Annotated[
    float | None, typer.Option(min=0, help="Refuse answers with a smaller margin.")
]
Lenient = Annotated[
    bool, typer.Option("--lenient", help="Ignore extra columns; new categories are unknown.")
]
MaxRows = Annotated[int, typer.Option(min=1, help="Rows of one request.")]
MaxBody = Annotated[int, typer.Option(min=1000, help="Bytes of one request.")]
MaxWaiting = Annotated[
    int, typer.Option(min=1, help="Rows that may wait; beyond, 429 and Retry-After.")
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds for a body, an answer.")]
CheckpointRows = Annotated[int, typer.Option(min=1, help="Rows learned between two checkpoints.")]


@app.command()
def serve(
    model: Annotated[Path, typer.Argument(help="A model saved by 'buttress fit' or save().")],
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token_file: TokenFile = None,
    learn: Learn = False,
    learn_dir: LearnDir = None,
    review: Review = False,
    store: Store = None,
    training: Training = None,
    files: Files = None,
    keep: Keep = None,
    refuse_below: RefuseBelow = None,
    lenient: Lenient = False,
    max_rows: MaxRows = 100_000,
    max_body: MaxBody = 16_000_000,
    max_waiting: MaxWaiting = 200_000,
    timeout: Timeout = 30.0,
    checkpoint_rows: CheckpointRows = 10_000,
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
    if token_file is not None:
        existing_file(token_file, "token file")
    log = (learn_dir or model.with_suffix(".learn")) if learn else None
    kept = (store or model.with_suffix(".review.sqlite")) if review else None
    _check_options(learn_dir, store, files, keep, log=log, review=review)
    guard_files(
        [model, token_file, training, files],
        {"--store": kept, "--learn-dir": log / "log.sqlite" if log and log.is_dir() else log},
    )
    token = check_listening(host, token_file)
    from buttress.serve.app import make_app
    from buttress.serve.running import run_server
    from buttress.serve.service import Service, Settings

    settings = Settings(
        token=token,
        most_body=max_body,
        most_rows=max_rows,
        most_waiting=max_waiting,
        timeout=timeout,
        lenient=lenient,
        refuse_below=refuse_below,
        learn=log,
        checkpoint_rows=checkpoint_rows,
        review=kept,
        training=training,
        files=files,
        kept=tuple(names(keep)),
    )
    with limit_threads(jobs):
        service = Service(model, settings)
        for written in (kept, log):
            if written is not None:
                note_written(written)

        def tell(address: str) -> None:
            say.say(
                f"serving {service.name} ({service.model.version}) on {address}, see {address}/docs"
            )
            say.result({"address": address, "model": service.model.version, "learns": learn})

        run_server(make_app(service), host, port, started=tell)


def _check_options(
    learn_dir: Path | None,
    store: Path | None,
    files: Path | None,
    keep: str | None,
    *,
    log: Path | None,
    review: bool,
) -> None:
    """Refuse options that would do nothing."""
    if learn_dir is not None and log is None:
        raise typer.BadParameter("--learn-dir needs --learn")
    for option, value in {"--store": store, "--files": files, "--keep": keep}.items():
        if value is not None and not review:
            raise typer.BadParameter(f"{option} needs --review")
    check_files(files)
    if log is not None and log.exists() and not log.is_dir():
        raise typer.BadParameter(f"{log}: is a file, expected a directory (--learn-dir)")
