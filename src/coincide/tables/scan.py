"""A query over a table whose rows come bit by bit: what is decided is given out, what is not is kept.

Rows come in order of time; of what has come, all rows of its instants are there. Between two steps a partition keeps the rows
from its pending start on, those before it that may still be read, and where its scan has come to; one that has nothing to
remember is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.detection.rowpattern.columnar import Segments
from coincide.detection.rowpattern.grouping import grouped
from coincide.detection.rowpattern.search import NO_TIME
from coincide.detection.snapshots import check_version, damaged, sealed
from coincide.detection.snapshots import opened as unsealed
from coincide.lang.matchrecognize.print import print_query
from coincide.model.bounds import Word
from coincide.tables.query import TableQuery

Numbers = npt.NDArray[np.int64]

VERSION = 1
NEVER = -(2**63)
NUMBERS = ("base", "start", "number", "covered", "size")


@dataclass
class ScanState:
    """Partitions in order of their first rows. `keys` has their values of PARTITION BY; of each, `base` is the number of the
    first row that is kept, `start` the pending one counted from there, `number` that of the next match, `covered` how far matches
    have come, `size` how many rows are kept. These stand in `rows`, partition by partition."""

    keys: pa.Table
    rows: pa.Table
    numbers: dict[str, Numbers] = field(default_factory=lambda: {name: np.zeros(0, np.int64) for name in NUMBERS})
    passed: int = NEVER
    start: int | None = None  # of the run; the hi of the last row: what engines tell
    hi: int = NEVER


class Snapshot(msgspec.Struct, array_like=True):
    version: int
    query: str
    passed: Word
    hi: Word
    keys: bytes
    rows: bytes


class TableScan:
    """Steps one query."""

    def __init__(self, query: TableQuery) -> None:
        self.query = query
        self.program = query.program

    def initial(self) -> ScanState:
        schema = self.query.schema
        keys = pa.schema([schema.field(c.name) for c in self.query.clause.partition])
        return ScanState(_empty(keys), _empty(schema))

    def advance(self, state: ScanState, rows: pa.Table, bound: int | None = None) -> pa.Table:
        """Take rows and let time come to `bound` (microseconds, exclusive). Returns what is decided."""
        if len(rows):
            state.hi = max(state.hi, int(self.query.times(rows).max()))
        return self._stepped(state, rows, max(state.passed, (state.hi if bound is None else bound) - 1), False)

    def finish(self, state: ScanState, until: float | None = None, closed: bool = True) -> pa.Table:
        """The end of the input, which is that of every partition."""
        passed = max(state.passed, state.hi if closed else state.hi - 1)
        return self._stepped(state, _empty(self.query.schema), passed, closed)

    def due(self, state: ScanState) -> int | None:
        """When the next bound of a pending start passes."""
        within = self.query.clause.within
        if within is None:
            return None
        dues = self._pending(state) + within
        left = dues[dues > state.passed]
        return int(left.min()) if len(left) else None

    def horizon(self, state: ScanState) -> int:
        """No match that is still to come has a row with such a time, or an earlier one."""
        return min(state.passed, int(self._pending(state).min(initial=NO_TIME)) - 1)

    def _pending(self, state: ScanState) -> Numbers:
        """The times of the pending starts."""
        sizes, starts = state.numbers["size"], state.numbers["start"]
        pending = (np.concatenate(([0], np.cumsum(sizes)))[:-1] + starts)[starts < sizes]
        return self.query.times(state.rows.take(pa.array(pending)))

    # A step

    def _stepped(self, state: ScanState, new: pa.Table, passed: int, closed: bool) -> pa.Table:
        known = len(state.numbers["size"])
        state.passed = passed
        new = self.query.in_order(new)
        keys = pa.concat_tables([state.keys, new.select(state.keys.column_names)]) if state.keys.column_names else None
        codes, count = self._partitions(keys, known, len(new))
        own = np.concatenate((np.repeat(np.arange(known), state.numbers["size"]), codes[known:]))
        order, bounds = grouped(own, count)
        table = pa.concat_tables([state.rows, new]).take(pa.array(order))
        numbers = {name: np.concatenate((old, np.zeros(count - known, np.int64))) for name, old in state.numbers.items()}
        numbers["number"][known:] = 1
        low = bounds[:-1]
        segments = Segments(
            bounds, low + numbers["start"], numbers["number"], low + numbers["covered"] - numbers["base"], numbers["base"] == 0
        )
        made = self.query.scanned(table, segments, closed, passed)
        if closed:
            old = self.initial()
            state.keys, state.rows, state.numbers = old.keys, old.rows, old.numbers
        else:
            first = np.unique(codes, return_index=True)[1] if keys is not None else np.zeros(0, np.int64)
            self._keep(state, table, segments, numbers["base"], None if keys is None else keys.take(pa.array(first)))
        return made

    def _partitions(self, keys: pa.Table | None, known: int, new: int) -> tuple[Numbers, int]:
        """The number of each one's partition, those that are known first."""
        if keys is None:
            count = 1 if known or new else 0
            return np.zeros(known + new, np.int64), count
        return self.query.partitions(keys)

    def _keep(self, state: ScanState, table: pa.Table, segments: Segments, bases: Numbers, keys: pa.Table | None) -> None:
        low, high = segments.bounds[:-1], segments.bounds[1:]
        begin = np.maximum(low, segments.starts - self.program.back)
        stay = np.ones(len(low), np.bool_) if self.program.remembers else segments.starts < high
        sizes = (high - begin)[stay]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.arange(offsets[-1]) + np.repeat(begin[stay] - offsets[:-1], sizes)
        state.rows = table.take(pa.array(rows))
        state.keys = _unkeyed(int(stay.sum())) if keys is None else keys.filter(pa.array(stay))
        state.numbers = {
            "base": (bases + begin - low)[stay],
            "start": (segments.starts - begin)[stay],
            "number": segments.numbers[stay],
            "covered": (bases + segments.covered - low)[stay],
            "size": sizes,
        }

    # Bytes

    @cached_property
    def _digest(self) -> str:
        text = print_query(self.query.query) + str(self.query.schema) + str(self.query.time)
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def encode(self, state: ScanState) -> bytes:
        keys = state.keys
        for name in NUMBERS:
            keys = keys.append_column(f" {name}", pa.array(state.numbers[name]))
        snapshot = Snapshot(VERSION, self._digest, state.passed, state.hi, to_bytes(keys), to_bytes(state.rows))
        return sealed(msgspec.msgpack.encode(snapshot))

    def tells_changes(self, state: ScanState) -> bool:
        return False

    def changes(self, state: ScanState, everything: bool = False) -> bytes:
        raise NotImplementedError

    def with_changes(self, data: bytes, changes: Sequence[bytes]) -> ScanState:
        raise NotImplementedError

    def decode(self, data: bytes) -> ScanState:
        """Of another query or another schema: it starts afresh."""
        content = unsealed(data)
        check_version(msgspec.msgpack.decode(content, type=list[Any])[0], VERSION)
        snapshot = msgspec.msgpack.decode(content, type=Snapshot)
        if snapshot.query != self._digest:
            return self.initial()
        keys, rows = from_bytes(snapshot.keys), from_bytes(snapshot.rows)
        numbers = {name: keys.column(f" {name}").to_numpy().astype(np.int64) for name in NUMBERS}
        self._check(numbers, rows)
        own = keys.select([name for name in keys.column_names if not name.startswith(" ")])
        return ScanState(own if own.column_names else _unkeyed(len(keys)), rows, numbers, snapshot.passed, None, snapshot.hi)

    def _check(self, numbers: dict[str, Numbers], rows: pa.Table) -> None:
        if rows.schema.names != self.query.schema.names or any((numbers[name] < 0).any() for name in NUMBERS):
            damaged("its rows are not those of this query")
        if int(numbers["size"].sum()) != len(rows) or (numbers["start"] > numbers["size"]).any():
            damaged("a partition does not have the rows that it goes on from")


def _empty(schema: pa.Schema) -> pa.Table:
    return schema.empty_table()


def _unkeyed(count: int) -> pa.Table:
    """A table without columns has as many rows as it is said to have."""
    return pa.table({"": pa.nulls(count)}).select([])


def to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
        table = reader.read_all()
    table.validate(full=True)
    return table
