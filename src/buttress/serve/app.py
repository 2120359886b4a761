"""The addresses of the service, and who may ask for them."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from buttress._version import __version__
from buttress.review.page import LOOPBACK, ReviewPage
from buttress.serve.description import openapi, openapi_page
from buttress.serve.errors import RequestError
from buttress.serve.model import ServedAnswers, ServedModel
from buttress.serve.rows import RequestRows, format_of, read_rows, write_json
from buttress.serve.service import Service, log
from buttress.serve.training import as_record
from buttress.serve.v2 import V2
from buttress.tables.grammar import csv_text

# Bodies larger than this are read into rows in another thread.
_LONG_BODY = 200_000
# An explanation costs one answer per column.
_MOST_EXPLAINED = 100
_LONGEST_KEY = 200
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_PAGE_POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"

Answer = Callable[[Request], Awaitable[Response]]


class Api:
    """The handlers of one service.

    Parameters
    ----------
    service : Service
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        token = service.settings.token
        self._token = None if token is None else token.encode()
        self._answered: dict[str, Answer] = {}

    def routes(self) -> list[Route | Mount]:
        """All addresses."""
        v2 = V2(self.service, self.read_body)
        routes: list[Route | Mount] = [
            self._route("/v1/predict", self.predict, "POST"),
            self._route("/v1/explain", self.explain, "POST"),
            self._route("/v1/learn", self.learn, "POST"),
            self._route("/v1/model", self.model, "GET"),
            self._route("/healthz", self.health, "GET", is_open=True),
            self._route("/readyz", self.readiness, "GET", is_open=True),
            self._route("/metrics", self.metrics, "GET"),
            self._route("/openapi.json", self.openapi, "GET"),
            self._route("/docs", self.docs, "GET"),
            *(
                self._route(path, answer, method, is_open="health" in path)
                for path, answer, method in v2.addresses()
            ),
        ]
        if self.service.refused is not None:
            page = ReviewPage(self.service.refused, self.service.settings.token)
            routes.append(Mount("/review", routes=page.routes()))
            routes.append(Route("/review", lambda request: RedirectResponse("/review/")))
        return routes

    def _route(self, path: str, answer: Answer, method: str, *, is_open: bool = False) -> Route:
        async def respond(request: Request) -> Response:
            start = time.perf_counter()
            response = await self._safely(request, answer, is_open)
            self.service.requests.add(path=path, status=str(response.status_code))
            self.service.latency.observe(time.perf_counter() - start, path)
            return response

        return Route(path, respond, methods=[method])

    async def _safely(self, request: Request, answer: Answer, is_open: bool) -> Response:
        try:
            if not is_open:
                self._check(request)
            return await answer(request)
        except RequestError as error:
            return failure(str(error), error.status, error.headers)
        except TimeoutError:
            return failure("no answer in time", 503, {"Retry-After": "1"})
        except ClientDisconnect:
            return failure("the client went away", 400)
        except Exception:
            log.exception("a request was not answered")
            return failure("the service failed; its log says why", 500)

    def _check(self, request: Request) -> None:
        """The token; without one, that no other web site asks through somebody's browser."""
        headers = request.headers
        if self._token is not None:
            kind, _, given = headers.get("authorization", "").partition(" ")
            right = hmac.compare_digest(given.strip().encode(), self._token)
            if kind.lower() != "bearer" or not right:
                raise RequestError(
                    "a valid token is needed (Authorization: Bearer ...)",
                    401,
                    {"WWW-Authenticate": "Bearer"},
                )
            return
        host = headers.get("host", "")
        if _name_of(host) not in LOOPBACK:
            raise RequestError("without a token the service answers to loopback names only", 421)
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise RequestError("requests from other web sites are not accepted", 403)

    # -- reading ---------------------------------------------------------------------------

    async def read_body(self, request: Request) -> bytes:
        """The body, within the limits of size and time."""
        most = self.service.settings.most_body
        close = {"Connection": "close"}
        too_large = RequestError(f"the body is larger than {most} bytes", 413, close)
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > most:
            raise too_large
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise RequestError("a compressed body is not accepted", 415)

        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.service.settings.timeout):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        raise too_large
                    chunks.append(chunk)
            return b"".join(chunks)
        except TimeoutError:
            raise RequestError("the body did not arrive in time", 408, close) from None

    async def _rows(self, request: Request) -> RequestRows:
        form = format_of(request.headers.get("content-type"))
        body = await self.read_body(request)
        columns, most = self.service.model.columns, self.service.settings.most_rows
        if len(body) > _LONG_BODY:
            return await run_in_threadpool(
                read_rows, body, form, columns.names, most, columns.optional
            )
        return read_rows(body, form, columns.names, most, columns.optional)

    # -- answers ---------------------------------------------------------------------------

    async def predict(self, request: Request) -> Response:
        """Labels, margins, probabilities and refusals."""
        rows = await self._rows(request)
        model, answers = await self.service.predict(rows)
        return written(model, answers, rows.form)

    async def explain(self, request: Request) -> Response:
        """What every column adds to the margin, and why rows are refused."""
        rows = await self._rows(request)
        if len(rows) > _MOST_EXPLAINED:
            raise RequestError(f"more than {_MOST_EXPLAINED} rows to explain in one request", 413)
        model, answers = await self.service.predict(rows)
        if not model.has_margin:
            raise RequestError("this model has no margin to explain")
        X = model.columns.encode(rows)
        loop = asyncio.get_running_loop()
        effects = await loop.run_in_executor(self.service.batcher.worker, model.explain, X)
        told = records(model, answers)
        for record, each in zip(told, effects.tolist(), strict=True):
            pairs = sorted(
                zip(model.columns.names, each, strict=True), key=lambda pair: -abs(pair[1])
            )
            record["columns"] = [{"column": name, "effect": effect} for name, effect in pairs]
        training, refused = self.service.training, np.flatnonzero(answers.refused)
        if training is not None and len(refused):
            reasons = await run_in_threadpool(training.reasons, model, X[refused])
            for index, reason in zip(refused.tolist(), reasons, strict=True):
                told[index]["reason"] = as_record(reason)
        return as_json({"model": model.version, "answers": told})

    async def learn(self, request: Request) -> Response:
        """Learn rows with labels."""
        key = request.headers.get("idempotency-key")
        if key is not None and not 0 < len(key) <= _LONGEST_KEY:
            raise RequestError(f"an idempotency key has 1 to {_LONGEST_KEY} signs", 400)
        if self.service.learning is None:
            raise RequestError("this service does not learn; start it with --learn", 404)
        rows = await self._rows(request)
        learned = await self.service.learn(rows, key)
        return as_json(
            {
                "model": self.service.model.version,
                "sequence": learned.seq,
                "rows": learned.rows,
                "repeated": learned.repeated,
            }
        )

    async def model(self, request: Request) -> Response:
        """What is served."""
        model = self.service.model
        columns = model.columns
        return as_json(
            {
                "name": self.service.name,
                "model": model.version,
                "estimator": type(model.estimator).__name__,
                "classes": model.classes.tolist(),
                "target": model.target,
                "columns": [
                    {"name": name, "kind": "number"}
                    if name in columns.numeric
                    else {"name": name, "kind": "text"}
                    if name in columns.derived
                    else {"name": name, "kind": "category", "values": columns.categories[name]}
                    for name in columns.names
                ],
                "refuses": model.rejects,
                "probabilities": model.has_probability,
                "learns": self.service.learning is not None,
                "saved": model.about.get("saved"),
                "buttress": __version__,
            }
        )

    async def health(self, request: Request) -> Response:
        """The process is alive."""
        return as_json({"status": "alive"})

    async def readiness(self, request: Request) -> Response:
        """The process takes requests."""
        ready = self.service.ready
        return as_json({"status": "ready" if ready else "stopping"}, 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        """Numbers for Prometheus."""
        text = "\n".join(number.text() for number in self.service.numbers) + "\n"
        return PlainTextResponse(
            text, headers=_HEADERS, media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def openapi(self, request: Request) -> Response:
        """The description of the addresses, for programs."""
        return as_json(openapi(self.service))

    async def docs(self, request: Request) -> Response:
        """The description of the addresses, for people."""
        page = openapi_page(openapi(self.service))
        return HTMLResponse(page, headers=_HEADERS | {"Content-Security-Policy": _PAGE_POLICY})


def records(model: ServedModel, answers: ServedAnswers) -> list[dict[str, Any]]:
    """One object per row."""
    labels = answers.labels.tolist()
    refused = answers.refused.tolist()
    margins = [None] * len(labels) if answers.margins is None else answers.margins.tolist()
    told: list[dict[str, Any]] = []
    for index, label in enumerate(labels):
        record = {
            "label": None if refused[index] else label,
            "margin": margins[index],
            "refused": refused[index],
        }
        if refused[index]:
            record["would_say"] = label
        told.append(record)
    if answers.probabilities is not None:
        names = [str(label) for label in model.classes.tolist()]
        for record, row in zip(told, answers.probabilities.tolist(), strict=True):
            record["probability"] = dict(zip(names, row, strict=True))
    return told


def written(model: ServedModel, answers: ServedAnswers, form: str) -> Response:
    """The answers in the form of the question."""
    told = records(model, answers)
    if form == "json":
        return as_json({"model": model.version, "answers": told})
    headers = _HEADERS | {"Buttress-Model": model.version}
    if form == "jsonl":
        body = b"".join(write_json({**record, "model": model.version}) + b"\n" for record in told)
        return Response(body, headers=headers, media_type="application/x-ndjson")
    lines = []
    for record in told:
        margin = record["margin"]
        best = max(margin) if isinstance(margin, list) else margin
        label = "" if record["label"] is None else record["label"]
        shown = "" if best is None else repr(best)
        lines.append([label, shown, str(record["refused"]).lower(), model.version])
    text = csv_text(["label", "margin", "refused", "model"], lines)
    return Response(text, headers=headers, media_type="text/csv; charset=utf-8")


def as_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(
        write_json(content),
        status,
        headers=_HEADERS | (headers or {}),
        media_type="application/json",
    )


def failure(message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """One clear line."""
    return as_json({"error": message}, status, headers)


async def _http_failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: "there is nothing under this address", 405: "this method is not accepted here"}
    headers = dict(error.headers) if error.headers else {}
    return failure(words.get(error.status_code, str(error.detail)), error.status_code, headers)


@lru_cache(maxsize=256)
def _name_of(host: str) -> str | None:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def make_app(service: Service) -> Starlette:
    """The service as an ASGI application.

    Parameters
    ----------
    service : Service
    """

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = Starlette(
        routes=Api(service).routes(),
        lifespan=life,
        exception_handlers={HTTPException: _http_failure},
    )
    app.router.redirect_slashes = False  # an address is right or it is none
    return app
