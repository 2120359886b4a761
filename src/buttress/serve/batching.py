"""Rows of many requests answered together: no waiting, but whatever came meanwhile goes along."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np

from buttress._arrays import Array
from buttress._threads import thread_pool
from buttress.serve.errors import RequestError
from buttress.serve.model import ServedAnswers, ServedModel

# Batches expected to take no longer are computed at once: handing work to another thread costs
# 0.1 ms on an idle machine and up to 4 ms on a busy one, and lets nothing else run any sooner.
_AT_ONCE_SECONDS = 0.001

Waiting = tuple[ServedModel, Array, "asyncio.Future[ServedAnswers]"]


class Costs:
    """Seconds that batches take, by their size.

    One row costs nearly as much as ten (what a call costs), a thousand rows ten times as much as
    a hundred (what a row costs), so a mean over all batches would be wrong for every one of them.
    Sizes are told apart by powers of two. A batch that took long may have waited for the machine,
    so short times count at once and long ones little by little.

    Examples
    --------
    >>> costs = Costs()
    >>> costs.seen(100, 0.005)
    >>> costs.expected(100), costs.expected(400) > 0.01
    (0.005, True)
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def seen(self, n_rows: int, seconds: float) -> None:
        """Remember what a batch took."""
        size = n_rows.bit_length()
        before = self._seconds.get(size, seconds)
        self._seconds[size] = before + (0.5 if seconds < before else 0.05) * (seconds - before)

    def expected(self, n_rows: int) -> float:
        """What a batch will take: as one of its size, else in proportion to the nearest known."""
        size = n_rows.bit_length()
        if size in self._seconds:
            return self._seconds[size]
        if not self._seconds:
            return float("inf")
        nearest = min(self._seconds, key=lambda known: abs(known - size))
        return self._seconds[nearest] * 2.0 ** max(0, size - nearest)


class Batcher:
    """Collects rows while the last batch is computed, and answers them in one go.

    Parameters
    ----------
    most_rows : int
        In one batch.
    most_waiting : int
        Rows that may wait; beyond, a request is told to come again.
    seen : callable
        Told the number of rows, of requests, and the seconds of every batch.
    threaded : bool
        Never compute on the event loop; for models that also learn.
    """

    def __init__(
        self,
        *,
        most_rows: int = 4096,
        most_waiting: int = 200_000,
        seen: Callable[[int, int, float], None] | None = None,
        threaded: bool = False,
    ) -> None:
        self.most_rows = most_rows
        self.most_waiting = most_waiting
        self.waiting_rows = 0
        self.threaded = threaded
        self.worker = thread_pool(1, "model")
        self._seen = seen
        self._waiting: deque[Waiting] = deque()
        self._running = False
        self._costs = Costs()

    async def submit(self, model: ServedModel, X: Array) -> ServedAnswers:
        """The answers for some encoded rows."""
        if self.waiting_rows + len(X) > self.most_waiting and self.waiting_rows:
            seconds = self._costs.expected(self.most_rows) * self.waiting_rows / self.most_rows
            raise RequestError(
                f"{self.waiting_rows} rows are waiting; come again later",
                429,
                {"Retry-After": str(round(min(max(seconds, 1), 60)))},
            )
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[ServedAnswers] = loop.create_future()
        self._waiting.append((model, X, answer))
        self.waiting_rows += len(X)
        if not self._running:
            self._running = True
            # Requests that are ready in this turn of the loop join the first batch.
            loop.call_soon(self._work)
        return await answer

    def _work(self) -> None:
        """Answer what is waiting: small batches here and now, a large one in the other thread."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch = self._next_batch()
            X = batch[0][1] if len(batch) == 1 else np.concatenate([rows for _, rows, _ in batch])
            if self.threaded or self._costs.expected(len(X)) > _AT_ONCE_SECONDS:
                computed = loop.run_in_executor(self.worker, _timed_answer, batch[0][0], X)
                computed.add_done_callback(partial(self._go_on, batch))
                return
            try:
                answers, seconds = _timed_answer(batch[0][0], X)
            except Exception as error:
                self._refuse(batch, error)
            else:
                self._hand_out(batch, answers, seconds)
        self._running = False

    def _go_on(
        self, batch: list[Waiting], done: asyncio.Future[tuple[ServedAnswers, float]]
    ) -> None:
        """The other thread has ended a batch."""
        error = done.exception()
        if error is not None:
            self._refuse(batch, error)
        else:
            self._hand_out(batch, *done.result())
        self._work()

    def _next_batch(self) -> list[Waiting]:
        """Requests for one model, in order, as long as they fit."""
        batch = [self._waiting.popleft()]
        n_rows = len(batch[0][1])
        while self._waiting and self._waiting[0][0] is batch[0][0]:
            n_rows += len(self._waiting[0][1])
            if n_rows > self.most_rows:
                break
            batch.append(self._waiting.popleft())
        return batch

    def _hand_out(self, batch: list[Waiting], answers: ServedAnswers, seconds: float) -> None:
        n_rows = len(answers)
        self.waiting_rows -= n_rows
        self._costs.seen(n_rows, seconds)
        if self._seen is not None:
            self._seen(n_rows, len(batch), seconds)
        position = 0
        for _, rows, future in batch:
            if not future.done():
                future.set_result(answers.part(slice(position, position + len(rows))))
            position += len(rows)

    def _refuse(self, batch: list[Waiting], error: BaseException) -> None:
        for _, rows, future in batch:
            self.waiting_rows -= len(rows)
            if not future.done():
                future.set_exception(RequestError(f"the model cannot answer: {error}"))

    async def finish(self) -> None:
        """Answer what is waiting, then stop."""
        while self._running or self._waiting:
            await asyncio.sleep(0.005)
        self.worker.shutdown(wait=True)


def _timed_answer(model: ServedModel, X: Array) -> tuple[ServedAnswers, float]:
    """Answers, and the seconds they took."""
    start = time.perf_counter()
    answers = model.answer(X)
    return answers, time.perf_counter() - start
