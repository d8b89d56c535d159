"""Who may ask, how much, and how often: what stands before every request."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coincide.serve.answers import Refused, refusal
from coincide.serve.logs import log
from coincide.serve.metrics import Metrics

OPEN = ("/health", "/ready")
"""Asked by those who start and stop processes: they need no token, and are never put off."""
CLIENTS = 10_000
"""So many clients are remembered."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Limits:
    """Of requests: bytes of a body, requests a second of one client (0: any), seconds in which a body has to come."""

    body: int = 10 << 20
    rate: float = 1_000.0
    seconds: float = 30.0


class Rates:
    """A bucket of tokens for each client: it holds as many as may come in a second."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float) -> float:
        """Seconds after which the client may ask; 0: now."""
        if not self._rate:
            return 0.0
        most = max(1.0, self._rate)
        left, before = self._left.pop(client, (most, now))
        left = min(most, left + (now - before) * self._rate)
        self._left[client] = (left - 1 if left >= 1 else left), now
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self._rate


class Guard:
    """Refuses, limits, counts and logs. Without a token only this machine is listened to, but pages of other sites in a browser
    on it are not: neither by their origin, nor under a name that leads here."""

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        limits: Limits,
        metrics: Metrics,
        is_open: Callable[[str], bool] = OPEN.__contains__,
    ) -> None:
        """`is_open` tells which paths need no token: there is nothing to be kept from anybody."""
        self.app, self.limits, self.metrics, self._is_open = app, limits, metrics, is_open
        self._token = None if token is None else token.encode()
        self._rates = Rates(limits.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.monotonic()
        status: list[int] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                status.append(message["status"])
            await send(message)

        try:
            self._check(scope)
        except Refused as refused:
            await refusal(refused)(scope, receive, watched)
        else:
            await self.app(scope, _limited(receive, self.limits), watched)
        answered = status[0] if status else 0
        self.metrics.requests[scope["method"], str(answered)] += 1
        if answered >= 400:
            took = round((time.monotonic() - started) * 1000, 1)
            client = (scope.get("client") or ("",))[0]
            log("request", level="warning", method=scope["method"], path=scope["path"], status=answered, ms=took, client=client)

    def _check(self, scope: Scope) -> None:
        if self._is_open(scope["path"]):
            return
        headers = Headers(scope=scope)
        wait = self._rates.wait((scope.get("client") or ("",))[0], time.monotonic())
        if wait:
            raise Refused(429, "too many requests", headers={"Retry-After": str(max(1, round(wait)))})
        self._check_token(headers)
        origin = headers.get("origin")
        host = headers.get("host", "")
        if origin is not None and urlsplit(origin).netloc != host:
            raise Refused(403, "requests of other sites are refused")
        if self._token is None and urlsplit(f"//{host}").hostname not in LOOPBACK:
            raise Refused(403, "without a token requests must name this machine as localhost")
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self.limits.body:
            raise Refused(413, f"a body may have {self.limits.body:,} bytes")

    def _check_token(self, headers: Headers) -> None:
        if self._token is None:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
            raise Refused(401, "a bearer token is needed", headers={"WWW-Authenticate": "Bearer"})


def _limited(receive: Receive, limits: Limits) -> Receive:
    """Counts a body while it comes: its length need not be told before, nor be true."""
    came, end = 0, time.monotonic() + limits.seconds
    whole = False

    async def limited() -> Message:
        nonlocal came, whole
        if whole:  # waits for the client to go away, however long that takes
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), max(0.0, end - time.monotonic()))
        except TimeoutError:
            raise Refused(408, f"the body did not come within {limits.seconds:g} seconds") from None
        came += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if came > limits.body:
            raise Refused(413, f"a body may have {limits.body:,} bytes")
        return message

    return limited
