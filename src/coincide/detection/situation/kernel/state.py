"""The state between two steps of the compiled loop: numbers only, what is over left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.consumption import compacted_pool
from coincide.detection.situation.kernel.store import nothing_kept
from coincide.detection.situation.kernel.tables import Program
from coincide.detection.situation.state import Key
from coincide.model.table import EventTable

if TYPE_CHECKING:
    from coincide.detection.situation.kernel.rows import Prepared

Cell = tuple[int, Key]
"""A key of a lifespan, by its number, and a local key."""


@dataclass
class Counters:
    candidates: Any
    detections: Any
    initiated: Any
    terminated: Any
    conditions: int
    accesses: int


@dataclass
class Compact:
    """Spans in the order of opening, columns as in the loop; records in the order of spans, which they refer to by number."""

    kept: EventTable
    spans: Any
    records: Any
    pool: Any
    timers: Any  # of `after`, by situation and due time
    held: Any  # in the order in which they were made
    held_events: Any
    streams: list[tuple[Any, Any]]  # for each operand: cells and refs
    keys: list[list[Key]]
    cells: list[list[Cell]]  # of situations with a local key
    seen: list[Any]
    counters: Counters

    @property
    def next_due(self) -> int | None:
        due = min(self.spans[:, at.DUE].min(initial=at.NEVER), self.timers[:, at.DUE_AT].min(initial=at.NEVER))
        return int(due) if due != at.NEVER else None


def empty(program: Program, counters: Counters) -> Compact:
    group = program.group
    nothing = np.zeros(0, np.int64)
    return Compact(
        nothing_kept(),
        np.zeros((0, at.SPAN_WIDTH), np.int64),
        np.zeros((0, program.record_width), np.int64),
        np.zeros(16, np.int64),
        np.zeros((0, at.TIMER_WIDTH), np.int64),
        np.zeros((0, at.HELD_WIDTH), np.int64),
        np.zeros((0, 2), np.int64),
        [(nothing, nothing) for _ in program.operand_list],
        [[] for _ in group.lifespans],
        [[] for _ in group.situations],
        [nothing for _ in group.situations],
        counters,
    )


def unpack(program: Program, state: Compact, prepared: Prepared) -> at.World:
    """The loop's world, with room for what is to come; lists are linked there."""
    counts = np.zeros(at.COUNTS, np.int64)
    counts[[at.FREE_SPAN, at.FREE_RECORD, at.FREE_TIMER]] = -1
    counts[at.RECORD_COUNT], counts[at.TIMER_COUNT] = len(state.records), len(state.timers)
    counts[at.HELD_COUNT], counts[at.HELD_EVENTS] = len(state.held), len(state.held_events)
    counts[at.POOL] = len(state.pool)
    counts[at.FIRST_REF] = prepared.first
    counts[at.TYPES] = len(program.events)
    records = np.empty((len(state.records) + 16, program.record_width), np.int64)
    records[: len(state.records)] = state.records
    spans = np.empty((len(state.spans) + prepared.openings, at.SPAN_WIDTH), np.int64)
    lifespans, situations, operands = program.lifespans.copy(), program.situations.copy(), program.operands.copy()
    lifespans[:, at.KEY_BASE], situations[:, at.CELL_BASE] = prepared.key_base, prepared.cell_base
    operands[:, at.STREAM_BASE] = prepared.stream_base
    lifespans[:, [at.QUEUE_FIRST, at.QUEUE_LAST]] = -1
    counters = state.counters
    lifespans[:, at.INITIATED], lifespans[:, at.TERMINATED] = counters.initiated, counters.terminated
    situations[:, at.CANDIDATES], situations[:, at.DETECTIONS] = counters.candidates, counters.detections
    return at.World(
        lifespans, program.roles, situations, operands, program.conjuncts, program.lists, program.list_starts,
        prepared.events(), prepared.of_lifespan, prepared.of_situation, prepared.keeps, prepared.values,
        prepared.ranges, prepared.equal, prepared.streams, prepared.stream,
        _keys(prepared), _cells(state, prepared), spans, counts,
        np.full(len(lifespans), -1, np.int64), np.empty((at.SCRATCH_WIDTH, 1 + len(operands)), np.int64),
        np.empty((16, 1), np.int64), records, state.pool, state.timers, state.held, state.held_events,
        *(np.empty((64, width), np.int64) for width in (at.MADE_WIDTH, 2, program.record_width)),
    )  # fmt: skip


def _keys(prepared: Prepared) -> Any:
    keys = np.full((sum(prepared.key_counts), 3), -1, np.int64)
    keys[:, at.OPEN] = 0
    return keys


def _cells(state: Compact, prepared: Prepared) -> Any:
    cells = np.full((sum(prepared.cell_counts), 5), -1, np.int64)
    cells[:, [at.SEEN, at.WAITING]] = 0
    for base, some in zip(prepared.cell_base, state.seen, strict=True):
        cells[base : base + len(some), at.SEEN] = some
    cells[:, at.RANK] = prepared.ranks()
    return cells


def pack(program: Program, state: Compact, prepared: Prepared, world: at.World) -> Compact:
    """What the loop leaves, without what nobody can ask for any more."""
    return _Packer(program, state.counters, prepared, world).packed()


class _Packer:
    def __init__(self, program: Program, before: Counters, prepared: Prepared, world: at.World) -> None:
        self.program = program
        self.before = before
        self.prepared = prepared
        self.world = world
        spans = world.spans[: world.counts[at.SPANS]]
        live = np.flatnonzero(spans[:, at.DEFINITION] >= 0)
        live = live[np.lexsort((spans[live, at.DEFINITION], spans[live, at.OPENED]))]
        numbers = np.full(len(spans), -1, np.int64)
        numbers[live] = np.arange(len(live))
        self.spans = spans[live]
        records = world.records[: world.counts[at.RECORD_COUNT]]
        records = records[records[:, at.SPAN] >= 0]
        records[:, at.SPAN] = numbers[records[:, at.SPAN]]
        self.records = records[np.argsort(records[:, at.SPAN], kind="stable")]
        self.timers = self._timers(spans, numbers)
        self.held, self.held_events = self._held(numbers)

    def _timers(self, spans: Any, numbers: Any) -> Any:
        """Those that still wait, each situation's by due time."""
        timers = self.world.timers[: self.world.counts[at.TIMER_COUNT]]
        timers = timers[timers[:, at.OF_SPAN] >= 0]
        own = spans[timers[:, at.OF_SPAN]]
        timers = timers[(own[:, at.DEFINITION] >= 0) & (own[:, at.OPENED] == timers[:, at.SPAN_OPENED])]
        timers[:, at.OF_SPAN] = numbers[timers[:, at.OF_SPAN]]
        keys = (at.SET_AS, at.EVENT, at.DUE_AT, at.TIMER_SITUATION)
        return timers[np.lexsort([timers[:, key] for key in keys])]

    def _held(self, numbers: Any) -> tuple[Any, Any]:
        held = self.world.held[: self.world.counts[at.HELD_COUNT]]
        held = held[held[:, at.HELD_SPAN] >= 0]
        held[:, at.HELD_SPAN] = numbers[held[:, at.HELD_SPAN]]
        sizes = held[:, at.HELD_TO] - held[:, at.HELD_FROM]
        ends = np.cumsum(sizes)
        flat = np.repeat(held[:, at.HELD_FROM] - ends + sizes, sizes) + np.arange(sizes.sum())
        held[:, at.HELD_FROM], held[:, at.HELD_TO] = ends - sizes, ends
        return held, self.world.held_events[flat]

    def packed(self) -> Compact:
        keys = [self._keys(d) for d in range(len(self.prepared.keys))]
        cells = [self._cells(s) for s in range(len(self.prepared.cells))]
        streams = [self._stream(o) for o in range(len(self.program.operand_list))]
        others = (self.spans[:, at.OPENED], self.timers[:, at.EVENT], self.held_events[:, 1])
        refs = np.unique(np.concatenate([*others, *(refs for _, refs in streams)]))
        kept_streams = []
        for (situation, _), (of_cell, some) in zip(self.program.operand_list, streams, strict=True):
            kept_streams.append((cells[situation.number][1][of_cell], np.searchsorted(refs, some)))
        seen = []
        for s, (_, numbers) in enumerate(cells):
            base = self.prepared.cell_base[s]
            all_seen = self.world.cells[base : base + len(numbers), at.SEEN]
            seen.append(np.searchsorted(refs, all_seen[numbers >= 0]))
        self._renumber(keys, cells, refs)
        pool = compacted_pool(self.records, self.world.pool)
        situations, lifespans = self.world.situations, self.world.lifespans
        counters = Counters(
            situations[:, at.CANDIDATES].copy(),
            situations[:, at.DETECTIONS].copy(),
            lifespans[:, at.INITIATED].copy(),
            lifespans[:, at.TERMINATED].copy(),
            *self._work(),
        )
        kept = self.prepared.store.keep(refs)
        names = [[key for key, n in known.items() if keys[d][1][n] >= 0] for d, known in enumerate(self.prepared.keys)]
        used = [
            [(int(keys[s.lifespan][1][g]), local) for (g, local), n in known.items() if cells[s.number][1][n] >= 0]
            for s, known in zip(self.program.group.situations, self.prepared.cells, strict=True)
        ]
        return Compact(
            kept,
            self.spans,
            self.records,
            pool,
            self.timers,
            self.held,
            self.held_events,
            kept_streams,
            names,
            used,
            seen,
            counters,
        )

    def _work(self) -> tuple[int, int]:
        """Conditions tested and attributes read, from the beginning: over columns, in the loop, for detections."""
        before, tested = self.before, int(self.world.counts[at.CONDITIONS])
        made = self.world.situations[:, at.DETECTIONS] - before.detections
        read = sum(int(n) * s.attribute_cost for n, s in zip(made, self.program.group.situations, strict=True))
        conditions = before.conditions + self.prepared.conditions + tested
        return conditions, before.accesses + self.prepared.accesses + 2 * tested + read

    def _keys(self, d: int) -> tuple[int, Any]:
        """Keys of lifespans that are open, numbered anew in their old order."""
        used = np.zeros(self.prepared.key_counts[d], np.bool_)
        used[self.spans[self.spans[:, at.DEFINITION] == d, at.KEY]] = True
        return int(used.sum()), np.where(used, np.cumsum(used) - 1, -1)

    def _cells(self, s: int) -> tuple[int, Any]:
        situation = self.program.group.situations[s]
        if not situation.local_key.size:
            return self._keys(situation.lifespan)
        used = np.zeros(self.prepared.cell_counts[s], np.bool_)
        used[self.records[self.records[:, at.SITUATION] == s, at.CELL]] = True
        used[self.timers[self.timers[:, at.TIMER_SITUATION] == s, at.TIMER_CELL]] = True
        used[self.held[self.held[:, at.HELD_SITUATION] == s, at.HELD_CELL]] = True
        return int(used.sum()), np.where(used, np.cumsum(used) - 1, -1)

    def _stream(self, o: int) -> tuple[Any, Any]:
        """The part of a stream that some record can still take from; starts are moved accordingly."""
        situation, number = self.program.operand_list[o]
        base, size = self.prepared.stream_base[o], self.prepared.cell_counts[situation.number]
        starts, filled = self.world.streams[base : base + size, [at.FROM, at.FILLED]].T
        column = at.OPS + at.PER_OP * number
        own = np.flatnonzero(self.records[:, at.SITUATION] == situation.number)
        cells = self.records[own, at.CELL]
        done = self.records[own, at.DONE] == 1
        first = np.where(done, filled[cells], self.records[own, column + at.START])
        self.records[own[done], column + at.BITS] = -1
        kept = self._kept(number in situation.flag_operands, starts, filled, cells, first)
        moved = np.searchsorted(kept, starts[cells] + first) - np.searchsorted(kept, starts[cells])
        self.records[own, column + at.BITS_FROM] += moved - first
        self.records[own, column + at.START] = moved
        of_cell = np.searchsorted(starts, kept, side="right") - 1  # of cells that begin alike, all but the last are empty
        return of_cell, self.prepared.stream[kept]

    def _kept(self, flag: bool, starts: Any, filled: Any, cells: Any, first: Any) -> Any:
        """Positions in all streams. Of a flag (`not`) only the first candidate of each record matters."""
        waiting = first < filled[cells]
        if flag:
            return np.unique(starts[cells[waiting]] + first[waiting])
        lowest = filled.copy()
        np.minimum.at(lowest, cells, first)
        sizes = filled - lowest
        flat = np.repeat(starts + lowest - np.cumsum(sizes) + sizes, sizes)
        return flat + np.arange(len(flat))

    def _renumber(self, keys: list[tuple[int, Any]], cells: list[tuple[int, Any]], refs: Any) -> None:
        for d, (_, numbers) in enumerate(keys):
            own = self.spans[:, at.DEFINITION] == d
            self.spans[own, at.KEY] = numbers[self.spans[own, at.KEY]]
        for s, (_, numbers) in enumerate(cells):
            own = self.records[:, at.SITUATION] == s
            self.records[own, at.CELL] = numbers[self.records[own, at.CELL]]
            own = self.timers[:, at.TIMER_SITUATION] == s
            self.timers[own, at.TIMER_CELL] = numbers[self.timers[own, at.TIMER_CELL]]
            own = self.held[:, at.HELD_SITUATION] == s
            self.held[own, at.HELD_CELL] = numbers[self.held[own, at.HELD_CELL]]
        self.spans[:, at.OPENED] = np.searchsorted(refs, self.spans[:, at.OPENED])
        for column in (at.EVENT, at.SPAN_OPENED):
            self.timers[:, column] = np.searchsorted(refs, self.timers[:, column])
        self.held_events[:, 1] = np.searchsorted(refs, self.held_events[:, 1])
