"""The state of situations as bytes: as the tables of the compiled loop, if these can hold it.

Otherwise (states that have not begun; situations that the loop cannot do; places with timers in them) they hold for each
situation its lifespans, with what it has in them. A lifespan that several situations share is written with each of them and made
one again when the parts are read: it is known by its definition, its key and the place of what opened it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from coincide.detection.eventwise import Timer
from coincide.detection.parts import by_tables, own_tables, tables_named, with_references
from coincide.detection.situation.interpreter import fitted
from coincide.detection.situation.program import Group, KeyReader, OperandProgram, SituationProgram
from coincide.detection.situation.scope import Selection
from coincide.detection.situation.state import (
    Content,
    Delayed,
    Expire,
    Key,
    Lifespan,
    Partition,
    Passed,
    SituationState,
    Tick,
    fresh_content,
    key_value,
)
from coincide.detection.snapshots import damaged, decoded, event_of, item, items, key_of, place_of, stored_event, timer_place_of
from coincide.model.bounds import Count, Instant
from coincide.model.event import Event, Place, StoredValue, Value
from coincide.model.numbers import is_number

VERSION = 1
KIND = "situations"


class TimerPart(msgspec.Struct, array_like=True):
    place: list[Any]
    recurring: bool


class AfterPart(msgspec.Struct, array_like=True):
    timer: TimerPart
    selection: list[tuple[int, int]]


class PartitionPart(msgspec.Struct, array_like=True):
    key: list[StoredValue]
    candidates: list[list[int]]
    reported: list[bytes]
    done: bool
    timers: list[AfterPart]


class LifespanPart(msgspec.Struct, array_like=True):
    """Events are numbers of the part's own list."""

    key: list[StoredValue]
    place: list[Any]
    opened: Instant
    due: Instant | None
    initiator: int | None
    event: int | None
    expiration: TimerPart | None
    partitions: list[PartitionPart]
    delayed: list[tuple[list[StoredValue], list[tuple[int, int]]]]
    tick: TimerPart | None


class SituationPart(msgspec.Struct, array_like=True):
    version: int
    begun: bool
    statistics: dict[str, Count]
    lifespan_statistics: dict[str, Count]
    events: list[Event]
    lifespans: list[LifespanPart]


def about(group: Group) -> list[int]:
    """What tables tell of their situations: the number of the lifespan of each."""
    return [s.lifespan for s in group.situations]


def _as_objects(group: Group, parts: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The parts with objects instead of references to tables."""
    found = dict(parts)
    for name, numbers in by_tables(group.detectors, parts).items():
        from coincide.detection.situation.kernel.objects import of_tables

        tables, later = tables_named(parts, name)
        situations = {there: group.situations[here] for there, here in numbers.items()}
        found.update(_encode_objects(*of_tables(situations, tables.about, tables.base, later)))
    return found


class _Writer:
    """One situation's part; each event is written once."""

    def __init__(self, situation: int) -> None:
        self.situation = situation
        self.events: list[Event] = []
        self.numbers: dict[int, int] = {}

    def event(self, event: Event) -> int:
        number = self.numbers.setdefault(id(event), len(self.events))
        if number == len(self.events):
            self.events.append(stored_event(event))
        return number

    def selection(self, selection: Selection) -> list[tuple[int, int]]:
        return [(operand, self.event(event)) for operand, event in selection]

    def lifespan(self, span: Lifespan) -> LifespanPart:
        content = span.contents[self.situation]
        return LifespanPart(
            _values(span.key),
            list(span.place),
            span.opened,
            span.due,
            span.initiator,
            None if span.event is None else self.event(span.event),
            _timer(span.expiration),
            [self.partition(key, partition) for key, partition in content.partitions.items()],
            [(_values(delayed.key), self.selection(delayed.selection)) for delayed in content.delayed],
            _timer(content.tick),
        )

    def partition(self, key: Key, partition: Partition) -> PartitionPart:
        return PartitionPart(
            _values(key),
            [[self.event(event) for event in events] for events in partition.candidates],
            sorted(partition.reported),
            partition.done,
            [
                AfterPart(TimerPart(list(t.place), t.recurring), self.selection(t.payload.selection))
                for t in partition.timers
                if not t.cancelled
            ],
        )


def _timer(timer: Timer | None) -> TimerPart | None:
    return None if timer is None or timer.cancelled else TimerPart(list(timer.place), timer.recurring)


def _values(key: Key) -> list[Value]:
    return [key_value(part) for part in key]


def encode(group: Group, state: SituationState) -> dict[str, bytes]:
    if not group.loop_reasons and not state.fresh:
        from coincide.detection.columns.codec import encode as encoded
        from coincide.detection.situation.objects import relations_of

        relations = relations_of(group, state)
        if relations is not None:
            return tables_parts(group, encoded(relations))
    return _encode_objects(group, state)


def tables_parts(group: Group, base: bytes) -> dict[str, bytes]:
    return with_references(KIND, group.detectors, about(group), base)


def _encode_objects(group: Group, state: SituationState) -> dict[str, bytes]:
    return {s.detector.digest: msgspec.msgpack.encode(_situation(state, s)) for s in group.situations}


def _situation(state: SituationState, situation: SituationProgram) -> SituationPart:
    writer = _Writer(situation.number)
    spans = [span for spans in state.open[situation.lifespan].values() for span in spans]
    lifespans = [writer.lifespan(span) for span in sorted(spans, key=lambda span: span.place)]
    counts = state.lifespans[situation.lifespan] if situation.resolved.counts_lifespan else {}
    begun = situation.number not in state.fresh
    own = dict(state.situations[situation.number])
    return SituationPart(VERSION, begun, own, dict(counts), writer.events, lifespans)


def decode(group: Group, parts: Mapping[str, bytes]) -> SituationState:
    """A situation without a part starts afresh: it joins the lifespans that are open, with no candidates."""
    tables = None if group.loop_reasons else own_tables(KIND, group.detectors, about(group), parts)
    if tables is not None:
        from coincide.detection.situation.kernel.objects import objects_of

        return objects_of(group, *tables)
    parts = _as_objects(group, parts)
    state = SituationState(
        open=[{} for _ in group.lifespans],
        fresh=set(),
        late=bool(parts),
        situations=[Counter() for _ in group.situations],
        lifespans=[Counter() for _ in group.lifespans],
    )
    for situation in group.situations:
        data = situation.detector.part_of(parts)
        part = None if data is None else decoded(data, SituationPart, VERSION)
        if part is None or not part.begun:
            state.fresh.add(situation.number)
        if part is not None:
            _Reader(group, state, situation, part).read()
    state.late = state.late and len(state.fresh) > 0 and not _untouched(group, parts)
    _complete(group, state)
    return state


def _untouched(group: Group, parts: Mapping[str, bytes]) -> bool:
    """Was this taken before any event came? Then all begins with the first event, as usual."""
    return all(s.detector.part_of(parts) is not None for s in group.situations)


def _complete(group: Group, state: SituationState) -> None:
    """Every situation has something in every lifespan of its definition; lifespans stand oldest first."""
    for lifespan in group.lifespans:
        for spans in state.open[lifespan.number].values():
            spans.sort(key=lambda span: span.place)
            for span in spans:
                for situation in lifespan.situations:
                    if situation.number not in span.contents:
                        span.contents[situation.number] = fresh_content(situation)


class _Reader:
    """Puts one situation's part into a state. Events are of the types that their places in it are for."""

    def __init__(self, group: Group, state: SituationState, situation: SituationProgram, part: SituationPart) -> None:
        self.group = group
        self.state = state
        self.situation = situation
        self.lifespan = group.lifespans[situation.lifespan]
        self.part = part
        self.events = [self._fitted(event_of(event)) for event in part.events]

    def _fitted(self, event: Event) -> Event:
        readers = self.group.readers.get(event.type)
        return event if readers is None else fitted(event, readers)

    def read(self) -> None:
        self.state.situations[self.situation.number].update(self.part.statistics)
        self.state.lifespans[self.situation.lifespan].update(self.part.lifespan_statistics)
        for part in self.part.lifespans:
            span = self._shared(part)
            if self.situation.number in span.contents:
                damaged("two lifespans have one place")
            content = span.contents[self.situation.number] = Content()
            for partition in part.partitions:
                content.partitions[self._local(partition.key)] = self._partition(span, partition)
            _check_alike(content.partitions)
            content.delayed = [Delayed(self._local(key), self._selection(chosen)) for key, chosen in part.delayed]
            if part.tick is not None and not self.situation.behaviour.ticks:
                damaged("a situation without a clock has one")
            content.tick = self._timer(part.tick, Tick(span, self.situation.number))
        _check_alike(self.state.open[self.situation.lifespan])

    def _local(self, values: list[Value]) -> Key:
        return self._key(values, self.situation.local_key)

    def _key(self, values: list[Value], reader: KeyReader) -> Key:
        key = key_of(values, reader.size)
        if not all(self.group.fits(reader, part, [value]) for part, value in enumerate(key)):
            damaged("a key has a value of another type than its attribute")
        return key

    def _shared(self, part: LifespanPart) -> Lifespan:
        """The lifespan, which a situation before may have brought already."""
        place = place_of(part.place)
        key = key_of(part.key, 0) if part.initiator is None else self._key(part.key, self.situation.global_key)
        spans = self.state.open[self.situation.lifespan].setdefault(key, [])
        for span in spans:
            if span.place == place:
                return span
        event = self._initiating(part, place)
        span = Lifespan(self.situation.lifespan, key, place, part.opened, part.due, part.initiator, event)
        span.expiration = self._expiration(part, span)
        spans.append(span)
        return span

    def _initiating(self, part: LifespanPart, place: Place) -> Event | None:
        if part.opened != place[0] or (part.initiator is None) != (part.event is None):
            damaged("a lifespan was not opened by what it says")
        if part.initiator is None or part.event is None:
            return None
        _, initiator, _ = item(self.lifespan.initiators, part.initiator)
        event = item(self.events, part.event)
        if event.type != initiator.event or event.place != place:
            damaged("a lifespan was not opened by what it says")
        return event

    def _expiration(self, part: LifespanPart, span: Lifespan) -> Timer | None:
        expires = self.lifespan.definition.expiration is not None
        timer = self._timer(part.expiration, Expire(span))
        if expires != (part.due is not None) or expires != (timer is not None) or (timer is not None and timer.due != part.due):
            damaged("a lifespan does not end when it says")
        return timer

    def _partition(self, span: Lifespan, part: PartitionPart) -> Partition:
        pairs = zip(self.situation.operands, part.candidates, strict=True)
        candidates = [self._candidates(operand, numbers) for operand, numbers in pairs]
        partition = Partition(candidates, set(part.reported), part.done)
        if part.timers and not self.situation.behaviour.delays:
            damaged("a situation without a clock has one")
        for after in part.timers:
            action = Passed(span, self.situation.number, self._local(part.key), self._selection(after.selection))
            timer = self._timer(after.timer, action)
            if timer is None or len(action.selection) != 1:
                damaged("what is waited for is not one event")
            partition.timers.append(timer)
        return partition

    def _candidates(self, operand: OperandProgram, numbers: list[int]) -> list[Event]:
        events = items(self.events, numbers)
        if any(event.type != operand.event for event in events) or any(a.place >= b.place for a, b in pairwise(events)):
            damaged("candidates are not those of their operand")
        return events

    def _selection(self, chosen: Iterable[tuple[int, int]]) -> Selection:
        selection = tuple((operand, item(self.events, number)) for operand, number in chosen)
        if any(event.type != item(self.situation.operands, operand).event for operand, event in selection):
            damaged("candidates are not those of their operand")
        return selection

    def _timer(self, part: TimerPart | None, action: object) -> Timer | None:
        return None if part is None else self.state.timers.add(Timer(timer_place_of(part.place), action, part.recurring))


def _check_alike(keys: Iterable[Key]) -> None:
    """Attributes are declared with a type: so keys can be put in order."""
    if len({tuple(float if is_number(part) else type(part) for part in key) for key in keys}) > 1:
        damaged("keys of one kind have values of several types")
