"""WebSockets: `ws://HOST:PORT/PATH`, `wss://` with TLS. Each message is a record, or several, one a line.

The variable WS_TOKEN (or WS_TOKEN_FILE) is sent as bearer token; WS_CA, WS_CERT and WS_KEY name files for TLS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from threading import Event as Flag
from typing import Any

from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, WebSocketException
from websockets.sync.client import ClientConnection, connect

from coincide.model.batch import EventBatch
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source
from coincide.streams.connection import PATIENCE, WAIT, Address, BackOff, secret, tls, unreachable

TAKEN = 1_000
"""Messages of a delivery."""
LONGEST_MESSAGE = 2**24
NORMAL = 1000
"""How a peer says that there is no more."""
FAILURES = (OSError, WebSocketException, EOFError)


class Peer:
    """Who is talked to. The first attempt must succeed, later ones are repeated."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.address = Address.of(url, None, "WS_TOKEN")
        self.closed = Flag()

    def connected(self) -> ClientConnection:
        """Raises CoincideError if it cannot be reached."""
        try:
            return self._connect()
        except FAILURES as error:
            raise unreachable(self.address.server, error) from error

    def connected_again(self, back_off: BackOff) -> ClientConnection | None:
        """When it can be reached; None if it was closed meanwhile."""
        while not back_off.wait(self.closed):
            try:
                return self._connect()
            except FAILURES:
                continue
        return None

    def _connect(self) -> ClientConnection:
        token = secret("WS_TOKEN")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        context = tls("WS") if self.address.scheme == "wss" else None
        talk: Any = connect(
            self.url, ssl=context, additional_headers=headers, open_timeout=PATIENCE, close_timeout=1, max_size=LONGEST_MESSAGE
        )
        # Newer releases want a `with`; here it is closed by whoever has it.
        connection: ClientConnection = ExitStack().enter_context(talk)
        return connection


class WebSocketSource(Source):
    """What a server sends, until it says that it is done. What it sent while nobody listened is gone."""

    clock = "wall"
    repeatable = False

    def __init__(self, url: str, reading: Reading) -> None:
        super().__init__(url, reading)
        self.peer = Peer(url)
        self.name = self.peer.address.server

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        connection, back_off = self.peer.connected(), BackOff(self.name)
        try:
            while not self.closed.is_set():
                messages, over = _received(connection)
                if messages:
                    back_off.reset()
                    yield self.delivery(self._events(messages), None)
                if isinstance(over, ConnectionClosedOK) and over.rcvd is not None and over.rcvd.code == NORMAL:
                    return
                if over is not None:
                    if (again := self.peer.connected_again(back_off)) is None:
                        return
                    connection = again
        finally:
            connection.close()

    def close(self) -> None:
        super().close()
        self.peer.closed.set()

    def _events(self, messages: list[bytes]) -> EventBatch:
        server = self.peer.address.server
        return self.events(messages, server)


def _received(connection: ClientConnection) -> tuple[list[bytes], ConnectionClosed | None]:
    """What has come, after a short while at most, and how the connection ended, if it did."""
    found: list[bytes] = []
    try:
        while len(found) < TAKEN:
            message = connection.recv(timeout=0 if found else WAIT)
            found.append(message.encode() if isinstance(message, str) else message)
    except TimeoutError:
        pass
    except ConnectionClosed as over:
        return found, over
    return found, None


class WebSocketSink(Sink):
    """Each detection is a message. A write returns when the peer has answered a ping that was sent after them, so that what a
    broken connection swallowed is sent again."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.peer = Peer(url)

    def open(self, position: Position) -> None:
        self._connection = self.peer.connected()

    def write(self, made: Sequence[Made]) -> None:
        back_off = BackOff(self.peer.address.server)
        while not self._sent(made):
            if (again := self.peer.connected_again(back_off)) is None:
                return
            self._connection = again

    def close(self) -> None:
        self.peer.closed.set()
        self._connection.close()

    def _sent(self, made: Sequence[Made]) -> bool:
        try:
            for each in made:
                self._connection.send(each.line.decode().rstrip("\n"))
            answered = self._connection.ping()
        except ConnectionClosed:
            return False
        while not answered.wait(WAIT):
            _, over = _received(self._connection)  # what nobody takes would hold up the answer
            if over is not None:
                return False
        return True
