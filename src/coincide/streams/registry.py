"""Sources and sinks by URL. Each is imported when it is asked for: the clients of brokers are extras."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

from coincide.errors import CoincideError, Diagnostic, nearest
from coincide.streams.base import Reading, Sink, Source

DATABASES = ("sqlite", "postgresql", "mysql", "mariadb", "mssql", "oracle")
SOURCES = {
    "-": "standard.StandardInput",
    "tail": "follow.Tail",
    "watch": "folder.WatchedFolder",
    "nats": "nats.NatsSource",
    "mqtt": "mqtt.MqttSource",
    "mqtts": "mqtt.MqttSource",
    "kafka": "kafka.KafkaSource",
    "kafkas": "kafka.KafkaSource",
    "http": "http.ServerSentEvents",
    "https": "http.ServerSentEvents",
    "ws": "websocket.WebSocketSource",
    "wss": "websocket.WebSocketSource",
    **dict.fromkeys(DATABASES, "sql.sql_source"),
}
TEXTS = ("-", "tail", "watch")
"""Sources of texts in any format."""
SINKS = {
    "-": "standard.StandardOutput",
    "nats": "nats.NatsSink",
    "mqtt": "mqtt.MqttSink",
    "mqtts": "mqtt.MqttSink",
    "kafka": "kafka.KafkaSink",
    "kafkas": "kafka.KafkaSink",
    "http": "http.WebhookSink",
    "https": "http.WebhookSink",
    "ws": "websocket.WebSocketSink",
    "wss": "websocket.WebSocketSink",
    **dict.fromkeys(DATABASES, "sql.SqlSink"),
}
EXTRAS = {"nats": "nats", "paho": "mqtt", "confluent_kafka": "kafka", "httpx": "http", "websockets": "http", "sqlalchemy": "sql"}
"""What to install, by the client that is missing."""

_scheme = re.compile(r"([a-z][a-z0-9+.-]+):(//)?").match


def scheme_of(name: str, known: dict[str, str] = SOURCES) -> str | None:
    """What a name begins with, if it is `-` or a URL and no file. Raises CoincideError for a URL of no known kind."""
    if name in known:
        return name
    found = _scheme(name)
    kind = "" if found is None else found[1].partition("+")[0]  # of a database the driver may be named, too
    if found is None or (kind not in known and found[2] is None):
        return None
    if kind not in known:
        kinds = [scheme for scheme in known if scheme != "-"]
        hint = nearest(kind, kinds) or f"known: {', '.join(kinds)}"
        raise CoincideError(Diagnostic(f"'{found[0]}': no streams of the kind '{kind}'", hint=hint))
    return kind


def open_source(url: str, reading: Reading) -> Source:
    """Raises CoincideError if there is no such kind, or what it needs is not installed."""
    if reading.format not in (None, "json", "jsonl") and scheme_of(url) not in TEXTS:
        raise CoincideError(f"--format {reading.format} is for files and standard input: messages are records of JSON")
    return cast(Source, _home(url, SOURCES)(url, reading))


def open_sink(url: str) -> Sink:
    return cast(Sink, _home(url, SINKS)(url))


def _home(url: str, known: dict[str, str]) -> Any:
    scheme = scheme_of(url, known)
    if scheme is None:
        raise CoincideError(f"'{url}' is not a stream")
    module, _, name = known[scheme].rpartition(".")
    with missing_client(scheme):
        return getattr(import_module(f"coincide.streams.{module}"), name)


@contextmanager
def missing_client(scheme: str) -> Iterator[None]:
    """Says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (extra := EXTRAS.get(error.name or "")) is None:
            raise
        hint = f"pip install 'coincide[{extra}]'"
        raise CoincideError(Diagnostic(f"what '{scheme}:' needs is not installed ({error})", hint=hint)) from error
