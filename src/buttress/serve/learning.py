"""Learning over HTTP: logged first, learned next, acknowledged last; exact after any crash.

Every request to learn is one entry of a log in SQLite (write-ahead mode, ``synchronous=FULL``)
and one call of ``partial_fit``, in the order of the log. A checkpoint of the learner carries the
number of the last entry it has seen; on start the entries after it are learned again, call by
call as the first time, so that the learner is the same to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress._sqlite import keep_safely, transaction
from buttress.serve.errors import RequestError
from buttress.serve.model import ServedModel
from buttress.tables.table import label_text

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS log (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, digest TEXT NOT NULL,
  n_rows INTEGER NOT NULL, rows BLOB, labels TEXT, void TEXT
);
"""
# Checkpoints kept: the newest, and one more in case the disk damages it.
_KEPT = 2


@dataclass(frozen=True, eq=False)
class Lesson:
    """Rows with labels, as one request brings them.

    Attributes
    ----------
    X : ndarray
        Encoded.
    labels : list
        As the learner's classes are.
    key : str, optional
        Repeating a request with the same key learns nothing twice.
    """

    X: Array
    labels: list[Any]
    key: str | None = None

    @property
    def digest(self) -> str:
        """Tells apart two requests with one key."""
        content = np.ascontiguousarray(self.X, dtype="<f8").tobytes()
        return hashlib.sha256(content + json.dumps(self.labels).encode()).hexdigest()


@dataclass(frozen=True)
class Learned:
    """What became of a lesson.

    Attributes
    ----------
    seq : int
        Its place in the log.
    rows : int
    repeated : bool
        It had been learned before.
    """

    seq: int
    rows: int
    repeated: bool


class LearnLog:
    """The log of lessons, and the checkpoints beside it.

    Parameters
    ----------
    folder : Path
        Holds ``log.sqlite`` and the checkpoints; made when it does not exist.
    base : str
        Checksum of the model file that learning started from.
    """

    def __init__(self, folder: Path, base: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._base = sqlite3.connect(
            folder / "log.sqlite", timeout=2, check_same_thread=False, isolation_level=None
        )
        try:
            # Learning is one process per model: the file stays locked as long as this one lives.
            self._base.execute("PRAGMA locking_mode=EXCLUSIVE")
            keep_safely(self._base)
            self._base.executescript(_SCHEMA)
            self._base.execute("INSERT OR IGNORE INTO about VALUES ('model', ?)", (base,))
        except sqlite3.OperationalError:
            self._base.close()
            raise ValueError(
                f"{folder}: another process learns this model; a model has one learning process"
            ) from None
        known = self._base.execute("SELECT value FROM about WHERE name = 'model'").fetchone()[0]
        if known != base:
            self._base.close()
            raise ValueError(
                f"{folder} holds what another model file has learned (checksum {known[:16]}); "
                "serve that file, or give another --learn-dir"
            )

    def append(self, lessons: Sequence[Lesson]) -> list[Learned | RequestError]:
        """Log lessons in one transaction; on disk when this returns."""
        with transaction(self._base):
            return [self._append(lesson) for lesson in lessons]

    def _append(self, lesson: Lesson) -> Learned | RequestError:
        digest = lesson.digest
        if lesson.key is not None:
            known = self._base.execute(
                "SELECT seq, digest, n_rows, void FROM log WHERE key = ?", (lesson.key,)
            ).fetchone()
            if known is not None and known[1] != digest:
                return RequestError("this idempotency key came before with other rows", 409)
            if known is not None and known[3] is not None:
                return RequestError(known[3])
            if known is not None:
                return Learned(known[0], known[2], True)
        cursor = self._base.execute(
            "INSERT INTO log (key, digest, n_rows, rows, labels) VALUES (?, ?, ?, ?, ?)",
            (
                lesson.key,
                digest,
                len(lesson.labels),
                np.ascontiguousarray(lesson.X, dtype="<f8").tobytes(),
                json.dumps(lesson.labels),
            ),
        )
        return Learned(int(cursor.lastrowid or 0), len(lesson.labels), False)

    def after(self, seq: int) -> Iterator[tuple[int, Lesson]]:
        """The lessons after an entry of the log, in order, without those found void."""
        last = seq
        while True:
            row = self._base.execute(
                "SELECT seq, n_rows, rows, labels FROM log WHERE seq > ? AND void IS NULL "
                "ORDER BY seq LIMIT 1",
                (last,),
            ).fetchone()
            if row is None:
                return
            last = int(row[0])
            X = np.frombuffer(row[2], dtype="<f8").reshape(row[1], -1).astype(np.float64)
            yield last, Lesson(X, json.loads(row[3]))

    def void(self, seq: int, reason: str) -> None:
        """The learner refused this lesson; it must not be tried again."""
        self._base.execute("UPDATE log SET void = ? WHERE seq = ?", (reason, seq))

    def save(self, seq: int, learner: Any) -> None:
        """Write a checkpoint; what it has seen need not be kept in the log."""
        learner.save_checkpoint(self.folder / f"state-{seq:012d}.ckpt")
        saved = self.checkpoints()
        for _, path in saved[_KEPT:]:
            path.unlink(missing_ok=True)
        if len(saved) >= _KEPT:
            self._base.execute(
                "UPDATE log SET rows = NULL, labels = NULL WHERE seq <= ? AND rows IS NOT NULL",
                (saved[_KEPT - 1][0],),
            )

    def checkpoints(self) -> list[tuple[int, Path]]:
        """The checkpoints that exist, newest first."""
        states = [(int(path.stem.split("-")[1]), path) for path in self.folder.glob("state-*.ckpt")]
        return sorted(states, reverse=True)

    def close(self) -> None:
        """Close the log."""
        self._base.close()


class LearningModel:
    """A served model that learns.

    Parameters
    ----------
    served : ServedModel
        Its estimator has ``partial_fit`` and checkpoints (the online learners have).
    folder : Path
        Of the log.
    every : int
        Rows between two checkpoints.

    Notes
    -----
    All methods are called from one thread at a time.
    """

    def __init__(self, served: ServedModel, folder: Path, *, every: int = 10_000) -> None:
        learner = served.estimator
        if not hasattr(learner, "save_checkpoint"):
            raise ValueError(
                f"--learn needs an online model, not {type(learner).__name__}: fit it with "
                "--model online, or save a PARampClassifier"
            )
        self.served = served
        self.learner = learner
        self.every = every
        self.base = served.version
        self.log = LearnLog(folder, served.about.get("sha256", served.version))
        self._labels = {label_text(label): label for label in learner.classes_.tolist()}
        self._since = 0
        self.seq = self._restore()
        self._tell_version()

    def _restore(self) -> int:
        seq = 0
        for number, path in self.log.checkpoints():
            try:
                self.learner.load_checkpoint(path)
            except ValueError:
                continue  # damaged: an older one, and more of the log
            seq = number
            break
        for number, lesson in self.log.after(seq):
            self._learn(number, lesson)
            seq = number
        return seq

    def _tell_version(self) -> None:
        self.served.version = f"{self.base}+{self.seq}"

    def label(self, value: Any, number: int) -> Any:
        """A label of a request as the learner knows it."""
        if value is None:
            raise RequestError(f"row {number}: the label is missing")
        known = None if isinstance(value, (list, dict)) else label_text(value)
        if known not in self._labels:
            raise RequestError(
                f"row {number}: the label {str(value)[:60]!r} is none of the model's classes"
            )
        return self._labels[known]

    def teach(self, lessons: Sequence[Lesson]) -> list[Learned | RequestError]:
        """Log lessons together and learn them in order."""
        results = self.log.append(lessons)
        for index, (lesson, result) in enumerate(zip(lessons, results, strict=True)):
            if isinstance(result, Learned) and not result.repeated:
                failure = self._learn(result.seq, lesson)
                self.seq = result.seq
                if failure is not None:
                    results[index] = failure
        self._tell_version()
        if self._since >= self.every:
            self.save()
        return results

    def _learn(self, seq: int, lesson: Lesson) -> RequestError | None:
        try:
            self.learner.partial_fit(lesson.X, np.array(lesson.labels))
        except ValueError as error:
            # The learner is as it was; the same lesson would fail again after a restart.
            failure = RequestError(f"the model cannot learn these rows: {error}")
            self.log.void(seq, str(failure))
            return failure
        self._since += len(lesson.labels)
        return None

    def save(self) -> None:
        """Write a checkpoint now."""
        if self._since:
            self.log.save(self.seq, self.learner)
            self._since = 0

    def close(self) -> None:
        """Save, and close the log."""
        self.save()
        self.log.close()
