"""What nodes ask of the broker: one ordered stream of messages, and a place for states.

Everything that happens in a network is a message of one stream: events, composites, heartbeats, the administration. Its numbers
are the total order that all nodes see; its times are those of the broker, so that no node's own clock matters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Message(NamedTuple):
    """`number` is its place in the stream, `time` (microseconds) when the broker took it."""

    number: int
    time: int
    subject: str
    data: bytes


class Reader(Protocol):
    """Messages of some subjects, in the order of the stream, each once."""

    def take(self) -> list[Message]:
        """What has come since the last call."""

    def close(self) -> None: ...


class Broker(Protocol):
    """A node's connection. What it is given to publish comes through, in the end, even if the broker is away for a while."""

    def publish(self, subject: str, data: bytes, key: str = "") -> None:
        """Of messages with the same key, one is kept."""

    def open(self, subjects: Sequence[str], after: int) -> Reader:
        """From the message after the one with that number; `>` at the end of a subject stands for anything."""

    def last(self, subject: str) -> Message | None:
        """The latest message of a subject. Raises OSError if the broker cannot be reached now, as do the next two."""

    def end(self) -> int:
        """The number of the latest message."""

    def store(self, name: str, data: bytes) -> None:
        """Keeps a state, in place of the one that was kept under this name."""

    def load(self, name: str) -> bytes | None: ...


_unfit = re.compile(r"[^A-Za-z0-9_-]")


def token(name: str) -> str:
    """A name as one part of a subject."""
    return _unfit.sub(lambda found: f"={ord(found[0]):x}=", name)


class Subjects:
    """The subjects of a network, which has a name of its own."""

    def __init__(self, network: str = "coincide") -> None:
        self.network = network
        self.admin = f"{network}.admin"
        self.clock = f"{network}.clock"
        self.control = (self.admin, self.clock, f"{network}.node.>", f"{network}.publisher.>")
        self.every_event = f"{network}.event.>"
        self.every_publisher = f"{network}.publisher.>"

    def events(self, type: str) -> str:
        """External events of a type, and the heartbeats of their sources."""
        return f"{self.network}.event.{token(type)}"

    def publisher(self, type: str) -> str:
        """Who publishes events of a type says so here."""
        return f"{self.network}.publisher.{token(type)}"

    def detector(self, name: str) -> str:
        """What a detector detects."""
        return f"{self.network}.detector.{token(name)}"

    def progress(self, name: str) -> str:
        """A detector's heartbeats: for detectors that read it; applications need none of them."""
        return f"{self.network}.progress.{token(name)}"

    def keeping(self, name: str) -> str:
        """Here a detector that runs elsewhere than on its node is asked for its state."""
        return f"{self.network}.keep.{token(name)}"

    def node(self, name: str) -> str:
        return f"{self.network}.node.{token(name)}"

    def gossip(self, node: str) -> str:
        """What neighbours tell a node of resources."""
        return f"{self.network}.gossip.{token(node)}"

    def kind(self, subject: str) -> str:
        """`event`, `detector`, `progress`, `publisher`, `node`, `keep`, `admin` or `clock`."""
        return subject.removeprefix(self.network + ".").partition(".")[0]
