"""Processes of a network for tests: a broker, nodes, applications. Whatever is started ends with the test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from coincide.model.event import Event
from coincide.network.client import Network
from coincide.network.directory import State

PATIENCE = 30.0
PROGRAM = [sys.executable, "-c", "from coincide.cli.main import entry; entry()"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def until(done: Callable[[], object], what: str = "it did not happen", seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Processes:
    """A broker with its store, and what was started beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._networks: list[Network] = []
        self.start_broker()

    def start_broker(self) -> None:
        server = str(Path(sys.executable).parent / "nats-server")
        self._start("broker", [server, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder / "store")])
        until(lambda: _listens(self.port), "the broker does not listen")

    def start_node(self, name: str, *more: str, url: str = "") -> None:
        self._start(name, [*PROGRAM, "node", "--broker", url or self.url, "--name", name, *more])

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def interrupt(self, name: str) -> None:
        process = self.running.pop(name)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)

    def network(self) -> Network:
        self._networks.append(Network(self.url))
        return self._networks[-1]

    def stop(self) -> None:
        for network in self._networks:
            with suppress(Exception):
                network.broker._outgoing.clear()
                network.close()
        for name in list(self.running):
            self.kill(name)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _start(self, name: str, command: Sequence[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ})


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def alive(network: Network, *names: str) -> bool:
    members = network.status().members
    return all(name in members and members[name].alive for name in names)


def ready(network: Network) -> bool:
    state: State = network.status()
    return all(detector.ready for detector in state.detectors.values())


def as_records(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [{"type": e.type, "id": e.id, "time": e.hi // 1000, "source": e.source, **e.attributes} for e in events]
