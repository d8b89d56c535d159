"""Servers of our own, on loopback, for the tests of connectors."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Event, Thread
from typing import Any

from coincide.streams.base import Delivery, Position, Source

PATIENCE = 180.0


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def until(done: Callable[[], object], what: str = "it did not happen") -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Server:
    """A program that listens on a port, and can be stopped and started again there."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self.command, self.port = command, port
        self.address = f"127.0.0.1:{port}"
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: answers(self.port), f"{self.command[0]} does not listen")

    def stop(self, number: int = signal.SIGKILL) -> None:
        self._process.send_signal(number)
        self._process.wait()


class Reader:
    """Reads a source in a thread, as a run does; `take` gives the times of so many events."""

    def __init__(self, source: Source, position: Position = None) -> None:
        self.source = source
        self.position: Position = position
        self._came: Queue[Delivery | BaseException] = Queue()
        self._thread = Thread(target=self._read, args=(position,), daemon=True)
        self._thread.start()

    def take(self, count: int) -> list[int]:
        times: list[int] = []
        while len(times) < count:
            came = self._came.get(timeout=PATIENCE)
            if isinstance(came, BaseException):
                raise came
            times += [event.hi // 1000 for event in came.batch.events]
            self.position = came.position
        return times

    def stop(self) -> None:
        self.source.close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the source did not close"

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self, position: Position) -> None:
        try:
            for delivery in self.source.deliveries(position):
                self._came.put(delivery)
        except BaseException as error:
            self._came.put(error)


def lines(times: Iterator[int] | Sequence[int]) -> list[bytes]:
    return [b'{"type": "a", "time": %d}' % time for time in times]


class Site:
    """A server of our own: it sends the records that it has, with their numbers as ids, and keeps what is posted."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.port = free_port()
        self.url = f"http{'' if context is None else 's'}://127.0.0.1:{self.port}"
        self._context = context
        self.records: list[bytes] = []
        self.asked: list[dict[str, str]] = []
        self.posted: list[tuple[dict[str, str], bytes]] = []
        self.paths: list[str] = []
        self.answers: list[int] = []
        self.start()

    def start(self) -> None:
        self._stopped = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        if self._context is not None:
            self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True)
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(site) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.asked.append(dict(self.headers))
                if self.path != "/events":
                    self.send_response(204 if self.path == "/over" else 404)
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Connection", "close")
                self.end_headers()
                sent = int(self.headers.get("Last-Event-ID", 0))
                while not site._stopped.wait(0.01):
                    for number in range(sent, len(site.records)):
                        self.wfile.write(b": hello\nid: %d\ndata: %s\n\n" % (number + 1, site.records[number]))
                        self.wfile.flush()
                    sent = len(site.records)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = site.answers.pop(0) if site.answers else 204
                if answer == 204:
                    site.paths.append(self.path)
                    site.posted.append((dict(self.headers), body))
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        return Handler
