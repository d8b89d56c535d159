"""The interpreter's state as the tables that are written (kernel/layout.py); back from these: kernel/objects.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from coincide.detection.columns.codec import Relations, Rows
from coincide.detection.columns.store import NOTHING, picked
from coincide.detection.columns.tables import Shape
from coincide.detection.eventwise import Timer
from coincide.detection.situation.encoding import KIND
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.ticks import first_number, is_known
from coincide.detection.situation.program import Group, SituationProgram
from coincide.detection.situation.state import Content, Delayed, Key, Lifespan, Partition, SituationState, Tick
from coincide.model.event import ENVELOPE, Event, Place
from coincide.model.table import table_of

WORK = ("conditions", "accesses")
WORD = 64


def relations_of(group: Group, state: SituationState) -> Relations | None:
    """None: tables cannot hold it. Places with timers in them are not plain numbers, and recurring timers are marked."""
    spans = _spans(state)
    events = _events(spans)
    tabular = all(place[1] == 0 for place in events) and _are_known(group, state)
    return _Writer(group, state, spans, events).relations() if tabular else None


def _are_known(group: Group, state: SituationState) -> bool:
    """Are all timers of kinds that tables have?"""
    actions = [(timer, timer.payload) for timer in state.timers.live()]
    if any(timer.recurring for timer, action in actions if not isinstance(action, Tick)):
        return False
    ticks = [(timer, action) for timer, action in actions if isinstance(action, Tick)]
    return all(is_known(group.situations[action.situation], action.lifespan, timer) for timer, action in ticks)


def is_timed(situation: SituationProgram) -> bool:
    """Has it timers, and no candidates?"""
    return situation.behaviour.delays or situation.behaviour.ticks


def stored_fields(group: Group) -> frozenset[str]:
    return group.columns | ENVELOPE | {"space"}


def _spans(state: SituationState) -> list[Lifespan]:
    spans = [span for by_key in state.open for spans in by_key.values() for span in spans]
    return sorted(spans, key=lambda span: (span.place, span.definition))


def _events(spans: Sequence[Lifespan]) -> dict[Place, Event]:
    """All events that lifespans refer to, by place; a startup has a place but no event."""
    found: dict[Place, Event] = {}
    for span in spans:
        found[span.place] = span.event or Event("", span.opened, span.opened, None, {}, (), place=span.place)
    for content in (content for span in spans for content in span.contents.values()):
        for partition in content.partitions.values():
            found.update((event.place, event) for events in partition.candidates for event in events)
            for timer in _live(partition):
                found.update((event.place, event) for _, event in timer.payload.selection)
        for delayed in content.delayed:
            found.update((event.place, event) for _, event in delayed.selection)
    return found


def _live(partition: Partition) -> Iterator[Timer]:
    return (timer for timer in partition.timers if not timer.cancelled)


class _Writer:
    """Rows by their shapes."""

    def __init__(self, group: Group, state: SituationState, spans: Sequence[Lifespan], events: Mapping[Place, Event]) -> None:
        self.group = group
        self.state = state
        self.spans = spans
        places = sorted(events)
        self.refs = {place: ref for ref, place in enumerate(places)}
        table = table_of([events[place] for place in places]) if places else NOTHING
        self.events = picked(table, np.arange(len(table)), stored_fields(group)) if places else NOTHING
        self.rows: dict[str, list[tuple[int, ...]]] = {shape.name: [] for shape in at.SHAPES}
        self.keys: dict[tuple[int, Key], int] = {}
        self.cells: dict[tuple[int, int, Key], int] = {}  # situation, row of the key, local key
        self.seen: dict[int, int] = {}  # by cell
        self.filled: dict[int, list[int]] = {}  # by cell and operand

    def relations(self) -> Relations:
        for span in self.spans:
            due = at.NEVER if span.due is None else span.due
            initiator = -1 if span.initiator is None else span.initiator
            key = self._key(span.definition, span.key)
            self.rows["spans"].append((span.definition, key, self.refs[span.place], due, initiator))
        contents = ((number, span, *own) for number, span in enumerate(self.spans) for own in span.contents.items())
        self._records([own for at_span in contents for own in self._content(*at_span)])
        self.rows["keys"] = [(definition,) for definition, _ in self.keys]
        self.rows["cells"] = [self._cell_row(*cell) for cell in self.cells.items()]
        operands = self.group.most_operands
        parts = {"keys": self.group.most_cells, "cells": operands, "records": operands}
        values = {"keys": [key for _, key in self.keys], "cells": [local for *_, local in self.cells]}
        rows = {s.name: self._rows(s, parts.get(s.name, 0), values.get(s.name)) for s in at.SHAPES}
        return Relations(KIND, rows, np.arange(len(self.events)), self.events, self._notes(), 0, 1)

    def _rows(self, shape: Shape, parts: int, values: list[Any] | None) -> Rows:
        names, found = [name for name, *_ in shape.written(parts)], self.rows[shape.name]
        columns = dict(zip(names, np.array(found, np.int64).reshape(-1, len(names)).T, strict=True))
        return Rows(shape, np.arange(len(found)), columns, len(found), parts, values=values)

    def _notes(self) -> dict[str, Any]:
        own, lifespans = self.state.situations, self.state.lifespans
        counted = {
            **{name: [counter[name] for counter in own] for name in ("candidates", "detections")},
            **{name: [counter[name] for counter in lifespans] for name in ("initiated", "terminated")},
            "work": [sum(counter[name] for counter in (*own, *lifespans)) for name in WORK],
            "events": [len(self.events)],
        }
        return {name: np.array(numbers, np.int64) for name, numbers in counted.items()}

    # Keys and cells.

    def _key(self, definition: int, key: Key) -> int:
        """With a key come the cells of situations that have no local key."""
        found = self.keys.get((definition, key))
        if found is None:
            found = self.keys[definition, key] = len(self.keys)
            for situation in self.group.lifespans[definition].situations:
                if not situation.local_key.size:
                    self.cells[situation.number, found, ()] = len(self.cells)
        return found

    def _cell(self, situation: SituationProgram, span: Lifespan, local: Key) -> int:
        return self.cells.setdefault((situation.number, self.keys[span.definition, span.key], local), len(self.cells))

    def _cell_row(self, cell: tuple[int, int, Key], number: int) -> tuple[int, ...]:
        situation, key, _ = cell
        filled = self.filled.get(number, [])
        lacking = self.group.most_operands - len(filled)
        return (situation, key, self.seen.get(number, 0), *(n for size in (*filled, *[0] * lacking) for n in (size, 0)))

    # What situations have in lifespans.

    def _content(
        self, number: int, span: Lifespan, of: int, content: Content
    ) -> Iterator[tuple[int, int, SituationProgram, Partition]]:
        """Timers and what is held are noted at once; partitions are returned, with their cells and lifespans."""
        situation = self.group.situations[of]
        for local, partition in content.partitions.items():
            cell = self._cell(situation, span, local)
            self.seen[cell] = max(self.seen.get(cell, 0), self.refs[span.place] + 1)
            if not is_timed(situation):
                yield cell, number, situation, partition
            for timer in _live(partition):
                ((operand, event),) = timer.payload.selection
                row = (number, of, cell, operand, self.refs[event.place], timer.due, timer.place[2][-2])
                self.rows["timers"].append(row)
        if content.tick is not None and not content.tick.cancelled:
            self._tick(number, span, situation, content.tick)
        for delayed in content.delayed:
            self._held(number, span, situation, delayed)

    def _tick(self, number: int, span: Lifespan, situation: SituationProgram, timer: Timer) -> None:
        which = (timer.due - span.opened) // situation.operator.interval
        cell, opened = self._cell(situation, span, ()), self.refs[span.place]
        row = (number, situation.number, cell, which, opened, timer.due, first_number(timer.place))
        self.rows["timers"].append(row)

    def _held(self, number: int, span: Lifespan, situation: SituationProgram, delayed: Delayed) -> None:
        held = len(self.rows["held"])
        self.rows["held"].append((number, situation.number, self._cell(situation, span, delayed.key), held))
        self.rows["chosen"] += [(held, operand, self.refs[event.place]) for operand, event in delayed.selection]

    def _records(self, partitions: Iterable[tuple[int, int, SituationProgram, Partition]]) -> None:
        """The candidates of all partitions of a cell together; what one lacks after its first, it has consumed."""
        for cell, group in groupby(sorted(partitions, key=lambda found: found[:2]), key=lambda found: found[0]):
            some = [(span, s, p.done, [self._refs(events) for events in p.candidates]) for _, span, s, p in group]
            streams = [sorted({ref for refs in lists for ref in refs}) for lists in zip(*(own for *_, own in some), strict=True)]
            self.filled[cell] = list(map(len, streams))
            for operand, stream in enumerate(streams):
                self.rows["candidates"] += [(cell, operand, position, ref) for position, ref in enumerate(stream)]
            for span, situation, done, own in some:
                starts = [self._taken(operand, *lists) for operand, lists in enumerate(zip(streams, own, strict=True))]
                lacking = [0] * (self.group.most_operands - len(starts))
                self.rows["records"].append((span, situation.number, cell, done, *starts, *lacking))

    def _refs(self, events: Iterable[Event]) -> list[int]:
        return [self.refs[event.place] for event in events]

    def _taken(self, operand: int, stream: list[int], refs: list[int]) -> int:
        """Where the candidates of the next record start in the stream; those after it that it lacks are bits of words."""
        start = stream.index(refs[0]) if refs else len(stream)
        present = set(refs)
        lacking = [n for n, ref in enumerate(stream[start:]) if ref not in present]
        words = [0] * (1 + lacking[-1] // WORD if lacking else 0)
        for n in lacking:
            words[n // WORD] |= 1 << n % WORD
        record = len(self.rows["records"])
        signed = (word - (word >> (WORD - 1) << WORD) for word in words)
        self.rows["consumed"] += [(record, operand, start + WORD * n, word) for n, word in enumerate(signed)]
        return start
