"""Messages as sources see them, and what expressions read: an instance from inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coincide.model.event import Event, Place, Value
from coincide.model.space import Space
from coincide.model.stamp import MILLISECOND, OrderKey


@dataclass(eq=False, slots=True)
class Message:
    """An event as one source sees it: the envelope, and the declared attributes as their types. A time event has the place
    of the message that set it as its `trigger`. Its own place tells a message from every other."""

    type: str
    lo: int
    hi: int
    id: str | None
    source: str | None
    space: Space | None
    origin: tuple[OrderKey, ...]
    place: Place
    values: dict[str, Value] = field(default_factory=dict)
    trigger: Place | None = None


def message_of(event: Event) -> Message:
    return Message(event.type, event.lo, event.hi, event.id, event.source, event.space, event.origin, event.place)


ENVELOPE: dict[str, Callable[[Message], Value]] = {
    "type": lambda message: message.type,
    "id": lambda message: message.id,
    "source": lambda message: message.source,
    "time": lambda message: message.hi / MILLISECOND,
}

Members = Mapping[int, tuple[Message, ...]]


@dataclass(eq=False, slots=True)
class View:
    """What an expression reads. A slot each source: the message mapped to it; of a collection, the member under test."""

    messages: tuple[Message | None, ...]
    now: int
    members: Members | None = None  # of the collections; None: not filled
    computed: dict[str, Value] = field(default_factory=dict)
    complete: bool = False
    other: View | None = None
    previous: View | None = None

    def has(self, source: int) -> bool:
        """Is a message mapped to the source, or has the collection a member?"""
        return self.messages[source] is not None or bool(self.members and self.members.get(source))

    def with_message(self, source: int, message: Message) -> View:
        """The same with one more message, and nothing computed yet."""
        messages = (*self.messages[:source], message, *self.messages[source + 1 :])
        return View(messages, self.now, self.members, {}, self.complete, self.other, self.previous)


Evaluate = Callable[[View], Any]
