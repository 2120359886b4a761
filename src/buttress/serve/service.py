"""What stands behind the addresses: the model, its batches, its numbers, learning and review."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from buttress._arrays import Array
from buttress.review.store import ReviewStore
from buttress.serve.batching import Batcher
from buttress.serve.errors import RequestError
from buttress.serve.learning import Learned, LearningModel, Lesson
from buttress.serve.metrics import Counter, Gauge, Histogram
from buttress.serve.model import ServedAnswers, ServedModel
from buttress.serve.refused import RefusedRows
from buttress.serve.rows import RequestRows
from buttress.serve.training import TrainingRows

log = logging.getLogger("buttress.serve")

# Rows over which the means behind the drift gauge fade.
_DRIFT_ROWS = 1000.0
# Seconds between two looks at the model file, and at the reviewers' labels.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Settings:
    """How a service behaves.

    Attributes
    ----------
    token : str or None
        Every request but the health checks must carry it.
    most_body, most_rows : int
        Bytes and rows of one request.
    most_waiting : int
        Rows that may wait before requests are told to come again.
    timeout : float
        Seconds for a body to arrive, and for an answer.
    lenient : bool
        Ignore extra columns and new categories.
    refuse_below : float or None
        Refuse answers with a smaller margin.
    learn : Path or None
        Folder of the learning log.
    checkpoint_rows : int
        Rows learned between two checkpoints.
    review : Path or None
        Store of the refused rows.
    undo_seconds : float
        How long a reviewer may take a label back before the model learns it.
    training : Path or None
        The table the model was trained on, to say why rows are refused.
    files : Path or None
        Folder of the images that columns name, for reviewers.
    kept : tuple of str
        Columns that requests may have beside the model's, for reviewers.
    """

    token: str | None = None
    most_body: int = 16_000_000
    most_rows: int = 100_000
    most_waiting: int = 200_000
    timeout: float = 30.0
    lenient: bool = False
    refuse_below: float | None = None
    learn: Path | None = None
    checkpoint_rows: int = 10_000
    review: Path | None = None
    undo_seconds: float = 20.0
    training: Path | None = None
    files: Path | None = None
    kept: tuple[str, ...] = ()


class Service:
    """One model, served.

    Parameters
    ----------
    path : Path
        The model file. Without learning, a new file under this name is taken up while running.
    settings : Settings
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = path
        self.name = path.name.split(".")[0]
        self.settings = settings
        self._stamp = _stamp(path)
        self.model = self._load()
        self.learning = (
            None
            if settings.learn is None
            else LearningModel(self.model, settings.learn, every=settings.checkpoint_rows)
        )
        self.batcher = Batcher(
            most_waiting=settings.most_waiting,
            seen=self._batch_seen,
            threaded=self.learning is not None,
        )
        self._lessons: list[tuple[Lesson, asyncio.Future[Learned]]] = []
        self._teaching = False
        self.training = (
            None if settings.training is None else TrainingRows.read(settings.training, self.model)
        )
        if self.training is not None:
            self.training.prepare(self.model)
        self.refused = (
            None
            if settings.review is None
            else RefusedRows(
                ReviewStore(settings.review, overlap=0.0),
                self.model,
                title=f"{self.name}: refused rows",
                learned=self._state_of_learning,
                training=self.training,
                files=settings.files,
            )
        )
        self._means: Array | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.ready = False
        self._make_metrics()

    def _load(self) -> ServedModel:
        return ServedModel.load(
            self.path,
            lenient=self.settings.lenient,
            refuse_below=self.settings.refuse_below,
            kept=self.settings.kept,
        )

    # -- life ------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to watch the model file and the reviewers."""
        if self.learning is None:
            self._tasks.append(asyncio.create_task(self._repeat(self._reload)))
        elif self.refused is not None:
            self._tasks.append(asyncio.create_task(self._repeat(self._learn_reviewed)))
        # What lives as long as the process need not be looked at by every garbage collection:
        # a full one takes 0.1 s otherwise (200 000 objects), and one request pays for it.
        gc.collect()
        gc.freeze()
        self.ready = True

    async def stop(self) -> None:
        """Finish what was taken, save, and close."""
        self.ready = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self._teaching:
            await asyncio.sleep(0.005)
        await self.batcher.finish()
        if self.learning is not None:
            self.learning.close()
        if self.refused is not None:
            self.refused.store.close()

    async def _repeat(self, work: Callable[[], Any]) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await work()
            except Exception:
                log.exception("background work failed")

    async def _reload(self) -> None:
        """Take up a new model file; a bad one changes nothing."""
        stamp = _stamp(self.path)
        if stamp is None or stamp == self._stamp:
            return
        try:
            model = await asyncio.get_running_loop().run_in_executor(None, self._load_anew)
        except Exception as error:
            self._stamp = stamp
            self.reload_failures.add()
            log.warning("the new model file was not taken up: %s", error)
            return
        self._stamp = stamp
        if model.version != self.model.version:
            self.model = model
            self._means = None
            self.reloads.add()
            log.info("model %s is served now", model.version)

    def _load_anew(self) -> ServedModel:
        model = self._load()
        if self.training is not None and model.version != self.model.version:
            self.training.prepare(model)
        return model

    # -- prediction ------------------------------------------------------------------------

    async def predict(self, rows: RequestRows) -> tuple[ServedModel, ServedAnswers]:
        """The answers for some rows, and the model that gave them."""
        model = self.model
        X = model.columns.encode(rows)
        async with asyncio.timeout(self.settings.timeout):
            answers = await self.batcher.submit(model, X)
        self.rows_answered.add(len(rows))
        n_refused = int(np.count_nonzero(answers.refused)) if model.rejects else 0
        if n_refused:
            self.rows_refused.add(n_refused)
            if self.refused is not None:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, self.refused.keep, model, rows, X, answers)
        self._watch(X, len(model.columns.numeric))
        return model, answers

    def _watch(self, X: Array, n_numeric: int) -> None:
        """Follow the means of the standardised columns; drift moves them away from zero."""
        mean = X[:, :n_numeric].mean(axis=0)
        weight = -np.expm1(-len(X) / _DRIFT_ROWS)
        before = np.zeros(n_numeric) if self._means is None else self._means
        self._means = before + weight * (mean - before)

    def _drift(self) -> float | None:
        if self.model.columns.mean is None or self._means is None or not len(self._means):
            return None
        return float(np.abs(self._means).max())

    def _batch_seen(self, n_rows: int, n_requests: int, seconds: float) -> None:
        self.batches.add()
        self.batched_requests.add(n_requests)
        self.model_seconds.add(seconds)

    # -- learning --------------------------------------------------------------------------

    async def learn(self, rows: RequestRows, key: str | None) -> Learned:
        """Learn rows that carry the target's column; returns when they are on disk and learned."""
        if self.learning is None:
            raise RequestError("this service does not learn; start it with --learn", 404)
        lesson = self._lesson(rows, key)
        async with asyncio.timeout(self.settings.timeout):
            return await self._taught(lesson)

    def _lesson(self, rows: RequestRows, key: str | None) -> Lesson:
        assert self.learning is not None
        target = self.model.target or "label"
        if target not in rows.names:
            raise RequestError(f"rows to learn need the column {target!r}")
        column = rows.names.index(target)
        labels = [self.learning.label(row[column], i) for i, row in enumerate(rows.values, 1)]
        names = tuple(name for name in rows.names if name != target)
        values = [[v for i, v in enumerate(row) if i != column] for row in rows.values]
        return Lesson(self.model.columns.encode(RequestRows(names, values, rows.form)), labels, key)

    async def _taught(self, lesson: Lesson) -> Learned:
        loop = asyncio.get_running_loop()
        if sum(len(waiting.labels) for waiting, _ in self._lessons) > self.settings.most_waiting:
            raise RequestError("too many rows wait to be learned", 429, {"Retry-After": "1"})
        done: asyncio.Future[Learned] = loop.create_future()
        self._lessons.append((lesson, done))
        if not self._teaching:
            self._teaching = True
            self._teacher = asyncio.ensure_future(self._teach())
        return await done

    async def _teach(self) -> None:
        """Lessons that came while the last were learned share one transaction."""
        assert self.learning is not None
        loop = asyncio.get_running_loop()
        try:
            while self._lessons:
                batch, self._lessons = self._lessons, []
                lessons = [lesson for lesson, _ in batch]
                try:
                    results = await loop.run_in_executor(
                        self.batcher.worker, self.learning.teach, lessons
                    )
                except Exception as error:
                    log.exception("learning failed")
                    results = [RequestError(f"not learned: {error}", 503) for _ in batch]
                for (lesson, done), result in zip(batch, results, strict=True):
                    if done.done():
                        continue
                    if isinstance(result, Learned):
                        self.rows_learned.add(0 if result.repeated else len(lesson.labels))
                        done.set_result(result)
                    else:
                        done.set_exception(result)
        finally:
            self._teaching = False

    # -- review ----------------------------------------------------------------------------

    def _state_of_learning(self) -> str:
        if self.learning is None:
            return ""
        learner = self.learning.learner
        return (
            f"The model has learned {learner.n_labelled_} rows; of the last labelled ones it had "
            f"{100 * learner.windowed_error_:.1f} % wrong."
        )

    async def _learn_reviewed(self) -> None:
        """Teach the labels of reviewers, once the time to undo is over."""
        assert self.refused is not None
        loop = asyncio.get_running_loop()
        target = self.model.target or "label"
        for number, key, rows in await loop.run_in_executor(
            None, self.refused.labelled, target, self.settings.undo_seconds
        ):
            try:
                await self.learn(rows, key)
            except RequestError as error:
                log.warning("a reviewed row was not learned: %s", error)
            await loop.run_in_executor(None, self.refused.store.mark_taken, [number])

    # -- numbers ---------------------------------------------------------------------------

    def _make_metrics(self) -> None:
        self.numbers: list[Counter] = []
        self.latency = Histogram("buttress_request_seconds", "Seconds per request, by path.")
        self.requests = self._counter("requests", "Requests, by path and status.")
        self.numbers.append(self.latency)
        self.rows_answered = self._counter("rows", "Rows answered.")
        self.rows_refused = self._counter("refused_rows", "Rows without an answer.")
        self.rows_learned = self._counter("learned_rows", "Rows learned.")
        self.batches = self._counter("batches", "Batches computed.")
        self.batched_requests = self._counter("batched_requests", "Requests in them.")
        self.model_seconds = self._counter("model_seconds", "Seconds spent in the model.")
        self.reloads = self._counter("reloads", "New model files taken up.")
        self.reload_failures = self._counter("reload_failures", "Model files refused.")
        self._gauge("waiting_rows", "Rows that wait.", lambda: self.batcher.waiting_rows)
        self._gauge(
            "model_info",
            "The model that is served.",
            lambda: {self.model.version: 1.0},
            "version",
        )
        self._gauge(
            "feature_shift",
            "Largest mean of a standardised column over the last thousand rows or so.",
            self._drift,
        )
        if self.learning is None:
            return
        learner = self.learning.learner
        self._gauge(
            "progressive_error",
            "Share of labelled rows answered wrongly before they were learned.",
            lambda: learner.progressive_error_,
        )
        self._gauge(
            "windowed_error",
            "The same for the last labelled rows.",
            lambda: learner.windowed_error_,
        )
        self._gauge("drifts", "Drifts noticed.", lambda: learner.n_drifts_)
        self._gauge(
            "support_vectors",
            "Rows that the model keeps.",
            lambda: int(learner.n_support_.sum()),
        )

    def _counter(self, name: str, about: str) -> Counter:
        self.numbers.append(Counter(f"buttress_{name}_total", about))
        return self.numbers[-1]

    def _gauge(self, name: str, about: str, ask: Callable[[], Any], label: str = "") -> None:
        self.numbers.append(Gauge(f"buttress_{name}", about, ask, label))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
