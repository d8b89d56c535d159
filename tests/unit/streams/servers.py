"""Servers of our own, on loopback, for the tests of connectors."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Queue
from threading import Thread

from coincide.streams.base import Delivery, Position, Source

PATIENCE = 10.0


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

    def stop(self) -> None:
        self._process.kill()
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
