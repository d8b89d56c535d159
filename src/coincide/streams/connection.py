"""What connections have in common: addresses without secrets, credentials from outside, and pauses before another attempt."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as Flag
from urllib.parse import parse_qs, unquote, urlsplit

from coincide.errors import CoincideError, Diagnostic, InputError, nearest

PATIENCE = 5.0
"""Seconds in which a server has to answer at first."""
MENDED = 60.0
"""Seconds within which a connection that broke must be there again, where a task waits for it."""
WAIT = 0.25
"""Seconds after which a source that waits looks whether it was closed."""
SHORTEST, LONGEST = 0.05, 5.0
"""Seconds before the first attempt to go on after a failure, and the most before a later one."""
TOLD = 3
"""The failure in a row that is told."""

log = logging.getLogger("coincide.streams")


@dataclass(frozen=True)
class Address:
    """What a URL says. `server` has neither path nor options, which may be secrets of their own: it is what messages show."""

    url: str
    scheme: str
    host: str
    port: int | None
    path: str
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, url: str, options: Sequence[str] | None, variables: str) -> Address:
        """`options` are those that it may have, None: any; `variables` those of the environment where credentials belong."""
        parts = urlsplit(url, allow_fragments=False)  # in topics `#` stands for anything
        if parts.username or parts.password:
            raise CoincideError(f"'{parts.hostname}': credentials belong in {variables}, not in the URL")
        try:
            port = parts.port
        except ValueError as error:
            raise CoincideError(f"'{parts.scheme}://{parts.netloc}': {error}") from error
        said = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if options is not None and (unknown := sorted(said.keys() - {*options})):
            hint = nearest(unknown[0], options) or (f"known: {', '.join(options)}" if options else None)
            raise CoincideError(Diagnostic(f"'{parts.scheme}://{parts.netloc}': unknown option '{unknown[0]}'", hint=hint))
        return cls(url, parts.scheme, parts.hostname or "localhost", port, unquote(parts.path.removeprefix("/")), said)

    @property
    def server(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port is not None else "")


def unreachable(server: str, reason: object) -> CoincideError:
    return CoincideError(f"cannot reach '{server}': {str(reason) or 'it does not answer'}")


def secret(name: str) -> str | None:
    """The variable of this name, or the first line of the file that the variable NAME_FILE names."""
    if (value := os.environ.get(name)) is not None:
        return value
    if (file := os.environ.get(f"{name}_FILE")) is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{name}_FILE: cannot read '{file}': {reason}") from error


def tls(prefix: str) -> ssl.SSLContext:
    """PREFIX_CA names a file of authorities to trust, PREFIX_CERT and PREFIX_KEY those of a certificate of our own."""
    authorities, certificate = os.environ.get(f"{prefix}_CA"), os.environ.get(f"{prefix}_CERT")
    try:
        context = ssl.create_default_context(cafile=authorities)
        if certificate is not None:
            context.load_cert_chain(certificate, os.environ.get(f"{prefix}_KEY"))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{prefix}_CA, {prefix}_CERT or {prefix}_KEY: {error.strerror or error}") from error
    return context


class BackOff:
    """Pauses that grow with each failure, and are short again after a success. A failure that is not over at once is told, with
    the `name` of who cannot be reached."""

    def __init__(self, name: str = "", shortest: float = SHORTEST, longest: float = LONGEST) -> None:
        self._name, self._shortest, self._longest = name, shortest, longest
        self._pause, self._failures = shortest, 0

    def wait(self, closed: Flag) -> bool:
        """After a failure. Ends at once when it is closed, and tells whether it is."""
        self._failures += 1
        if self._failures == TOLD and self._name:
            log.warning("'%s' cannot be reached at the moment; it is tried again", self._name)
        pause, self._pause = self._pause, min(2 * self._pause, self._longest)
        return closed.wait(pause)

    def reset(self) -> None:
        self._pause, self._failures = self._shortest, 0
