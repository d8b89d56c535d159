"""What the service answers over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from coincide.adapters.records import BadRecord, event_of
from coincide.errors import CoincideError, nearest
from coincide.serve.answers import Refused, answer, diagnostics_data, refusal
from coincide.serve.description import described, page
from coincide.serve.guard import Guard, Limits
from coincide.serve.posted import BACKLOG
from coincide.serve.service import Service
from coincide.streams.base import Made

PING = 15.0
"""Seconds after which a stream in which nothing happens says that it is alive."""
MOST = 1_000
"""Detections that are given at a time."""
JSON, LINES, TEXT = "application/json", "application/x-ndjson", "text/plain"


class Api:
    """The routes. Whatever may take a while is done in another thread."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self._made = asyncio.Event()

    def routes(self) -> list[Route]:
        return [
            Route("/", self.home),
            Route("/events", self.post_events, methods=["POST"]),
            Route("/detections", self.get_detections),
            Route("/detections/stream", self.stream),
            Route("/rules", self.list_rules),
            Route("/rules/validate", self.validate, methods=["POST"]),
            Route("/rules/{name:path}/enable", self.enable, methods=["POST"]),
            Route("/rules/{name:path}/disable", self.disable, methods=["POST"]),
            Route("/rule-files/{file:path}", self.get_file, methods=["GET"]),
            Route("/rule-files/{file:path}", self.put_file, methods=["PUT"]),
            Route("/metrics", self.metrics),
            Route("/health", self.health),
            Route("/ready", self.ready),
            Route("/openapi.json", self.openapi),
            Route("/docs", self.docs),
        ]

    # Events.

    async def post_events(self, request: Request) -> Response:
        """All of them, or none."""
        service = self.service
        if not service.ready:
            raise Refused(503, "the service is stopping", headers={"Retry-After": "5"})
        if service.posted.backlog > BACKLOG:
            raise Refused(503, "events come faster than they are dealt with", headers={"Retry-After": "1"})
        lines = _lines(await _body(request, JSON, LINES), _kind(request))
        self._check(lines)
        if lines:
            block = b"\n".join(lines) + b"\n"
            if service.posted.spool.safe:
                await asyncio.to_thread(service.posted.spool.append, block)
            else:
                service.posted.spool.append(block)
        return answer({"accepted": len(lines)}, 202)

    def _check(self, lines: Sequence[bytes]) -> None:
        mapping, wrong = self.service.mapping, []
        for number, line in enumerate(lines):
            try:
                event_of(msgspec.json.decode(line), mapping, 1)
            except (BadRecord, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                wrong.append({"record": number, "reason": str(error)})
        if wrong:
            count = "1 record is not an event" if len(wrong) == 1 else f"{len(wrong):,} records are not events"
            raise Refused(422, f"{count}: none was accepted", more={"rejected": wrong[:100]})

    # Detections.

    async def get_detections(self, request: Request) -> Response:
        wanted = Filter(request, "limit")
        limit = _whole(request, "limit", 100, 1, MOST)
        history = self.service.history
        begin = self._begin(request)
        number, found = begin or 0, list[Made]()
        while len(found) < limit:
            number, made = history.since(number, MOST)
            if not made:
                break
            found += [each for each in made if wanted.takes(each)][: limit - len(found)]
            number += len(made)
        records = [_record(each) for each in found]
        return answer({"detections": records, "next": found[-1].key if found else request.query_params.get("after")})

    async def stream(self, request: Request) -> Response:
        wanted, begin = Filter(request), self._begin(request)
        number = self.service.history.next if begin is None else begin
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._events(wanted, number), headers=headers, media_type="text/event-stream")

    def _begin(self, request: Request) -> int | None:
        """The number after that of the detection whose key is given. A browser that connects again gives it by itself, and would
        give up if it were refused."""
        key, last = request.query_params.get("after"), request.headers.get("last-event-id")
        if not key:
            return None if not last else self.service.history.number_after(last) or 0
        number = 0 if key == "start" else self.service.history.number_after(key)
        if number is None:
            available = f"the last {self.service.history.capacity:,} are, and 'start' stands for the first of them"
            raise Refused(410, f"no detection '{key}' is kept: {available}")
        return number

    async def _events(self, wanted: Filter, number: int) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n\n"
        while not self.service.stopping:
            made = self._made
            before, found = number, self.service.history.since(number, MOST)
            number = found[0] + len(found[1])
            if found[0] > before:
                yield b": %d detections were made faster than they were read, and are not kept\n\n" % (found[0] - before)
            if text := b"".join(_message(each) for each in found[1] if wanted.takes(each)):
                yield text
            elif not found[1]:
                try:
                    await asyncio.wait_for(made.wait(), PING)
                except TimeoutError:
                    yield b": alive\n\n"

    def listen(self) -> None:
        """From now on streams are told when something was made."""
        self._loop = asyncio.get_running_loop()
        self.service.history.notify = self.wake

    def wake(self) -> None:
        """May be called by any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        before, self._made = self._made, asyncio.Event()
        before.set()

    # Rules.

    async def list_rules(self, request: Request) -> Response:
        rules = self.service.files.rules
        return answer({"rules": rules.listed(), "files": [text.name for text in rules.texts]})

    async def validate(self, request: Request) -> Response:
        await _body(request, JSON)
        try:
            given = msgspec.json.decode(await request.body(), type=_File)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Refused(400, f"not {{file, text}}: {error}") from error
        try:
            rules = await asyncio.to_thread(self.service.validated, given.file, given.text)
        except CoincideError as error:
            return answer({"valid": False, "diagnostics": diagnostics_data(error.diagnostics)})
        warnings = [*rules.book.warnings, *rules.book.streaming_warnings]
        return answer({"valid": True, "diagnostics": diagnostics_data(warnings)})

    async def get_file(self, request: Request) -> Response:
        found = self.service.files.text(request.path_params["file"])
        if found is None:
            raise Refused(404, f"there is no file of rules '{request.path_params['file']}'")
        return PlainTextResponse(found.text)

    async def put_file(self, request: Request) -> Response:
        body = await _body(request, TEXT)
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            raise Refused(400, "rules must be UTF-8") from error
        return await self._changed(self.service.replace_file, request.path_params["file"], text)

    async def enable(self, request: Request) -> Response:
        return await self._changed(self.service.enable, self._rule(request), True)

    async def disable(self, request: Request) -> Response:
        return await self._changed(self.service.enable, self._rule(request), False)

    def _rule(self, request: Request) -> str:
        name, known = str(request.path_params["name"]), self.service.files.rules.names
        if name not in known:
            hint = nearest(name, known)
            raise Refused(404, f"there is no rule '{name}'" + (f"; {hint}" if hint else ""))
        return name

    async def _changed(self, change: Callable[..., Any], *arguments: object) -> Response:
        try:
            rules = await asyncio.to_thread(change, *arguments)
        except CoincideError as error:
            message = error.diagnostics[0].message if error.diagnostics else str(error)
            raise Refused(422, message, diagnostics=error.diagnostics) from error
        return answer({"rules": rules.listed(), "files": [text.name for text in rules.texts]})

    # How it is.

    async def metrics(self, request: Request) -> Response:
        gauges, counters = await asyncio.to_thread(self.service.numbers)
        text = "\n".join(self.service.metrics.lines(gauges, counters)) + "\n"
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def health(self, request: Request) -> Response:
        alive = not self.service.ended
        return answer({"status": "alive" if alive else "ended"}, 200 if alive else 503)

    async def ready(self, request: Request) -> Response:
        ready = self.service.ready
        return answer({"status": "ready" if ready else "not ready"}, 200 if ready else 503)

    async def openapi(self, request: Request) -> Response:
        return answer(described())

    async def docs(self, request: Request) -> Response:
        return HTMLResponse(page())

    async def home(self, request: Request) -> Response:
        return RedirectResponse("/docs")


class _File(msgspec.Struct):
    file: str
    text: str


class Filter:
    """Which detections are wanted: by type, by rule, by `attribute=NAME=VALUE`; of several of one kind any will do."""

    def __init__(self, request: Request, *others: str) -> None:
        asked = request.query_params
        if unknown := sorted(set(asked.keys()) - {"type", "rule", "attribute", "after", *others}):
            raise Refused(400, f"unknown parameter '{unknown[0]}'")
        self._types, self._rules = frozenset(asked.getlist("type")), frozenset(asked.getlist("rule"))
        pairs = [entry.partition("=") for entry in asked.getlist("attribute")]
        if any(not equals for _, equals, _ in pairs):
            raise Refused(400, "an attribute is asked for as NAME=VALUE")
        self._attributes: dict[str, set[str]] = {}
        for name, _, value in pairs:
            self._attributes.setdefault(name, set()).add(value)

    def takes(self, made: Made) -> bool:
        if (self._types and made.type not in self._types) or (self._rules and made.rule not in self._rules):
            return False
        if not self._attributes:
            return True
        record = msgspec.json.decode(made.line)
        return all(_as_text(record.get(name)) in values for name, values in self._attributes.items())


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _record(made: Made) -> dict[str, Any]:
    return {"id": made.key, "rule": made.rule, "detection": msgspec.Raw(made.line.rstrip(b"\n"))}


def _message(made: Made) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (made.key.encode(), made.line.rstrip(b"\n"))


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body(request: Request, *kinds: str) -> bytes:
    if _kind(request) not in kinds:
        raise Refused(415, f"the content type must be {' or '.join(kinds)}")
    return await request.body()


def _lines(body: bytes, kind: str) -> list[bytes]:
    """Records, one a line. An array of them, or a record of several lines, is laid out anew."""
    if kind == LINES:
        return [line for line in body.split(b"\n") if line and not line.isspace()]
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"not JSON: {str(error).removeprefix('JSON is malformed: ')}") from error
    return [msgspec.json.encode(record) for record in (given if isinstance(given, list) else [given])]


def _whole(request: Request, name: str, otherwise: int, least: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return otherwise
    if not (text.isascii() and text.isdigit() and least <= int(text[:10]) <= most):
        raise Refused(400, f"'{name}' must be a whole number from {least} to {most}")
    return int(text)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(error)


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return answer({"error": error.detail}, error.status_code, error.headers)


async def _hung_up(request: Request, error: Exception) -> Response:
    return answer({"error": "the client has gone away"}, 400)


def answering(routes: Sequence[BaseRoute]) -> Starlette:
    """Routes whose refusals are answers in JSON, too."""
    return Starlette(routes=routes, exception_handlers={Refused: _refused, HTTPException: _unknown, ClientDisconnect: _hung_up})


def application(api: Api, token: str | None, limits: Limits) -> Guard:
    return Guard(answering(api.routes()), token, limits, api.service.metrics)
