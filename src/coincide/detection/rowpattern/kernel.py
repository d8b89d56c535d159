"""The kernel tier: a batch at a time, over columns.

Rows whose match is undecided are kept, with the rows before them that may still be read; with the next batch they are searched
again. Where a run has to stop, the interpreter goes over the batch once more and says where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.base import Clock, Pending
from coincide.detection.columns.places import caused_places, ranks_of
from coincide.detection.columns.tables import distinct
from coincide.detection.columns.tables import taken as taken_ranges
from coincide.detection.keys import Key, key_part, key_value
from coincide.detection.rowpattern import columnar
from coincide.detection.rowpattern.columnar import Columnar, Matches, Segments, Shown, Stopped
from coincide.detection.rowpattern.grouping import grouped, partition_codes
from coincide.detection.rowpattern.interpreter import AT_THE_END, Interpreter
from coincide.detection.rowpattern.loop import TIMED_OUT
from coincide.detection.rowpattern.memory import Left, Memory, from_objects, to_objects
from coincide.detection.rowpattern.output import ENVELOPE_OF_ROW
from coincide.detection.rowpattern.partition import Program, plain
from coincide.detection.rowpattern.registers import Unfit
from coincide.detection.rowpattern.state import State
from coincide.detection.rowpattern.vectors import taken, truth_of, values_of
from coincide.detection.snapshots import damaged
from coincide.lang.matchrecognize.functions import lowered
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import Column, column_of
from coincide.model.event import Place, caused, timer_place
from coincide.model.table import EventTable, LazyPlaces, Origins, merged_tables

Numbers = npt.NDArray[np.int64]


class Kernel:
    """Steps one query whose conditions are path-free and whose rows are taken at their events."""

    def __init__(self, program: Program, interpreter: Interpreter, columns: frozenset[str] | None) -> None:
        self.program = program
        self.query = program.query
        self.clause = program.clause
        self.columnar = Columnar(program)
        self.interpreter = interpreter
        self.columns = columns

    # The contract

    def step(self, memory: Memory, batch: EventBatch, clock: Clock) -> tuple[Memory, EventBatch]:
        new = self._rows(batch)
        passed = max(memory.passed, clock.bound - 1)
        due = memory.next_due()
        if new is None and not clock.closing and (due is None or due > passed):
            memory.passed = passed
            return memory, EMPTY
        try:
            return memory, self._stepped(memory, new, passed, clock.closing)
        except Unfit:
            objects, made = self.interpreter.step(self.objects(memory), batch, clock)
            return self.memory(objects), made
        except Stopped:
            self.interpreter.step(self.objects(memory), batch, clock)
            raise AssertionError("the interpreter does not stop where the kernel does") from None

    def pending(self, memory: Memory) -> Pending | None:
        due = memory.next_due()
        return None if due is None else Pending(due, True)

    def objects(self, memory: Memory) -> State:
        """As the interpreter has it."""
        return to_objects(memory, self.interpreter)

    def memory(self, objects: State) -> Memory:
        return from_objects(objects, self.columns, self.clause.within, self.program.back)

    def checked(self, memory: Memory) -> Memory:
        """A state that was read: rows are external events here, and none waits for its instant to end."""
        if len(memory.waiting) or any((chunk.generation != 0).any() for chunk in memory.store.chunks):
            damaged("a row is not an external event")
        return memory

    # A batch

    def _rows(self, batch: EventBatch) -> EventTable | None:
        """The rows of the table in a batch."""
        if not len(batch):
            return None
        table = batch.table
        name = self.query.source.table
        if name != "events":
            rows = table.rows_of_types(frozenset({name}))
            if len(rows) < len(table):
                table = table.take(rows)
        where = self.query.source.where
        if where is not None and len(table):
            selected = np.flatnonzero(truth_of(lowered(where), _Fields(table, None), len(table)))
            table = table if len(selected) == len(table) else table.take(selected)
        return table if len(table) else None

    def _stepped(self, memory: Memory, new: EventTable | None, passed: int, closing: bool) -> EventBatch:
        """Partitions that have new rows, or whose bounds have passed; at the end all of them."""
        codes, first = (np.zeros(0, np.int64), []) if new is None else self._keys(new)
        known = memory.partitions.known.of(first)
        concerned = memory.partitions.live() if closing else np.union1d(known[known >= 0], memory.overdue(passed))
        before = memory.open(concerned)
        tables = [t for t in (before.table, new) if t is not None]
        if not tables:
            memory.passed = passed
            return EMPTY
        place = np.full(len(memory.partitions) + 1, -1, np.int64)
        place[before.numbers] = np.arange(len(before.numbers))
        added = np.flatnonzero(known < 0)
        of_key = place[known]
        of_key[added] = len(before.keys) + np.arange(len(added))
        keys = before.keys + [first[number] for number in added.tolist()]
        codes = np.concatenate((np.repeat(np.arange(len(before.keys)), before.sizes), of_key[codes]))
        table = tables[0] if len(tables) == 1 else _behind(*tables)
        order, bounds = grouped(codes, len(keys))
        grown = np.zeros(len(keys) - len(before.keys), np.int64)
        bases = np.concatenate((before.bases, grown))
        segments = Segments(
            bounds,
            bounds[:-1] + np.concatenate((before.starts, grown)),
            np.concatenate((before.matches, grown + 1)),
            bounds[:-1] + np.concatenate((before.covered - before.bases, grown)),
            bases == 0,
        )
        rows = columnar.Rows(len(table), _Fields(table, order), table.hi[order])
        matches = self.columnar.find(rows, segments, closing, passed)
        turns = _turns(segments, order, len(before.keys))
        made = EMPTY
        if len(matches):
            made = _Emission(self, table, order, rows, segments, keys, turns, (closing and passed) or 0).detections(matches)
        memory.passed = passed
        memory.put(before, keys, self._left_over(order, segments, turns, bases, len(before.keys)), new)
        return made

    def _keys(self, new: EventTable) -> tuple[Numbers, list[Key]]:
        """The number of each row's key, and the keys."""
        columns = [new.column(c.name) for c in self.clause.partition]
        codes, first = partition_codes(columns, len(new))
        parts = [[key_part(plain(value)) for value in column.take(first).values()] for column in columns]
        return codes, list(zip(*parts, strict=True)) if parts else [()] * len(first)

    def _left_over(self, order: Numbers, segments: Segments, turns: Numbers, bases: Numbers, known: int) -> Left:
        low, high = segments.bounds[:-1], segments.bounds[1:]
        begin = np.maximum(low, segments.starts - self.program.back)
        left = np.argsort(turns)
        stay = left if self.program.remembers else left[(segments.starts < high)[left]]
        first = np.where(segments.anew >= 0, segments.anew, low - bases)  # the row from which each counts
        sizes = (high - begin)[stay]
        return Left(
            stay,
            (stay >= known) | (segments.anew[stay] >= 0),
            (begin - first)[stay],
            (segments.starts - begin)[stay],
            segments.numbers[stay],
            np.maximum(segments.covered - first, 0)[stay],
            sizes,
            order[taken_ranges(begin[stay], sizes)],
        )


def _turns(segments: Segments, order: Numbers, known: int) -> Numbers:
    """The order of partitions: those that were known, then by the rows with which the others began or began anew."""
    of_known = np.arange(known) - known
    turns = np.concatenate((of_known, order[segments.bounds[known:-1]]))
    return np.where(segments.anew >= 0, order[np.maximum(segments.anew, 0)], turns)


def _behind(stored: EventTable, new: EventTable) -> EventTable:
    """New rows after those that were kept, which stand in the order of their partitions."""
    order = np.argsort(stored.place_matrix()[:, 1], kind="stable")
    merged = merged_tables([stored, new])
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return merged.take(np.concatenate((back, np.arange(len(order), len(merged)))))


class _Fields(dict[str, Column]):
    """Columns of a table in some order, made when they are asked for."""

    def __init__(self, table: EventTable, order: Numbers | None) -> None:
        super().__init__()
        self.table = table
        self.order = order

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]

    def __missing__(self, name: str) -> Column:
        if name.startswith(" "):
            raise KeyError(name)
        column = self.table.column(name)
        self[name] = column if self.order is None else column.take(self.order)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and not name.startswith(" ")


class _Emission:
    """From matches to detections, as columns."""

    def __init__(
        self,
        kernel: Kernel,
        table: EventTable,
        order: Numbers,
        rows: columnar.Rows,
        segments: Segments,
        keys: list[Key],
        turns: Numbers,
        end: int,
    ) -> None:
        self.kernel, self.table, self.order, self.rows, self.segments, self.keys, self.turns, self.end = (
            kernel, table, order, rows, segments, keys, turns, end,
        )  # fmt: skip
        self.clause = kernel.clause

    def detections(self, matches: Matches) -> EventBatch:
        moments = self._moments(matches)
        turns = np.where(moments.kind == AT_THE_END, self.turns[self._segment(matches.start)], self._ranks(moments.last))
        sorted_by = np.lexsort((np.arange(len(matches)), turns, moments.kind, moments.time))
        matches, moments = matches.take(sorted_by), moments.take(sorted_by)
        shown = self.kernel.columnar.shown(matches)
        columns = self._columns(shown)
        given, selected = self._selected(columns, len(shown))
        if selected is not None:
            shown = Shown(shown.matches, shown.flat, shown.match[selected], shown.current[selected])
        if not len(shown):
            return EMPTY
        lo, hi, origins = self._stamps(shown)
        kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(shown), np.int32)), pa.array([self.kernel.query.name]))
        fields = {name: c.to_arrow() for name, c in given.items() if not _all_null(c)}
        made = EventTable(lo, hi, {"type": kind, **fields}, origins=origins)
        return EventBatch(table=self._placed(made, moments.take(shown.match)))

    def _ranks(self, rows: Numbers) -> Numbers:
        """By place: rows that were kept stand in the order of their partitions."""
        numbers: Numbers = self.table.place_rows(rows)[:, 1]
        return numbers

    # Columns

    def _columns(self, shown: Shown) -> dict[str, Column]:
        measures = self.kernel.columnar.measures(shown, self.rows, self.segments)
        columns: dict[str, Column] = {}
        if self.clause.all_rows:
            row = shown.row
            names = (*self.table.attributes, "type", "id", "source", "time")
            wanted = [n for n in names if self._is_wanted(n)]
            columns = {name: self.rows.columns[name].take(row) for name in wanted}
        segment = self._segment(shown.row)
        for number, column in enumerate(self.clause.partition):
            values = column_of([key_value(key[number]) for key in self.keys])
            columns[column.name] = taken(values, segment)
        return {**columns, **measures}

    def _segment(self, rows: Numbers) -> Numbers:
        return np.searchsorted(self.segments.bounds, rows, side="right") - 1

    def _is_wanted(self, name: str) -> bool:
        columns = self.kernel.columns
        return columns is None or name in columns or name in ("type", "id", "source", "time")

    def _selected(self, columns: dict[str, Column], length: int) -> tuple[dict[str, Column], Numbers | None]:
        """What SELECT gives out of them, and which rows WHERE leaves; None: all."""
        query, selected = self.kernel.query, None
        if query.where is not None:
            selected = np.flatnonzero(truth_of(lowered(query.where), columns, length))
            columns = {name: column.take(selected) for name, column in columns.items()}
            length = len(selected)
        if query.items is None:
            own = {m.name for m in self.clause.measures}
            return {n: c for n, c in columns.items() if n not in ENVELOPE_OF_ROW or n in own}, selected
        return {item.name: values_of(lowered(item.value), columns, length) for item in query.items}, selected

    # Stamps and origins

    def _stamps(self, shown: Shown) -> tuple[Numbers, Numbers, Origins]:
        matches = shown.matches
        if self.clause.all_rows:
            rows = self.order[shown.row]
            bounds = np.arange(len(rows) + 1)
        else:
            sizes = np.maximum(matches.size[shown.match], 1)
            bounds = np.concatenate(([0], np.cumsum(sizes)))
            within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
            rows = self.order[np.repeat(matches.start[shown.match], sizes) + within]
        lo = np.minimum.reduceat(self.table.lo[rows], bounds[:-1])
        hi = np.maximum.reduceat(self.table.hi[rows], bounds[:-1])
        if self.clause.timed_out:
            assert self.clause.within is not None
            late = matches.kind[shown.match] == TIMED_OUT
            hi = np.where(late, self.rows.times[matches.start[shown.match]] + self.clause.within, hi)
        of_rows = self.table.origin().take(rows)
        return lo, hi, Origins(of_rows.lo, of_rows.hi, of_rows.ids, bounds)

    # Places

    def _moments(self, matches: Matches) -> _Moments:
        """The event, bound or end at which each was decided."""
        made = matches.made
        asked = self.order[made[:, 4]]
        time = self.table.hi[asked]
        late = made[:, 5] >= time
        kind = np.where(late, 1, 0)
        last = np.where(late, self.order[made[:, 6]], asked)
        time = np.where(late, made[:, 5], time)
        ended = made[:, 7] == 1
        kind, last = np.where(ended, AT_THE_END, kind), np.where(ended, 0, last)
        return _Moments(np.where(ended, self.end, time), kind, last)

    def _placed(self, made: EventTable, moments: _Moments) -> EventTable:
        order = self.kernel.program.order
        cause = np.where(moments.kind == 0, moments.last, -1 - moments.last * 4 - moments.kind)
        ranks = ranks_of(cause)
        if (moments.kind == 0).all():
            orders = np.full(len(ranks), order)
            table, last = self.table, moments.last
            return replace(made, given_places=LazyPlaces(lambda: caused_places(table, last, orders, ranks)))
        rows = distinct(moments.last)
        of_rows = dict(
            zip(rows.tolist(), ((r[0], 0, r[1], *r[2 : 3 + 2 * r[2]]) for r in self.table.place_rows(rows).tolist()), strict=True)
        )
        places = []
        for time, kind, last, rank in zip(*(a.tolist() for a in (moments.time, moments.kind, moments.last, ranks)), strict=True):
            root: Place = of_rows[last]
            if kind == 1:
                root = timer_place(time, root, order, 0)
            elif kind == AT_THE_END:
                root = (time, AT_THE_END, (0, 0, order, 0), 0)
            places.append(caused(root, order, rank))
        matrix = np.full((len(places), 3), -1, np.int64)
        matrix[:, 0], matrix[:, 2] = [place[0] for place in places], [place[3] for place in places]
        return replace(made, given_places=matrix, foreign_places=tuple(places))


@dataclass(frozen=True, eq=False)
class _Moments:
    time: Numbers
    kind: Numbers
    last: Numbers  # the row that it was, or whose bound it was

    def take(self, index: Numbers) -> _Moments:
        return _Moments(self.time[index], self.kind[index], self.last[index])


def _all_null(column: Column) -> bool:
    return bool(column.is_null.all()) and (column.compounds is None or not any(c is not None for c in column.compounds))
