"""Queries over one another's matches, where rows come bit by bit: the matches of one are the table of the next.

Matches are not made in the order of their times. A query that reads them has a clock of its own, which passes a time when the
query before has passed it and holds no row from which a match with such a time could come (section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import pyarrow as pa

from coincide.detection.rowpattern.expressions import Lookup
from coincide.detection.rowpattern.search import NO_TIME
from coincide.detection.snapshots import check_version, damaged, sealed
from coincide.detection.snapshots import opened as unsealed
from coincide.errors import Diagnostic, RuleError
from coincide.expr.tree import Expr, Reference
from coincide.lang.matchrecognize.definition import MatchFact
from coincide.lang.matchrecognize.functions import lowered
from coincide.tables.query import TableQuery
from coincide.tables.scan import ScanState, TableScan, from_bytes, to_bytes

VERSION = 1


@dataclass
class ChainState:
    """Of the query before, and of this one; `waiting` are matches whose time has not passed."""

    before: Any
    own: ScanState
    waiting: pa.Table
    start: int | None = None  # what engines tell

    @property
    def hi(self) -> int:
        hi: int = self.before.hi
        return hi

    @hi.setter
    def hi(self, hi: int) -> None:
        self.before.hi = hi


class Snapshot(msgspec.Struct, array_like=True):
    version: int
    before: bytes
    own: bytes
    waiting: bytes


class Scanning(Protocol):
    """What makes the matches that another query reads: a scan, or a chain of them."""

    query: TableQuery

    def initial(self) -> Any: ...
    def advance(self, state: Any, rows: pa.Table, bound: int | None = None) -> pa.Table: ...
    def finish(self, state: Any, until: float | None = None, closed: bool = True) -> pa.Table: ...
    def due(self, state: Any) -> int | None: ...
    def horizon(self, state: Any) -> int: ...
    def encode(self, state: Any) -> bytes: ...
    def decode(self, data: bytes) -> Any: ...
    def tells_changes(self, state: Any) -> bool: ...
    def changes(self, state: Any, everything: bool = False) -> bytes: ...
    def with_changes(self, data: bytes, changes: Sequence[bytes]) -> Any: ...


class TableChain:
    """Steps a query over the matches of the one before."""

    def __init__(self, before: Scanning, own: TableScan) -> None:
        self.before, self.own = before, own
        self.query = own.query

    def initial(self) -> ChainState:
        return ChainState(self.before.initial(), self.own.initial(), self.query.schema.empty_table())

    def advance(self, state: ChainState, rows: pa.Table, bound: int | None = None) -> pa.Table:
        made = self.before.advance(state.before, rows, bound)
        return self._advance_own(state, made, self.before.horizon(state.before))

    def finish(self, state: ChainState, until: float | None = None, closed: bool = True) -> pa.Table:
        """Each query ends after the one that it reads."""
        made = self.before.finish(state.before, until, closed)
        horizon = max(state.hi, state.own.passed) if closed else self.before.horizon(state.before)
        taken = self._advance_own(state, made, NO_TIME - 1 if closed else horizon, horizon + 1)
        state.own.hi = max(state.own.hi, state.hi) if closed else state.own.hi
        return pa.concat_tables([taken, self.own.finish(state.own, until, closed)])

    def due(self, state: ChainState) -> int | None:
        dues = [due for due in (self.before.due(state.before), self.own.due(state.own)) if due is not None]
        return min(dues, default=None)

    def horizon(self, state: ChainState) -> int:
        times = self.query.times(state.waiting)
        return min(self.own.horizon(state.own), int(times.min(initial=NO_TIME)) - 1)

    def _advance_own(self, state: ChainState, made: pa.Table, upto: int, bound: int | None = None) -> pa.Table:
        """Let this query's clock pass a time: matches with such times are its rows now. Those without a time are dropped."""
        waiting = pa.concat_tables([state.waiting, made.cast(self.query.schema)])
        times = self.query.times(waiting)
        state.waiting = waiting.filter(pa.array((times > upto) & (times < NO_TIME)))
        return self.own.advance(state.own, waiting.filter(pa.array(times <= upto)), upto + 1 if bound is None else bound)

    # Bytes

    def encode(self, state: ChainState) -> bytes:
        before, own = self.before.encode(state.before), self.own.encode(state.own)
        return sealed(msgspec.msgpack.encode(Snapshot(VERSION, before, own, to_bytes(state.waiting))))

    def decode(self, data: bytes) -> ChainState:
        content = unsealed(data)
        check_version(msgspec.msgpack.decode(content, type=list[Any])[0], VERSION)
        snapshot = msgspec.msgpack.decode(content, type=Snapshot)
        waiting = from_bytes(snapshot.waiting)
        if waiting.schema != self.query.schema:
            damaged("the matches that wait are not those of this query")
        return ChainState(self.before.decode(snapshot.before), self.own.decode(snapshot.own), waiting)

    def tells_changes(self, state: ChainState) -> bool:
        return False

    def changes(self, state: ChainState, everything: bool = False) -> bytes:
        raise NotImplementedError

    def with_changes(self, data: bytes, changes: Sequence[bytes]) -> ChainState:
        raise NotImplementedError


def chained(before: Scanning, own: TableQuery) -> TableChain:
    """Raises RuleError if the order of a query's rows is not known while they come."""
    order = own.clause.order
    named = order[0].name if order else None
    if named is None or order[0].descending or own.time not in (None, named) or not is_time_of(before.query, named):
        of = before.query.time_column
        hint = f"a measure such as LAST({of}) AS {of}, ascending, as the first key"
        span = order[0].span if order else own.clause.pattern_span
        raise RuleError(Diagnostic("on a stream matches are ordered by the time of one of their rows", span, hint=hint))
    return TableChain(before, TableScan(own))


def is_time_of(query: TableQuery, column: str) -> bool:
    """Is an output column the time of a row of the match? Then no match from a later start has an earlier one."""
    if query.query.items is not None:
        trees = [lowered(item.value) for item in query.query.items if item.name == column]
        if len(trees) != 1 or not isinstance(trees[0], Reference):
            return False
        column = trees[0].name
    tree = query.program.measures.trees.get(column)
    if tree is None:
        return query.clause.all_rows and column == query.time_column
    return _is_time(tree, query.time_column)


def _is_time(tree: Expr, column: str | None) -> bool:
    match tree:
        case Lookup(operand):
            return tree.shift >= 0 and isinstance(operand, Reference) and operand.name == column
        case MatchFact(function):
            return function == "MATCH_ROWTIME"
    return False
