"""The review page: server-rendered, usable by keyboard alone, with nothing from elsewhere.

Every action is a plain form, so the page works without its script, which only adds the keys.
"""

from __future__ import annotations

import hashlib
import hmac
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import astuple, fields
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from buttress.review import charts
from buttress.review.corrections import Correction
from buttress.review.images import TYPES, image_below, is_image
from buttress.review.progress import Progress, agreement_of, progress_of
from buttress.review.records import Item, ReviewError
from buttress.review.room import Room
from buttress.tables.grammar import csv_text, for_spreadsheet

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not "no-referrer": browsers would then hide the origin of the page's own forms too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
# A decision is a few words; nothing longer is read.
_MOST_BYTES = 64_000
_LONGEST_NAME, _LONGEST_NOTE = 80, 4000
_PAGE_ROWS = 50
_STATES = ("all", "open", "reviewed", "disputed")

# What answers a request; the form is empty unless one was sent.
Answer = Callable[[Request, dict[str, str]], Response]


class ReviewPage:
    """The pages of one room.

    Parameters
    ----------
    room : Room
    token : str, optional
        What a reviewer must know to enter; None lets everybody in who reaches the port.
    hosts : collection of str, optional
        Names under which the page may be asked for; the loopback names by default, any with a
        token. It keeps other web sites from reaching a local page by a name of their own.
    """

    def __init__(self, room: Room, token: str | None = None, hosts: Any = None) -> None:
        self.room = room
        self.token = token
        self.hosts = hosts if hosts is not None else (None if token else LOOPBACK)
        self._known: tuple[Any, Progress] | None = None
        self._templates = Environment(
            loader=PackageLoader("buttress.review"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(charts=charts, is_image=is_image, quote=quote)

    def routes(self) -> list[Route]:
        """All addresses, relative to where they are mounted."""
        return [
            Route("/", self._guarded(self.show_row)),
            Route("/table", self._guarded(self.show_table)),
            Route("/decide", self._guarded(self.decide), methods=["POST"]),
            Route("/undo", self._guarded(self.undo), methods=["POST"]),
            Route("/export/corrections.csv", self._guarded(self.export_corrections)),
            Route("/export/decisions.csv", self._guarded(self.export_decisions)),
            Route("/files/{name:path}", self._guarded(self.image)),
            Route("/enter", self._guarded(self.enter, entered=False), methods=["GET", "POST"]),
            Route("/static/{name}", self._guarded(self.static, entered=False)),
        ]

    # -- who may ask for what --------------------------------------------------------------

    def _guarded(
        self, answer: Answer, *, entered: bool = True
    ) -> Callable[[Request], Awaitable[Response]]:
        """Check the host, the origin and the reviewer first; errors become a page."""

        async def respond(request: Request) -> Response:
            try:
                response = self._refused(request, entered)
                if response is None:
                    form = await _form(request) if request.method == "POST" else {}
                    response = await run_in_threadpool(answer, request, form)
            except ReviewError as error:
                response = self._page(request, "message.html.j2", 409, message=str(error))
            except ClientDisconnect:
                response = Response(status_code=400)
            for name, value in _HEADERS.items():
                response.headers[name] = value
            return response

        return respond

    def _refused(self, request: Request, entered: bool) -> Response | None:
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname
        if self.hosts is not None and host not in self.hosts:
            return Response("This page answers under its own name only.\n", 421)
        if request.method == "POST":
            origin = request.headers.get("origin")
            foreign = request.headers.get("sec-fetch-site", "same-origin") != "same-origin"
            if foreign or (origin and urlsplit(origin).netloc != request.headers.get("host")):
                return Response("A form of another site is not accepted.\n", 403)
        if entered and (not self._reviewer(request) or not self._may_enter(request)):
            if request.method == "POST":
                return self._page(request, "message.html.j2", 403, message="Enter your name first.")
            return RedirectResponse(f"{_root(request)}/enter", 303)
        return None

    def _reviewer(self, request: Request) -> str:
        name = request.cookies.get("reviewer", "")
        try:
            return bytes.fromhex(name).decode()
        except ValueError:
            return ""

    def _may_enter(self, request: Request) -> bool:
        if self.token is None:
            return True
        return hmac.compare_digest(request.cookies.get("pass", ""), _pass(self.token))

    def enter(self, request: Request, form: dict[str, str]) -> Response:
        """Ask for a name, and for the token where there is one."""
        asks = self.token is not None
        if request.method == "GET":
            return self._page(request, "enter.html.j2", asks_token=asks, wrong="")
        name = form.get("name", "").strip()[:_LONGEST_NAME]
        given = form.get("token", "").strip()
        right = self.token is None or hmac.compare_digest(_pass(given), _pass(self.token))
        if not name or not right:
            wrong = "That is not the token." if name else "A name is needed."
            return self._page(request, "enter.html.j2", 403, asks_token=asks, wrong=wrong)
        response = RedirectResponse(f"{_root(request)}/", 303)
        settings: dict[str, Any] = {"httponly": True, "samesite": "strict", "max_age": 30 * 86400}
        response.set_cookie("reviewer", name.encode().hex(), **settings)
        if self.token is not None:
            response.set_cookie("pass", _pass(self.token), **settings)
        return response

    # -- pages -----------------------------------------------------------------------------

    def show_row(self, request: Request, form: dict[str, str]) -> Response:
        """The most valuable row, or the one asked for."""
        reviewer, store = self._reviewer(request), self.room.store
        asked = request.query_params.get("row", "")
        if asked:
            item = store.item(_number(asked))
            if not store.hold(item.id, reviewer):
                raise ReviewError("another reviewer is looking at this row")
            items = [item]
        else:
            items = store.next(reviewer)
        if not items:
            return self._page(request, "finished.html.j2")
        opinions = store.decisions(items[0].id)
        return self._page(
            request,
            "row.html.j2",
            view=self.room.view(items[0]),
            choices=self._choices(items[0]),
            opinions=opinions,
            own=any(decision.reviewer == reviewer for decision in opinions),
            request_id=uuid.uuid4().hex,
        )

    def _choices(self, item: Item) -> list[str]:
        """Labels to change to, the suggested one first."""
        others = [label for label in self.room.classes if label not in (item.given, item.suggested)]
        first = [label for label in self.room.classes if label == item.suggested != item.given]
        return [*first, *others]

    def show_table(self, request: Request, form: dict[str, str]) -> Response:
        """One page of all rows."""
        number = max(1, _number(request.query_params.get("page", "1")))
        state = request.query_params.get("state", "all")
        if state not in _STATES:
            raise ReviewError(f"there is no list of {state!r} rows")
        items, total = self.room.store.page(number, _PAGE_ROWS, state=state)
        last = max(1, -(-total // _PAGE_ROWS))
        return self._page(
            request,
            "table.html.j2",
            items=items,
            total=total,
            number=number,
            last=last,
            state=state,
            states=_STATES,
        )

    # -- decisions -------------------------------------------------------------------------

    def decide(self, request: Request, form: dict[str, str]) -> Response:
        """Record a decision; the answer is sent when it is on disk."""
        verdict, _, label = form.get("decision", "").partition(":")
        if verdict == "change" and label not in self.room.classes:
            raise ReviewError("choose one of the labels of this table")
        name = form.get("request", "")
        if not 8 <= len(name) <= 64:
            raise ReviewError("the form is not whole; open the page again")
        self.room.store.decide(
            _number(form.get("item", "")),
            self._reviewer(request),
            verdict,
            label=label or None,
            note=form.get("note", "").strip()[:_LONGEST_NOTE],
            request=name,
            second_look=form.get("second_look") == "1",
        )
        self.room.decided()
        return RedirectResponse(f"{_root(request)}/", 303)

    def undo(self, request: Request, form: dict[str, str]) -> Response:
        """Take the reviewer's last decision back."""
        self.room.store.undo(self._reviewer(request))
        self.room.decided()
        return RedirectResponse(f"{_root(request)}/", 303)

    # -- files -----------------------------------------------------------------------------

    def export_corrections(self, request: Request, form: dict[str, str]) -> Response:
        """The corrections as CSV, as far as they are decided."""
        names = [field.name for field in fields(Correction)]
        return _csv_file("corrections.csv", names, map(astuple, self.room.corrections()))

    def export_decisions(self, request: Request, form: dict[str, str]) -> Response:
        """Every decision that stands, as CSV."""
        store = self.room.store
        rows = [
            (store.item(d.item).key, d.reviewer, d.verdict, d.label or "", d.at, d.note)
            for d in store.decisions()
        ]
        names = ["key", "reviewer", "verdict", "label", "at", "note"]
        return _csv_file("decisions.csv", names, (map(for_spreadsheet, row) for row in rows))

    def image(self, request: Request, form: dict[str, str]) -> Response:
        """An image below the folder of files."""
        folder = self.room.files
        path = image_below(folder, request.path_params["name"]) if folder is not None else None
        if path is None:
            return Response("There is no such image.\n", 404)
        return FileResponse(path, media_type=TYPES[path.suffix.lower()])

    def static(self, request: Request, form: dict[str, str]) -> Response:
        """The style and the script."""
        kinds = {
            "review.css": "text/css",
            "review.js": "text/javascript",
            "icon.svg": "image/svg+xml",
        }
        name = request.path_params["name"]
        if name not in kinds:
            return Response("There is no such file.\n", 404)
        content = files("buttress.review").joinpath("static", name).read_bytes()
        return Response(content, media_type=kinds[name])

    def _page(self, request: Request, template: str, status: int = 200, **more: Any) -> Response:
        reviewer, store = self._reviewer(request), self.room.store
        decided = [d for d in store.decisions() if d.reviewer == reviewer][-1:] if reviewer else []
        text = self._templates.get_template(template).render(
            root=_root(request),
            title=self.room.title,
            reviewer=reviewer,
            progress=self._progress(),
            agreement=agreement_of(store.decisions()),
            busy=self.room.busy,
            last_decision=decided[0] if decided else None,
            last_key=store.item(decided[0].item).key if decided else "",
            files=self.room.files is not None,
            **more,
        )
        return HTMLResponse(text, status)

    def _progress(self) -> Progress:
        """Where the review stands, computed again only when something has changed."""
        now = self.room.store.change_count()
        if self._known is None or self._known[0] != now:
            self._known = (now, progress_of(self.room.store))
        return self._known[1]


def review_app(room: Room, token: str | None = None, hosts: Any = None) -> Starlette:
    """The review of a room as an application of its own.

    Parameters
    ----------
    room : Room
    token : str, optional
        Asked from reviewers.
    hosts : collection of str, optional
        As in `ReviewPage`.
    """
    return Starlette(routes=ReviewPage(room, token, hosts).routes())


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", "")).rstrip("/")


def _pass(token: str) -> str:
    """What the cookie holds: not the token itself."""
    return hashlib.sha256(b"buttress review " + token.encode()).hexdigest()


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise ReviewError("that is not the number of a row")
    return int(text)


async def _form(request: Request) -> dict[str, str]:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise ReviewError("the form is too long")
    entries = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
    return {name: values[-1] for name, values in entries.items()}


def _csv_file(name: str, header: list[str], rows: Any) -> Response:
    return Response(
        csv_text(header, rows),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
