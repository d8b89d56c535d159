"""A broker in memory, for simulations: time passes when it is told to, and connections can be cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coincide.network.broker import Message, Reader


@dataclass
class MemoryBroker:
    """The stream itself. Nodes have connections to it."""

    now: int = 0
    messages: list[Message] = field(default_factory=list)
    states: dict[str, bytes] = field(default_factory=dict)
    _keys: set[str] = field(default_factory=set)

    def connection(self) -> Connection:
        return Connection(self)

    def take(self, subject: str, data: bytes, key: str) -> None:
        if key and key in self._keys:
            return
        self._keys.add(key)
        self.messages.append(Message(len(self.messages) + 1, self.now, subject, data))


@dataclass
class Connection:
    """Of one node. While it is cut nothing comes, and what is published waits. `most` says how many messages come at a time."""

    broker: MemoryBroker
    cut: bool = False
    most: Callable[[], int] = lambda: 1_000_000
    sent: int = 0
    received: int = 0
    _waiting: list[tuple[str, bytes, str]] = field(default_factory=list)

    def publish(self, subject: str, data: bytes, key: str = "") -> None:
        self._waiting.append((subject, data, key))
        if not self.cut:
            self.mend()

    def mend(self) -> None:
        """The connection is there again."""
        self.cut = False
        waiting, self._waiting = self._waiting, []
        for subject, data, key in waiting:
            self.sent += len(data)
            self.broker.take(subject, data, key)

    def open(self, subjects: Sequence[str], after: int) -> Reader:
        return _Reader(self, tuple(subjects), after)

    def last(self, subject: str) -> Message | None:
        self._reach()
        return next((message for message in reversed(self.broker.messages) if message.subject == subject), None)

    def end(self) -> int:
        self._reach()
        return len(self.broker.messages)

    def store(self, name: str, data: bytes) -> None:
        self._reach()
        self.broker.states[name] = data

    def load(self, name: str) -> bytes | None:
        self._reach()
        return self.broker.states.get(name)

    def _reach(self) -> None:
        if self.cut:
            raise ConnectionError("the connection is cut")


@dataclass
class _Reader:
    connection: Connection
    subjects: tuple[str, ...]
    position: int

    def take(self) -> list[Message]:
        if self.connection.cut:
            return []
        found: list[Message] = []
        most, stream = self.connection.most(), self.connection.broker.messages
        while self.position < len(stream) and len(found) < most:
            message = stream[self.position]
            self.position += 1
            if any(_fits(message.subject, subject) for subject in self.subjects):
                self.connection.received += len(message.data)
                found.append(message)
        return found

    def close(self) -> None:
        """Nothing is held."""


def _fits(subject: str, wanted: str) -> bool:
    return subject.startswith(wanted[:-1]) if wanted.endswith(">") else subject == wanted
