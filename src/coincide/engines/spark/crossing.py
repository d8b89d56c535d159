"""Detections on their way from one stage to the next, where they stand at their exact place among events of other tasks.

A place tells events by their numbers, which each task gives to its own. On the way a number becomes what orders events everywhere
(hi is in the place already): lo, id, and the number among events that are equal in these. The next task numbers its own events
together with those that detections come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.adapters.tableorder import total_order
from coincide.detection.snapshots import key_of_order, stored_event
from coincide.engines.spark.hashing import key_hash
from coincide.expr.scalar import event_field
from coincide.model.batch import EventBatch
from coincide.model.event import LEVELS, Event, Place
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]

AT_THE_END = 3
"""The kind of places that no event has led to."""
HERE, AFTER = 0, 1
"""When a detection was made: while there were events, or when the input had ended."""

Root = tuple[int, int, str, int]
"""An event: hi, lo, id, and its number among those that are equal in these."""

NO_EVENTS = EventTable(
    np.empty(0, np.int64), np.empty(0, np.int64), {"type": pa.array([], pa.string()), "id": pa.array([], pa.string())}
)


@dataclass(frozen=True)
class Reader:
    """A group of a later stage that reads detections of these types."""

    tag: int
    key: tuple[str, ...]
    null_keys: bool
    types: frozenset[str]

    def wants(self, event: Event) -> bool:
        return event.type in self.types and (self.null_keys or all(value is not None for value in self._values(event)))

    def spread(self, event: Event) -> int:
        """As the reader's events are spread: by their key, or by nothing."""
        return key_hash(self._values(event)) if self.key else 0

    def _values(self, event: Event) -> list[Any]:
        return [event_field(name)(event) for name in self.key]


class Numbering:
    """Numbers, from `base` on, for the events of a task and for those that detections of earlier stages come from, in total
    order."""

    def __init__(self, events: EventTable, roots: Iterable[Root] = (), base: int = 0) -> None:
        self.base = base
        self._roots = sorted(set(roots), key=lambda root: root[3])
        self.lo = np.concatenate([events.lo, np.array([root[1] for root in self._roots], np.int64)])
        self.hi = np.concatenate([events.hi, np.array([root[0] for root in self._roots], np.int64)])
        ids = pa.array([root[2] for root in self._roots], pa.string())
        self.ids = pa.concat_arrays([events.fields["id"].cast(pa.string()), ids])
        order = total_order(self.lo, self.hi, self.ids)
        self.order: Numbers = np.arange(len(self.hi)) if order is None else order
        self.size = len(events)

    @property
    def end(self) -> int:
        """The number after the last one."""
        return self.base + len(self.order)

    @property
    def first(self) -> int:
        return int(self.hi.min())

    @property
    def last(self) -> int:
        return int(self.hi.max())

    @cached_property
    def numbers(self) -> Numbers:
        """Of each entry, its number (here and below, counted from the base)."""
        numbers = np.empty(len(self.order), np.int64)
        numbers[self.order] = np.arange(len(self.order))
        return numbers

    @cached_property
    def _first(self) -> Numbers:
        """Of each number, the first that belongs to an equal event."""
        hi, lo, ids = self.hi[self.order], self.lo[self.order], self.ids.take(pa.array(self.order))
        size = len(self.order)
        told = np.array(ids.dictionary_encode().indices) if size else np.empty(0, np.int64)
        same = np.zeros(size, bool)
        same[1:] = (hi[1:] == hi[:-1]) & (lo[1:] == lo[:-1]) & (told[1:] == told[:-1])
        first: Numbers = np.maximum.accumulate(np.where(same, 0, np.arange(size)))
        return first

    @cached_property
    def _own(self) -> Numbers:
        """How many of the task's own events have a lower number."""
        return np.concatenate([[0], np.cumsum(self.order < self.size)])

    @cached_property
    def _by_root(self) -> dict[Root, int]:
        """An event that is here too has its number."""
        found = {}
        for number, root in zip(self.numbers[self.size :].tolist(), self._roots, strict=True):
            first = int(self._first[number])
            here = self._own[number] - self._own[first]  # equal ones stand before what comes from elsewhere
            found[root] = self.base + (first + root[3] if root[3] < here else number)
        return found

    def placed(self, events: EventTable) -> EventBatch:
        """The task's own events, in order, with their places."""
        own = self.numbers[: self.size]
        rows = np.argsort(own, kind="stable")
        table = events.take(rows)
        places = np.array((table.hi, self.base + own[rows], np.zeros(len(rows), np.int64))).T
        return EventBatch(table=EventTable(table.lo, table.hi, table.fields, 0, places))

    def arrived(self, event: Event) -> Event:
        """A detection from elsewhere, with a place among these events."""
        place = _rooted(event.place, lambda hi, root: self._by_root[hi, *root] if isinstance(root, (list, tuple)) else root)
        return msgspec.structs.replace(event, place=place, origin=tuple(map(key_of_order, event.origin)))

    def departing(self, event: Event) -> Event:
        """A detection made here, with a place that others understand."""
        return msgspec.structs.replace(stored_event(event), place=_rooted(event.place, lambda _, number: self._root_of(number)))

    def _root_of(self, number: int) -> Any:
        """What is no number of an event stays: the start of a run."""
        number -= self.base
        if not 0 <= number < len(self.order):
            return number + self.base
        row = self.order[number]
        turn = number - self._first[number] if row < self.size else self._roots[row - self.size][3]
        return int(self.lo[row]), self.ids[row].as_py(), int(turn)


def roots_of(events: Iterable[Event]) -> set[Root]:
    """The events that the places of detections from elsewhere name."""
    found: set[Root] = set()

    def note(hi: int, root: Any) -> Any:
        if isinstance(root, (list, tuple)):
            found.add((hi, *root))
        return root

    for event in events:
        _rooted(event.place, note)
    return found


def _rooted(place: Sequence[Any], change: Callable[[int, Any], Any]) -> Place:
    """A place with other names for the events in it."""
    time, kind, inner, *rest = place
    return (time, kind, _inner(time, kind, inner, change, LEVELS + 2), *rest)


def _inner(time: int, kind: int, inner: Any, change: Callable[[int, Any], Any], levels: int) -> Any:
    if kind == 0:
        return change(time, inner)
    if kind == AT_THE_END:
        return tuple(inner)
    if levels == 1:  # what is left of settings further back (model/event.py)
        moment, number, *more = inner
        return (moment, change(-moment, number), *more)
    due, what, setting, *more = inner
    return (due, what, _inner(due, what, setting, change, levels - 1), *more)


def sent(phase: int, event: Event) -> bytes:
    return msgspec.msgpack.encode((phase, event))


def received(data: bytes) -> tuple[int, Event]:
    return msgspec.msgpack.decode(data, type=tuple[int, Event])
