"""Tables as the interpreter's state; the other way: objects.py of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coincide.detection.columns.codec import decode
from coincide.detection.columns.tables import distinct
from coincide.detection.eventwise import Timer, Timers
from coincide.detection.situation.encoding import KIND
from coincide.detection.situation.interpreter import fitted
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.relations import load, of_some
from coincide.detection.situation.kernel.state import Tables
from coincide.detection.situation.kernel.tables import Program
from coincide.detection.situation.objects import WORK, is_timed
from coincide.detection.situation.program import Group, SituationProgram
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
    partition_in,
)
from coincide.model.event import Event, timer_place


def of_tables(
    situations: Mapping[int, SituationProgram], lifespans: Sequence[int], base: bytes, later: Sequence[bytes]
) -> tuple[Group, SituationState]:
    """The interpreter's state of some situations, by their numbers in the tables; and a group of these alone."""
    group = Group([situations[number].detector for number in sorted(situations)])
    program = Program(group)
    relations = decode(at.SHAPES, KIND, base, *later)
    return group, _objects(load(program, of_some(relations, program, sorted(situations), lifespans)))


def objects_of(group: Group, base: bytes, later: Sequence[bytes]) -> SituationState:
    """The same of exactly the situations of a group."""
    return _objects(load(Program(group), decode(at.SHAPES, KIND, base, *later)))


def _objects(tables: Tables) -> SituationState:
    group = tables.program.group
    counts = [Counter[str]() for _ in group.situations], [Counter[str]() for _ in group.lifespans]
    return Saver(tables, SituationState([{} for _ in group.lifespans], set(), False, Timers(), *counts)).save()


class Saver:
    """Tables as the interpreter's state."""

    def __init__(self, tables: Tables, state: SituationState) -> None:
        self.tables = tables
        self.group = tables.program.group
        self.state = state  # what it says of lifespans is replaced
        self.events = self._events()

    def _events(self) -> dict[int, Event]:
        """Those that somebody refers to."""
        tables, readers = self.tables, self.group.readers
        self.candidates = tables.streams(tables.cells.live())
        chosen = tables.choices(tables.held.live())[1]
        spans, timers = tables.spans.live(), tables.timers.live()
        opened, set_by = tables.spans.rows[spans, at.SPAN.opened], tables.timers.rows[timers, at.TIMER.event]
        refs = distinct(np.concatenate((opened, set_by, chosen[:, 1], self.candidates[3])))
        events = tables.store.taken(refs).events() if len(refs) else []
        fit = [fitted(e, readers[e.type]) if e.type in readers else e for e in events]
        return dict(zip(refs.tolist(), fit, strict=True))

    def save(self) -> SituationState:
        state, tables = self.state, self.tables
        state.open = [{} for _ in self.group.lifespans]
        state.timers.heap.clear()
        rows, live = tables.spans.rows, tables.spans.live()
        live = live[np.lexsort((rows[live, at.SPAN.definition], rows[live, at.SPAN.opened]))]
        names = zip(live.tolist(), tables.keys.values_at(rows[live, at.SPAN.key]), strict=True)
        spans = {number: self._span(rows[number].tolist(), key) for number, key in names}
        streams = self._streams()
        for number in tables.records.live().tolist():
            row = tables.records.rows[number].tolist()
            situation = self.group.situations[row[at.RECORD.situation]]
            candidates = [self._candidates(situation, row, n, streams) for n in range(len(situation.operands))]
            partition = Partition(candidates, done=bool(row[at.RECORD.done]))
            local = tables.cells.values[row[at.RECORD.cell]]
            spans[row[at.RECORD.span]].contents[situation.number].partitions[local] = partition
        for number in tables.timers.live().tolist():
            row = tables.timers.rows[number].tolist()
            self._timer(row, spans[row[at.TIMER.span]])
        held = tables.held.live()
        for number in held[np.argsort(tables.held.rows[held, at.WAITING.first])].tolist():
            row = tables.held.rows[number].tolist()
            events = tables.held_events[row[at.WAITING.first] : row[at.WAITING.last]].tolist()
            selection = tuple((operand, self.events[ref]) for operand, ref in events)
            delayed = Delayed(tables.cells.values[row[at.WAITING.cell]], selection)
            spans[row[at.WAITING.span]].contents[row[at.WAITING.situation]].delayed.append(delayed)
        save_counters(state, tables)
        return state

    def _streams(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """By cell and operand: positions and refs."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for cell, operand, position, ref in zip(*(column.tolist() for column in self.candidates), strict=True):
            found.setdefault((cell, operand), []).append((position, ref))
        return found

    def _timer(self, row: list[int], span: Lifespan) -> None:
        situation, event = self.group.situations[row[at.TIMER.situation]], self.events[row[at.TIMER.event]]
        if situation.behaviour.ticks:
            place = self.tables.ticks.place(situation, event.place, row[at.TIMER.due], row[at.TIMER.number])
            timer = Timer(place, Tick(span, situation.number), situation.operator.repeat == "always")
            span.contents[situation.number].tick = self.state.timers.add(timer)
            return
        key = self.tables.cells.values[row[at.TIMER.cell]]
        place = timer_place(row[at.TIMER.due], event.place, situation.order, row[at.TIMER.number])
        timer = Timer(place, Passed(span, situation.number, key, ((row[at.TIMER.operand], event),)))
        partition_in(situation, span.contents[situation.number], key).timers.append(self.state.timers.add(timer))

    def _span(self, row: list[int], key: Key) -> Lifespan:
        d, opened = row[at.SPAN.definition], self.events[row[at.SPAN.opened]]
        lifespan, now = self.group.lifespans[d], opened.place[0]
        span = Lifespan(d, key, opened.place, now)
        if row[at.SPAN.initiator] >= 0:
            span.initiator, span.event = row[at.SPAN.initiator], opened
        if row[at.SPAN.due] != at.NEVER:
            span.due = row[at.SPAN.due]
            place = timer_place(span.due, opened.place, lifespan.order, 0)
            span.expiration = self.state.timers.add(Timer(place, Expire(span)))
        span.contents = {s.number: fresh_content(s) if is_timed(s) else Content() for s in lifespan.situations}
        self.state.open[d].setdefault(span.key, []).append(span)
        return span

    def _candidates(self, situation: SituationProgram, row: list[int], operand: int, streams: Any) -> list[Event]:
        if row[at.RECORD.done]:
            return []
        column = at.RECORD.parts + operand * at.TAKEN.width
        start, *bits = row[column : column + at.TAKEN.width]
        stream = streams.get((row[at.RECORD.cell], operand), ())
        own = [ref for position, ref in stream if position >= start and not self._consumed(position, *bits)]
        return [self.events[ref] for ref in (own[:1] if operand in situation.flag_operands else own)]

    def _consumed(self, position: int, bits: int, bits_from: int, words: int) -> bool:
        word, bit = divmod(position - bits_from, 64)
        return bits >= 0 and 0 <= word < words and bool((int(self.tables.pool[bits + word]) >> bit) & 1)


def save_counters(state: SituationState, tables: Tables) -> None:
    for counter, row in zip(state.situations, tables.counted.tolist(), strict=False):
        _set(counter, candidates=row[at.COUNTED.candidates], detections=row[at.COUNTED.detections])
    for counter, row in zip(state.lifespans, tables.counted.tolist(), strict=False):
        _set(counter, initiated=row[at.COUNTED.initiated], terminated=row[at.COUNTED.terminated])
    for name in WORK:  # the loop does not tell whose work it is
        done = sum(counter[name] for counter in (*state.situations, *state.lifespans))
        state.situations[0][name] += getattr(tables, name) - done


def _set(counter: Counter[str], **numbers: int) -> None:
    for name, number in numbers.items():
        counter[name] = number
