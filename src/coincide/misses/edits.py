"""What can be changed in the events of a run, and the events as they are after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from coincide.model.event import Event, Value, order_of, plain
from coincide.model.stamp import milliseconds, order_key


@dataclass(frozen=True)
class Edit:
    """A change of one event: `event` is the one that it is about, as it is in the data (or would be, if it is not there)."""

    event: Event

    kind = "edit"

    def as_data(self, record: Callable[[Event], dict[str, Any]]) -> dict[str, Any]:
        """As plain data, its event as a record."""
        return {"edit": self.kind, "event": record(self.event)}

    def changed(self, event: Event) -> Event | None:
        """The event as it is after the change, if it is still there; `event` may have been changed before."""
        raise NotImplementedError


@dataclass(frozen=True)
class Move(Edit):
    """It happened so much later (before zero: earlier), in microseconds."""

    by: int
    kind = "move"

    def as_data(self, record: Callable[[Event], dict[str, Any]]) -> dict[str, Any]:
        return {**super().as_data(record), "by": milliseconds(self.by), "to": record(moved(self.event, self.by))["time"]}

    def changed(self, event: Event) -> Event:
        return moved(event, self.by)


@dataclass(frozen=True)
class Change(Edit):
    """An attribute (or the source) has another value. Where it is known, `bound` is the number that decides, and whether it will
    itself do (`reached`)."""

    attribute: str
    value: Value
    bound: float | None = field(default=None, compare=False)
    reached: bool = field(default=False, compare=False)
    kind = "change"

    @property
    def old(self) -> Value:
        return self.event.source if self.attribute == "source" else self.event.attributes.get(self.attribute)

    def as_data(self, record: Callable[[Event], dict[str, Any]]) -> dict[str, Any]:
        data = {**super().as_data(record), "attribute": self.attribute, "from": plain(self.old), "to": plain(self.value)}
        return data if self.bound is None else {**data, "bound": plain(self.bound), "reached": self.reached}

    def changed(self, event: Event) -> Event:
        return with_value(event, self.attribute, self.value)


@dataclass(frozen=True)
class Add(Edit):
    """An event that is not there. Where it is known, it may happen from the `earliest` time to the `latest`."""

    earliest: int | None = field(default=None, compare=False)
    latest: int | None = field(default=None, compare=False)
    kind = "add"

    def as_data(self, record: Callable[[Event], dict[str, Any]]) -> dict[str, Any]:
        times = {"earliest": self.earliest, "latest": self.latest}
        return {**super().as_data(record), **{name: milliseconds(time) for name, time in times.items() if time is not None}}

    def changed(self, event: Event) -> Event:
        return event


@dataclass(frozen=True)
class Remove(Edit):
    """It did not happen."""

    kind = "remove"

    def changed(self, event: Event) -> None:
        return None


Edits = tuple[Edit, ...]


def moved(event: Event, by: int) -> Event:
    lo, hi = event.lo + by, event.hi + by
    return replace(event, lo=lo, hi=hi, origin=(order_key(lo, hi, str(event.id)),))


def with_value(event: Event, attribute: str, value: Value) -> Event:
    if attribute == "source":
        return replace(event, source=value if isinstance(value, str) else None)
    others = {name: own for name, own in event.attributes.items() if name != attribute}
    return with_attributes(event, others if value is None else {**others, attribute: value})


def with_attributes(event: Event, attributes: dict[str, Value]) -> Event:
    return replace(event, attributes=attributes)


def edited(events: Sequence[Event], edits: Iterable[Edit]) -> list[Event]:
    """The events after all edits, in total order."""
    by_event: dict[int, list[Edit]] = {}
    added = []
    for edit in edits:
        if isinstance(edit, Add):
            added.append(edit.event)
        else:
            by_event.setdefault(id(edit.event), []).append(edit)
    return sorted((*_remaining(events, by_event), *added), key=order_of)


def _remaining(events: Sequence[Event], by_event: dict[int, list[Edit]]) -> Iterator[Event]:
    for event in events:
        now: Event | None = event
        for edit in by_event.get(id(event), ()):
            now = None if now is None else edit.changed(now)
        if now is not None:
            yield now
