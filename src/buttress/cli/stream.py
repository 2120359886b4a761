"""``buttress stream``: answer and learn row by row, for as long as rows come."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from buttress.cli._console import CommandError, Jobs, Json, Output, Quiet, Seed, limit_threads
from buttress.cli._inputs import (
    Decimal,
    DecimalMark,
    as_table_model,
    existing_file,
    guard_files,
    load_model,
    names,
)

if TYPE_CHECKING:
    from buttress.tables.stream import StreamRun

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


# What a saved model brings along.
_FIXED = {
    name: "--" + name.replace("_", "-")
    for name in (
        "model", "classes", "features", "s", "alpha", "eta", "tau", "kernel", "gamma", "budget",
        "budget_policy", "drift", "warm_up", "scale", "d", "target_coverage", "target_risk",
    )
}  # fmt: skip


@app.command()
def stream(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Argument(help="CSV or JSON lines; standard input if not given or -.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Name of the label; 'label', or that of --from."),
    ] = None,
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
    decimal: DecimalMark = Decimal.point,
    model: Annotated[Learner, typer.Option(help="The learner.")] = Learner.pa_ramp,
    start_from: Annotated[
        Path | None,
        typer.Option("--from", help="Go on with a model of 'fit --model online', or a checkpoint."),
    ] = None,
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
    d: Annotated[
        float | None, typer.Option("--d", help="Cost of no answer: refuse where errors cost more.")
    ] = None,
    target_coverage: Annotated[
        float | None, typer.Option(help="Share of the rows to answer in the long run.")
    ] = None,
    target_risk: Annotated[
        float | None, typer.Option(help="Error among the answers in the long run.")
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
    or be sent again from its start). The checkpoint is also a model for 'buttress predict'.
    With --from, columns, scale, classes and learner are those of a saved model, and options
    about them do not apply. Nothing here is random, so --seed changes nothing.

    Examples:

      buttress stream rows.csv --target label --out answers.csv --checkpoint state.ckpt

      tail -f rows.jsonl | buttress stream --classes no,yes --block-size 1

      buttress stream rows.csv --key id --label-stream labels.csv --out answers.csv
    """
    say = Output(json, quiet)
    if label_stream is not None and key is None:
        raise typer.BadParameter("--label-stream needs --key, the field that joins the two")
    source = None if data is None or str(data) == "-" else data
    guard_files(
        [source, label_stream, start_from],
        {"--out": out, "--rejects": rejects, "--checkpoint": checkpoint},
    )
    for path in (source, label_stream):
        if path is not None:
            existing_file(path)
    if resume and (checkpoint is None or out is None):
        raise typer.BadParameter(
            "--resume needs --checkpoint and --out: lines already sent to standard output "
            "cannot be taken back"
        )
    if checkpoint is not None and checkpoint.exists() and not resume:
        raise typer.BadParameter(
            f"{checkpoint} exists: give --resume to continue that run, or remove the file"
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
    wanted_band = {"d": d, "target_coverage": target_coverage, "target_risk": target_risk}
    params |= {name: value for name, value in wanted_band.items() if value is not None}
    from buttress.tables.grammar import to_label
    from buttress.tables.stream import (
        Columns,
        LineReader,
        Lines,
        RowParser,
        StreamPlan,
        StreamRun,
        guess_kind,
    )

    form = guess_kind(source, None if kind is None else str(kind))
    announced = None if classes is None else [to_label(name) for name in names(classes)]
    plan = StreamPlan(
        every=every,
        warm_up=warm_up,
        scale=scale,
        classes=announced,
        as_json=json or form == "jsonl",
        block_rows=block_size,
        settings={
            "model": str(model),
            **params,
            "features": features,
            "from": None if start_from is None else str(start_from),
        },
    )
    columns = Columns(None if features is None else names(features))
    encoder = None
    if start_from is None:
        learner = _learner(model, params)
    else:
        for name, option in _FIXED.items():
            if str(getattr(context.get_parameter_source(name), "name", "")) == "COMMANDLINE":
                raise typer.BadParameter(f"{option} does not go with --from: the model has its own")
        learner, encoder, columns, wanted = _fitted(start_from)
        target = wanted if target is None else target
    target = "label" if target is None else target
    with limit_threads(jobs), _opened(source) as file:
        work = StreamRun(
            learner=learner,
            parser=RowParser(form, target, key, columns, str(decimal)),
            reader=LineReader(file, str(source or "the input"), seekable=source is not None),
            out=Lines(out),
            rejects=Lines(rejects),
            plan=plan,
            checkpoint=checkpoint,
            labels=_label_stream(label_stream, target, key, max_pending),
            encoder=encoder,
        )
        work.run(resume=resume)
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


def _fitted(path: Path) -> tuple[Any, Any, Any, str | None]:
    """The learner of a saved model, its encoder, its columns, and the name of its label."""
    from buttress.tables.stream import Columns, learner_of

    model = as_table_model(load_model(path)[0])
    try:
        learner = learner_of(model)
    except ValueError as error:
        raise typer.BadParameter(f"--from {path}: {error}") from None
    encoder = model.encoder_
    if encoder.derived_columns():
        named = ", ".join(encoder.derived_columns())
        raise typer.BadParameter(
            f"--from {path}: columns of dates and free text ({named}) cannot go on in a stream"
        )
    names = [str(name) for name in encoder.feature_names_in_]
    return (
        learner,
        encoder,
        Columns(names, encoder.categories_, encoder.missing == "impute"),
        model.target,
    )


@contextmanager
def _opened(source: Path | None) -> Iterator[Any]:
    if source is None:
        yield sys.stdin.buffer
        return
    with source.open("rb") as file:
        yield file


def _label_stream(path: Path | None, target: str, key: str | None, max_pending: int) -> Any:
    """Labels from a file that somebody may still be writing; a pipe must not block the rows."""
    from buttress.tables.stream import (
        Columns,
        LabelStream,
        LineReader,
        PipeLines,
        RowParser,
        guess_kind,
    )

    if path is None:
        return None
    if stat.S_ISFIFO(path.stat().st_mode):
        reader = LineReader(PipeLines(path), str(path), seekable=False)
    else:
        reader = LineReader(path.open("rb"), str(path), seekable=True, growing=True)
    parser = RowParser(guess_kind(path, None), target, key, Columns([]))
    return LabelStream(reader, parser, max_pending)


def _conclude(run: StreamRun, say: Output, out: Path | None) -> None:
    learner = run.learner
    known = hasattr(learner, "classes_")
    summary = {
        "rows": run.n_rows,
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
    if known and getattr(learner, "_band", None) is not None:
        summary |= {"coverage": learner.coverage_, "answered_error": learner.answered_error_}
    if run.labels is not None:
        summary["waiting"] = len(run.labels.waiting)
        summary["given_up"] = run.labels.n_given_up
    say.note(
        f"{summary['rows']} rows answered, {summary['rejected']} lines rejected; the model has "
        f"learned {summary['labelled']} rows, progressive error "
        f"{100 * (summary['progressive_error'] or 0):.2f} %, "
        f"{summary['support_vectors']} support vectors, {summary['skipped']} labels refused"
    )
    if out is not None:
        say.result(summary)
    if not run.n_rows and run.rejected:
        raise CommandError(f"none of the {run.rejected} lines is a row; {run.first_reason}")
