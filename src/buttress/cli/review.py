"""``buttress review``: open a page on which people check the suspect labels."""

from __future__ import annotations

import webbrowser
from contextlib import closing
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from buttress._files import note_written
from buttress.cli._console import Output, limit_threads
from buttress.cli._inputs import existing_file, fingerprint, guard_files
from buttress.cli._labelled import JudgingOptions, Labelled, make_judge, read_labelled
from buttress.cli._options import DataFile, Target, command
from buttress.cli._web import Files, Host, Port, TokenFile, check_files, check_listening

if TYPE_CHECKING:
    from buttress.review.judges import AuditJudge
    from buttress.review.room import SuspectRoom

app = typer.Typer(rich_markup_mode="markdown")


@dataclass(frozen=True)
class ReviewOptions(JudgingOptions):
    """The options of the command, by their names."""

    data: DataFile
    target: Target
    store: Annotated[
        Path | None, typer.Option(help="Where decisions are kept; DATA.review.sqlite.")
    ] = None
    export: Annotated[
        Path | None, typer.Option(help="Write the corrections made so far to this file, and end.")
    ] = None
    key: Annotated[
        str | None, typer.Option(help="Column that identifies a row; else its number.")
    ] = None
    files: Files = None
    top: Annotated[
        int | None, typer.Option(min=1, help="Rows to review; else all worth a look.")
    ] = None
    order: Annotated[
        Literal["errors", "value"],
        typer.Option(help="First the surest errors, or those that matter most."),
    ] = "errors"
    every: Annotated[
        int, typer.Option(min=1, help="Decisions between two refits of the models.")
    ] = 20
    overlap: Annotated[
        float, typer.Option(min=0, max=1, help="Share of rows that two reviewers see.")
    ] = 0.1
    _: KW_ONLY  # what follows stands after the inherited options in --help
    host: Host = "127.0.0.1"
    port: Port = 8010
    token_file: TokenFile = None
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True

    @property
    def kept_in(self) -> Path:
        """The file of decisions."""
        return self.store or self.data.with_name(self.data.name + ".review.sqlite")


@command(app, ReviewOptions)
def review(options: ReviewOptions) -> None:
    """Review the labels of a file on a local page, the most suspicious first.

    Every decision is on disk before the page says so; start the command again to continue.
    Several people may review at once. The page listens on this machine only unless --host says
    otherwise, and then needs a token.

    **Examples:**

    - `buttress review patients.csv --target diagnosis`

    - `buttress review patients.csv --target diagnosis --export corrections.csv`
    """
    say, data, kept_in = options.output(), options.data, options.kept_in
    guard_files(
        [data, options.token_file, options.files],
        {"--store": kept_in, "--export": options.export},
    )
    check_files(options.files)
    if options.export is not None:
        existing_file(kept_in, "review")
        _export(options, say)
        return
    token = check_listening(options.host, options.token_file)
    from buttress.review.page import review_app
    from buttress.serve.running import run_server

    with limit_threads(options.jobs):
        read = read_labelled(data, options.target, options, options.key)
        judge = make_judge(read, options, strategy=options.order)
        say.say(
            f"judging {len(read.labels)} labels of {data}, or taking up the review in {kept_in}"
        )
        note_written(kept_in)
        room = _make_room(options, read, judge)

        def tell(address: str) -> None:
            say.say(f"review on {address}/ (Ctrl-C ends it; nothing is lost)")
            say.result({"address": f"{address}/", "store": str(kept_in), "rows": len(read.labels)})
            if options.browser and say.talks:
                webbrowser.open(f"{address}/")

        with closing(room):
            run_server(review_app(room, token), options.host, options.port, started=tell)


def _make_room(options: ReviewOptions, read: Labelled, judge: AuditJudge) -> SuspectRoom:
    from buttress.review.corrections import ROW_NUMBER
    from buttress.review.evidence import shown
    from buttress.review.room import SuspectRoom
    from buttress.review.store import ReviewStore

    key, data = options.key, options.data
    keys = None if key is None else [shown(value) for value in read.table[key]]
    if keys is not None and len(set(keys)) < len(keys):
        raise typer.BadParameter(f"--key {key}: two rows have the same value")
    store = ReviewStore(options.kept_in, overlap=options.overlap)
    try:
        store.remember("data", fingerprint(data)[:16])
        store.remember("target", options.target)
        store.remember("key", key or ROW_NUMBER)
        return SuspectRoom(
            store,
            read.table,
            read.labels,
            judge,
            title=f"{data.name} – {options.target}",
            features=read.features,
            keys=keys,
            key_column=key or ROW_NUMBER,
            every=options.every,
            top=options.top,
            files=options.files,
        )
    except BaseException:
        store.close()  # or its journals would stay beside it
        raise


def _export(options: ReviewOptions, say: Output) -> None:
    from buttress.review.corrections import write_corrections
    from buttress.review.progress import progress_of
    from buttress.review.room import corrections_of
    from buttress.review.store import ReviewStore

    assert options.export is not None
    out, store = options.export, ReviewStore(options.kept_in)
    store.remember("data", fingerprint(options.data)[:16])
    store.remember("target", options.target)
    if options.key is not None:
        store.remember("key", options.key)
    made = corrections_of(store, store.known("key"))
    write_corrections(out, made)
    changed = sum(each.old_label != each.new_label for each in made)
    say.say(f"{progress_of(store).sentence}; {changed} labels changed; wrote {out}")
    say.result({"out": str(out), "corrections": len(made), "changed": changed})
