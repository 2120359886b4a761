"""``buttress serve``: answer, and learn, over HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from buttress._files import note_written
from buttress.cli._console import Jobs, limit_threads
from buttress.cli._inputs import existing_file, guard_files, names
from buttress.cli._options import CommonOptions, command
from buttress.cli._web import Files, Host, Port, TokenFile, check_files, check_listening

app = typer.Typer(rich_markup_mode="markdown")


@dataclass(frozen=True)
class ServeOptions(CommonOptions):
    """The options of the command, by their names."""

    model: Annotated[Path, typer.Argument(help="A model saved by 'buttress fit' or save().")]
    host: Host = "127.0.0.1"
    port: Port = 8000
    token_file: TokenFile = None
    learn: Annotated[
        bool, typer.Option("--learn", help="Learn from POST /v1/learn; needs an online model.")
    ] = False
    learn_dir: Annotated[
        Path | None, typer.Option("--learn-dir", help="Log and checkpoints; MODEL.learn.")
    ] = None
    review: Annotated[
        bool, typer.Option("--review", help="Keep refused rows and show them under /review.")
    ] = False
    store: Annotated[
        Path | None, typer.Option("--store", help="Where --review keeps them; MODEL.review.sqlite.")
    ] = None
    training: Annotated[
        Path | None,
        typer.Option("--training", help="The table it was trained on, to say why it refuses."),
    ] = None
    files: Files = None
    keep: Annotated[
        str | None, typer.Option("--keep", help="Columns for reviewers, not the model's: id,scan.")
    ] = None
    refuse_below: Annotated[
        float | None, typer.Option(min=0, help="Refuse answers with a smaller margin.")
    ] = None
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Ignore extra columns; new categories are unknown.")
    ] = False
    max_rows: Annotated[int, typer.Option(min=1, help="Rows of one request.")] = 100_000
    max_body: Annotated[int, typer.Option(min=1000, help="Bytes of one request.")] = 16_000_000
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Rows that may wait; beyond, 429 and Retry-After.")
    ] = 200_000
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for a body, an answer.")] = 30.0
    checkpoint_rows: Annotated[
        int, typer.Option(min=1, help="Rows learned between two checkpoints.")
    ] = 10_000
    jobs: Jobs = field(default=1, kw_only=True)

    @property
    def log(self) -> Path | None:
        """The folder of what was learned, if the service learns."""
        return (self.learn_dir or self.model.with_suffix(".learn")) if self.learn else None

    @property
    def kept_in(self) -> Path | None:
        """The file of refused rows, if they are reviewed."""
        return (self.store or self.model.with_suffix(".review.sqlite")) if self.review else None


@command(app, ServeOptions)
def serve(options: ServeOptions) -> None:
    """Serve a model: POST rows to /v1/predict, see /docs for the rest.

    Listens on this machine only unless --host says otherwise, and then refuses to start without
    a token. A new model file under the same name is taken up while running, without a lost
    request. With --learn every acknowledged row is on disk, and a killed process resumes
    exactly. SIGTERM finishes what was taken. Answers are computed by one thread: for small batches
    more of them wait for each other; use replicas, or --jobs for large batches. --seed is
    accepted as everywhere.

    **Example:** `buttress serve model.skops --port 8000 --token-file token`
    """
    existing_file(options.model, "model file")
    if options.token_file is not None:
        existing_file(options.token_file, "token file")
    log, kept_in = options.log, options.kept_in
    _check_options(options)
    guard_files(
        [options.model, options.token_file, options.training, options.files],
        {"--store": kept_in, "--learn-dir": log / "log.sqlite" if log and log.is_dir() else log},
    )
    token = check_listening(options.host, options.token_file)
    from buttress.serve.app import make_app
    from buttress.serve.running import run_server
    from buttress.serve.service import Service, Settings

    settings = Settings(
        token=token,
        most_body=options.max_body,
        most_rows=options.max_rows,
        most_waiting=options.max_waiting,
        timeout=options.timeout,
        lenient=options.lenient,
        refuse_below=options.refuse_below,
        learn=log,
        checkpoint_rows=options.checkpoint_rows,
        review=kept_in,
        training=options.training,
        files=options.files,
        kept=tuple(names(options.keep)),
    )
    say = options.output()
    with limit_threads(options.jobs):
        service = Service(options.model, settings)
        for written in (kept_in, log):
            if written is not None:
                note_written(written)

        def tell(address: str) -> None:
            version = service.model.version
            say.say(f"serving {service.name} ({version}) on {address}, see {address}/docs")
            say.result({"address": address, "model": version, "learns": options.learn})

        run_server(make_app(service), options.host, options.port, started=tell)


def _check_options(options: ServeOptions) -> None:
    """Refuse options that would do nothing."""
    if options.learn_dir is not None and not options.learn:
        raise typer.BadParameter("--learn-dir needs --learn")
    shown = {"--store": options.store, "--files": options.files, "--keep": options.keep}
    for option, value in shown.items():
        if value is not None and not options.review:
            raise typer.BadParameter(f"{option} needs --review")
    check_files(options.files)
    log = options.log
    if log is not None and log.exists() and not log.is_dir():
        raise typer.BadParameter(f"{log}: is a file, expected a directory (--learn-dir)")
