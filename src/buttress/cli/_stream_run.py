"""One run over a stream: answer, learn, write a line per row, save where it stands."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from buttress._files import is_special, replacing
from buttress.classifiers.online.checkpoint import read_checkpoint, write_checkpoint
from buttress.classifiers.online.labels import answers
from buttress.cli._stream_labels import LabelStream
from buttress.cli._stream_rows import LineReader, Malformed, Row, RowParser


class Lines:
    """Lines written to a file that a resumed run can cut back, or to standard output.

    A new file is begun beside its place and renamed into it with the first lines: until a run
    has an answer to write, what was there before stays.

    Parameters
    ----------
    path : Path or None
        None is standard output.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.file: BinaryIO | None = None
        self.size = 0

    def resume(self, size: int) -> None:
        """Go on behind `size` bytes: what an interrupted run wrote beyond them goes."""
        self.size = size
        if self.path is not None and size > 0:
            self.file = self.path.open("r+b")
            self.file.truncate(size)
            self.file.seek(size)

    def write(self, lines: list[str]) -> None:
        """Add lines, each as soon as it is written."""
        if not lines:
            return
        data = ("\n".join(lines) + "\n").encode()
        if self.file is None:
            self._begin(data)
        else:
            self.file.write(data)
            self.file.flush()
        self.size += len(data)

    def _begin(self, data: bytes) -> None:
        if self.path is None:
            self.file = sys.stdout.buffer
        elif is_special(self.path):
            self.file = self.path.open("wb")
        else:
            with replacing(self.path) as file:
                file.write(data)
            self.file = self.path.open("r+b")
            self.file.seek(0, os.SEEK_END)
            return
        self.file.write(data)
        self.file.flush()

    def sync(self) -> None:
        """Have everything on disk."""
        if self.file is not None and self.path is not None and not is_special(self.path):
            os.fsync(self.file.fileno())

    def close(self) -> None:
        """The end; a file without a line is made too."""
        if self.path is None:
            return
        if self.file is None:
            self._begin(b"")
        assert self.file is not None
        self.file.close()


@dataclass(eq=False)
class Run:
    """The state of a run; `settings` must be the same when it is resumed."""

    learner: Any
    parser: RowParser
    reader: LineReader
    out: Lines
    rejects: Lines
    labels: LabelStream | None
    checkpoint: Path | None
    every: int
    warm_up: int
    scale: bool
    classes: list[str] | None
    as_json: bool
    settings: dict[str, Any]
    center: Any = None
    spread: Any = None
    rejected: int = 0
    first_reason: str = ""
    counts: dict[str, int] = field(default_factory=lambda: {"rows": 0, "saved": 0})

    # -- from start to end -----------------------------------------------------------------

    def start(self, resume: bool) -> None:
        """Begin, or take up what the checkpoint says."""
        if resume and self.checkpoint is not None and self.checkpoint.exists():
            self._restore(read_checkpoint(self.checkpoint))

    def work(self) -> None:
        """Read to the end."""
        if self.parser.kind == "csv" and self.parser.columns is None:
            header = self.reader.next()
            if header is None:
                raise ValueError("the input is empty: expected a CSV header")
            self.parser.header(header)
            if self.labels is None and self.parser.target not in (self.parser.columns or ()):
                raise ValueError(
                    f"the header has no column {self.parser.target!r} (--target), and there is no "
                    f"--label-stream: {self.parser.columns}"
                )
        if not hasattr(self.learner, "classes_"):
            self._warm_up()
        while self._block(int(self.learner.block_size)):
            if self.counts["rows"] - self.counts["saved"] >= self.every:
                self._save()
        while self.labels is not None and self._late_labels():
            pass
        self._save()
        self.out.close()
        self.rejects.close()

    def _warm_up(self) -> None:
        """Fix scale, width and classes from the first rows, then answer and learn them."""
        wanted = max(self.warm_up, int(self.learner.block_size))
        rows = self._read(wanted)
        if not rows:
            return
        X = np.array([row.features for row in rows])
        if self.scale:
            self.center = X.mean(axis=0)
            spread = X.std(axis=0)
            self.spread = np.where(spread > 0, spread, 1.0)
        if self.classes is None:
            self.classes = sorted({row.label for row in rows if row.label is not None})
            if len(self.classes) < 2:
                raise ValueError(
                    f"the first {len(rows)} rows have the classes {self.classes}; "
                    "name all of them with --classes a,b"
                )
        elif len(set(self.classes)) < 2:
            raise ValueError(f"--classes names one class only: {self.classes}")
        self.learner._open_stream(self._scaled(X), np.array(self.classes))
        step = int(self.learner.block_size)
        for begin in range(0, len(rows), step):
            self._process(rows[begin : begin + step])

    def _block(self, size: int) -> bool:
        rows = self._read(size)
        if rows:
            self._process(rows)
        return bool(rows)

    # -- rows ------------------------------------------------------------------------------

    def _read(self, wanted: int) -> list[Row]:
        rows: list[Row] = []
        while len(rows) < wanted:
            text = self.reader.next()
            if text is None:
                break
            if not text.strip():
                continue
            try:
                row = self.parser.parse(text, self.reader.lines)
                if row.label is not None and self.classes is not None:
                    self._announced(row.label)
                rows.append(row)
            except Malformed as reason:
                self._reject("rows", self.reader.lines, str(reason), text)
        return rows

    def _announced(self, label: str) -> None:
        if self.classes is not None and label not in self.classes:
            raise Malformed(f"the class {label!r} was not announced: {self.classes}")

    def _reject(self, stream: str, line: int, reason: str, text: str) -> None:
        self.rejected += 1
        self.first_reason = self.first_reason or f"line {line}: {reason}"
        if self.rejects.path is not None:
            record = {"stream": stream, "line": line, "reason": reason, "text": text}
            self.rejects.write([json.dumps(record)])

    def _scaled(self, X: Any) -> Any:
        return (X - self.center) / self.spread if self.scale else X

    def _process(self, rows: list[Row]) -> None:
        given = [self._label_now(row) for row in rows]
        codes = np.array([-1 if label is None else self._code(label) for label in given])
        X = self._scaled(np.array([row.features for row in rows]))
        start = self.learner.n_seen_
        outcome = self.learner._advance(X, codes)
        answered = answers(outcome.scores)
        lines = [] if self.counts["rows"] or self.as_json else [self._line(self._names())]
        best = outcome.scores.max(axis=1)
        for i, row in enumerate(rows):
            record: dict[str, Any] = {"line": row.line}
            if self.parser.key is not None:
                record["key"] = row.key
            happened = "unchanged"
            if codes[i] < 0:
                happened = "unlabelled"
            elif outcome.updated[i]:
                happened = "updated"
            elif outcome.refused[i]:
                happened = "skipped"
            record |= {
                "answer": self.learner.classes_[answered[i]].item(),
                "score": float(best[i]),
                "label": given[i],
                "event": happened,
            }
            lines.append(json.dumps(record) if self.as_json else self._line(record.values()))
            if self.labels is not None and codes[i] < 0:
                assert row.key is not None
                self.labels.wait(row.key, row.features, start + i, int(answered[i]))
        self.out.write(lines)
        self.counts["rows"] += len(rows)
        if self.labels is not None:
            self._late_labels()

    def _label_now(self, row: Row) -> str | None:
        if row.label is None and self.labels is not None and row.key is not None:
            return self.labels.label_of(row.key)
        return row.label

    def _code(self, label: str) -> int:
        assert self.classes is not None
        return sorted(self.classes).index(label)

    def _names(self) -> list[str]:
        key = [] if self.parser.key is None else ["key"]
        return ["line", *key, "answer", "score", "label", "event"]

    @staticmethod
    def _line(fields: Any) -> str:
        return ",".join(_quoted("" if item is None else str(item)) for item in fields)

    # -- labels that come later ------------------------------------------------------------

    def _late_labels(self) -> bool:
        """Learn what at most one block of label lines says; False when there were none."""
        assert self.labels is not None
        learned, found = [], False
        for _ in range(int(self.learner.block_size)):
            try:
                pair = self.labels.next()
                if pair is None:
                    break
                found = True
                key, label = pair
                self._announced(label)
                if key in self.labels.waiting:
                    learned.append((*self.labels.waiting.pop(key), self._code(label)))
                else:
                    self.labels.keep_early(key, label)
            except Malformed as reason:
                found = True
                self._reject("labels", self.labels.reader.lines, str(reason), "")
        if learned:
            features, positions, given, codes = zip(*learned, strict=True)
            self.learner._advance(
                self._scaled(np.array(features)),
                np.array(codes),
                positions=np.array(positions),
                answered=np.array(given),
            )
        return found

    # -- saving ----------------------------------------------------------------------------

    def _save(self) -> None:
        self.counts["saved"] = self.counts["rows"]
        if self.checkpoint is None or not hasattr(self.learner, "classes_"):
            return
        self.out.sync()
        self.rejects.sync()
        content: dict[str, Any] = {
            "learner": self.learner._state(),
            "settings": self.settings,
            "run": {
                "offset": self.reader.offset,
                "lines": self.reader.lines,
                "columns": self.parser.columns,
                "delimiter": self.parser.delimiter,
                "features": self.parser.features,
                "classes": self.classes,
                "out": self.out.size,
                "rejects": self.rejects.size,
                "rejected": self.rejected,
                "rows": self.counts["rows"],
                "center": self.center,
                "spread": self.spread,
                "labels": None if self.labels is None else self.labels.state(),
            },
        }
        write_checkpoint(self.checkpoint, content)

    def _restore(self, content: dict[str, Any]) -> None:
        saved = content.get("settings")
        if saved is None:
            raise ValueError(f"{self.checkpoint} was not written by `buttress stream`")
        changed = [name for name in self.settings if saved.get(name) != self.settings[name]]
        if changed:
            raise ValueError(
                f"{self.checkpoint} was written with another "
                + ", ".join(f"{name} ({saved.get(name)!r})" for name in changed)
                + "; resume with the same options"
            )
        run = content["run"]
        self.learner._restore(content["learner"])
        self.reader.skip_to(int(run["offset"]), int(run["lines"]))
        self.parser.columns = run["columns"]
        self.parser.delimiter = run.get("delimiter", ",")
        self.parser.features = run["features"]
        self.classes = run["classes"]
        self.rejected = int(run["rejected"])
        self.counts = {"rows": int(run["rows"]), "saved": int(run["rows"])}
        self.center, self.spread = run["center"], run["spread"]
        if self.labels is not None:
            self.labels.restore(run["labels"])
        self.out.resume(int(run["out"]))
        self.rejects.resume(int(run["rejects"]))


def _quoted(text: str) -> str:
    if any(sign in text for sign in ',"\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
