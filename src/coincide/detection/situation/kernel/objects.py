"""The compiled loop's state from and to the interpreter's: one encoding serves both tiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from coincide.detection.columns.codec import decode
from coincide.detection.columns.tables import distinct
from coincide.detection.eventwise import Timer, Timers
from coincide.detection.situation.interpreter import fitted
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.relations import KIND, load, of_some
from coincide.detection.situation.kernel.rows import note_events, types_of
from coincide.detection.situation.kernel.state import Tables
from coincide.detection.situation.kernel.tables import Program
from coincide.detection.situation.kernel.ticks import first_number, is_known
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
from coincide.model.event import Event, Place, timer_place
from coincide.model.table import EventTable, table_of

WORK = ("conditions", "accesses")


def loadable(group: Group, state: SituationState) -> bool:
    """Places with timers in them are no plain numbers, and recurring timers are marked: such a state stays as it is."""
    if not all(place[1] == 0 for place in _events(state)):
        return False
    actions = [(timer, timer.payload) for timer in state.timers.live()]
    if any(timer.recurring for timer, action in actions if not isinstance(action, Tick)):
        return False
    ticks = [(timer, action) for timer, action in actions if isinstance(action, Tick)]
    return all(is_known(group.situations[action.situation], action.lifespan, timer) for timer, action in ticks)


def _is_timed(situation: SituationProgram) -> bool:
    """Has it timers, and no candidates?"""
    return situation.behaviour.delays or situation.behaviour.ticks


def _spans(state: SituationState) -> list[Lifespan]:
    spans = [span for by_key in state.open for spans in by_key.values() for span in spans]
    return sorted(spans, key=lambda span: (span.place, span.definition))


def _events(state: SituationState) -> dict[Place, Event]:
    """All events that the state refers to, by place; a startup has a place but no event."""
    found: dict[Place, Event] = {}
    for span in _spans(state):
        found[span.place] = span.event or Event("", span.opened, span.opened, None, {}, (), place=span.place)
    for span in _spans(state):
        for content in span.contents.values():
            for partition in content.partitions.values():
                found.update((event.place, event) for events in partition.candidates for event in events)
                for timer in partition.timers:
                    found.update((event.place, event) for _, event in timer.payload.selection)
            for delayed in content.delayed:
                found.update((event.place, event) for _, event in delayed.selection)
    return found


class Loader:
    """An interpreter's state as tables."""

    def __init__(self, program: Program, state: SituationState) -> None:
        self.program = program
        self.state = state
        found = _events(state)
        places = sorted(found)
        self.refs = {place: ref for ref, place in enumerate(places)}
        self.tables = Tables(program)
        self.candidates: list[tuple[int, int, int]] = []  # operand, cell, ref
        if places:
            self._add_events(table_of([found[place] for place in places]))

    def _add_events(self, table: EventTable) -> None:
        self.tables.reserve_events(len(table))
        note_events(self.program, self.tables, table, types_of(self.program, table), 0)
        self.tables.add_events(table)

    def load(self) -> Tables:
        tables = self.tables
        self._count()
        spans = _spans(self.state)
        if not spans:
            return tables
        numbers = tables.spans.add(len(spans))
        for number, span in zip(numbers.tolist(), spans, strict=True):
            (key,) = tables.key_rows(span.definition, [span.key])
            due = at.NEVER if span.due is None else span.due
            initiator = -1 if span.initiator is None else span.initiator
            row = (span.definition, key, self.refs[span.place], due, initiator)
            tables.spans.rows[number, at.SPAN.definition : at.SPAN.definition + len(row)] = row
        partitions = []
        for number, span in zip(numbers.tolist(), spans, strict=True):
            for situation, content in span.contents.items():
                partitions += self._content(self.program.group.situations[situation], number, span, content)
        self._records(partitions)
        tables.link()
        return tables

    def _content(
        self, situation: SituationProgram, span: int, of: Lifespan, content: Content
    ) -> list[tuple[int, int, int, Partition]]:
        """Timers and what is held are noted at once; partitions are returned, with where they belong."""
        found = []
        for key, partition in content.partitions.items():
            cell = self._cell(situation, span, key)
            seen = self.tables.cells.rows[cell, at.CELL.seen]
            self.tables.cells.rows[cell, at.CELL.seen] = max(seen, self.refs[of.place] + 1)
            if not _is_timed(situation):
                found.append((span, situation.number, cell, partition))
            for timer in partition.timers:
                if not timer.cancelled:
                    self._timer(timer, span, cell)
        if content.tick is not None and not content.tick.cancelled:
            self._tick(situation, content.tick, span, of)
        for delayed in content.delayed:
            self._held(situation, span, delayed)
        return found

    def _cell(self, situation: SituationProgram, span: int, local: Key) -> int:
        key = int(self.tables.spans.rows[span, at.SPAN.key])
        if situation.local_key.size:
            return self.tables.cell_rows(situation.number, [(key, local)])[0]
        return int(self.tables.keys.rows[key, at.KEY.parts + self.program.among[situation.number]])

    def _timer(self, timer: Timer, span: int, cell: int) -> None:
        action = timer.payload
        ((operand, event),) = action.selection
        self._add_timer(span, action.situation, cell, operand, self.refs[event.place], timer.due, timer.place[2][-2])

    def _tick(self, situation: SituationProgram, timer: Timer, span: int, of: Lifespan) -> None:
        which = (timer.due - of.opened) // situation.operator.interval
        cell, opened, number = self._cell(situation, span, ()), self.refs[of.place], first_number(timer.place)
        self._add_timer(span, situation.number, cell, which, opened, timer.due, number)

    def _add_timer(self, *row: int) -> None:
        (number,) = self.tables.timers.add(1)
        self.tables.timers.rows[number, at.TIMER.span : at.TIMER.span + len(row)] = row

    def _held(self, situation: SituationProgram, span: int, delayed: Delayed) -> None:
        tables = self.tables
        (number,) = tables.held.add(1)
        first, more = tables.chosen, [(operand, self.refs[event.place]) for operand, event in delayed.selection]
        tables.held_events = np.concatenate((tables.held_events, np.array(more, np.int64).reshape(-1, 2)))
        tables.chosen += len(more)
        row = (span, situation.number, self._cell(situation, span, delayed.key), first, tables.chosen)
        tables.held.rows[number, at.WAITING.span : at.WAITING.span + len(row)] = row

    def _records(self, partitions: list[tuple[int, int, int, Partition]]) -> None:
        """The candidates of all partitions of a cell together; what one lacks after its first, it has consumed."""
        tables, bits, entries = self.tables, [0], []
        for cell, group in groupby(sorted(partitions, key=lambda p: (p[2], p[0])), key=lambda p: p[2]):
            some = list(group)
            operands = len(some[0][3].candidates)
            lists = [[[self.refs[e.place] for e in p.candidates[n]] for n in range(operands)] for *_, p in some]
            streams = [sorted({ref for own in lists for ref in own[n]}) for n in range(operands)]
            for operand, stream in enumerate(streams):
                column = at.CELL.parts + operand * at.STREAM.width
                tables.cells.rows[cell, column + at.STREAM.filled] = len(stream)
                entries += [(operand, cell, position, ref) for position, ref in enumerate(stream)]
            for (span, situation, _, partition), own in zip(some, lists, strict=True):
                (record,) = tables.records.add(1)
                row = tables.records.rows[record]
                row[at.RECORD.span : at.RECORD.span + 4] = span, situation, cell, partition.done
                for operand, (stream, refs) in enumerate(zip(streams, own, strict=True)):
                    part = row[at.RECORD.parts + operand * at.TAKEN.width :][: at.TAKEN.width]
                    self._take(part, stream, refs, bits)
        flat = np.array(sorted(entries), np.int64).reshape(-1, 4)
        tables.put_streams(tables.cells.live(), flat[:, 1], flat[:, 0], flat[:, 2], flat[:, 3])
        tables.pool = np.array(bits, np.uint64).view(np.int64)
        tables.pooled = len(bits)

    def _take(self, part: Any, stream: list[int], refs: list[int], bits: list[int]) -> None:
        start = stream.index(refs[0]) if refs else len(stream)
        part[:] = start, -1, -1, 0
        present = set(refs)
        lacking = [n for n, ref in enumerate(stream[start:]) if ref not in present]
        if lacking:
            words = [0] * (1 + lacking[-1] // 64)
            for n in lacking:
                words[n >> 6] |= 1 << (n & 63)
            part[:] = start, len(bits), start, len(words)
            bits += words

    def _count(self) -> None:
        tables = self.tables
        for name, rows, at_column, parts in (
            ("candidates", tables.situations, at.SITUATION.candidates, self.state.situations),
            ("detections", tables.situations, at.SITUATION.detections, self.state.situations),
            ("initiated", tables.lifespans, at.LIFESPAN.initiated, self.state.lifespans),
            ("terminated", tables.lifespans, at.LIFESPAN.terminated, self.state.lifespans),
        ):
            rows[:, at_column] = [part[name] for part in parts]
        both = (*self.state.situations, *self.state.lifespans)
        tables.conditions, tables.accesses = (sum(counter[name] for counter in both) for name in WORK)


def of_tables(
    situations: Mapping[int, SituationProgram], lifespans: Sequence[int], base: bytes, later: Sequence[bytes]
) -> tuple[Group, SituationState]:
    """The interpreter's state of some situations, by their numbers in the tables; and a group of these alone."""
    group = Group([situations[number].detector for number in sorted(situations)])
    program = Program(group)
    relations = decode(at.SHAPES, KIND, base, *later)
    tables = load(program, of_some(relations, program, sorted(situations), lifespans))
    counts = [Counter[str]() for _ in group.situations], [Counter[str]() for _ in group.lifespans]
    state = SituationState([{} for _ in group.lifespans], set(), False, Timers(), *counts)
    return group, Saver(tables, state).save()


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
        spans = {number: self._span(rows[number].tolist()) for number in live.tolist()}
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

    def _span(self, row: list[int]) -> Lifespan:
        d, opened = row[at.SPAN.definition], self.events[row[at.SPAN.opened]]
        lifespan, now = self.group.lifespans[d], opened.place[0]
        span = Lifespan(d, self.tables.keys.values[row[at.SPAN.key]], opened.place, now)
        if row[at.SPAN.initiator] >= 0:
            span.initiator, span.event = row[at.SPAN.initiator], opened
        if row[at.SPAN.due] != at.NEVER:
            span.due = row[at.SPAN.due]
            place = timer_place(span.due, opened.place, lifespan.order, 0)
            span.expiration = self.state.timers.add(Timer(place, Expire(span)))
        span.contents = {s.number: fresh_content(s) if _is_timed(s) else Content() for s in lifespan.situations}
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
    for counter, row in zip(state.situations, tables.situations.tolist(), strict=True):
        _set(counter, candidates=row[at.SITUATION.candidates], detections=row[at.SITUATION.detections])
    for counter, row in zip(state.lifespans, tables.lifespans.tolist(), strict=True):
        _set(counter, initiated=row[at.LIFESPAN.initiated], terminated=row[at.LIFESPAN.terminated])
    for name in WORK:  # the loop does not tell whose work it is
        done = sum(counter[name] for counter in (*state.situations, *state.lifespans))
        state.situations[0][name] += getattr(tables, name) - done


def _set(counter: Counter[str], **numbers: int) -> None:
    for name, number in numbers.items():
        counter[name] = number
