"""Rows of many requests answered together: no waiting, but whatever came meanwhile goes along."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from buttress._arrays import Array
from buttress.serve.errors import RequestError
from buttress.serve.model import Answers, ServedModel

# Batches expected to take no longer are computed at once: handing 1 ms of work to another
# thread costs about as much as a tenth of it and lets nothing else run any sooner.
_AT_ONCE_SECONDS = 0.001


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
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._seen = seen
        self._waiting: deque[tuple[ServedModel, Array, asyncio.Future[Answers]]] = deque()
        self._running = False
        self._seconds_per_row = 1e-3

    async def submit(self, model: ServedModel, X: Array) -> Answers:
        """The answers for some encoded rows."""
        if self.waiting_rows + len(X) > self.most_waiting and self.waiting_rows:
            seconds = max(1, round(self._seconds_per_row * self.waiting_rows))
            raise RequestError(
                f"{self.waiting_rows} rows are waiting; come again later",
                429,
                {"Retry-After": str(min(seconds, 60))},
            )
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answers] = loop.create_future()
        self._waiting.append((model, X, answer))
        self.waiting_rows += len(X)
        if not self._running:
            self._running = True
            # Requests that are ready in this turn of the loop join the first batch.
            loop.call_soon(self._start)
        return await answer

    def _start(self) -> None:
        self._task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch = self._next_batch()
                await self._answer(batch)
        finally:
            self._running = False

    def _next_batch(self) -> list[tuple[ServedModel, Array, asyncio.Future[Answers]]]:
        """Requests for one model, in order, as long as they fit."""
        batch = [self._waiting.popleft()]
        n_rows = len(batch[0][1])
        while self._waiting and self._waiting[0][0] is batch[0][0]:
            n_rows += len(self._waiting[0][1])
            if n_rows > self.most_rows:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _answer(
        self, batch: list[tuple[ServedModel, Array, asyncio.Future[Answers]]]
    ) -> None:
        model = batch[0][0]
        X = batch[0][1] if len(batch) == 1 else np.concatenate([rows for _, rows, _ in batch])
        start = time.perf_counter()
        try:
            if self.threaded or self._seconds_per_row * len(X) > _AT_ONCE_SECONDS:
                loop = asyncio.get_running_loop()
                answers = await loop.run_in_executor(self.worker, model.answer, X)
            else:
                answers = model.answer(X)
        except Exception as error:
            for _, _, future in batch:
                if not future.done():
                    future.set_exception(RequestError(f"the model cannot answer: {error}"))
            return
        finally:
            self.waiting_rows -= len(X)
        seconds = time.perf_counter() - start
        self._seconds_per_row += 0.1 * (seconds / len(X) - self._seconds_per_row)
        if self._seen is not None:
            self._seen(len(X), len(batch), seconds)
        position = 0
        for _, rows, future in batch:
            if not future.done():
                future.set_result(answers.part(slice(position, position + len(rows))))
            position += len(rows)

    async def finish(self) -> None:
        """Answer what is waiting, then stop."""
        while self._running or self._waiting:
            await asyncio.sleep(0.005)
        self.worker.shutdown(wait=True)
