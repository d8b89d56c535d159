"""The state between two steps of the compiled loop, which is the tables that it works on (layout.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from coincide.detection.base import Pending
from coincide.detection.columns.known import KeyedTable
from coincide.detection.columns.store import Store
from coincide.detection.columns.tables import FREE, IN_USE, Numbers, Table, distinct, taken
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.consumption import compacted_pool
from coincide.detection.situation.kernel.spans import relink
from coincide.detection.situation.kernel.tables import Program
from coincide.detection.situation.kernel.ticks import Ticks
from coincide.detection.situation.kernel.trimming import trim_all
from coincide.detection.situation.objects import stored_fields
from coincide.detection.situation.state import Key
from coincide.model.column import Column
from coincide.model.table import EventTable

if TYPE_CHECKING:
    from coincide.detection.situation.kernel.rows import Prepared

SPARE = 4096
"""Events that nobody refers to may be so many more than those that somebody does, before they go."""


class Tables:
    """All that a group of situations keeps. Rows that a step has freed are used again; events that nobody refers to go when there
    are as many of them as of others."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.heads = np.array([[0, -1, 0, 1]] * len(at.TABLES), np.int64)
        own = self.heads[at.OF.keys]
        self.keys = KeyedTable(at.KEYS, program.most_cells, head=own, prefixed=len(program.group.lifespans) > 1)
        widths = (program.most_operands, 0, program.most_operands, 0, 0)
        others = zip(at.TABLES[1:], widths, self.heads[1:], strict=True)
        self.cells, self.spans, self.records, self.timers, self.held = (
            Table(shape, size, head=head) for shape, size, head in others
        )
        self.all = self.keys, self.cells, self.spans, self.records, self.timers, self.held
        self.lifespans, self.situations = program.lifespans.copy(), program.situations.copy()  # queues begin there
        several = max(len(program.lifespans), len(program.situations), len(program.detectors))
        self.counted = np.zeros((several, at.COUNTED.width), np.int64)
        self.store = Store(stored_fields(program.group))
        self.cell_numbers: list[dict[tuple[int, Key], int]] = [{} for _ in program.group.situations]  # of those with a local key
        self.keeps = np.zeros((len(program.group.situations), SPARE), np.int64)
        self.values = np.zeros((len(program.leaves), SPARE))
        self.ranges = np.zeros((2 * len(program.indexes), SPARE), np.int64)
        self.texts: dict[str, float] = {}
        self.textual: set[int] = set()  # columns of values that are texts
        self.numeric: set[int] = set()  # columns of values that are numbers
        self.numbers: Column | None = None  # where some numbers are no doubles: all of them, values are their ranks (ranks.py)
        self.stream = np.zeros(16, np.int64)
        self.pool = np.zeros(16, np.int64)
        self.held_events = np.zeros((0, 2), np.int64)
        self.streamed = self.pooled = self.chosen = 0  # how much of these is used
        self.conditions = self.accesses = 0
        self.steps = 0
        self.ticks = Ticks()
        self.before = (0, 0, 0, 0)  # events, and how much of these was used, when what nobody refers to went last
        self.written = 0  # events below this have been written, if somebody referred to them
        self.renewed = True  # has all changed since the state was written last?

    @property
    def next_due(self) -> int | None:
        spans = self.lifespans[:, at.LIFESPAN.queue_first]
        timers = self.situations[:, at.SITUATION.timers_first]
        due = np.concatenate(
            (self.spans.rows[spans[spans >= 0], at.SPAN.due], self.timers.rows[timers[timers >= 0], at.TIMER.due])
        )
        return int(due.min()) if len(due) else None

    def pending(self) -> Pending | None:
        due = self.next_due
        return None if due is None else Pending(due, self._waits)

    @property
    def _waits(self) -> bool:
        """For more than ticks that come again and again?"""
        again = (self.situations[:, at.SITUATION.kind] == at.TICKING) & (self.situations[:, at.SITUATION.once] == 0)
        timers = self.situations[~again, at.SITUATION.timers_first]
        return bool((self.lifespans[:, at.LIFESPAN.queue_first] >= 0).any() or (timers >= 0).any())

    # Keys and cells.

    def key_rows(self, d: int, keys: Sequence[Key]) -> Numbers:
        """The rows of these keys, each of which is there once."""
        found, new = self.keys.with_keys(self.named(d, keys))
        if len(new):
            rows = self.keys.rows
            rows[new, at.KEY.definition :] = -1
            rows[new, at.KEY.definition], rows[new, at.KEY.open] = d, 0
            whose: Any = [key[0] for key in self.keys.values_at(new)] if self.program.shared else 0
            rows[new, at.KEY.whose] = whose
            for situation in self.program.group.lifespans[d].situations:
                if not situation.local_key.size:
                    cells = self._new_cells(situation.number, new, [()] * len(new))
                    self.keys.rows[new, at.KEY.parts + self.program.among[situation.number]] = cells
        return found

    def named(self, d: int, keys: Sequence[Key]) -> Sequence[Key]:
        """Keys of a lifespan among those of others."""
        return [(float(d), *key) for key in keys] if self.keys.prefixed else keys

    def names(self, keys: Numbers) -> list[Key]:
        """The values of keys."""
        return [key[self.program.shared :] for key in self.keys.values_at(keys)]

    def cell_rows(self, s: int, cells: Sequence[tuple[int, Key]]) -> list[int]:
        """The rows of these cells of a situation with a local key; keys by their rows."""
        known = self.cell_numbers[s]
        new = [cell for cell in dict.fromkeys(cells) if cell not in known]
        if new:
            numbers = self._new_cells(s, np.array([key for key, _ in new], np.int64), [local for _, local in new])
            known.update(zip(new, numbers.tolist(), strict=True))
            if self.situations[s, at.SITUATION.mode] == at.DEFERRED:
                self.rank(s)
        return [known[cell] for cell in cells]

    def _new_cells(self, s: int, keys: Numbers, local: Sequence[Key]) -> Numbers:
        """Positions in streams go on where a cell before has left them: so they never mean two things."""
        numbers = self.cells.add(len(keys))
        rows = self.cells.rows
        rows[numbers, at.CELL.situation], rows[numbers, at.CELL.key], rows[numbers, at.CELL.seen] = s, keys, 0
        rows[numbers, at.CELL.ready_first], rows[numbers, at.CELL.ready_last] = -1, -1
        rows[numbers, at.CELL.rank : at.CELL.parts] = 0
        for operand in range(self.program.most_operands):
            column = at.CELL.parts + operand * at.STREAM.width
            filled = np.maximum(rows[numbers, column + at.STREAM.filled], 0)
            for name in (at.STREAM.filled, at.STREAM.low, at.STREAM.limit, at.STREAM.written):
                rows[numbers, column + name] = filled
            rows[numbers, column + at.STREAM.origin] = 0
            rows[numbers, column + at.STREAM.watched_first] = rows[numbers, column + at.STREAM.watched_last] = -1
        for number, key in zip(numbers.tolist(), local, strict=True):
            self.cells.values[number] = key
        return numbers

    def rank(self, s: int) -> None:
        """The place of each cell in the order of local key values: deferred decisions are made in it."""
        from coincide.detection.situation.state import key_value

        known = self.cell_numbers[s]
        ordered = sorted(known, key=lambda cell: tuple(key_value(part) for part in cell[1]))
        self.cells.rows[[known[cell] for cell in ordered], at.CELL.rank] = np.arange(len(ordered))

    # A step.

    def reserve_events(self, size: int) -> None:
        if size > self.keeps.shape[1]:
            more = (0, 0), (0, 16 + 2 * size - self.keeps.shape[1])
            self.keeps, self.values, self.ranges = np.pad(self.keeps, more), np.pad(self.values, more), np.pad(self.ranges, more)

    def world(self, prepared: Prepared | None) -> at.World:
        program, nothing = self.program, np.zeros(0, np.int64)
        counts = np.zeros(at.COUNT.width, np.int64)
        counts[at.COUNT.pool], counts[at.COUNT.held_events] = self.pooled, self.chosen
        counts[at.COUNT.first_ref], counts[at.COUNT.types], counts[at.COUNT.step] = (
            len(self.store),
            len(program.events),
            self.steps,
        )
        d, s = len(program.lifespans), len(program.situations)
        return at.World(
            self.lifespans, program.roles, self.situations, program.operands, program.conjuncts,
            program.instructions, program.constants, np.empty(len(program.instructions)), program.lists, program.list_starts,
            np.zeros((0, 3), np.int64) if prepared is None else prepared.events(),
            np.zeros((d, 0, 3), np.int64) if prepared is None else prepared.of_lifespan,
            np.zeros((s, 0, 3), np.int64) if prepared is None else prepared.of_situation,
            self.keeps, self.values, self.ranges, nothing if prepared is None else prepared.equal, self.stream,
            self.keys.rows, self.cells.rows, counts, self.heads, self.counted,
            np.full(d, -1, np.int64), np.empty((at.SCRATCH.width, 1 + len(program.operands)), np.int64),
            np.empty((16, 1), np.int64), np.empty((16, 2), np.int64), self.spans.rows, self.records.rows, self.pool,
            self.timers.rows, self.held.rows, self.held_events,
            *(np.empty((64, width), np.int64) for width in (at.MADE.width, 2, max(1, program.most_operands))),
        )  # fmt: skip

    def take(self, world: at.World) -> None:
        """Arrays that may have been replaced."""
        self.spans.rows, self.records.rows, self.timers.rows, self.held.rows = (
            world.spans, world.records, world.timers, world.held,
        )  # fmt: skip
        self.pool, self.held_events, self.stream = world.pool, world.held_events, world.stream
        self.pooled, self.chosen = int(world.counts[at.COUNT.pool]), int(world.counts[at.COUNT.held_events])

    def finish(self, prepared: Prepared, world: at.World, made: Numbers) -> None:
        """After a step: what it has left behind."""
        self.take(world)
        self._count(prepared, world, made)
        idle = world.idle[: world.counts[at.COUNT.idle]]
        cells = np.concatenate((prepared.touched, idle[idle[:, 0] == 1, 1]))
        keys = np.concatenate((prepared.touched_keys, idle[idle[:, 0] == 0, 1]))
        self._free_idle(distinct(cells, len(self.cells)), distinct(keys, len(self.keys)))
        sizes = (len(self.store) + len(prepared.new), self.streamed, self.pooled, self.chosen)
        if any(size > 2 * before + SPARE for size, before in zip(sizes, self.before, strict=True)):
            self._compact(prepared.store)
        elif len(prepared.new):
            self.store.add(prepared.new, np.arange(len(prepared.new)))

    def _count(self, prepared: Prepared, world: at.World, made: Numbers) -> None:
        """Conditions tested and attributes read: over columns, in the loop, for detections."""
        tested = int(world.counts[at.COUNT.conditions])
        costs = np.array([s.attribute_cost for s in self.program.group.situations], np.int64)
        self.conditions += prepared.conditions + tested
        self.accesses += prepared.accesses + 2 * tested + int(costs[made[:, at.MADE.situation]].sum())

    def _free_idle(self, cells: Numbers, keys: Numbers) -> None:
        """Of these, cells that nothing is in, and keys without an open lifespan."""
        rows = self.cells.rows
        local = self.situations[rows[cells, at.CELL.situation], at.SITUATION.local] == 1
        cells = cells[local & (rows[cells, at.CELL.used] == 0) & (rows[cells, FREE] == IN_USE)]
        for cell in cells.tolist():
            del self.cell_numbers[rows[cell, at.CELL.situation]][int(rows[cell, at.CELL.key]), self.cells.values[cell]]
        self.cells.free(cells)
        keys = keys[(self.keys.rows[keys, at.KEY.open] == 0) & (self.keys.rows[keys, FREE] == IN_USE)]
        own = self.keys.rows[keys, at.KEY.parts :].reshape(-1)
        self.cells.free(own[own >= 0])
        self.keys.free(keys)

    # What nobody refers to.

    def streams(self, cells: Numbers, written: bool = False) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """All candidates in these cells: cell, operand, position, ref; `written`: without those that were written."""
        rows = self.cells.rows
        found: list[list[Numbers]] = [[], [], [], []]
        for operand in range(self.program.most_operands):
            column = at.CELL.parts + operand * at.STREAM.width
            low, origin = rows[cells, column + at.STREAM.low], rows[cells, column + at.STREAM.origin]
            if written:
                low = np.maximum(low, rows[cells, column + at.STREAM.written])
            sizes = np.maximum(rows[cells, column + at.STREAM.filled] - low, 0)
            flat = taken(origin + low, sizes)
            found[0].append(np.repeat(cells, sizes))
            found[1].append(np.full(len(flat), operand))
            found[2].append(flat - np.repeat(origin, sizes))
            found[3].append(self.stream[flat])
        of_cell, operands, positions, refs = (np.concatenate([np.zeros(0, np.int64), *some]) for some in found)
        return of_cell, operands, positions, refs

    def choices(self, held: Numbers) -> tuple[Numbers, Numbers]:
        """The candidates of detections that are held back: the rows that they belong to, and operands and refs."""
        first, last = self.held.rows[held, at.WAITING.first], self.held.rows[held, at.WAITING.last]
        flat = taken(first, last - first)
        return np.repeat(held, last - first), self.held_events[flat]

    def _compact(self, store: Store) -> None:
        """Events that somebody refers to, numbered anew; streams, bits and what is held without gaps."""
        self.take(at.World(*trim_all(self.world(None), self.cells.live())))
        spans, timers, held, cells = (t.live() for t in (self.spans, self.timers, self.held, self.cells))
        of_cell, operands, positions, stream = self.streams(cells)
        held = held[np.argsort(self.held.rows[held, at.WAITING.first])]
        of_held, chosen = self.choices(held)
        opened, events = self.spans.rows[spans, at.SPAN.opened], self.timers.rows[timers, at.TIMER.event]
        refs = distinct(np.concatenate((opened, events, chosen[:, 1], stream)), len(store))
        self.spans.rows[spans, at.SPAN.opened] = np.searchsorted(refs, opened)
        self.timers.rows[timers, at.TIMER.event] = np.searchsorted(refs, events)
        self.cells.rows[cells, at.CELL.seen] = np.searchsorted(refs, self.cells.rows[cells, at.CELL.seen])
        self.put_held(held, of_held, np.stack((chosen[:, 0], np.searchsorted(refs, chosen[:, 1])), axis=1))
        self.put_streams(cells, of_cell, operands, positions, np.searchsorted(refs, stream))
        gone = (self.records.rows[: len(self.records), FREE] != IN_USE) | (self.records.column("done") == 1)
        for operand in range(self.program.most_operands):
            self.records.of_part(operand, "bits")[gone] = -1
        self.pool = compacted_pool(self.records.rows[: len(self.records)], self.pool)
        self.pooled = len(self.pool)
        self.keeps[:, : len(refs)], self.values[:, : len(refs)] = self.keeps[:, refs], self.values[:, refs]
        self.store = Store(store.columns, [store.taken(refs)] if len(refs) else [])
        self._forget_texts(len(refs))
        self.before = (len(refs), self.streamed, self.pooled, self.chosen)
        self.renewed = True

    def put_held(self, held: Numbers, of_held: Numbers, chosen: Numbers) -> None:
        """What these rows hold, one after another."""
        position = np.full(len(self.held), -1, np.int64)
        position[held] = np.arange(len(held))
        sizes = np.bincount(position[of_held], minlength=len(held)) if len(held) else np.zeros(0, np.int64)
        ends = np.cumsum(sizes)
        self.held.rows[held, at.WAITING.first], self.held.rows[held, at.WAITING.last] = ends - sizes, ends
        self.held_events, self.chosen = np.ascontiguousarray(chosen), len(chosen)

    def put_streams(self, cells: Numbers, of_cell: Numbers, operands: Numbers, positions: Numbers, refs: Numbers) -> None:
        """The streams of these cells, which are all there are; entries stand by operand, cell and position."""
        rows, most = self.cells.rows, self.program.most_operands
        self.stream, self.streamed = np.append(refs, 0), len(refs)
        group = operands * len(self.cells) + of_cell
        for operand in range(most):
            column = at.CELL.parts + operand * at.STREAM.width
            begin = np.searchsorted(group, operand * len(self.cells) + cells)
            rows[cells, column + at.STREAM.origin] = begin - rows[cells, column + at.STREAM.low]
            rows[cells, column + at.STREAM.limit] = rows[cells, column + at.STREAM.filled]

    def _forget_texts(self, size: int) -> None:
        """Texts that no event has any more need no number; the others keep theirs."""
        if self.texts:
            used = set(np.unique(self.values[:, :size]).tolist())
            self.texts = {text: number for text, number in self.texts.items() if number in used}

    def link(self) -> None:
        """Make the lists again that run through the rows."""
        spans, records, timers, held = (t.live() for t in (self.spans, self.records, self.timers, self.held))
        rows = self.spans.rows
        spans = spans[np.lexsort((rows[spans, at.SPAN.definition], rows[spans, at.SPAN.opened]))]
        turn = np.zeros(len(self.spans), np.int64)
        turn[spans] = np.arange(len(spans))
        records = records[np.argsort(turn[self.records.rows[records, at.RECORD.span]], kind="stable")]
        number, event, due, situation, operand = (
            self.timers.rows[timers, key]
            for key in (at.TIMER.number, at.TIMER.event, at.TIMER.due, at.TIMER.situation, at.TIMER.operand)
        )
        ticks = np.where(self.situations[situation, at.SITUATION.kind] == at.TICKING, operand, 0)
        timers = timers[np.lexsort((number, event, ticks, due, situation))]
        held = held[np.argsort(self.held.rows[held, at.WAITING.first])]
        self.take(at.World(*relink(self.world(None), spans, records, timers, held)))
        self._free_idle(self.cells.live(), self.keys.live())

    def add_events(self, table: EventTable) -> None:
        self.store.add(table, np.arange(len(table)))
