"""WebSockets, against a server that tests start."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread

import pytest
from servers import Reader, free_port, lines, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from coincide.errors import CoincideError
from coincide.streams.base import Made, Reading
from coincide.streams.registry import open_sink, open_source


class Peer:
    """Sends what `sent` holds to whoever comes to /events, keeps what others send it."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"ws://127.0.0.1:{self.port}"
        self.sent: list[bytes] = []
        self.kept: list[str] = []
        self.tokens: list[str | None] = []
        self.start()

    def start(self) -> None:
        self._server: Server = serve(self._talk, "127.0.0.1", self.port)
        Thread(target=self._server.serve_forever, daemon=True).start()
        self._open: list[ServerConnection] = []

    def stop(self) -> None:
        self._server.shutdown()
        for connection in self._open:
            with suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)

    def _talk(self, connection: ServerConnection) -> None:
        self._open.append(connection)
        assert connection.request is not None
        self.tokens.append(connection.request.headers.get("Authorization"))
        if connection.request.path == "/events":
            for message in self.sent:
                connection.send(message.decode())
            if not self.sent:
                return
        try:
            for message in connection:
                self.kept.append(str(message))
        except (ConnectionClosed, OSError):
            return


@pytest.fixture
def peer() -> Iterator[Peer]:
    made = Peer()
    yield made
    made.stop()


def test_messages_become_events_and_a_peer_that_comes_back_is_found_again(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WS_TOKEN", "secret")
    peer.sent = [b"\n".join(lines([1, 2])), *lines([3])]
    source = open_source(f"{peer.url}/events", Reading())
    assert not source.repeatable
    with Reader(source) as reader:
        assert reader.take(3) == [1, 2, 3]
        peer.stop()
        peer.sent = lines([4])
        peer.start()
        assert reader.take(1) == [4]
    assert peer.tokens == ["Bearer secret", "Bearer secret"]


def test_a_peer_can_say_that_it_is_over(peer: Peer) -> None:
    assert [*open_source(f"{peer.url}/events", Reading()).deliveries(None)] == []


def test_what_is_written_has_come_through_or_is_sent_again(peer: Peer) -> None:
    sink = open_sink(f"{peer.url}/found")
    sink.open(None)
    sink.write([Made("", "found", b"1\n"), Made("", "found", b"2\n")])
    until(lambda: peer.kept == ["1", "2"])
    peer.stop()
    writer = Thread(target=sink.write, args=([Made("", "found", b"3\n")],), daemon=True)
    writer.start()
    peer.start()
    until(lambda: peer.kept[-1:] == ["3"])
    writer.join(5)
    assert not writer.is_alive()
    sink.close()


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(CoincideError, match=r"cannot reach 'ws://127.0.0.1:1': .*refused"):
        open_sink("ws://127.0.0.1:1/x").open(None)
    with pytest.raises(CoincideError, match="credentials belong in WS_TOKEN"):
        open_source("ws://me:secret@127.0.0.1/x", Reading())
