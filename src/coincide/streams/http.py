"""Hypertext: events that a server sends (server-sent events) as a source, webhooks as a sink and as an action.

Credentials are in the environment: SSE_TOKEN for sources, WEBHOOK_TOKEN for sinks (each also as NAME_FILE), and WEBHOOK_SECRET,
with which webhooks are signed. HTTP_CA, HTTP_CERT and HTTP_KEY name files for TLS."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Event as Flag
from typing import Any

import httpx

from coincide.errors import CoincideError
from coincide.model.batch import EventBatch
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source
from coincide.streams.connection import PATIENCE, SHORTEST, Address, BackOff, secret, tls, unreachable

SILENCE = 90.0
"""Seconds after which a server that sends nothing, not even a comment, is asked again."""
BUSY = (408, 425, 429)
"""Answers below 500 after which one tries again."""
LONGEST_ASKED = 60.0
"""A server may ask for so long a pause (Retry-After)."""
PREFIX = "whsec_"

_line_end = re.compile(rb"\r\n|\n|\r")


class ServerSentEvents(Source):
    """`http(s)://…`: each event's data is a record, or several, one a line. A position is the id of the last event; a server that
    gives ids goes on after it. It is asked again whenever the connection ends, until it answers 204."""

    clock = "wall"

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.address = Address.of(url, None, "SSE_TOKEN")
        self.name = self.address.server
        self._socket: socket.socket | None = None

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        stream, back_off, reached = EventStream(position), BackOff(self.name), False
        with _client(self.address, "SSE_TOKEN", SILENCE) as client:
            while not self.closed.is_set():
                try:
                    with client.stream("GET", self.url, headers=stream.headers()) as response:
                        if response.status_code == httpx.codes.NO_CONTENT:
                            return
                        if (reason := _refusal(response)) is not None and (not reached or not _is_passing(response)):
                            raise unreachable(self.address.server, reason)
                        if reason is None:
                            reached = True
                            for batch in self._batches(response, stream):
                                back_off.reset()
                                yield self.delivery(batch, stream.last)
                except httpx.RequestError as error:
                    if not reached and not self.closed.is_set():
                        raise unreachable(self.address.server, error) from error
                if stream.pause is not None:
                    back_off = BackOff(self.name, stream.pause)
                    stream.pause = None
                stream.begin()
                back_off.wait(self.closed)

    def close(self) -> None:
        super().close()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # whoever waits for more stops waiting

    def _batches(self, response: httpx.Response, stream: EventStream) -> Iterator[EventBatch]:
        self._socket = response.extensions["network_stream"].get_extra_info("socket")
        for chunk in response.iter_bytes() if not self.closed.is_set() else ():
            if messages := stream.feed(chunk):
                yield self.events(messages, self.address.server)
            if self.closed.is_set():
                return


class EventStream:
    """The form of server-sent events (HTML, 9.2.6). `last` is the id to go on after, `pause` the seconds to wait before that."""

    def __init__(self, last: str | None = None) -> None:
        self.last = last
        self.pause: float | None = None
        self.begin()

    def begin(self) -> None:
        """A new connection: what was not complete comes again."""
        self._rest = b""
        self._data: list[bytes] = []
        self._id = self.last

    def headers(self) -> dict[str, str]:
        asked = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        return asked if self.last is None else {**asked, "Last-Event-ID": self.last}

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that are now complete."""
        text = self._rest + chunk
        held = text[-1:] if text.endswith(b"\r") else b""  # the other half of the line's end may follow
        *lines, rest = _line_end.split(text[: len(text) - len(held)])
        self._rest = rest + held
        found: list[bytes] = []
        for line in lines:
            if line:
                self._field(line)
                continue
            self.last = self._id
            if self._data:
                found.append(b"\n".join(self._data))
                self._data = []
        return found

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.pause = max(SHORTEST, int(value) / 1000)


class WebhookSink(Sink):
    """`http(s)://…`: each detection is posted as JSON, with its key as `webhook-id`. A server that is away is waited for; one
    that refuses what it gets ends the run."""

    keyed = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.webhook = Webhook(url)

    def open(self, position: Position) -> None:
        self.webhook.reach()

    def write(self, made: Sequence[Made]) -> None:
        for each in made:
            self.webhook.post(each.line.rstrip(b"\n"), each.key)

    def close(self) -> None:
        self.webhook.close()


class Webhook:
    """Posts JSON, again where that may help: at most so many `attempts`, None: for ever; and once only, if it did not come
    through the last time. With WEBHOOK_SECRET it is signed as 'Standard Webhooks' says (https://www.standardwebhooks.com)."""

    def __init__(self, url: str, attempts: int | None = None) -> None:
        self.address = Address.of(url, None, "WEBHOOK_TOKEN or WEBHOOK_SECRET")
        self._attempts = attempts
        self._secret = _signing_key(secret("WEBHOOK_SECRET"))
        self._client = _client(self.address, "WEBHOOK_TOKEN", PATIENCE)
        self._closed = Flag()
        self._away = False

    def reach(self) -> None:
        """Whatever it answers, there is somebody. Raises CoincideError if not."""
        try:
            self._client.options(self.address.url)
        except httpx.RequestError as error:
            raise unreachable(self.address.server, error) from error

    def post(self, body: bytes, key: str) -> None:
        """Raises CoincideError if it is refused, or did not come through."""
        back_off, attempt = BackOff(self.address.server), 1
        while True:
            try:
                answer = self._client.post(self.address.url, content=body, headers=self._headers(body, key))
            except httpx.RequestError as error:
                reason, asked = str(error) or "it does not answer", 0.0
            else:
                if answer.is_success:
                    self._away = False
                    return
                reason, asked = f"it answers {answer.status_code}", _asked_pause(answer)
                if not _is_passing(answer):
                    raise CoincideError(f"'{self.address.server}' does not take detections: {reason}")
            if self._closed.is_set() or (self._attempts is not None and (self._away or attempt == self._attempts)):
                self._away = True
                raise unreachable(self.address.server, reason)
            attempt += 1
            self._closed.wait(asked)
            back_off.wait(self._closed)

    def close(self) -> None:
        self._closed.set()
        self._client.close()

    def _headers(self, body: bytes, key: str) -> dict[str, str]:
        moment = str(int(time.time()))
        headers = {"Content-Type": "application/json", "webhook-id": key, "webhook-timestamp": moment}
        if self._secret is not None:
            headers["webhook-signature"] = signature(self._secret, key, moment, body)
        return headers


def signature(key: bytes, identifier: str, moment: str, body: bytes) -> str:
    signed = f"{identifier}.{moment}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def _signing_key(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text.removeprefix(PREFIX), validate=True) if text.startswith(PREFIX) else text.encode()
    except binascii.Error:
        raise CoincideError(f"WEBHOOK_SECRET: what follows '{PREFIX}' must be base64") from None


def _client(address: Address, token: str, silence: float) -> httpx.Client:
    headers = {"User-Agent": "coincide"}
    if (password := secret(token)) is not None:
        headers["Authorization"] = f"Bearer {password}"
    verified: Any = tls("HTTP") if address.scheme == "https" else False
    return httpx.Client(headers=headers, verify=verified, timeout=httpx.Timeout(PATIENCE, read=silence))


def _refusal(response: httpx.Response) -> str | None:
    """Why there is nothing to read; None: there is."""
    if response.status_code != httpx.codes.OK:
        return f"it answers {response.status_code}"
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return None if kind == "text/event-stream" else f"it sends no events but '{kind}'"


def _is_passing(response: httpx.Response) -> bool:
    return response.status_code >= 500 or response.status_code in BUSY


def _asked_pause(response: httpx.Response) -> float:
    asked = response.headers.get("retry-after", "")
    return min(float(asked), LONGEST_ASKED) if asked.isdecimal() else 0.0


ATTEMPTS = 6
"""How often it is tried before a detection is given up."""


class WebhookAction:
    """What the sink of the same address does, but not for ever."""

    def __init__(self, url: str) -> None:
        self._webhook = Webhook(url, ATTEMPTS)
        self.name = f"'{self._webhook.address.server}'"

    def notify(self, key: str, record: dict[str, Any], line: bytes) -> None:
        self._webhook.post(line, key)

    def close(self) -> None:
        self._webhook.close()
