"""Monitors, event by event."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter

from coincide.detection.base import Clock
from coincide.detection.keys import Key, key_reader, key_value
from coincide.detection.machine.program import MonitorGroup
from coincide.detection.machine.state import Column
from coincide.detection.machine.transducer import ENDED
from coincide.errors import log_warning
from coincide.expr.guards import Guarded
from coincide.expr.scalar import EventScope, condition
from coincide.model.batch import EventBatch
from coincide.model.event import ENVELOPE, Event, Value, caused, detection

Parts = Sequence[tuple[int, int]]
"""(Monitor, number of its part)."""

PROGRAM = attrgetter("program")


class Interpreter:
    """Steps a group of monitors; the columns are the state."""

    def __init__(self, group: MonitorGroup) -> None:
        self.group = group
        self._tests = [condition(test, EventScope()) for test in group.tests]
        self._guarded = Guarded(group.tests, ENVELOPE - {"type"})
        self._users: list[list[tuple[int, int]]] = [[] for _ in group.tests]  # programs, and the bit in their letters
        for number, program in enumerate(group.programs):
            for bit, test in enumerate(program.tests):
                self._users[test].append((number, 1 << bit))
        self._key = key_reader(group.keys)

    def step(self, columns: list[Column], batch: EventBatch, clock: Clock) -> tuple[list[Column], EventBatch]:
        return columns, _in_order(self._made(columns, batch).values())

    def step_apart(
        self, columns: list[Column], batch: EventBatch, groups: Sequence[Sequence[int]]
    ) -> tuple[list[Column], list[EventBatch]]:
        """With the detections of some columns and those of others."""
        made = self._made(columns, batch)
        return columns, [_in_order(made[number] for number in group) for group in groups]

    def _made(self, columns: list[Column], batch: EventBatch) -> dict[int, list[Event]]:
        """Detections by the number of the column."""
        made: dict[int, list[Event]] = defaultdict(list)
        for event in batch.events:
            key = self._key(event)
            if key is not None:
                self._show(columns, event, key, made)
        return made

    def _show(self, columns: list[Column], event: Event, key: Key, made: Mapping[int, list[Event]]) -> None:
        for number, letter in sorted(self._letters(event).items()):
            program = self.group.programs[number]
            if event.is_detection and event.type not in program.mentions:
                continue
            for position in _running(columns, number):
                column = columns[position]
                before = column.configurations.get(key, program.transducer.start)
                after, emitted = program.transducer.step(before, letter)
                if after == program.transducer.start:
                    column.configurations.pop(key, None)
                else:
                    column.configurations[key] = after
                if after == ENDED and before != ENDED:
                    report_endless(self.group, column.parts, event, key)
                if emitted:
                    self._emit(column.parts, event, key, emitted, made[position])

    def _letters(self, event: Event) -> dict[int, int]:
        """What each program sees; an event that satisfies nothing changes nothing."""
        letters: dict[int, int] = defaultdict(int)
        for test in self._guarded.candidates(event):
            if self._tests[test](event):
                for program, bit in self._users[test]:
                    letters[program] |= bit
        return letters

    def _emit(self, parts: Parts, event: Event, key: Key, emitted: Sequence[int], made: list[Event]) -> None:
        keys: dict[str, Value] = {name: key_value(part) for name, part in zip(self.group.keys, key, strict=True)}
        source = keys.pop("source", None)
        assert source is None or isinstance(source, str)
        for monitor, part in parts:
            order, first = self.group.detectors[monitor].order, self.group.parts[monitor][part].first
            for k, output in enumerate(emitted):
                emitter = self.group.emitters[monitor][first + output]
                attributes = {**keys, **emitter.attributes(event)}
                place = caused(event.place, order, first + k)
                made.append(detection(emitter.token, event.stamp, attributes, event.origin, place, source))


def _in_order(made: Iterable[Iterable[Event]]) -> EventBatch:
    return EventBatch(sorted(chain.from_iterable(made), key=lambda d: d.place))


def _running(columns: Sequence[Column], program: int) -> range:
    """The numbers of those of a program: they stand in the order of their programs."""
    return range(bisect_left(columns, program, key=PROGRAM), bisect_right(columns, program, key=PROGRAM))


def report_endless(group: MonitorGroup, parts: Parts, event: Event, key: Key) -> None:
    """Section 2: the machine ends, everything else goes on."""
    values = "".join(f", {name} = {key_value(part)}" for name, part in zip(group.keys, key, strict=True))
    for monitor, _ in parts:
        detector = group.detectors[monitor]
        message = f"the internal transitions of machine '{detector.name}' never settle (event {event.id}{values})"
        log_warning("%s: %s", detector.span, message)
