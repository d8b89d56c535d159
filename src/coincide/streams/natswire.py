"""The protocol of NATS, as far as reading needs it: a socket, and messages by the thousand.

The client library takes some 15 microseconds a message, most of it to hand each through queues; here a block of what came is
cut into messages at once. Nothing is read ahead but what fits into the socket's buffer, so a slow run slows the server."""

from __future__ import annotations

import base64
import json
import re
import secrets
import select
import socket
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from coincide.errors import CoincideError, Diagnostic

MESSAGE_ID = "Nats-Msg-Id"
BLOCK = 1 << 18
SILENCE = 20.0
"""Seconds without a word after which the server is asked whether it is there; as long again, and it is not."""

_status = re.compile(rb"NATS/1\.0 (\d{3}) *([^\r\n]*)").match
_left = re.compile(rb"Nats-Pending-Messages: *(\d+)").search


class Status(NamedTuple):
    """What a server says of a request for messages: a number as in HTTP, a text, and how many messages will not come."""

    code: int
    text: str
    left: int


class Wire:
    """One connection. `payloads` are the messages that have come, `last` is the first line of the last of them; whoever needs
    those of all makes `heads` a list."""

    def __init__(self, host: str, port: int, said: Mapping[str, str], tls: ssl.SSLContext | None, patience: float) -> None:
        self._socket = socket.create_connection((host, port), patience)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else what is little waits for up to 40 ms
        self._sending = Lock()
        self._pongs = 0
        self._buffer = b""
        self.inbox = f"_INBOX.{secrets.token_hex(11)}"
        self.payloads: list[bytes] = []
        self.heads: list[bytes] | None = None
        self.last = b""
        self.statuses: list[Status] = []
        try:
            self._greet(host, said, tls)
        except BaseException:
            self.close()
            raise
        self._heard = time.monotonic()
        self._asked = False

    def subscribe(self, subject: str) -> None:
        self.send(b"SUB %s 1\r\n" % subject.encode())

    def publish(self, subject: str, payload: bytes, reply: str = "") -> None:
        self.send(framed(subject, payload, reply))

    def flush(self, seconds: float) -> None:
        """Until the server has taken all that was sent."""
        before, end = self._pongs, time.monotonic() + seconds
        self.send(b"PING\r\n")
        while self._pongs == before:
            self.read(end - time.monotonic())
            if time.monotonic() > end:
                raise ConnectionError("the server does not answer")

    def send(self, data: bytes) -> None:
        """All of it: half a message would spoil what follows. How long a `read` waits says nothing of how long this may take."""
        left, end = memoryview(data), time.monotonic() + SILENCE
        with self._sending:
            while left:
                try:
                    left, end = left[self._socket.send(left) :], time.monotonic() + SILENCE
                except (TimeoutError, ssl.SSLWantWriteError):
                    if time.monotonic() > end:
                        self.close()
                        raise ConnectionError("the server takes nothing") from None

    def read(self, seconds: float) -> bool:
        """Waits for more, so long at most. Raises OSError when the connection is broken."""
        self._socket.settimeout(max(seconds, 0.0005))
        try:
            came = self._socket.recv(BLOCK)
        except (TimeoutError, ssl.SSLWantReadError):
            self._check()
            return False
        if not came:
            raise ConnectionError("the server has closed the connection")
        self._heard, self._asked = time.monotonic(), False
        self._buffer = self._cut(self._buffer + came if self._buffer else came)
        return True

    def has_more(self) -> bool:
        """Is there anything to read? May be asked by another thread."""
        try:
            return bool(self.payloads) or bool(select.select([self._socket], [], [], 0)[0])
        except (OSError, ValueError):  # it has been closed meanwhile
            return False

    def taken(self) -> list[bytes]:
        payloads, self.payloads = self.payloads, []
        return payloads

    def close(self) -> None:
        self._socket.close()

    def _cut(self, block: bytes) -> bytes:
        """Everything that is whole; gives the rest."""
        at, length, find, payloads = 0, len(block), block.find, self.payloads
        while (end := find(b"\r\n", at)) >= 0:
            head = block[at:end]
            if head[:4] == b"MSG ":
                stop = end + 2 + int(head[head.rindex(b" ") + 1 :])
                if stop + 2 > length:
                    break
                payloads.append(block[end + 2 : stop])
                self._note(head)
            elif head[:5] == b"HMSG ":
                begin, size = (int(number) for number in head.rsplit(b" ", 2)[1:])
                stop = end + 2 + size
                if stop + 2 > length:
                    break
                self._with_headers(head, block[end + 2 : end + 2 + begin], block[end + 2 + begin : stop])
            else:
                stop = end
                self._heed(head)
            at = stop + 2
        return block[at:]

    def _note(self, head: bytes) -> None:
        self.last = head
        if self.heads is not None:
            self.heads.append(head)

    def _with_headers(self, head: bytes, headers: bytes, payload: bytes) -> None:
        if (status := _status(headers)) is None:
            self.payloads.append(payload)
            self._note(head)
        else:
            left = _left(headers)
            self.statuses.append(Status(int(status[1]), status[2].decode(errors="replace"), int(left[1]) if left else 0))

    def _heed(self, line: bytes) -> None:
        if line == b"PING":
            self.send(b"PONG\r\n")
        elif line == b"PONG":
            self._pongs += 1
        elif line.startswith(b"-ERR"):
            raise ConnectionError(line[5:].decode(errors="replace").strip("'"))

    def _check(self) -> None:
        if time.monotonic() - self._heard < SILENCE:
            return
        if self._asked:
            raise ConnectionError("the server does not answer")
        self._asked, self._heard = True, time.monotonic()
        self.send(b"PING\r\n")

    def _greet(self, host: str, said: Mapping[str, str], tls: ssl.SSLContext | None) -> None:
        info = json.loads(self._line().removeprefix(b"INFO "))
        if tls is not None or info.get("tls_required"):
            self._socket = (tls or ssl.create_default_context()).wrap_socket(self._socket, server_hostname=host)
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "lang": "python", "version": "1"}
        own = {"name": "coincide", "protocol": 1, **credentials(said, info.get("nonce", ""))}
        self.send(b"CONNECT %s\r\nPING\r\n" % json.dumps({**options, **own}).encode())
        while (line := self._line()) != b"PONG":
            if line.startswith(b"-ERR"):
                raise ConnectionError(line[5:].decode(errors="replace").strip("'"))

    def _line(self) -> bytes:
        """While nothing else can have come: what follows a line is kept for later."""
        while b"\r\n" not in self._buffer:
            if not (came := self._socket.recv(BLOCK)):
                raise ConnectionError("the server has closed the connection")
            self._buffer += came
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line


def framed(subject: str, payload: bytes, reply: str = "", key: str = "") -> bytes:
    """A message as it is sent, with its key as its id in a stream."""
    if not key:
        return b"PUB %s %d\r\n%s\r\n" % (" ".join(filter(None, (subject, reply))).encode(), len(payload), payload)
    headers = f"NATS/1.0\r\n{MESSAGE_ID}: {key}\r\n\r\n".encode()
    sizes = len(headers), len(headers) + len(payload)
    return b"HPUB %s %s %d %d\r\n%s%s\r\n" % (subject.encode(), reply.encode(), *sizes, headers, payload)


def sequence(head: bytes) -> int:
    """The number in its stream of a message."""
    return int(_acknowledged_by(head)[5])


def published(head: bytes) -> int:
    """When the stream got it: nanoseconds since the epoch."""
    return int(_acknowledged_by(head)[7])


def pending(head: bytes) -> int:
    """How many messages of the stream follow it."""
    return int(_acknowledged_by(head)[8])


def subject_of(head: bytes) -> bytes:
    return head.split(b" ", 2)[1]


def _acknowledged_by(head: bytes) -> list[bytes]:
    """The subject on which a message is to be acknowledged: `$JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.ORDER.TIME.PENDING`, of
    which newer servers have two more before the stream."""
    parts = reply_of(head).split(b".")
    return parts if len(parts) == 9 else parts[2:]


def reply_of(head: bytes) -> bytes:
    """The fourth word of a message's first line."""
    return head.split(b" ", 4)[3]


def credentials(said: Mapping[str, str], nonce: str) -> dict[str, str]:
    """What proves who we are, in the server's words."""
    found = {"user": said.get("user"), "pass": said.get("password"), "auth_token": said.get("token")}
    proof = {} if "user_credentials" not in said else _signed(Path(said["user_credentials"]), nonce)
    return {**{name: value for name, value in found.items() if value is not None}, **proof}


def _signed(file: Path, nonce: str) -> dict[str, str]:
    try:
        import nkeys  # type: ignore[import-not-found]
    except ModuleNotFoundError as error:
        raise CoincideError(Diagnostic("NATS_CREDS needs a package that is not installed", hint="pip install nkeys")) from error
    text = file.read_text(encoding="utf-8")
    jwt, seed = (re.findall(rf"-+BEGIN {name}-+\s*(\S+)", text) for name in ("NATS USER JWT", "USER NKEY SEED"))
    if not jwt or not seed:
        raise CoincideError(f"'{file}' does not hold credentials of NATS")
    signature = nkeys.from_seed(seed[0].encode()).sign(nonce.encode())
    return {"jwt": jwt[0], "sig": base64.urlsafe_b64encode(signature).rstrip(b"=").decode()}
