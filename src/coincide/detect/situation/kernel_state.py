"""The state between two steps of the compiled loop: numbers only, what is over left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from coincide.detect.situation import kernel_loop as loop
from coincide.detect.situation.kernel_pick import BITS, BITS_FROM, DONE, OPS, PER_OP, START
from coincide.detect.situation.kernel_store import nothing_kept
from coincide.detect.situation.kernel_tables import Program
from coincide.detect.situation.state import Key
from coincide.model.table import EventTable

if TYPE_CHECKING:
    from coincide.detect.situation.kernel_rows import Prepared

Cell = tuple[int, Key]
"""A key of a lifespan, by its number, and a local key."""


@dataclass
class Counters:
    candidates: Any
    detections: Any
    initiated: Any
    terminated: Any


@dataclass
class Compact:
    """Spans in the order of opening, columns as in the loop; records in the order of spans, which they refer to by number."""

    kept: EventTable
    spans: Any
    records: Any
    pool: Any
    streams: list[tuple[Any, Any]]  # for each operand: cells and refs
    keys: list[list[Key]]
    cells: list[list[Cell]]  # of situations with a local key
    seen: list[Any]
    counters: Counters

    @property
    def next_due(self) -> int | None:
        dues = self.spans[:, loop.DUE]
        return int(dues.min()) if len(dues) and dues.min() != loop.NEVER else None


def empty(program: Program, counters: Counters) -> Compact:
    group = program.group
    nothing = np.zeros(0, np.int64)
    return Compact(
        nothing_kept(),
        np.zeros((0, loop.SPAN_WIDTH), np.int64),
        np.zeros((0, program.record_width), np.int64),
        np.zeros(16, np.int64),
        [(nothing, nothing) for _ in program.operands],
        [[] for _ in group.lifespans],
        [[] for _ in group.situations],
        [nothing for _ in group.situations],
        counters,
    )


def unpack(state: Compact, prepared: Prepared) -> tuple[loop.Links, Any, Any, Any]:
    """Links and room for what is to come: (links, spans, records, counts)."""
    keys, cells = sum(prepared.key_counts), sum(prepared.cell_counts)
    lifespans = len(prepared.key_counts)
    counters = state.counters
    seen = np.zeros(cells, np.int64)
    for base, some in zip(prepared.cell_base, state.seen, strict=True):
        seen[base : base + len(some)] = some
    links = loop.Links(
        np.full(keys, -1, np.int64), np.full(keys, -1, np.int64), np.zeros(keys, np.int64),
        np.full(lifespans, -1, np.int64), np.full(lifespans, -1, np.int64),
        np.full(cells, -1, np.int64), np.full(cells, -1, np.int64), seen, prepared.filled,
        counters.candidates, counters.detections, counters.initiated, counters.terminated,
    )  # fmt: skip
    counts = np.zeros(loop.COUNTS, np.int64)
    counts[[loop.FREE_SPAN, loop.FREE_RECORD]] = -1
    openings = int(np.count_nonzero(prepared.initiators))
    spans = np.empty((len(state.spans) + openings, loop.SPAN_WIDTH), np.int64)
    records = np.empty((len(state.records) + 16, state.records.shape[1]), np.int64)
    records[: len(state.records)] = state.records
    counts[loop.RECORD_COUNT] = len(state.records)
    counts[loop.POOL] = len(state.pool)
    loop.relink(prepared.rows, links, state.spans, spans, records, counts)
    return links, spans, records, counts


def pack(program: Program, prepared: Prepared, links: loop.Links, spans: Any, records: Any, pool: Any, counts: Any) -> Compact:
    """What the loop leaves, without what nobody can ask for any more."""
    packer = _Packer(program, prepared, links, spans[: counts[loop.SPANS]], records[: counts[loop.RECORD_COUNT]])
    return packer.packed(pool)


class _Packer:
    def __init__(self, program: Program, prepared: Prepared, links: loop.Links, spans: Any, records: Any) -> None:
        self.program = program
        self.prepared = prepared
        self.links = links
        live = np.flatnonzero(spans[:, loop.DEFINITION] >= 0)
        live = live[np.lexsort((spans[live, loop.DEFINITION], spans[live, loop.OPENED]))]
        numbers = np.full(len(spans), -1, np.int64)
        numbers[live] = np.arange(len(live))
        self.spans = spans[live]
        records = records[records[:, loop.SPAN] >= 0]
        records[:, loop.SPAN] = numbers[records[:, loop.SPAN]]
        self.records = records[np.argsort(records[:, loop.SPAN], kind="stable")]

    def packed(self, pool: Any) -> Compact:
        keys = [self._keys(d) for d in range(len(self.prepared.keys))]
        cells = [self._cells(s) for s in range(len(self.prepared.cells))]
        streams = [self._stream(o) for o in range(len(self.program.operands))]
        refs = np.unique(np.concatenate([self.spans[:, loop.OPENED], *(refs for _, refs in streams)]))
        kept_streams = []
        for (situation, _), (of_cell, some) in zip(self.program.operands, streams, strict=True):
            kept_streams.append((cells[situation.number][1][of_cell], np.searchsorted(refs, some)))
        seen = []
        for s, (_, numbers) in enumerate(cells):
            base = self.prepared.cell_base[s]
            all_seen = self.links.seen[base : base + len(numbers)][numbers >= 0]
            seen.append(np.searchsorted(refs, all_seen))
        self._renumber(keys, cells, refs)
        pool = loop.compacted_pool(self.records, pool)
        links = self.links
        counters = Counters(links.candidates, links.detections, links.initiated, links.terminated)
        kept = self.prepared.store.keep(refs)
        names = [[key for key, n in known.items() if keys[d][1][n] >= 0] for d, known in enumerate(self.prepared.keys)]
        used = [
            [(int(keys[s.lifespan][1][g]), local) for (g, local), n in known.items() if cells[s.number][1][n] >= 0]
            for s, known in zip(self.program.group.situations, self.prepared.cells, strict=True)
        ]
        return Compact(kept, self.spans, self.records, pool, kept_streams, names, used, seen, counters)

    def _keys(self, d: int) -> tuple[int, Any]:
        """Keys of lifespans that are open, numbered anew in their old order."""
        used = np.zeros(self.prepared.key_counts[d], np.bool_)
        used[self.spans[self.spans[:, loop.DEFINITION] == d, loop.KEY]] = True
        return int(used.sum()), np.where(used, np.cumsum(used) - 1, -1)

    def _cells(self, s: int) -> tuple[int, Any]:
        situation = self.program.group.situations[s]
        if not situation.local_key.size:
            return self._keys(situation.lifespan)
        used = np.zeros(self.prepared.cell_counts[s], np.bool_)
        used[self.records[self.records[:, loop.SITUATION] == s, loop.CELL]] = True
        return int(used.sum()), np.where(used, np.cumsum(used) - 1, -1)

    def _stream(self, o: int) -> tuple[Any, Any]:
        """The part of a stream that some record can still take from; starts are moved accordingly."""
        situation, number = self.program.operands[o]
        base, size = self.prepared.stream_base[o], self.prepared.cell_counts[situation.number]
        starts, filled = self.prepared.stream_starts[base : base + size], self.links.filled[base : base + size]
        column = OPS + PER_OP * number
        own = np.flatnonzero(self.records[:, loop.SITUATION] == situation.number)
        cells = self.records[own, loop.CELL]
        done = self.records[own, DONE] == 1
        first = np.where(done, filled[cells], self.records[own, column + START])
        self.records[own[done], column + BITS] = -1
        kept = self._kept(situation.kind == "not", starts, filled, cells, first)
        moved = np.searchsorted(kept, starts[cells] + first) - np.searchsorted(kept, starts[cells])
        self.records[own, column + BITS_FROM] += moved - first
        self.records[own, column + START] = moved
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
            own = self.spans[:, loop.DEFINITION] == d
            self.spans[own, loop.KEY] = numbers[self.spans[own, loop.KEY]]
        for s, (_, numbers) in enumerate(cells):
            own = self.records[:, loop.SITUATION] == s
            self.records[own, loop.CELL] = numbers[self.records[own, loop.CELL]]
        self.spans[:, loop.OPENED] = np.searchsorted(refs, self.spans[:, loop.OPENED])
