"""The process: a socket, signals, and an end in order."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from coincide.errors import CoincideError
from coincide.serve.guard import LOOPBACK, Limits
from coincide.serve.http import Api, application
from coincide.serve.logs import heed_libraries, log
from coincide.serve.service import Service

GRACE = 10
"""Seconds that requests under way have to end, after a signal."""


@dataclass(frozen=True)
class Listening:
    """Where, and to whom."""

    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = None
    limits: Limits = field(default_factory=Limits)
    certificate: str | None = None
    key: str | None = None

    def check(self) -> None:
        if self.token is None and self.host not in LOOPBACK:
            raise CoincideError(
                f"listening at '{self.host}', beyond this machine, needs a token: in COINCIDE_TOKEN, or --token-file FILE"
            )


class _Server(uvicorn.Server):
    """Signals are heeded by whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def server_of(app: ASGIApp, listening: Listening, grace: int = GRACE) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=grace,
        limit_concurrency=10_000,
        server_header=False,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )
    return _Server(config)


def heed_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[str], object]) -> None:
    """`stop` is told which signal asks for the end."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, partial(stop, signal.Signals(number).name))


def bound(listening: Listening) -> socket.socket:
    """Raises CoincideError if nobody can listen there."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((listening.host, listening.port))
        made.listen(2048)  # who comes before all is ready waits
    except OSError as error:
        made.close()
        raise CoincideError(f"cannot listen at {listening.host}:{listening.port}: {error.strerror or error}") from error
    return made


def serve(service: Service, listening: Listening, at: socket.socket) -> None:
    """Until a signal comes, or the run fails: that is raised."""
    heed_libraries()
    asyncio.run(_serve(service, listening, at))
    if service.failure is not None:
        raise service.failure


async def _serve(service: Service, listening: Listening, at: socket.socket) -> None:
    api = Api(service)
    server = server_of(application(api, listening.token, listening.limits), listening)
    loop = asyncio.get_running_loop()

    def stop(why: str) -> None:
        if not server.should_exit:
            log("stopping", reason=why)
        service.stopping = server.should_exit = True
        api.wake()

    heed_signals(loop, stop)
    service.on_end = partial(loop.call_soon_threadsafe, stop, "the run has ended")
    api.listen()
    service.start()
    scheme = "http" if listening.certificate is None else "https"
    log("listening", address=f"{scheme}://{listening.host}:{at.getsockname()[1]}", rules=service.files.rules.names[:100])
    await server.serve([at])
    service.on_end = lambda: None
    service.stop()
    await asyncio.to_thread(service.join)
    log("stopped", failure=None if service.failure is None else str(service.failure))
