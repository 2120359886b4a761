"""``buttress stream``: answer and learn row by row, for as long as rows come."""

from __future__ import annotations

import stat
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import CommandError, Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import existing_file, guard_files

if TYPE_CHECKING:
    from buttress.cli._stream_run import Run

app = typer.Typer()


class Learner(StrEnum):
    """What ``--model`` accepts."""

    pa_ramp = "pa-ramp"
    perceptron = "perceptron"
    pegasos = "pegasos"
    norma = "norma"


class Kind(StrEnum):
    """What ``--format`` accepts."""

    csv = "csv"
    jsonl = "jsonl"


class Policy(StrEnum):
    """What ``--budget-policy`` accepts."""

    merge = "merge"
    project = "project"
    forget = "forget"
    forget_oldest = "forget_oldest"


class Drift(StrEnum):
    """What ``--drift`` accepts."""

    page_hinkley = "page-hinkley"


# The options that belong to a model, by the name of the estimator's parameter.
_OWN = {
    Learner.pa_ramp: ("s",),
    Learner.perceptron: (),
    Learner.pegasos: ("alpha",),
    Learner.norma: ("eta", "alpha", "tau"),
}


@app.command()
def stream(
    data: Annotated[
        Path | None, typer.Argument(help="CSV or JSON lines; standard input if not given or -.")
    ] = None,
    target: Annotated[str, typer.Option("--target", "-t", help="Name of the label.")] = "label",
    classes: Annotated[
        str | None,
        typer.Option(help="All labels that can come: a,b. Else those of the warm-up rows."),
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Names of the features: a,b. Else all other columns.")
    ] = None,
    kind: Annotated[
        Kind | None, typer.Option("--format", help="Of the input; else by the file's name.")
    ] = None,
    model: Annotated[Learner, typer.Option(help="The learner.")] = Learner.pa_ramp,
    s: Annotated[float | None, typer.Option("--s", help="pa-ramp: margin of the refusal.")] = None,
    alpha: Annotated[float | None, typer.Option(help="pegasos, norma: the penalty.")] = None,
    eta: Annotated[float | None, typer.Option(help="norma: length of a step.")] = None,
    tau: Annotated[float | None, typer.Option(help="norma: smallest coefficient.")] = None,
    kernel: Annotated[str, typer.Option(help="Name of the kernel.")] = "rbf",
    gamma: Annotated[
        str, typer.Option(help="Its width: a number, or scale, auto, median of the warm-up rows.")
    ] = "scale",
    budget: Annotated[
        int | None, typer.Option(min=1, help="Support vectors at most; unbounded if not given.")
    ] = None,
    budget_policy: Annotated[
        Policy, typer.Option(help="What happens to one too many.")
    ] = Policy.merge,
    drift: Annotated[
        Drift | None, typer.Option(help="Watch for drift and replace the model when it helps.")
    ] = None,
    block_size: Annotated[
        int, typer.Option(min=1, help="Rows read before they are answered; 1 answers at once.")
    ] = 64,
    warm_up: Annotated[
        int, typer.Option(min=1, help="First rows that fix scale and width; answered after that.")
    ] = 256,
    scale: Annotated[
        bool, typer.Option(help="Standardise by the warm-up rows, then never again.")
    ] = True,
    key: Annotated[
        str | None, typer.Option(help="Field that identifies a row, repeated in the output.")
    ] = None,
    label_stream: Annotated[
        Path | None, typer.Option(help="Labels that come later, with the key of their row.")
    ] = None,
    max_pending: Annotated[
        int, typer.Option(min=1, help="Rows that wait for a label at most; the oldest go.")
    ] = 100_000,
    out: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="One line per row; else stdout.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="Malformed lines go here, with number and reason.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="File to save the state in.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")] = 10_000,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint if it exists.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Answer every row, then learn it if it has a label; write one line per row.

    Each line says the answer given before the label was looked at, the score, the label, and
    what happened: updated, unchanged, skipped (the ramp took the label for wrong) or
    unlabelled. Lines that are no rows go to --rejects and the stream goes on. With
    --checkpoint the state is saved every --every rows; after a crash the same command with
    --resume continues without losing or repeating a line (the input must be the same file,
    or be sent again from its start). Nothing here is random, so --seed changes nothing.

    Examples:

      buttress stream rows.csv --target label --out answers.csv --checkpoint state.ckpt

      tail -f rows.jsonl | buttress stream --classes no,yes --block-size 1

      buttress stream rows.csv --key id --label-stream labels.csv --out answers.csv
    """
    say = Output(json, quiet)
    if resume and (checkpoint is None or out is None):
        raise typer.BadParameter(
            "--resume needs --checkpoint and --out: lines already sent to standard output "
            "cannot be taken back"
        )
    if checkpoint is not None and checkpoint.exists() and not resume:
        raise typer.BadParameter(
            f"{checkpoint} exists: give --resume to continue that run, or remove the file"
        )
    if (label_stream is None) != (key is None) and label_stream is not None:
        raise typer.BadParameter("--label-stream needs --key, the field that joins the two")
    source = None if data is None or str(data) == "-" else existing_file(data)
    guard_files(
        [source, label_stream], {"--out": out, "--rejects": rejects, "--checkpoint": checkpoint}
    )
    own = {"s": s, "alpha": alpha, "eta": eta, "tau": tau}
    for name, value in own.items():
        if value is not None and name not in _OWN[model]:
            raise typer.BadParameter(f"--{name} does not belong to --model {model}")
    params: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
    params |= {
        "kernel": kernel,
        "gamma": _width(gamma),
        "budget": budget,
        "budget_policy": str(budget_policy),
        "drift": None if drift is None else str(drift),
        "block_size": block_size,
    }
    settings = {
        "model": str(model),
        **params,
        "target": target,
        "classes": classes,
        "features": features,
        "key": key,
        "warm_up": warm_up,
        "scale": scale,
        "label_stream": label_stream is not None,
    }
    work = _make_run(
        source,
        _learner(model, params),
        settings,
        kind,
        label_stream,
        max_pending,
        out,
        rejects,
        checkpoint,
        every,
        json,
    )
    with limit_threads(jobs):
        work.start(resume)
        work.work()
    _conclude(work, say, out)


def _width(gamma: str) -> str | float:
    if gamma in ("scale", "auto", "median"):
        return gamma
    try:
        return float(gamma)
    except ValueError:
        raise typer.BadParameter(
            f"--gamma {gamma} is not accepted: a number, scale, auto or median"
        ) from None


def _learner(model: Learner, params: dict[str, Any]) -> Any:
    import buttress

    names = {
        Learner.pa_ramp: "PARampClassifier",
        Learner.perceptron: "KernelPerceptron",
        Learner.pegasos: "KernelPegasos",
        Learner.norma: "Norma",
    }
    learner = getattr(buttress, names[model])(**params)
    try:
        learner._check_parameters(continuing=True)
        if params["kernel"] == "precomputed":
            raise ValueError("kernel='precomputed' is not accepted: a stream has no Gram matrix.")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return learner


def _make_run(
    source: Path | None,
    learner: Any,
    settings: dict[str, Any],
    kind: Kind | None,
    label_stream: Path | None,
    max_pending: int,
    out: Path | None,
    rejects: Path | None,
    checkpoint: Path | None,
    every: int,
    as_json: bool,
) -> Run:
    from buttress.cli._stream_labels import LabelStream
    from buttress.cli._stream_rows import LineReader, RowParser, guess_kind
    from buttress.cli._stream_run import Lines, Run

    target, key = settings["target"], settings["key"]
    form = guess_kind(source, None if kind is None else str(kind))
    file = sys.stdin.buffer if source is None else source.open("rb")
    labels = None
    if label_stream is not None:
        parser = RowParser(guess_kind(label_stream, None), target, key, [])
        labels = LabelStream(_open_growing(existing_file(label_stream)), parser, max_pending)
    return Run(
        learner=learner,
        parser=RowParser(form, target, key, _names(settings["features"])),
        reader=LineReader(file, seekable=source is not None),
        out=Lines(out),
        rejects=Lines(rejects),
        labels=labels,
        checkpoint=checkpoint,
        every=every,
        warm_up=settings["warm_up"],
        scale=settings["scale"],
        classes=_names(settings["classes"]),
        as_json=as_json or form == "jsonl",
        settings=settings,
    )


def _open_growing(path: Path) -> Any:
    """A file that somebody may still be writing; a pipe must not block the rows."""
    from buttress.cli._stream_rows import LineReader, PipeLines

    if stat.S_ISFIFO(path.stat().st_mode):
        return LineReader(PipeLines(path), seekable=False)
    return LineReader(path.open("rb"), seekable=True, growing=True)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _conclude(run: Run, say: Output, out: Path | None) -> None:
    learner = run.learner
    known = hasattr(learner, "classes_")
    summary = {
        "rows": run.counts["rows"],
        "rejected": run.rejected,
        "labelled": learner.n_labelled_ if known else 0,
        "mistakes": learner.n_mistakes_ if known else 0,
        "progressive_error": learner.progressive_error_ if known else None,
        "windowed_error": learner.windowed_error_ if known else None,
        "updates": learner.n_updates_ if known else 0,
        "skipped": learner.n_skipped_ if known else 0,
        "support_vectors": len(learner.support_) if known else 0,
        "drifts": learner.n_drifts_ if known else 0,
    }
    if run.labels is not None:
        summary["waiting"] = len(run.labels.waiting)
        summary["given_up"] = run.labels.n_given_up
    say.note(
        f"{summary['rows']} rows answered, {summary['labelled']} learned, "
        f"{summary['rejected']} rejected; progressive error "
        f"{100 * (summary['progressive_error'] or 0):.2f} %, "
        f"{summary['support_vectors']} support vectors, {summary['skipped']} labels refused"
    )
    if out is not None:
        say.result(summary)
    if not run.counts["rows"] and run.rejected:
        raise CommandError(f"none of the {run.rejected} lines is a row; {run.first_reason}")
