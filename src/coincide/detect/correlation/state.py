"""The state of a description (section 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coincide.detect.correlation.program import Program
from coincide.detect.correlation.view import Members, Message
from coincide.detect.eventwise import Timers
from coincide.model.event import Place, Value


@dataclass(eq=False, slots=True)
class Instance:
    """Messages mapped to single sources, and the terms still possible. A complete one has its term's collections filled."""

    messages: tuple[Message | None, ...]
    terms: tuple[int, ...]
    complete: bool = False
    members: Members | None = None
    computed: dict[str, Value] = field(default_factory=dict)

    @property
    def mapped(self) -> Iterator[Message]:
        return (message for message in self.messages if message is not None)


@dataclass(eq=False, slots=True)
class Live:
    """The instances of a group in order of creation, by serial number; `expiry` is when the first of them may be too old."""

    instances: dict[int, Instance] = field(default_factory=dict)
    serial: int = 0
    expiry: float = float("inf")

    def add(self, instance: Instance, expiry: float) -> int:
        self.serial += 1
        self.instances[self.serial] = instance
        self.expiry = min(self.expiry, expiry)
        return self.serial


Member = tuple[int, Place]
"""A collection and a message in it."""


@dataclass(eq=False)
class State:
    live: list[Live]
    history: list[list[Message]]
    consumed: list[set[Member]]  # by group
    last: list[dict[str | None, Any]]  # by source: content of the last message accepted from a publisher
    seen: list[dict[Any, int]]  # by source: content and time of what was accepted, with its lo
    timers: Timers = field(default_factory=Timers)  # payload: (time event, trigger message)
    pending: set[tuple[int, Place]] = field(default_factory=set)  # (time event, place of the trigger message)


def fresh(program: Program) -> State:
    sources, groups = program.slots, len(program.groups)
    return State(
        [Live() for _ in range(groups)],
        [[] for _ in range(sources)],
        [set() for _ in range(groups)],
        [{} for _ in range(sources)],
        [{} for _ in range(sources)],
    )
