"""One query over one table: sort, match, measure, select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.base import Detector, Inputs
from coincide.detection.rowpattern.columnar import Columnar, Matches, Rows, Segments, Shown, Stopped, reasons
from coincide.detection.rowpattern.expressions import Folded, Lookup
from coincide.detection.rowpattern.grouping import grouped
from coincide.detection.rowpattern.partition import Program
from coincide.detection.rowpattern.registers import Unfit
from coincide.detection.rowpattern.search import NO_TIME, STEPS
from coincide.detection.rowpattern.vectors import truth_of, values_of
from coincide.errors import CoincideError, Diagnostic, RuleError, nearest
from coincide.expr.tree import Expr, Reference
from coincide.lang.matchrecognize.definition import Clause, OrderKey, Query
from coincide.lang.matchrecognize.functions import lowered
from coincide.model.column import Column
from coincide.source import Span
from coincide.syntax import walk
from coincide.tables.foreign import COMPUTED
from coincide.tables.names import is_nested
from coincide.tables.objects import found_by_objects, without_envelope
from coincide.tables.types import array_of, column_of_array, is_boolean, type_of

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TableQuery:
    """A query, the schema of its table, the column of time (for WITHIN) and the budget of steps. All errors that the schema shows
    are found when it is made."""

    query: Query
    schema: pa.Schema
    time: str | None = None
    steps: int = STEPS

    def __post_init__(self) -> None:
        self._check_columns()
        self._check_types()
        if self.clause.within is not None and (self.time_column is None or not self._by_time):
            column = self.time_column or "the column of time"
            message = f"WITHIN needs ORDER BY {column}, ascending, as the first key"
            raise RuleError(Diagnostic(message, self.clause.within_span, hint="time= names the column of time"))
        self._check_time()
        if not self.output.names:
            raise CoincideError("MATCH_RECOGNIZE gives no column: add MEASURES or PARTITION BY")

    @property
    def clause(self) -> Clause:
        return self.query.clause

    @property
    def time_column(self) -> str | None:
        return self.time or (self.clause.order[0].name if self.clause.order else None)

    @property
    def _by_time(self) -> bool:
        order = self.clause.order
        return not order or (order[0].name == self.time_column and not order[0].descending)

    @cached_property
    def program(self) -> Program:
        detector = Detector(self.query.name, "matchrecognize", self.query, Inputs(None), (), None)
        return Program(detector, self.steps)

    @cached_property
    def _object_program(self) -> Program:
        detector = Detector(self.query.name, "matchrecognize", without_envelope(self.query), Inputs(None), (), None)
        program = Program(detector, self.steps)
        program.searching = program.searching._replace(automaton=self.program.searching.automaton)  # states have one number
        return program

    @cached_property
    def columnar(self) -> Columnar:
        return Columnar(self.program)

    @cached_property
    def _by_objects(self) -> bool:
        return bool(reasons(self.program))

    # What the schema shows

    def _check_columns(self) -> None:
        keys: list[tuple[str, Span | None]] = [(c.name, c.span) for c in self.clause.partition]
        keys += [(k.name, k.span) for k in self.clause.order]
        trees = [*(m.value for m in self.clause.measures), *(c.test for c in self.clause.conditions)]
        trees += [] if self.query.source.where is None else [self.query.source.where]
        keys += [(n.name, n.span) for tree in trees for n in walk(tree) if isinstance(n, Reference)]
        for name, span in [*keys, *([(self.time, None)] if self.time else [])]:
            self._check_column(name, span, self.schema.names)

    def _check_column(self, name: str, span: Span | None, known: Sequence[str]) -> None:
        if name not in known:
            near = nearest(name, known)
            raise RuleError(Diagnostic(f"no column '{name}' in the table{f'; {near}' if near else ''}", span))

    def _check_types(self) -> None:
        for condition in self.clause.conditions:
            tree = self.program.conditions.tests[self.clause.variables.index(condition.variable)]
            if tree is not None and not is_boolean(self._type(tree.tree)):
                raise RuleError(Diagnostic(f"the condition of '{condition.variable}' is not boolean", condition.test.span))

    def _check_time(self) -> None:
        if self.clause.within is not None and not _is_time(kind := self.schema.field(self.time_column).type):
            message = f"WITHIN needs a timestamp or a number of milliseconds: '{self.time_column}' is {kind}"
            raise RuleError(Diagnostic(message, self.clause.within_span, hint="convert the column, or name another with time="))

    def _type(self, tree: Expr) -> pa.DataType:
        rowtime = pa.float64() if self.time_column is None else self.schema.field(self.time_column).type
        return type_of(tree, lambda name: self.schema.field(name).type, rowtime)

    @cached_property
    def matched(self) -> pa.Schema:
        """The columns that MATCH_RECOGNIZE gives (section 6), in their order."""
        clause = self.clause
        measures = {name: self._type(tree) for name, tree in self.program.measures.trees.items()}
        fields = {c.name: self.schema.field(c.name).type for c in clause.partition}
        if clause.all_rows:
            fields |= {k.name: self.schema.field(k.name).type for k in clause.order if k.name not in measures}
        fields |= measures
        if clause.all_rows:
            fields |= {f.name: f.type for f in self.schema if f.name not in fields and not self._is_made(f.name)}
        return pa.schema(list(fields.items()))

    def _is_made(self, name: str) -> bool:
        """Is it a column that the table did not have, but was made of what it had?"""
        return name.startswith(COMPUTED) or is_nested(name, self.schema)

    @cached_property
    def output(self) -> pa.Schema:
        """After SELECT."""
        if self.query.items is None:
            return self.matched
        fields = []
        for item in self.query.items:
            tree = lowered(item.value)
            for node in walk(tree):
                if isinstance(node, Reference):
                    self._check_column(node.name, node.span, self.matched.names)
            fields.append((item.name, type_of(tree, lambda name: self.matched.field(name).type, pa.float64())))
        return pa.schema(fields)

    # Running it

    def run(self, table: pa.Table, clock: int | None = None) -> pa.Table:
        """The output rows of a whole table, partition by partition in order of their first rows. The clock (microseconds) has
        come to its last row, if not further."""
        table = self._filtered(table)
        order, bounds = self._sorted(table)
        return self.scanned(table.take(pa.array(order)) if order is not None else table, Segments.fresh(bounds), True, clock)

    def scanned(self, table: pa.Table, segments: Segments, closed: bool, clock: int | None) -> pa.Table:
        """The output rows of what is decided; where each partition's scan has come to is kept in the segments."""
        rows = Rows(table.num_rows, _Arrays(table), self.times(table))
        times = rows.times[rows.times < NO_TIME]
        passed = clock if clock is not None else int(times.max(initial=-NO_TIME))
        shown = self.columnar.shown(self._matches(rows, segments, closed, passed))
        return self._selected(self._output(shown, rows, segments, table))

    def ways(self, table: pa.Table, partition: Segments, entries: Numbers, closed: bool) -> Numbers:
        """See Columnar.ways."""
        rows = Rows(table.num_rows, _Arrays(table), self.times(table))
        return self.columnar.ways(rows, partition, entries, closed, NO_TIME)

    def in_order(self, table: pa.Table, tie: str | None = None) -> pa.Table:
        """Rows by the keys of ORDER BY, whatever their partitions; those with equal keys by a column of whole numbers, if one is
        named, and otherwise as they stand."""
        table = self._filtered(table)
        order = self._by_keys(table, tie)
        return table if order is None else table.take(pa.array(order))

    def _filtered(self, table: pa.Table) -> pa.Table:
        table, where = _plain(table.combine_chunks()), self.query.source.where
        return table if where is None else table.filter(pa.array(self._filter(table, lowered(where))))

    def _matches(self, rows: Rows, segments: Segments, closed: bool, passed: int) -> Matches:
        if not self._by_objects:
            with suppress(Unfit):
                return self._matches_found(rows, segments, closed, passed)
        return found_by_objects(self._object_program, rows, segments, closed, passed)

    def _matches_found(self, rows: Rows, segments: Segments, closed: bool, passed: int) -> Matches:
        try:
            return self.columnar.find(rows, segments, closed, passed)
        except Stopped as stopped:
            raise self.columnar.stop(stopped, str(stopped.row + 1)) from None

    def _filter(self, table: pa.Table, tree: Expr) -> npt.NDArray[np.bool_]:
        return truth_of(tree, _Arrays(table), table.num_rows)

    def _sorted(self, table: pa.Table) -> tuple[Numbers | None, Numbers]:
        """The rows partition by partition, each in order, and where each partition begins; None: they stand so."""
        by_keys = self._by_keys(table)
        codes, count = self.partitions(table)
        if count <= 1:
            return by_keys, np.array([0, table.num_rows], np.int64) if table.num_rows else np.zeros(1, np.int64)
        if by_keys is None and (codes[1:] >= codes[:-1]).all():
            return None, np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=count)))).astype(np.int64)
        order, bounds = grouped(codes if by_keys is None else codes[by_keys], count)
        return (order if by_keys is None else by_keys[order]), bounds

    def partitions(self, table: pa.Table) -> tuple[Numbers, int]:
        """The number of each row's partition, in order of their first rows."""
        combined, size = np.zeros(table.num_rows, np.int64), 1
        for column in self.clause.partition:
            own = _codes(table.column(column.name))
            count = int(own.max(initial=0)) + 1
            if size * count >= 1 << 62:
                combined = _codes(pa.chunked_array([pa.array(combined)]))
                size = int(combined.max(initial=0)) + 1
            combined, size = combined * count + own, size * count
        if len(self.clause.partition) > 1:
            combined = _codes(pa.chunked_array([pa.array(combined)]))
        return combined, int(combined.max(initial=-1)) + 1

    def _by_keys(self, table: pa.Table, tie: str | None = None) -> Numbers | None:
        keys = [part for key in self.clause.order for part in _sort_keys(table.column(key.name), key)]
        keys += [] if tie is None else [table.column(tie).to_numpy()]
        if not keys or (all(_is_sorted(key) for key in keys[:1]) and len(keys) == 1):
            return None
        return np.lexsort(keys[::-1]).astype(np.int64)

    def times(self, table: pa.Table) -> Numbers:
        """Microseconds; under WITHIN a row without time is never taken."""
        if self.time_column is None:
            return np.zeros(table.num_rows, np.int64)
        array = table.column(self.time_column).combine_chunks()
        if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
            micros = array.cast(pa.timestamp("us", getattr(array.type, "tz", None)), safe=False).cast(pa.int64())
            return micros.fill_null(NO_TIME).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
        if not _is_time(array.type):
            return np.zeros(table.num_rows, np.int64)
        numbers = array.cast(pa.float64()).fill_null(float(NO_TIME)).to_numpy(zero_copy_only=False)
        return np.where(numbers >= NO_TIME, NO_TIME, np.round(numbers * 1000)).astype(np.int64)

    # Output

    def _output(self, shown: Shown, rows: Rows, segments: Segments, table: pa.Table) -> pa.Table:
        row = pa.array(shown.row)
        measures = self.columnar.measures(shown, rows, segments, self._computed)
        columns = []
        for field in self.matched:
            tree = self.program.measures.trees.get(field.name)
            if tree is None:
                columns.append(table.column(field.name).take(row))
            elif field.name in measures:
                columns.append(array_of(measures[field.name], field.type))
            elif isinstance(tree, Folded):
                columns.append(self._gathered(tree, shown, table))
            else:
                assert isinstance(tree, Lookup)
                columns.append(self._passed_on(tree, shown, rows, segments, table))
        return pa.table(columns, schema=self.matched)

    @cached_property
    def _computed(self) -> frozenset[str]:
        """Measures that are more than a value of the table."""
        return frozenset(name for name, tree in self.program.measures.trees.items() if not self._is_passed_on(tree))

    def _is_passed_on(self, tree: Expr) -> bool:
        """Is it a value of the table, or an array of such? Then it keeps its type, whatever that is."""
        if isinstance(tree, Lookup):
            return isinstance(tree.operand, Reference)
        if not isinstance(tree, Folded) or not all(isinstance(operand, Reference) for operand in tree.operands):
            return False
        if tree.function in ("min", "max"):  # with RUNNING, row by row is cheaper
            once = tree.final or not self.clause.all_rows
            return once and not _is_exact_in_doubles(self._type(tree.operands[0]))
        return tree.function == "array_agg"

    def _gathered(self, node: Folded, shown: Shown, table: pa.Table) -> pa.Array:
        operand = node.operands[0]
        assert isinstance(operand, Reference)
        rows, offsets = self.columnar.gathered(node, shown)
        values = table.column(operand.name).combine_chunks().take(pa.array(rows))
        if node.function != "array_agg":
            return values.take(_best_of(values, offsets, node.function == "max"))
        empty = pa.array(np.diff(offsets) == 0)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=empty)

    def _passed_on(self, node: Lookup, shown: Shown, rows: Rows, segments: Segments, table: pa.Table) -> pa.Array:
        """A value of the table, whatever its type."""
        assert isinstance(node.operand, Reference)
        picked = self.columnar.picked(node, shown, segments)
        picked = np.where(shown.current == -2, -1, picked)
        return table.column(node.operand.name).take(pa.array(picked, mask=picked < 0))

    def _selected(self, made: pa.Table) -> pa.Table:
        query = self.query
        if query.where is not None:
            made = made.filter(pa.array(self._filter(made, lowered(query.where))))
        if query.items is None:
            return made
        columns = []
        for item, field in zip(query.items, self.output, strict=True):
            tree = lowered(item.value)
            if isinstance(tree, Reference):
                columns.append(made.column(tree.name))
            else:
                columns.append(array_of(values_of(tree, _Arrays(made), made.num_rows), field.type))
        return pa.table(columns, schema=self.output)


class _Arrays(Mapping[str, Column]):
    """Columns of a table, made when they are asked for. No dict: a copy of one would have only those that were."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.made: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self.made:
            if name not in self:
                raise KeyError(name)
            self.made[name] = column_of_array(self.table.column(name).combine_chunks())
        return self.made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.table.column_names

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_columns)


def _plain(table: pa.Table) -> pa.Table:
    """Without encodings that only some libraries have."""
    fields = [f.with_type(_plain_type(f.type)) for f in table.schema]
    return table.cast(pa.schema(fields)) if any(a.type != b.type for a, b in zip(fields, table.schema, strict=True)) else table


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _codes(column: pa.ChunkedArray) -> Numbers:
    """Numbers of values in order of first appearance; null is a value, a list counts as one."""
    array = column.combine_chunks()
    if pa.types.is_nested(array.type):
        return np.zeros(len(array), np.int64)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_floating(array.type):
        array = pc.add(array, 0.0)  # -0.0 is 0.0
    return np.asarray(array.dictionary_encode(null_encoding="encode").indices).astype(np.int64)


def _sort_keys(column: pa.ChunkedArray, key: OrderKey) -> list[Any]:
    """Arrays to sort by, the most important first: where nulls stand, then the values."""
    array = column.combine_chunks()
    if pa.types.is_nested(array.type):
        return []
    values = _ranks(array)
    keys = [_reversed(values) if key.descending else values]
    if array.null_count:
        null = array.is_null().to_numpy(zero_copy_only=False)
        keys = [np.where(null, 0, 1) if key.nulls_first else np.where(null, 1, 0), np.where(null, 0, keys[0])]
    return keys


def _reversed(values: Any) -> Any:
    """The least whole number has no opposite."""
    return ~values if values.dtype.kind == "i" else -values


def _ranks(array: pa.Array) -> Any:
    kind = array.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return array.cast(pa.int64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_date(kind):
        return array.cast(pa.timestamp("ms")).cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    coded = array if pa.types.is_dictionary(kind) else array.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    rank = np.empty(len(texts) + 1, np.int64)
    rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    rank[-1] = 0
    return rank[np.asarray(coded.indices.fill_null(-1))]


def _is_time(kind: pa.DataType) -> bool:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    return bool(number or pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_exact_in_doubles(kind: pa.DataType) -> bool:
    wide = pa.types.is_int64(kind) or pa.types.is_uint64(kind) or pa.types.is_decimal(kind) or pa.types.is_timestamp(kind)
    return not (wide or pa.types.is_duration(kind))


def _best_of(values: pa.Array, offsets: Numbers, greatest: bool) -> pa.Array:
    """Of each group of values, which one is the least or greatest; null: it has none."""
    there = np.diff(offsets) > 0
    found = np.zeros(len(there), np.int64)
    if there.any():
        order = "descending" if greatest else "ascending"
        ranked = pc.sort_indices(values, sort_keys=[("", order)]).to_numpy().astype(np.int64)
        ranks = np.empty(len(ranked), np.int64)
        ranks[ranked] = np.arange(len(ranked))
        found[there] = ranked[np.minimum.reduceat(ranks, offsets[:-1][there])]
    return pa.array(found, mask=~there)


def _is_sorted(values: Any) -> bool:
    return bool((values[1:] >= values[:-1]).all())
