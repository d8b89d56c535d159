"""Monitors, event by event."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from coincide.detection.base import Clock
from coincide.detection.keys import Key, key_reader, key_value
from coincide.detection.machine.program import MonitorGroup
from coincide.detection.machine.state import Column
from coincide.detection.machine.transducer import ENDED
from coincide.expr.scalar import EventScope, condition
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Value, caused, detection

Parts = Sequence[tuple[int, int]]
"""(Monitor, number of its part)."""

log = logging.getLogger("coincide.run")


class Interpreter:
    """Steps a group of monitors; the columns are the state."""

    def __init__(self, group: MonitorGroup) -> None:
        self.group = group
        self._tests = [condition(test, EventScope()) for test in group.tests]
        self._key = key_reader(group.keys)

    def step(self, columns: list[Column], batch: EventBatch, clock: Clock) -> tuple[list[Column], EventBatch]:
        made: list[Event] = []
        for event in batch.events:
            key = self._key(event)
            if key is not None:
                self._show(columns, event, key, made)
        made.sort(key=lambda d: d.place)
        return columns, EventBatch(made)

    def _show(self, columns: list[Column], event: Event, key: Key, made: list[Event]) -> None:
        truths = [test(event) for test in self._tests]
        for column in columns:
            program = self.group.programs[column.program]
            if event.is_detection and event.type not in program.mentions:
                continue
            letter = program.letter(truths)
            if not letter:  # an event that satisfies nothing changes nothing
                continue
            before = column.configurations.get(key, program.transducer.start)
            after, emitted = program.transducer.step(before, letter)
            if after == program.transducer.start:
                column.configurations.pop(key, None)
            else:
                column.configurations[key] = after
            if after == ENDED and before != ENDED:
                report_endless(self.group, column.parts, event, key)
            if emitted:
                self._emit(column.parts, event, key, emitted, made)

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


def report_endless(group: MonitorGroup, parts: Parts, event: Event, key: Key) -> None:
    """Section 2: the machine ends, everything else goes on."""
    values = "".join(f", {name} = {key_value(part)}" for name, part in zip(group.keys, key, strict=True))
    for monitor, _ in parts:
        detector = group.detectors[monitor]
        message = f"the internal transitions of machine '{detector.name}' never settle (event {event.id}{values})"
        log.warning("%s: %s", detector.span, message)
