"""A broker of our own, on loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import nats


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Nats:
    """A server of NATS with JetStream, that can be stopped and started again."""

    def __init__(self, store: Path) -> None:
        self.port = free_port()
        self.address = f"nats://127.0.0.1:{self.port}"
        server = str(Path(sys.executable).parent / "nats-server")
        self._command = [server, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(store)]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.do(lambda stream: stream.account_info())

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def make(self, name: str, **settings: Any) -> str:
        """A stream that has the subjects NAME.>; the address of all of them."""
        self.do(lambda stream: stream.add_stream(name=name, subjects=[f"{name}.>"], **settings))
        return f"{self.address}/{name}.>?stream={name}"

    def publish(self, subject: str, messages: Iterable[bytes | dict[str, Any]]) -> None:
        async def send(stream: Any) -> None:
            for message in messages:
                await stream.publish(subject, message if isinstance(message, bytes) else json.dumps(message).encode())

        self.do(send)

    def do(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        async def act() -> Any:
            client = await nats.connect(self.address, max_reconnect_attempts=200, reconnect_time_wait=0.05)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(act())
