"""The compiled loop's state from and to the interpreter's: one encoding serves both tiers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from coincide.detection.eventwise import Timer
from coincide.detection.situation.interpreter import fitted
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.state import Compact, Counters, empty
from coincide.detection.situation.kernel.tables import Program
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
    fresh_content,
    partition_in,
)
from coincide.model.event import Event, Place, timer_place
from coincide.model.table import table_of

WORK = ("conditions", "accesses")


def loadable(state: SituationState) -> bool:
    """Places with timers in them are no plain numbers, and recurring timers are marked: such a state stays as it is."""
    if any(timer.recurring for timer in state.timers.live()):
        return False
    return all(place[1] == 0 for place in _events(state))


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


def counters(group: Group, state: SituationState) -> Counters:
    def of(parts: list[Counter[str]], name: str) -> Any:
        return np.array([part[name] for part in parts], np.int64)

    return Counters(
        of(state.situations, "candidates"),
        of(state.situations, "detections"),
        of(state.lifespans, "initiated"),
        of(state.lifespans, "terminated"),
        *(sum(counter[name] for counter in (*state.situations, *state.lifespans)) for name in WORK),
    )


class Loader:
    """An interpreter's state as numbers."""

    def __init__(self, program: Program, state: SituationState) -> None:
        self.program = program
        self.state = state
        found = _events(state)
        self.places = sorted(found)
        self.refs = {place: ref for ref, place in enumerate(self.places)}
        self.events = [found[place] for place in self.places]
        self.compact = empty(program, counters(program.group, state))
        self.records: list[list[int]] = []
        self.bits: list[int] = []
        self.timers: list[list[int]] = []
        self.cells: list[dict[Any, int]] = []  # by situation

    def load(self) -> Compact:
        compact, spans = self.compact, _spans(self.state)
        if not spans:
            return compact
        compact.kept = table_of(self.events)
        keys: list[dict[Any, int]] = [{} for _ in self.program.group.lifespans]
        compact.spans = np.full((len(spans), at.SPAN_WIDTH), -1, np.int64)
        for number, span in enumerate(spans):
            key = keys[span.definition].setdefault(span.key, len(keys[span.definition]))
            due = at.NEVER if span.due is None else span.due
            initiator = -1 if span.initiator is None else span.initiator
            compact.spans[number, :5] = (span.definition, key, self.refs[span.place], due, initiator)
        compact.keys = [list(known) for known in keys]
        for situation in self.program.group.situations:
            self._situation(situation, spans, keys[situation.lifespan])
        self.records.sort(key=lambda record: record[0])
        compact.records = np.array(self.records, np.int64).reshape(-1, self.program.record_width)
        compact.pool = np.array([*self.bits, 0], np.int64)
        self._held(spans)
        compact.timers = np.array(sorted(self.timers, key=_in_queue), np.int64).reshape(-1, at.TIMER_WIDTH)
        return compact

    def _situation(self, situation: SituationProgram, spans: list[Lifespan], keys: dict[Any, int]) -> None:
        cells: dict[Any, int] = {} if situation.local_key.size else {(n, ()): n for n in keys.values()}
        held: list[tuple[int, int, int, Partition]] = []
        for number, span in enumerate(spans):
            if span.definition == situation.lifespan:
                for key, partition in span.contents[situation.number].partitions.items():
                    cell = cells.setdefault((keys[span.key], key), len(cells))
                    held.append((number, cell, self.refs[span.place], partition))
                for delayed in span.contents[situation.number].delayed:
                    cells.setdefault((keys[span.key], delayed.key), len(cells))
        seen = np.zeros(len(cells), np.int64)
        for _, cell, opened, _ in held:
            seen[cell] = max(seen[cell], opened + 1)
        if situation.local_key.size:
            self.compact.cells[situation.number] = list(cells)
            self.compact.seen[situation.number] = seen
        self.cells.append(cells)
        if situation.behaviour.delays:
            self.timers += [self._timer(timer, *entry) for *entry, partition in held for timer in partition.timers]
            return
        records = [self._record(number, situation.number, cell, partition) for number, cell, _, partition in held]
        first = self.program.first_operand[situation.number]
        for operand in range(len(situation.operands)):
            lists = [(cell, [self.refs[e.place] for e in p.candidates[operand]]) for _, cell, _, p in held]
            self.compact.streams[first + operand] = self._stream(records, at.OPS + at.PER_OP * operand, lists)
        self.records += records

    def _held(self, spans: list[Lifespan]) -> None:
        rows: list[list[int]] = []
        events: list[tuple[int, int]] = []
        for number, span in enumerate(spans):
            key = int(self.compact.spans[number, at.KEY])
            for situation, content in span.contents.items():
                for delayed in content.delayed:
                    cell, first = self.cells[situation][key, delayed.key], len(events)
                    events += [(operand, self.refs[event.place]) for operand, event in delayed.selection]
                    rows.append([number, situation, cell, first, len(events), -1, -1])
        self.compact.held = np.array(rows, np.int64).reshape(-1, at.HELD_WIDTH)
        self.compact.held_events = np.array(events, np.int64).reshape(-1, 2)

    def _timer(self, timer: Timer, span: int, cell: int, opened: int) -> list[int]:
        row, action = [-1] * at.TIMER_WIDTH, timer.payload
        ((operand, event),) = action.selection
        row[at.DUE_AT], row[at.OF_SPAN], row[at.SPAN_OPENED] = timer.due, -1 if timer.cancelled else span, opened
        row[at.TIMER_SITUATION], row[at.TIMER_CELL] = action.situation, cell
        row[at.OPERAND], row[at.EVENT], row[at.SET_AS] = operand, self.refs[event.place], timer.place[2][-2]
        return row

    def _record(self, span: int, situation: int, cell: int, partition: Partition) -> list[int]:
        record = [-1] * self.program.record_width
        record[at.SPAN], record[at.SITUATION], record[at.CELL], record[at.DONE] = span, situation, cell, partition.done
        return record

    def _stream(self, records: list[list[int]], column: int, lists: list[tuple[int, list[int]]]) -> tuple[Any, Any]:
        """The candidates of all records of a cell together; what a record lacks after its first one, it has consumed."""
        merged: dict[int, list[int]] = {}
        for cell, refs in lists:
            merged.setdefault(cell, []).extend(refs)
        united = {cell: sorted(set(refs)) for cell, refs in merged.items()}
        for record, (cell, refs) in zip(records, lists, strict=True):
            stream = united[cell]
            record[column + at.START] = stream.index(refs[0]) if refs else len(stream)
            after = stream[record[column + at.START] :]
            if len(after) > len(refs):
                self._consumed(record, column, after, set(refs))
        pairs = [(cell, ref) for cell, refs in sorted(united.items()) for ref in refs]
        matrix = np.array(pairs, np.int64).reshape(-1, 2)
        return matrix[:, 0], matrix[:, 1]

    def _consumed(self, record: list[int], column: int, after: list[int], present: set[int]) -> None:
        words = np.zeros(1 + len(after) // 64, np.uint64)
        for position, ref in enumerate(after):
            if ref not in present:
                words[position >> 6] |= np.uint64(1 << (position & 63))
        record[column + at.BITS], record[column + at.BITS_FROM], record[column + at.WORDS] = (
            len(self.bits),
            record[column],
            len(words),
        )
        self.bits += words.view(np.int64).tolist()


class Saver:
    """Numbers as the interpreter's state."""

    def __init__(self, program: Program, compact: Compact, state: SituationState) -> None:
        self.group = program.group
        self.program = program
        self.compact = compact
        self.state = state  # what it says of lifespans is replaced
        readers = self.group.readers
        self.events = [fitted(e, readers[e.type]) if e.type in readers else e for e in compact.kept.events()]

    def save(self) -> SituationState:
        state, compact = self.state, self.compact
        state.open = [{} for _ in self.group.lifespans]
        state.timers.heap.clear()
        spans = [self._span(row) for row in compact.spans.tolist()]
        for row in compact.records.tolist():
            span, situation = spans[row[at.SPAN]], self.group.situations[row[at.SITUATION]]
            local = self._local(situation.number, row[at.CELL])
            candidates = [self._candidates(situation, row, n) for n in range(len(situation.operands))]
            partition = Partition(candidates, done=bool(row[at.DONE]))
            span.contents[situation.number].partitions[local] = partition
        for row in compact.timers.tolist():
            self._timer(row, spans[row[at.OF_SPAN]])
        for row in compact.held.tolist():
            events = compact.held_events[row[at.HELD_FROM] : row[at.HELD_TO]].tolist()
            selection = tuple((operand, self.events[ref]) for operand, ref in events)
            delayed = Delayed(self._local(row[at.HELD_SITUATION], row[at.HELD_CELL]), selection)
            spans[row[at.HELD_SPAN]].contents[row[at.HELD_SITUATION]].delayed.append(delayed)
        save_counters(state, compact.counters)
        return state

    def _local(self, situation: int, cell: int) -> Key:
        return self.compact.cells[situation][cell][1] if self.group.situations[situation].local_key.size else ()

    def _timer(self, row: list[int], span: Lifespan) -> None:
        situation, event = self.group.situations[row[at.TIMER_SITUATION]], self.events[row[at.EVENT]]
        key = self._local(situation.number, row[at.TIMER_CELL])
        place = timer_place(row[at.DUE_AT], event.place, situation.order, row[at.SET_AS])
        timer = Timer(place, Passed(span, situation.number, key, ((row[at.OPERAND], event),)))
        partition_in(situation, span.contents[situation.number], key).timers.append(self.state.timers.add(timer))

    def _span(self, row: list[int]) -> Lifespan:
        d, key, opened = row[at.DEFINITION], row[at.KEY], self.events[row[at.OPENED]]
        lifespan, now = self.group.lifespans[d], opened.place[0]
        startup = row[at.INITIATOR] < 0
        span = Lifespan(d, self.compact.keys[d][key], opened.place, now)
        if not startup:
            span.initiator, span.event = row[at.INITIATOR], opened
        if row[at.DUE] != at.NEVER:
            span.due = row[at.DUE]
            place = timer_place(span.due, opened.place, lifespan.order, 0)
            span.expiration = self.state.timers.add(Timer(place, Expire(span)))
        span.contents = {s.number: fresh_content(s) if s.behaviour.delays else Content() for s in lifespan.situations}
        self.state.open[d].setdefault(span.key, []).append(span)
        return span

    def _candidates(self, situation: SituationProgram, row: list[int], number: int) -> list[Event]:
        column = at.OPS + at.PER_OP * number
        cells, refs = self.compact.streams[self.program.first_operand[situation.number] + number]
        first, last = np.searchsorted(cells, [row[at.CELL], row[at.CELL] + 1])
        own = refs[first:last]
        positions = [p for p in range(row[column + at.START], len(own)) if not self._consumed(row, column, p)]
        return [self.events[own[p]] for p in (positions[:1] if number in situation.flag_operands else positions)]

    def _consumed(self, row: list[int], column: int, position: int) -> bool:
        word, bit = divmod(position - row[column + at.BITS_FROM], 64)
        if row[column + at.BITS] < 0 or word >= row[column + at.WORDS]:
            return False
        return bool((int(self.compact.pool[row[column + at.BITS] + word]) >> bit) & 1)


def _in_queue(row: list[int]) -> tuple[int, ...]:
    return row[at.TIMER_SITUATION], row[at.DUE_AT], row[at.EVENT], row[at.SET_AS]


def save_counters(state: SituationState, counters: Counters) -> None:
    for counter, candidates, detections in zip(state.situations, counters.candidates, counters.detections, strict=True):
        counter.update(candidates=int(candidates) - counter["candidates"], detections=int(detections) - counter["detections"])
    for counter, initiated, terminated in zip(state.lifespans, counters.initiated, counters.terminated, strict=True):
        counter.update(initiated=int(initiated) - counter["initiated"], terminated=int(terminated) - counter["terminated"])
    for name in WORK:  # the loop does not tell whose work it is
        done = sum(counter[name] for counter in (*state.situations, *state.lifespans))
        state.situations[0][name] += getattr(counters, name) - done
