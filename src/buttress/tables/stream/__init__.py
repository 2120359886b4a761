"""Streams of rows: read line by line, answered, learned, written, and taken up after a crash.

A newcomer changes `rows` for what a line may be and `run` for what happens to it; `outputs`
holds what an interrupted run must find again, `_ahead` what it was about to write,
and `model` the way from models to streams and back. The cells themselves follow
`buttress.tables.grammar`. Others import the names below.
"""

from buttress._lazy import attach

_HOME = {
    "Columns": "rows",
    "LabelStream": "_labels",
    "LineReader": "rows",
    "Lines": "outputs",
    "PipeLines": "rows",
    "RowParser": "rows",
    "StreamChanged": "outputs",
    "StreamInterrupted": "run",
    "StreamPlan": "run",
    "StreamRun": "run",
    "guess_kind": "rows",
    "learner_of": "model",
    "model_of_checkpoint": "model",
}

__all__ = list(_HOME)

__getattr__, __dir__ = attach(__name__, _HOME)
