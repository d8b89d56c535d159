"""What the page asks for, over HTTP: data as JSON, tiles as numbers, the page itself as it was built."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from coincide import __version__
from coincide.editing import formatted
from coincide.errors import CoincideError, InputError
from coincide.model.event import record
from coincide.serve.answers import Refused, answer
from coincide.serve.guard import Guard, Limits
from coincide.serve.http import answering
from coincide.serve.metrics import Metrics
from coincide.studio.blocks import Rule, composed, drawn_rules
from coincide.studio.cases import write_case
from coincide.studio.hints import completions_at, hover_at, tokens_of
from coincide.studio.lanes import HIGHEST, Lanes
from coincide.studio.near import near_misses
from coincide.studio.pictures import graph_of, picture_of, plan_of
from coincide.studio.reasons import cause_of, tree_of
from coincide.studio.running import Run
from coincide.studio.session import Session
from coincide.studio.summary import live_moment_summary, moment_summary, run_summary, session_summary, statistics

PAGE = files("coincide.studio") / "page"
NONCE = "@nonce@"
"""Stands in the page for what is made anew for each request: styles without it are not applied."""
MARKS = 4_000
"""Single events that are drawn; of more there are only counts."""

Handler = Callable[[Request], Awaitable[Response]]


class Api:
    """The routes. Whatever may take a while is done in another thread."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def routes(self) -> list[Route | Mount]:
        get = {
            "session": self.about,
            "file": self.text,
            "check": self.check,
            "tile": self.tile,
            "marks": self.marks,
            "values": self.values,
            "event": self.event,
            "run": self.progress,
            "detections": self.detections,
            "causes": self.causes,
            "moment": self.moment,
            "next": self.next,
            "statistics": self.statistics,
            "picture": self.picture,
            "graph": self.graph,
            "plan": self.plan,
            "blocks": self.blocks,
        }
        post = {
            "change": self.change,
            "save": self.save,
            "new": self.new,
            "load": self.load,
            "events": self.open_events,
            "run": self.start,
            "stop": self.stop,
            "back": self.back,
            "resume": self.resume,
            "accept": self.accept,
            "case": self.case,
            "near": self.near,
            "tokens": self.tokens,
            "complete": self.complete,
            "hover": self.hover,
            "format": self.format,
            "compose": self.compose,
        }
        return [
            Route("/", page),
            *(Route(f"/api/{name}", _safely(handler)) for name, handler in get.items()),
            *(Route(f"/api/{name}", _safely(handler), methods=["POST"]) for name, handler in post.items()),
            Mount("/assets", StaticFiles(directory=str(PAGE / "assets"), check_dir=False)),
        ]

    # Files.

    async def about(self, request: Request) -> Response:
        return answer({"version": __version__, **await asyncio.to_thread(session_summary, self.session)})

    async def text(self, request: Request) -> Response:
        name = _parameter(request, "name")
        return answer({"name": name, "text": await asyncio.to_thread(self.session.files.text, name)})

    async def check(self, request: Request) -> Response:
        return answer(await asyncio.to_thread(self._checked))

    def _checked(self, name: str | None = None) -> dict[str, Any]:
        """The rules that are run, and the file with this name, if that is none of them."""
        book, diagnostics = self.session.checked()
        found = [*diagnostics, *(() if name is None else self.session.beside(name))]
        rules = [] if book is None else [self._rule(detector) for detector in book.detectors]
        return {"valid": book is not None, "rules": rules, "diagnostics": [self.session.describe(each) for each in found]}

    def _rule(self, detector: Any) -> dict[str, Any]:
        span = detector.span
        place = None if span is None else [self.session.files.name_in(span.file), span.start, span.end]
        return {"name": detector.name, "language": detector.language, "place": place}

    async def change(self, request: Request) -> Response:
        given = await _given(request, Change)
        await asyncio.to_thread(self.session.files.change, given.name, given.text)
        return answer(await asyncio.to_thread(self._checked, given.name))

    async def save(self, request: Request) -> Response:
        given = await _given(request, Named)
        await asyncio.to_thread(self.session.files.save, given.name)
        return await self.about(request)

    async def new(self, request: Request) -> Response:
        given = await _given(request, Named)
        await asyncio.to_thread(self.session.files.create, given.name)
        return await self.about(request)

    async def load(self, request: Request) -> Response:
        given = await _given(request, Loading)
        self.session.files.load(given.name, given.loaded)
        return await self.about(request)

    # Events.

    async def open_events(self, request: Request) -> Response:
        given = await _given(request, Named)
        path = self.session.files.path(given.name)
        await asyncio.to_thread(self.session.open, [str(path)])
        return await self.about(request)

    def _lanes(self, request: Request) -> Lanes:
        if request.query_params.get("layer") == "detections":
            return self.session.last_run().lanes
        name, equals, value = request.query_params.get("filter", "").partition("=")
        return self.session.store.lanes_where(name, value)[1] if equals else self.session.store.lanes

    async def tile(self, request: Request) -> Response:
        level, index = _whole(request, "level", 0, HIGHEST), _whole(request, "index", 0, 1 << 53)
        found = await asyncio.to_thread(lambda: self._lanes(request).tile(level, index))
        return Response(found.tobytes(), media_type="application/octet-stream")

    async def marks(self, request: Request) -> Response:
        """Single events or detections in a stretch of time, if they are not too many."""
        first, last = _whole(request, "from", 0, 1 << 53), _whole(request, "to", 0, 1 << 53)
        return answer(await asyncio.to_thread(self._marks, request, first, last))

    def _marks(self, request: Request, first: int, last: int) -> dict[str, Any]:
        hidden = {int(part) for part in request.query_params.get("hidden", "").split(",") if part.isdigit()}
        lanes = self._lanes(request)
        shown = frozenset(range(len(lanes.names))) - hidden
        rows = lanes.between(first, last, MARKS, shown)
        if rows is None:
            return {"marks": None}
        lo = self._begins(request)[rows]
        return {"marks": [rows.tolist(), lanes.codes[rows].tolist(), lo.tolist(), lanes.times[rows].tolist()]}

    def _begins(self, request: Request) -> Any:
        import numpy as np

        if request.query_params.get("layer") == "detections":
            return np.array([d.lo for d in self.session.last_run().detections], np.int64)
        name, equals, value = request.query_params.get("filter", "").partition("=")
        begins = self.session.store.times[0]
        return begins[self.session.store.lanes_where(name, value)[0]] if equals else begins

    async def values(self, request: Request) -> Response:
        found = await asyncio.to_thread(self.session.store.values, _parameter(request, "name"))
        return answer({"values": found})

    async def event(self, request: Request) -> Response:
        row = _whole(request, "row", 0, max(0, len(self.session.store) - 1))
        (event,) = await asyncio.to_thread(self.session.store.events, [row])
        return answer({"row": row, "lo": event.lo, "hi": event.hi, "record": record(event)})

    # Runs.

    async def start(self, request: Request) -> Response:
        await asyncio.to_thread(self.session.start)
        return await self.progress(request)

    async def progress(self, request: Request) -> Response:
        return answer(run_summary(self.session))

    async def detections(self, request: Request) -> Response:
        run, first = self.session.last_run(), _whole(request, "first", 0, 1 << 40)
        most = _whole(request, "limit", 1, 500)
        kind = request.query_params.get("type")
        return answer(await asyncio.to_thread(self._page, run, first, most, kind))

    def _page(self, run: Run, first: int, most: int, kind: str | None) -> dict[str, Any]:
        numbers = [n for n, d in enumerate(run.detections) if d.type == kind] if kind else range(len(run.detections))
        return {"total": len(numbers), "detections": [self._detection(run, n) for n in numbers[first : first + most]]}

    def _detection(self, run: Run, number: int) -> dict[str, Any]:
        detection = run.detections[number]
        return {
            "number": number,
            "rule": run.names[detection.place[-2]],
            "lo": detection.lo,
            "hi": detection.hi,
            "moment": run.moments[number],
            "accepted": number in self.session.accepted,
            "record": record(detection),
        }

    async def causes(self, request: Request) -> Response:
        run = self.session.last_run()
        number = _whole(request, "number", 0, max(0, len(run.detections) - 1))
        if not run.detections:
            raise InputError("there are no detections")
        tree = await asyncio.to_thread(lambda: tree_of(cause_of(run, number), run, number))
        return answer({"detection": self._detection(run, number), "causes": tree})

    async def moment(self, request: Request) -> Response:
        run = self.session.last_run()
        at, asked, live = _whole(request, "at", 0, 1 << 40), request.query_params, self.session.live
        rule, key = asked.get("rule"), tuple(asked.getlist("key")) or None
        if live is not None and run.store.live:
            return answer(await asyncio.to_thread(live_moment_summary, live, run, rule, key))
        return answer(await asyncio.to_thread(moment_summary, run, at, rule, key))

    async def next(self, request: Request) -> Response:
        after = _whole(request, "after", 0, 1 << 40)
        return answer({"moment": self.session.last_run().next_moment(after)})

    async def stop(self, request: Request) -> Response:
        await asyncio.to_thread(self.session.stop)
        return await self.about(request)

    async def back(self, request: Request) -> Response:
        await asyncio.to_thread(self.session.look_back)
        return await self.about(request)

    async def resume(self, request: Request) -> Response:
        await asyncio.to_thread(self.session.return_to_live)
        return await self.about(request)

    async def accept(self, request: Request) -> Response:
        given = await _given(request, Accepting)
        count = len(self.session.last_run().detections)
        numbers = range(count) if given.numbers is None else [n for n in given.numbers if 0 <= n < count]
        (self.session.accepted.update if given.accepted else self.session.accepted.difference_update)(numbers)
        return answer({"accepted": len(self.session.accepted)})

    async def case(self, request: Request) -> Response:
        given = await _given(request, NewCase)
        return answer(await asyncio.to_thread(write_case, self.session, given.name, given.span))

    async def statistics(self, request: Request) -> Response:
        return answer({"rules": await asyncio.to_thread(statistics, self.session)})

    async def near(self, request: Request) -> Response:
        given, run = await _given(request, Missing), self.session.last_run()
        return answer(await asyncio.to_thread(near_misses, run, given.rule, given.key, given.span))

    # What an editor asks.

    async def tokens(self, request: Request) -> Response:
        given = await _given(request, Change)
        return answer({"tokens": await asyncio.to_thread(tokens_of, self.session, given.name, given.text)})

    async def complete(self, request: Request) -> Response:
        given = await _given(request, Place)
        found = await asyncio.to_thread(completions_at, self.session, given.name, given.text, given.offset)
        return answer({"completions": found})

    async def hover(self, request: Request) -> Response:
        given = await _given(request, Place)
        return answer(await asyncio.to_thread(hover_at, self.session, given.name, given.text, given.offset))

    async def format(self, request: Request) -> Response:
        given = await _given(request, Change)
        source = self.session.files.source(given.name, given.text)
        return answer({"text": await asyncio.to_thread(formatted, source)})

    # Blocks.

    async def blocks(self, request: Request) -> Response:
        name = _parameter(request, "name")
        source = self.session.files.source(name, self.session.files.text(name))
        return answer({"rules": await asyncio.to_thread(drawn_rules, source)})

    async def compose(self, request: Request) -> Response:
        given = await _given(request, Composing)
        source = self.session.files.source(given.name, given.text)
        return answer({"text": await asyncio.to_thread(composed, source, given.number, given.rule)})

    # Pictures.

    async def picture(self, request: Request) -> Response:
        detector = self.session.detector(_parameter(request, "rule"))
        automaton = request.query_params.get("automaton") == "true"
        text = await asyncio.to_thread(picture_of, detector, automaton)
        return Response(text, media_type="image/svg+xml")

    async def graph(self, request: Request) -> Response:
        return answer(await asyncio.to_thread(lambda: graph_of(self.session.book())))

    async def plan(self, request: Request) -> Response:
        rule = request.query_params.get("rule")
        return answer({"plan": await asyncio.to_thread(lambda: plan_of(self.session.book(), rule))})


class Named(msgspec.Struct):
    name: str


class Change(msgspec.Struct):
    name: str
    text: str


class Composing(msgspec.Struct):
    name: str
    text: str
    number: int
    rule: Rule


class Place(msgspec.Struct):
    name: str
    text: str
    offset: int


class Loading(msgspec.Struct):
    name: str
    loaded: bool


class Accepting(msgspec.Struct):
    numbers: list[int] | None
    accepted: bool


class Missing(msgspec.Struct):
    rule: str
    key: dict[str, str] = {}
    span: tuple[int, int] | None = None


class NewCase(msgspec.Struct):
    name: str
    span: tuple[int, int] | None = None


def _safely(handler: Handler) -> Handler:
    """What the user can put right is told, not a failure."""

    async def safe(request: Request) -> Response:
        try:
            return await handler(request)
        except CoincideError as error:
            message = error.diagnostics[0].message if error.diagnostics else str(error)
            hint = error.diagnostics[0].hint if error.diagnostics else None
            return answer({"error": message, "hint": hint}, 422)

    return safe


async def _given(request: Request, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(400, f"not what is asked for: {error}") from error


def _parameter(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if value is None:
        raise Refused(400, f"'{name}' is missing")
    return value


def _whole(request: Request, name: str, least: int, most: int) -> int:
    text = _parameter(request, name)
    if not (text.isascii() and text.isdigit() and least <= int(text[:20]) <= most):
        raise Refused(400, f"'{name}' must be a whole number from {least} to {most}")
    return int(text)


async def page(request: Request) -> Response:
    """The page, which may load and ask for nothing but what this server has."""
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' blob: data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    return HTMLResponse(text.replace(NONCE, nonce), headers=headers)


def is_open(path: str) -> bool:
    """The page itself has nothing to hide: the token in its link is for what it asks."""
    return path == "/" or path.startswith("/assets/")


def application(session: Session, token: str, limits: Limits) -> Guard:
    return Guard(answering(Api(session).routes()), token, limits, Metrics(), is_open)
