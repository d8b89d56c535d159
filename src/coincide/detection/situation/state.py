"""The state of situations (section 3): lifespans that are open, with the candidates of each situation in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coincide.detection.base import Pending
from coincide.detection.eventwise import Timer, Timers
from coincide.detection.keys import Key, key_part, key_value
from coincide.model.event import Event, Place

if TYPE_CHECKING:
    from coincide.detection.situation.program import SituationProgram

__all__ = [
    "Content",
    "Delayed",
    "Expire",
    "Key",
    "Lifespan",
    "Partition",
    "Passed",
    "SituationState",
    "Tick",
    "fresh_content",
    "key_part",
    "key_value",
    "partition_in",
]


@dataclass(eq=False, slots=True)
class Partition:
    """The candidates of one local key value, a list for each operand, in order of arrival."""

    candidates: list[list[Event]]
    reported: set[bytes] = field(default_factory=set)  # fingerprints of selections
    done: bool = False
    timers: list[Timer] = field(default_factory=list)  # of `after`, live or passed


@dataclass(eq=False, slots=True)
class Delayed:
    """A detection that waits for the end of its lifespan."""

    key: Key
    selection: tuple[tuple[int, Event], ...]


@dataclass(eq=False, slots=True)
class Content:
    """What one situation has in one lifespan."""

    partitions: dict[Key, Partition] = field(default_factory=dict)
    delayed: list[Delayed] = field(default_factory=list)
    tick: Timer | None = None  # of `every` and `at`


@dataclass(eq=False, slots=True)
class Lifespan:
    """An open lifespan. What opened it tells it from every other one of its definition."""

    definition: int
    key: Key  # global
    place: Place  # of what opened it
    opened: int
    due: int | None = None
    initiator: int | None = None  # None: opened at startup
    event: Event | None = None
    expiration: Timer | None = None
    contents: dict[int, Content] = field(default_factory=dict)  # by situation

    def timers(self) -> list[Timer]:
        found = [self.expiration] if self.expiration else []
        for content in self.contents.values():
            found += [content.tick] if content.tick else []
            found += [timer for partition in content.partitions.values() for timer in partition.timers]
        return found


@dataclass(eq=False)
class SituationState:
    """`open` by definition and global key value, oldest first. `fresh`: situations that have not begun."""

    open: list[dict[Key, list[Lifespan]]]
    fresh: set[int]
    late: bool = False  # begun in the middle of a run, by a change of rules
    timers: Timers = field(default_factory=Timers)
    situations: list[Counter[str]] = field(default_factory=list)  # statistics of each situation
    lifespans: list[Counter[str]] = field(default_factory=list)  # and of each definition of lifespans

    def pending(self) -> Pending | None:
        return self.timers.pending()


@dataclass(frozen=True, slots=True)
class Expire:
    """A timer's action: the lifespan ends."""

    lifespan: Lifespan


@dataclass(frozen=True, slots=True)
class Tick:
    """A timer's action: the next instant of `every` or `at`."""

    lifespan: Lifespan
    situation: int


@dataclass(frozen=True, slots=True)
class Passed:
    """A timer's action: the interval of `after` has passed."""

    lifespan: Lifespan
    situation: int
    key: Key
    selection: tuple[tuple[int, Event], ...]


def fresh_content(situation: SituationProgram) -> Content:
    """Without a local key the single partition exists from the opening (section 3)."""
    content = Content()
    if not situation.local_key.size:
        partition_in(situation, content, ())
    return content


def partition_in(situation: SituationProgram, content: Content, key: Key) -> Partition:
    partition = content.partitions.get(key)
    if partition is None:
        partition = content.partitions[key] = Partition([[] for _ in situation.operands])
    return partition
