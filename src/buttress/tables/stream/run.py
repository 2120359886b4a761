"""One run over a stream: answer, learn, write a line per row, save where it stands."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from buttress._words import did_you_mean
from buttress.classifiers.online.checkpoint import write_checkpoint
from buttress.classifiers.online.labels import answers
from buttress.tables.encoder import TableEncoder
from buttress.tables.grammar import Malformed, class_labels
from buttress.tables.stream._labels import LabelStream
from buttress.tables.stream._saving import held_checkpoint, saved_state
from buttress.tables.stream.outputs import Lines
from buttress.tables.stream.rows import LineReader, Row, RowParser
from buttress.tables.table import Table, boolean_hint, listed, objects

# Lines that are no rows, kept until they are written.
_MOST_REJECTS = 10_000


class StreamInterrupted(KeyboardInterrupt):
    """Ctrl-C, with a message that says what was written and how to go on."""


@dataclass(frozen=True)
class StreamPlan:
    """What a run is asked to do; the same when it is resumed.

    Attributes
    ----------
    every : int
        Rows between two checkpoints.
    warm_up : int
        First rows that fix scale, width and classes.
    scale : bool
        Whether features are standardised by the warm-up rows.
    classes : list of int or str, or None
        All labels that can come; None takes those of the warm-up rows.
    as_json : bool
        JSON lines out, instead of CSV.
    block_rows : int
        Rows read before they are answered.
    settings : dict
        Everything else that a resumed run must have in common with the first.
    """

    every: int = 10_000
    warm_up: int = 256
    scale: bool = True
    classes: Sequence[int | str] | None = None
    as_json: bool = True
    block_rows: int = 64
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class StreamRun:
    """The state of a run.

    Attributes
    ----------
    learner : BaseOnlineClassifier
        New, or fitted (then with its encoder).
    parser, reader
        Where rows come from.
    out, rejects : Lines
        One line per row, and one per line that is no row.
    plan : StreamPlan
    checkpoint : Path or None
    labels : LabelStream or None
        Labels that come later.
    encoder : TableEncoder or None
        From columns to numbers; None is learned from the warm-up rows.
    """

    learner: Any
    parser: RowParser
    reader: LineReader
    out: Lines
    rejects: Lines
    plan: StreamPlan
    checkpoint: Path | None = None
    labels: LabelStream | None = None
    encoder: TableEncoder | None = None
    rejected: int = 0
    first_reason: str = ""
    n_rows: int = 0
    n_saved: int = 0

    def __post_init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._put_aside: list[str] = []
        self.last_line = 0
        self._busy = False
        self.marked_rejected = 0
        if self.encoder is not None:
            self.know_classes(self.learner.classes_)

    # -- from start to end -----------------------------------------------------------------

    def run(self, *, resume: bool = False) -> None:
        """Read to the end, from the start or from the checkpoint.

        Raises
        ------
        StreamChanged
            When the files of an interrupted run are not as it left them; nothing was written.
        StreamInterrupted
            On Ctrl-C, with all files in a state to go on from.
        """
        with held_checkpoint(self, resume=resume):
            try:
                self._work()
            except KeyboardInterrupt:
                raise StreamInterrupted(self._stopped()) from None

    def _work(self) -> None:
        if self.parser.kind == "csv" and self.parser.header_line is None:
            self._header()
        if self.encoder is None:
            self._warm_up()
        while self._block():
            if self.n_rows - self.n_saved >= self.plan.every:
                self._save()
        self._busy = True
        while self.labels is not None and self.encoder is not None and self._late_labels():
            pass
        self._write_rejects()
        self._mark()
        self._save()
        # Without a single row nothing was answered, and an older file stays.
        self.out.close(make=self.n_rows > 0 or self.rejected == 0)
        self.rejects.close()

    def _header(self) -> None:
        header = self.reader.next()
        while header is not None and not header.strip():
            header = self.reader.next()
        if header is None:
            raise ValueError(f"{self.reader.name} is empty: expected a CSV header")
        try:
            self.parser.header(header)
        except Malformed as reason:
            raise ValueError(f"{self.reader.name}: {reason}") from None
        names = self.parser.header_line or []
        if self.labels is None and self.parser.target not in names:
            hint = did_you_mean(self.parser.target, names) or f"; it has {listed(names)}"
            raise ValueError(
                f"{self.reader.name}: the header has no column {self.parser.target!r} (--target), "
                f"and there is no --label-stream{hint}"
            )

    def _warm_up(self) -> None:
        """Fix scale, width and classes from the first rows, then answer and learn them."""
        step = self.plan.block_rows
        rows = self._read(max(self.plan.warm_up, step))
        if not rows:
            return
        table = self._table(rows)
        labelled = [row.label for row in rows if row.label is not None]
        classes = labelled if self.plan.classes is None else self.plan.classes
        known = np.unique(class_labels(objects(list(classes))))
        if len(known) < 2 and self.plan.classes is None:
            raise ValueError(
                f"the first {len(rows)} rows have the classes {known.tolist()}; "
                "name all of them with --classes a,b"
            )
        if len(known) < 2:
            raise ValueError(f"--classes names one class only: {known.tolist()}")
        if len(labelled) > 1 and len(set(labelled)) == 1:
            warnings.warn(
                f"the first {len(labelled)} labelled rows are all of the class {labelled[0]!r}: a "
                "learner that takes rows in their order does badly on sorted ones. Shuffle them if "
                "their order means nothing.",
                UserWarning,
                stacklevel=2,
            )
        encoder = TableEncoder(standardize=self.plan.scale).fit(table)
        self.learner._open_stream(encoder.transform(table), known)
        self.encoder = encoder
        self.know_classes(self.learner.classes_)
        for begin in range(0, len(rows), step):
            self._process(rows[begin : begin + step])

    def know_classes(self, classes: Any) -> None:
        """Number the labels as the learner does."""
        self._codes = {str(label): code for code, label in enumerate(classes.tolist())}

    def _block(self) -> bool:
        rows = self._read(self.plan.block_rows)
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
                self._announced(row.label)
                rows.append(row)
            except Malformed as reason:
                self._reject("rows", self.reader.lines, str(reason), text)
                # Written with the answers of their block, so that a checkpoint has both or
                # none; but the memory for them has an end.
                if self.encoder is not None and len(self._put_aside) >= _MOST_REJECTS:
                    if rows:
                        break
                    self._write_rejects()
                    self._mark()
        return rows

    def _announced(self, label: int | str | None) -> None:
        known = self._codes or {str(each) for each in self.plan.classes or ()}
        if label is not None and known and str(label) not in known:
            raise Malformed(
                f"the class {str(label)!r} was not announced: {listed(known)}"
                f"{boolean_hint([str(label)], known)}"
            )

    def _reject(self, stream: str, line: int, reason: str, text: str) -> None:
        self.rejected += 1
        self.first_reason = self.first_reason or f"line {line}: {reason}"
        if self.rejects.path is not None:
            record = {"stream": stream, "line": line, "reason": reason, "text": text}
            self._put_aside.append(json.dumps(record))

    def _write_rejects(self) -> None:
        self.rejects.write(self._put_aside)
        self._put_aside = []

    def _table(self, rows: Sequence[Row]) -> Table:
        return self._columns([row.values for row in rows])

    def _columns(self, values: Sequence[Sequence[Any]]) -> Table:
        columns = {}
        for name, column in zip(self.parser.features or [], zip(*values, strict=True), strict=True):
            if name in self.parser.categories:
                columns[name] = objects(column)
            else:
                columns[name] = np.array([np.nan if v is None else v for v in column], dtype=float)
        return Table(columns)

    def _process(self, rows: list[Row]) -> None:
        assert self.encoder is not None
        self._busy = True
        given = [self._label_now(row) for row in rows]
        codes = np.array([-1 if label is None else self._codes[str(label)] for label in given])
        start = self.learner.n_seen_
        outcome = self.learner._advance(self.encoder.transform(self._table(rows)), codes)
        answered = answers(outcome.scores)
        # a learner of one's own may not know how to refuse
        withheld = getattr(self.learner, "_refused", np.zeros(len(rows), dtype=bool))
        lines = [] if self.n_rows or self.plan.as_json else [_csv_line(self.field_names())]
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
                "answer": None if withheld[i] else self.learner.classes_[answered[i]].item(),
                "score": float(best[i]),
                "label": given[i],
                "event": happened,
            }
            lines.append(
                json.dumps(record, allow_nan=False)
                if self.plan.as_json
                else _csv_line(list(record.values()))
            )
            if self.labels is not None and codes[i] < 0:
                assert row.key is not None
                self.labels.wait(row.key, row.values, start + i, int(answered[i]))
        self._write_rejects()
        self.out.write(lines)
        self.n_rows += len(rows)
        self.last_line = rows[-1].line
        if self.labels is not None:
            self._late_labels()
        self._mark()

    def _mark(self) -> None:
        """A place to save, and to go on from: learner, input and outputs agree."""
        self.reader.mark()
        self.marked_rejected = self.rejected
        self._busy = False

    def _label_now(self, row: Row) -> int | str | None:
        if row.label is None and self.labels is not None and row.key is not None:
            return self.labels.label_of(row.key)
        return row.label

    def field_names(self) -> list[str]:
        """What a line of the output says, in order."""
        key = [] if self.parser.key is None else ["key"]
        return ["line", *key, "answer", "score", "label", "event"]

    # -- labels that come later ------------------------------------------------------------

    def _late_labels(self) -> bool:
        """Learn what at most one block of label lines says; False when there were none."""
        assert self.labels is not None
        assert self.encoder is not None
        learned, any_line = [], False
        for _ in range(self.plan.block_rows):
            try:
                pair = self.labels.next()
                if pair is None:
                    break
                any_line = True
                key, label = pair
                self._announced(label)
                if key in self.labels.waiting:
                    learned.append((*self.labels.waiting.pop(key), self._codes[str(label)]))
                else:
                    self.labels.keep_early(key, label)
            except Malformed as reason:
                any_line = True
                self._reject("labels", self.labels.reader.lines, str(reason), "")
        if learned:
            values, positions, given, codes = zip(*learned, strict=True)
            self.learner._advance(
                self.encoder.transform(self._columns(values)),
                np.array(codes),
                positions=np.array(positions),
                answered=np.array(given),
            )
        return any_line

    # -- saving ----------------------------------------------------------------------------

    def _save(self) -> None:
        if self.checkpoint is not None and self.encoder is not None:
            # From the first checkpoint on, a file of rejects is this run's.
            self.rejects.make()
            self.out.sync()
            self.rejects.sync()
            write_checkpoint(self.checkpoint, saved_state(self))
            self.out.saved()
            self.rejects.saved()
        # Not before: an interrupted call has saved nothing.
        self.n_saved = self.n_rows

    def _stopped(self) -> str:
        """Leave everything so that the run can go on, and say how it stands."""
        # In the middle of a block the learner is ahead of the lines: then the last checkpoint
        # is the place to go on from. Else this one is.
        if not self._busy and self.n_rows > self.n_saved:
            self.rejected = self.marked_rejected
            self._save()
        saved = ""
        if self.checkpoint is not None and self.checkpoint.exists():
            saved = f"; --resume goes on from row {self.n_saved + 1}"
        self.out.close(make=False, whole=True)
        self.rejects.close(make=False, whole=True)
        where = "" if self.out.path is None or self.out.file is None else f" in {self.out.path}"
        return f"interrupted; {self.n_rows} rows are answered{where}{saved}"


def _csv_line(fields: Sequence[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(
        ["" if item is None else item for item in fields]
    )
    return buffer.getvalue()
