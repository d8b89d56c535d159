"""The process: the server of `coincide serve`, with other routes behind it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from coincide.serve.logs import heed_libraries
from coincide.serve.server import Listening, heed_signals, server_of
from coincide.studio.app import application
from coincide.studio.session import Session

GRACE = 1
"""Seconds that requests under way have to end, after a signal."""


def serve(session: Session, listening: Listening, at: socket.socket, ready: Callable[[], object] = lambda: None) -> None:
    """Until a signal comes."""
    heed_libraries()
    asyncio.run(_serve(session, listening, at, ready))


async def _serve(session: Session, listening: Listening, at: socket.socket, ready: Callable[[], object]) -> None:
    assert listening.token is not None
    server = server_of(application(session, listening.token, listening.limits), listening, GRACE)

    def stop(why: str) -> None:
        server.should_exit = True

    heed_signals(asyncio.get_running_loop(), stop)
    ready()
    await server.serve([at])
    session.close()


def link(listening: Listening, at: socket.socket) -> str:
    """Where the page is; browsers keep what stands behind the # to themselves."""
    return f"http://{listening.host}:{at.getsockname()[1]}/#{listening.token}"
