"""The work of ``buttress stream``: check the options, build the run, let it run."""

from __future__ import annotations

import inspect
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from buttress._files import is_device
from buttress.classifiers.online import learner_names
from buttress.cli._console import CommandError, Output, limit_threads
from buttress.cli._inputs import as_table_model, existing_file, guard_files, load_model, names

if TYPE_CHECKING:
    from buttress.cli.stream import StreamOptions
    from buttress.tables.stream import StreamPlan, StreamRun


# Options that only some learners have, by the name of the estimator's parameter.
_OWN = ("s", "alpha", "eta", "tau")

# What the kinds of input are called.
_FORMS = {"csv": "CSV", "jsonl": "JSON lines"}

# What a saved model brings along.
_FIXED = {
    name: "--" + name.replace("_", "-")
    for name in (
        "model", "classes", "features", "s", "alpha", "eta", "tau", "kernel", "gamma", "budget",
        "budget_policy", "drift", "warm_up", "scale", "d", "target_coverage", "target_risk",
    )
}  # fmt: skip


def run_stream(options: StreamOptions) -> None:
    """Check everything that can be checked, then answer and learn."""
    say = options.output()
    _check_model(options.model)
    _check_files(options)
    source, start = options.source, options.start_from
    from buttress.model_selection.preparing import job_of_learner
    from buttress.tables.stream import Columns, LineReader, Lines, RowParser, StreamRun, guess_kind

    form = guess_kind(source, options.kind)
    target = options.target
    columns = Columns(None if options.features is None else names(options.features))
    encoder = None
    if start is None:
        learner = _learner(options)
    else:
        _refuse_fixed(options)
        learner, encoder, columns, wanted = _fitted(start)
        target = wanted if target is None else target
    target = "label" if target is None else target
    with limit_threads(options.jobs), _opened(source) as file:
        say.compile([job_of_learner(learner)])
        work = StreamRun(
            learner=learner,
            parser=RowParser(form, target, options.key, columns, options.decimal),
            reader=LineReader(file, str(source or "the input"), seekable=source is not None),
            out=Lines(options.out),
            rejects=Lines(options.rejects),
            plan=_plan(options, form),
            checkpoint=options.checkpoint,
            labels=_label_stream(options.label_stream, target, options.key, options.max_pending),
            encoder=encoder,
        )
        work.run(resume=options.resume)
    conclude(work, say, options.out)


def _check_model(model: str) -> None:
    known = learner_names()
    if model not in known:
        # what may have been meant is added where all such messages end
        raise typer.BadParameter(f"--model {model!r} is not one of {', '.join(map(repr, known))}")


def _check_files(options: StreamOptions) -> None:
    """Refuse what would lose something, before anything is opened."""
    if options.label_stream is not None and options.key is None:
        raise typer.BadParameter("--label-stream needs --key, the field that joins the two")
    checkpoint, inputs = options.checkpoint, [options.source, options.label_stream]
    outputs = {"--out": options.out, "--rejects": options.rejects, "--checkpoint": checkpoint}
    guard_files([*inputs, options.start_from, _standard_input(options)], outputs)
    for path in inputs:
        if path is not None:
            _refuse_other_files(existing_file(path))
    if options.resume and (checkpoint is None or options.out is None):
        raise typer.BadParameter(
            "--resume needs --checkpoint and --out: lines already sent to standard output "
            "cannot be taken back"
        )
    if checkpoint is not None and checkpoint.exists() and not options.resume:
        raise typer.BadParameter(
            f"{checkpoint} exists: give --resume to continue that run, or remove the file"
        )


def _refuse_other_files(path: Path) -> None:
    """Refuse a file that is no text; a pipe is left to its reader."""
    from buttress.tables.other_files import other_kind

    what = "" if is_device(path) else other_kind(path)
    if what:
        raise typer.BadParameter(
            f"{path}: {what.partition(':')[0]}; a stream reads CSV or JSON lines "
            f"('buttress convert {path} rows.csv' makes CSV of a table)"
        )


def _standard_input(options: StreamOptions) -> Path | None:
    """A name for the standard input when rows come from there: the shell may have opened a file."""
    named = Path("/dev/stdin")
    return named if options.source is None and named.exists() else None


def _plan(options: StreamOptions, form: str) -> StreamPlan:
    from buttress.tables.grammar import to_label
    from buttress.tables.stream import StreamPlan

    announced = options.classes
    start = options.start_from
    return StreamPlan(
        every=options.every,
        warm_up=options.warm_up,
        scale=options.scale,
        classes=None if announced is None else [to_label(name) for name in names(announced)],
        as_json=options.json or form == "jsonl",
        block_rows=options.block_size,
        settings={
            "model": options.model,
            **options.parameters(),
            "features": options.features,
            "from": None if start is None else str(start),
        },
    )


def _refuse_fixed(options: StreamOptions) -> None:
    """With ``--from`` a saved model decides about these."""
    for name, option in _FIXED.items():
        source = options.context.get_parameter_source(name)
        if str(getattr(source, "name", "")) == "COMMANDLINE":
            raise typer.BadParameter(f"{option} does not go with --from: the model has its own")


def _learner(options: StreamOptions) -> Any:
    import buttress.classifiers.online as learners

    estimator = getattr(learners, learner_names()[options.model])
    accepted = inspect.signature(estimator).parameters
    for name in _OWN:
        if getattr(options, name) is not None and name not in accepted:
            raise typer.BadParameter(f"--{name} does not belong to --model {options.model}")
    learner = estimator(**options.parameters())
    try:
        learner._check_parameters(continuing=True)
        if options.kernel == "precomputed":
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
        if sys.stdin is None:
            raise typer.BadParameter("there is no standard input: name the file of rows")
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


def conclude(run: StreamRun, say: Output, out: Path | None) -> None:
    """Say what became of the rows."""
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
    answered = f"{run.n_rows} rows answered"
    if known and getattr(learner, "_band", None) is not None:
        summary |= {"coverage": learner.coverage_, "answered_error": learner.answered_error_}
        answered = (
            f"{run.n_rows} rows, {100 * learner.coverage_:.2f} % answered, of the answers "
            f"{100 * learner.answered_error_:.2f} % wrong"
        )
    if run.labels is not None:
        summary["waiting"] = len(run.labels.waiting)
        summary["given_up"] = run.labels.n_given_up
    say.note(
        f"{answered}, {summary['rejected']} lines rejected; the model has "
        f"learned {summary['labelled']} rows, progressive error "
        f"{100 * (summary['progressive_error'] or 0):.2f} %, "
        f"{summary['support_vectors']} support vectors, {summary['skipped']} labels refused"
    )
    if out is not None:
        say.result(summary)
    if not run.n_rows and run.rejected:
        raise CommandError(
            f"none of the {run.rejected} lines is a row (read as {_FORMS[run.parser.kind]}; "
            f"--format says otherwise); {run.first_reason}"
        )
