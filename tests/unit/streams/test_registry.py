"""Sources and sinks by URL."""

from __future__ import annotations

import sys

import pytest

from coincide.errors import CoincideError
from coincide.streams.actions import open_action
from coincide.streams.base import Reading
from coincide.streams.registry import open_sink, open_source


@pytest.mark.parametrize(
    ("client", "module", "url", "extra"),
    [
        ("nats", "nats", "nats://x/y", "nats"),
        ("paho", "mqtt", "mqtt://x/y", "mqtt"),
        ("confluent_kafka", "kafka", "kafka://x/y", "kafka"),
        ("httpx", "http", "https://x/y", "http"),
        ("websockets", "websocket", "wss://x/y", "http"),
        ("sqlalchemy", "sql", "sqlite:///x#y", "sql"),
    ],
)
def test_the_missing_can_be_installed(monkeypatch: pytest.MonkeyPatch, client: str, module: str, url: str, extra: str) -> None:
    monkeypatch.delitem(sys.modules, f"coincide.streams.{module}", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == client]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Nowhere(client), *sys.meta_path])
    for opened in (lambda: open_source(url, Reading()), lambda: open_sink(url)):
        with pytest.raises(CoincideError, match=rf"pip install 'coincide\[{extra}\]'"):
            opened()


class Nowhere:
    """A package that is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] == self._name:
            raise ModuleNotFoundError(f"No module named '{self._name}'", name=self._name)


def test_the_driver_of_a_database_may_be_named() -> None:
    assert type(open_source("postgresql+pg8000://x/y#z", Reading())).__name__ == "TableSource"
    with pytest.raises(CoincideError, match="no streams of the kind 'oracel'"):
        open_sink("oracel+x://y#z")


def test_messages_have_no_other_format() -> None:
    with pytest.raises(CoincideError, match="--format csv is for files and standard input"):
        open_source("kafka://x/y", Reading(format="csv"))


def test_anything_else_is_a_command() -> None:
    assert type(open_action("cat -")).__name__ == "CommandAction"
