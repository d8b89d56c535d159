"""A rule run over changed events: does it then detect something, for this key, at this time?

Only the rule runs, and what feeds it; only events of its key are given to it, where detection is independent of others; what lies
before the events that may change is run once. None of this changes the answer."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import inf

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.detection.base import Detector
from coincide.engines.graph import Graph, GraphState
from coincide.engines.identity import maker
from coincide.engines.policies import PolicyEngine
from coincide.errors import RunError
from coincide.expr.scalar import event_field
from coincide.misses.edits import Add, Change, Edit, Edits, Move, edited
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import HEARTBEAT, Event, Value, primitive
from coincide.model.stamp import LIMIT
from coincide.rulebook import Rulebook

NEAR = 40
"""Events before the end of the time asked about that may be changed, at most."""


@dataclass(frozen=True)
class Question:
    """Why no detection of this rule, for this key (some names with their values; none: any), in this time (microseconds)?"""

    detector: Detector
    key: Mapping[str, Value]
    lo: int = -LIMIT
    hi: int = LIMIT
    type: str | None = None  # of several that it makes

    def is_met_by(self, detection: Event, constituents: Sequence[Event]) -> bool:
        """A detection that does not show an attribute of the key has events that do."""
        if (
            maker(detection) != self.detector.order
            or self.type not in (None, detection.type)
            or not self.lo <= detection.hi <= self.hi
        ):
            return False
        return all(self._has(detection, constituents, name, value) for name, value in self.key.items())

    def _has(self, detection: Event, constituents: Sequence[Event], name: str, value: Value) -> bool:
        if name in detection.attributes:
            return same(detection.attributes[name], value)
        found = [event.attributes[name] for event in constituents if name in event.attributes]
        return not found or any(same(own, value) for own in found)


def same(one: Value, other: Value) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@contextmanager
def quietly() -> Iterator[None]:
    """What a run would warn of is not true of the events that are there."""
    log = logging.getLogger("coincide.run")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


class Spent(Exception):
    """All tries have been made."""


class Trial:
    """The events of a run, in total order, and a question about it."""

    def __init__(
        self,
        book: Rulebook,
        events: Sequence[Event],
        question: Question,
        until: float | None = None,
        closed: bool = True,
        reach: int | None = None,
        tries: int = 3_000,
    ) -> None:
        self.book = book.needed_for({question.detector.order})
        self.question = question
        self.events = list(events)
        self.made = 0  # tries
        self.tries = tries
        self.reach = reach
        self._until = until
        self._closed = closed
        self._answers: dict[tuple[object, ...], Event | None] = {}

    @cached_property
    def mapping(self) -> FieldMapping:
        """As which records of events are read."""
        return self.book.fields(DEFAULT)

    # What may be changed.

    @cached_property
    def independent(self) -> Mapping[str, Value]:
        """The part of the key on whose values detection is independent, all along the way."""
        return {name: value for name, value in self.question.key.items() if name in self.book.independent_names}

    @cached_property
    def _fields(self) -> list[tuple[object, Value]]:
        return [(event_field(name), value) for name, value in self.independent.items()]

    def concerns(self, event: Event) -> bool:
        return all(same(field(event), value) for field, value in self._fields)  # type: ignore[operator]

    @cached_property
    def own(self) -> list[Event]:
        """The events of the key."""
        return [event for event in self.events if self.concerns(event) and event.type != HEARTBEAT]

    @cached_property
    def reachable(self) -> list[Event]:
        """Those of them that can have to do with the time asked about."""
        q, reach = self.question, LIMIT if self.reach is None else self.reach
        return [event for event in self.own if q.lo - reach <= event.hi <= q.hi + reach]

    @cached_property
    def near(self) -> list[Event]:
        """Those that are tried to be changed: the last."""
        return self.reachable[-NEAR:]

    @property
    def cut(self) -> bool:
        return len(self.near) < len(self.reachable)

    @cached_property
    def others(self) -> list[Event]:
        """Events of other keys, of about the same time."""
        first, last = self.span
        away = [event for event in self.events if first <= event.hi <= last and not self.concerns(event)]
        return away[-NEAR:]

    @cached_property
    def span(self) -> tuple[int, int]:
        """When things may happen: the time asked about, where it is given, and that of the events near."""
        times = [event.hi for event in self.near] or [event.hi for event in self.events[-1:]] or [0]
        q = self.question
        first = min(times) if q.lo == -LIMIT else min(*times, q.lo)
        return first, max(times) if q.hi == LIMIT else q.hi

    # Runs.

    def detection(self, edits: Edits) -> Event | None:
        """The first that is made of the changed events, if one is. Raises Spent."""
        key = tuple(map(_named, edits))
        if key not in self._answers:
            if self.made >= self.tries:
                raise Spent
            self.made += 1
            with quietly():
                self._answers[key] = next(self.found(edits), None)
        return self._answers[key]

    def found(self, edits: Edits) -> Iterator[Event]:
        """Of all events, if some that is changed lies before those near."""
        everything = edited(self.events, edits)
        events = [event for event in everything if self.concerns(event)]
        behind = [event for event in events if event.hi >= self._floor]
        if self._before and self._in_order and len(events) - len(behind) == len(self._before):
            made = self._went_on(behind, self.graph.decode(self._floor_bytes), self._last(everything))
        else:
            made = self._run(everything, self._until)
        known = {event.origin[0]: event for event in events} if self.question.key else {}
        for detection in made:
            if self.question.is_met_by(detection, [known[key] for key in detection.origin if key in known]):
                yield detection

    def whole(self, edits: Edits) -> tuple[list[Event], list[Event]]:
        """All events after the edits, of every key, and all that comes of them: nothing is left out for speed."""
        events = edited(self.events, edits)
        if not self._in_order:
            return events, self._arrived(events, self._until)
        return events, self._went_on(events, self.graph.initial(), self._last(events))

    def endless(self) -> list[Event]:
        """What would be made if time went on."""
        made = self._run(self.events, inf)
        return [detection for detection in made if self.question.is_met_by(detection, ())]

    @cached_property
    def end(self) -> int:
        """How far time has come."""
        last = self._last(self.events)
        return int(last) if last < inf else max((event.hi for event in self.events), default=0)

    def _last(self, events: Sequence[Event], until: float | None = None) -> float:
        bound = self._until if until is None else until
        last = events[-1].hi if events else 0
        return last if bound is None else max(last, bound)

    @cached_property
    def _in_order(self) -> bool:
        return not self.book.names_policies

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.book.plans("interpreter"), tells_hidden=True)

    @cached_property
    def _floor(self) -> int:
        return self.near[0].hi if self.near else self.span[0]

    @cached_property
    def _before(self) -> list[Event]:
        return [event for event in self.events if event.hi < self._floor and self.concerns(event)]

    @cached_property
    def _floor_bytes(self) -> bytes:
        state = self._begun(self.events)
        self.graph.advance(state, EventBatch(self._before))
        return self.graph.encode(state)

    def _begun(self, events: Sequence[Event]) -> GraphState:
        """Time begins with the first event, of whatever key."""
        state = self.graph.initial()
        if events and not self.concerns(first := events[0]):
            self.graph.advance(state, EventBatch((primitive(HEARTBEAT, first.hi, first.hi, "", {}),)))
        return state

    def _run(self, events: Sequence[Event], until: float | None = None) -> list[Event]:
        own = [event for event in events if self.concerns(event)]
        if not self._in_order:
            return self._arrived(own, until)
        return self._went_on(own, self._begun(events), self._last(events, until))

    def _went_on(self, events: Sequence[Event], state: GraphState, until: float) -> list[Event]:
        made: list[Event] = []
        try:
            made += self.graph.advance(state, EventBatch(events)).events
            made += self.graph.finish(state, until, self._closed).events
        except RunError as error:
            made += (error.detections or EMPTY).events
        return made

    def _arrived(self, events: Sequence[Event], until: float | None) -> list[Event]:
        """Under policies, in the order of arrival."""
        engine, made = PolicyEngine(self.book, None, "interpreter"), list[Event]()
        try:
            ordered = sorted(events, key=lambda event: event.hi if event.arrival is None else event.arrival)
            for some in engine.process(EventBatch(ordered)):
                made += some.detections
            for some in engine.end(self._until if until is None else until):
                made += some.detections
        except RunError:
            pass
        return made


def _named(edit: Edit) -> tuple[object, ...]:
    """Edits that are named alike are the same."""
    if isinstance(edit, Move):
        return edit.kind, id(edit.event), edit.by
    if isinstance(edit, Change):
        return edit.kind, id(edit.event), edit.attribute, repr(edit.value)
    return (edit.kind, repr(edit.event)) if isinstance(edit, Add) else (edit.kind, id(edit.event))
