"""``buttress review``: open a page on which people check the suspect labels."""

from __future__ import annotations

import hashlib
import webbrowser
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from buttress._files import note_written
from buttress.cli._console import Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import Decimal, DecimalMark, existing_file, guard_files
from buttress.cli._labelled import (
    Categorical,
    Groups,
    Ignore,
    Keep,
    Labelled,
    Witnesses,
    make_judge,
    read_labelled,
)
from buttress.cli._web import Files, Host, Port, TokenFile, check_files, check_listening

if TYPE_CHECKING:
    from buttress.review.judges import AuditJudge
    from buttress.review.room import SuspectRoom

app = typer.Typer(rich_markup_mode="markdown")


class Order(StrEnum):
    """What ``--order`` accepts."""

    errors = "errors"
    value = "value"


Store = Annotated[Path | None, typer.Option(help="Where decisions are kept; DATA.review.sqlite.")]
Export = Annotated[
    Path | None, typer.Option(help="Write the corrections made so far to this file, and end.")
]
Key = Annotated[str | None, typer.Option(help="Column that identifies a row; else its number.")]
Top = Annotated[int | None, typer.Option(min=1, help="Rows to review; else all worth a look.")]
OrderBy = Annotated[Order, typer.Option(help="First the surest errors, or those that matter most.")]
Every = Annotated[int, typer.Option(min=1, help="Decisions between two refits of the models.")]
Overlap = Annotated[float, typer.Option(min=0, max=1, help="Share of rows that two reviewers see.")]
Browser = Annotated[bool, typer.Option(help="Open the page in a browser.")]


@app.command()
def review(
    data: Annotated[Path, typer.Argument(help="CSV (also .csv.gz) or Parquet file.")],
    target: Annotated[str, typer.Option("--target", "-t", help="Column of the labels.")],
    store: Store = None,
    export: Export = None,
    key: Key = None,
    files: Files = None,
    top: Top = None,
    order: OrderBy = Order.errors,
    every: Every = 20,
    overlap: Overlap = 0.1,
    witnesses: Witnesses = None,
    groups: Groups = None,
    keep: Keep = None,
    ignore: Ignore = None,
    categorical: Categorical = None,
    decimal: DecimalMark = Decimal.point,
    host: Host = "127.0.0.1",
    port: Port = 8010,
    token_file: TokenFile = None,
    browser: Browser = True,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Review the labels of a file on a local page, the most suspicious first.

    Every decision is on disk before the page says so; start the command again to continue.
    Several people may review at once. The page listens on this machine only unless --host says
    otherwise, and then needs a token.

    **Examples:**

    - `buttress review patients.csv --target diagnosis`

    - `buttress review patients.csv --target diagnosis --export corrections.csv`
    """
    say = Output(json, quiet)
    kept_in = store or data.with_name(data.name + ".review.sqlite")
    guard_files([data, token_file, files], {"--store": kept_in, "--export": export})
    check_files(files)
    if export is not None:
        _export(existing_file(kept_in, "review"), export, say, data, target)
        return
    token = check_listening(host, token_file)
    from buttress.review.page import review_app
    from buttress.serve.running import run_server

    with limit_threads(jobs):
        read = read_labelled(
            data,
            target,
            keep=keep,
            key=key,
            ignore=ignore,
            groups=groups,
            categorical=categorical,
            decimal=decimal,
        )
        judge = make_judge(read, witnesses=witnesses, strategy=order, seed=seed, jobs=jobs)
        say.say(
            f"judging {len(read.labels)} labels of {data}, or taking up the review in {kept_in}"
        )
        note_written(kept_in)
        asked = _Review(data, target, kept_in, key, every, top, overlap, files)
        room = _make_room(asked, read, judge)

        def tell(address: str) -> None:
            say.say(f"review on {address}/ (Ctrl-C ends it; nothing is lost)")
            say.result({"address": f"{address}/", "store": str(kept_in), "rows": len(read.labels)})
            if browser and not json and not quiet:
                webbrowser.open(f"{address}/")

        with closing(room):
            run_server(review_app(room, token), host, port, started=tell)


@dataclass(frozen=True)
class _Review:
    """What a review is of, and how it goes; the options by their names."""

    data: Path
    target: str
    store: Path
    key: str | None
    every: int
    top: int | None
    overlap: float
    files: Path | None


def _make_room(asked: _Review, read: Labelled, judge: AuditJudge) -> SuspectRoom:
    from buttress.review.corrections import ROW_NUMBER
    from buttress.review.evidence import shown
    from buttress.review.room import SuspectRoom
    from buttress.review.store import ReviewStore

    key, data = asked.key, asked.data
    keys = None if key is None else [shown(value) for value in read.table[key]]
    if keys is not None and len(set(keys)) < len(keys):
        raise typer.BadParameter(f"--key {key}: two rows have the same value")
    store = ReviewStore(asked.store, overlap=asked.overlap)
    try:
        store.remember("data", _fingerprint(data))
        store.remember("target", asked.target)
        store.remember("key", key or ROW_NUMBER)
        return SuspectRoom(
            store,
            read.table,
            read.labels,
            judge,
            title=f"{data.name} – {asked.target}",
            features=read.features,
            keys=keys,
            key_column=key or ROW_NUMBER,
            every=asked.every,
            top=asked.top,
            files=asked.files,
        )
    except BaseException:
        store.close()  # or its journals would stay beside it
        raise


def _fingerprint(data: Path) -> str:
    """Tells one version of a file from another."""
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _export(kept_in: Path, out: Path, say: Output, data: Path, target: str) -> None:
    from buttress.review.corrections import write_corrections
    from buttress.review.progress import progress_of
    from buttress.review.room import corrections_of
    from buttress.review.store import ReviewStore

    store = ReviewStore(kept_in)
    store.remember("data", _fingerprint(data))
    store.remember("target", target)
    made = corrections_of(store, store.known("key"))
    write_corrections(out, made)
    changed = sum(each.old_label != each.new_label for each in made)
    say.say(f"{progress_of(store).sentence}; {changed} labels changed; wrote {out}")
    say.result({"out": str(out), "corrections": len(made), "changed": changed})
