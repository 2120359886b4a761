"""What a checkpoint of a stream holds, and how a run takes it up: nothing is believed unchecked."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from buttress._files import held_by_one, sweep
from buttress.classifiers.online.checkpoint import read_checkpoint
from buttress.tables.stream.model import encoder_from, encoder_state

if TYPE_CHECKING:
    from buttress.tables.stream.run import StreamRun

_EVENTS = ("updated", "unchanged", "skipped", "unlabelled")

# Of an output before its first line.
_NOTHING = {"size": 0, "sha256": hashlib.sha256().hexdigest()}


@contextmanager
def held_checkpoint(run: StreamRun, *, resume: bool) -> Iterator[None]:
    """Keep other processes from the checkpoint, take it up, and put down what is to be written.

    Raises
    ------
    ValueError
        As `take_up`.
    """
    checkpoint = run.checkpoint
    if checkpoint is None:
        yield
        return
    with held_by_one(checkpoint, f"{checkpoint} is in use by another process; wait for its end"):
        sweep(checkpoint)
        outputs = {"out": run.out, "rejects": run.rejects}
        target = Path(os.path.realpath(checkpoint))
        for name, output in outputs.items():
            output.keep_ahead(target.with_name(f".{target.name}.{name}.buttress-ahead"))
        if resume and checkpoint.exists():
            take_up(run, read_checkpoint(checkpoint))
        elif resume:
            _start_again(run)
        try:
            for output in outputs.values():
                output.saved()
            yield
        finally:
            for output in outputs.values():
                output.close_ahead()


def saved_state(run: StreamRun) -> dict[str, Any]:
    """Everything that a resumed run needs; learner, input and outputs agree in it."""
    assert run.encoder is not None
    return {
        "learner": run.learner._state(),
        "settings": settings_of(run),
        "run": {
            "input": run.reader.state(),
            "header": run.parser.header_line,
            "delimiter": run.parser.delimiter,
            "columns": {"target": run.parser.target, "key": run.parser.key},
            "encoder": encoder_state(run.encoder),
            "out": run.out.state(),
            "rejects": run.rejects.state(),
            "rejected": run.rejected,
            "rows": run.n_rows,
            "last_line": run.last_line,
            "labels": None if run.labels is None else run.labels.state(),
        },
    }


def settings_of(run: StreamRun) -> dict[str, Any]:
    """What must be the same when the run is resumed."""
    plan = run.plan
    classes = None if plan.classes is None else [str(each) for each in plan.classes]
    return plan.settings | {
        "format": run.parser.kind,
        "json": plan.as_json,
        "target": run.parser.target,
        "key": run.parser.key,
        "decimal": run.parser.decimal,
        "classes": classes,
        "warm_up": plan.warm_up,
        "scale": plan.scale,
        "label_stream": run.labels is not None,
    }


def take_up(run: StreamRun, content: dict[str, Any]) -> None:
    """Continue a run from its checkpoint.

    Raises
    ------
    ValueError
        When the checkpoint is another run's, or (`StreamChanged`) a file is not as the run left
        it; nothing was written.
    """
    saved, asked = content.get("settings"), settings_of(run)
    if saved is None:
        raise ValueError(f"{run.checkpoint} was not written by `buttress stream`")
    changed = [name for name in asked if saved.get(name) != asked[name]]
    if changed:
        raise ValueError(
            f"{run.checkpoint} was written with another "
            + ", ".join(f"{name} ({saved.get(name)!r})" for name in changed)
            + "; resume with the same options"
        )
    try:
        _continue(run, content["run"], content["learner"])
    except (ValueError, OSError):
        raise
    except Exception as error:  # whole and sealed, but not what this version writes
        raise ValueError(f"{run.checkpoint} cannot be read by this version: {error!r}") from None


def _continue(run: StreamRun, state: dict[str, Any], learner: dict[str, Any]) -> None:
    run.last_line = int(state["last_line"])
    run.rejects.check(state["rejects"], _is_reject)
    run.out.check(state["out"], lambda text: _is_answer(run, text))
    run.reader.skip_to(state["input"])
    if run.labels is not None:
        run.labels.reader.skip_to(state["labels"]["input"])
        run.labels.restore(state["labels"])
    run.learner._restore(learner)
    run.encoder = encoder_from(state["encoder"])
    run.parser.header_line = state["header"]
    run.parser.delimiter = state["delimiter"]
    run.parser.features = [str(name) for name in run.encoder.feature_names_in_]
    run.know_classes(run.learner.classes_)
    run.rejected = run.marked_rejected = int(state["rejected"])
    run.n_rows = run.n_saved = int(state["rows"])
    run.out.resume(state["out"])
    run.rejects.resume(state["rejects"])


def _start_again(run: StreamRun) -> None:
    """Go on from before the first checkpoint; files that another has written are not touched."""
    run.rejects.check(_NOTHING, _is_reject)
    run.out.check(_NOTHING, lambda text: _is_answer(run, text))
    run.out.resume(_NOTHING)
    run.rejects.resume(_NOTHING)


def _is_answer(run: StreamRun, text: str) -> bool:
    """Whether a line behind the last checkpoint can be an answer of this run."""
    names = run.field_names()
    try:
        if run.plan.as_json:
            record = json.loads(text)
            fields = [record[name] for name in names]
        else:
            fields = next(csv.reader([text]))
        line, event = int(fields[0]), fields[-1]
    except (ValueError, KeyError, TypeError, IndexError, StopIteration):
        return False
    return len(fields) == len(names) and event in _EVENTS and line > run.last_line


def _is_reject(text: str) -> bool:
    try:
        return set(json.loads(text)) == {"stream", "line", "reason", "text"}
    except (ValueError, TypeError):
        return False
