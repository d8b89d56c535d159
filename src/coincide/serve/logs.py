"""Logs: a line of JSON an entry, on standard error."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec

_encode = msgspec.json.Encoder(enc_hook=str).encode


def log(event: str, *, level: str = "info", **fields: Any) -> None:
    """What has happened, and what there is to say of it."""
    entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": event, **fields}
    sys.stderr.write(_encode(entry).decode() + "\n")
    sys.stderr.flush()


class Handler(logging.Handler):
    """What libraries have to say."""

    def emit(self, record: logging.LogRecord) -> None:
        trace = {} if record.exc_info is None else {"trace": logging.Formatter().formatException(record.exc_info)}
        log("library", level=record.levelname.lower(), logger=record.name, message=record.getMessage(), **trace)


def heed_libraries() -> None:
    logging.basicConfig(level=logging.WARNING, handlers=[Handler()], force=True)
