"""Detections as columns: what their events agree on, the `give` list, and the places of instants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.detection.algebra.kernel.rows import Mask, Numbers, Rows, Slots
from coincide.detection.algebra.occurrence import SOURCE, attribute_key
from coincide.detection.algebra.program import OWN, Program, key_rank
from coincide.detection.columns.numbers import comparable
from coincide.detection.columns.origins import coded
from coincide.detection.columns.rows import TableRows
from coincide.detection.columns.tables import numbered
from coincide.expr.tree import Alias, Expr, Reference
from coincide.expr.vector import Rows as VectorRows
from coincide.expr.vector import Table, evaluate_joined, holds, milliseconds_of
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import Column
from coincide.model.event import Place, caused, instant_place
from coincide.model.table import EventTable, ForeignPlaces, LazyPlaces, Origins, concatenated_arrays
from coincide.syntax import walk

Groups = tuple[Numbers, Numbers]
"""Rows, and where those of each group begin."""


@dataclass(frozen=True, eq=False)
class Found:
    """Detections of one definition, in order: `table` has no places yet. Of several definitions it says `whose` each is."""

    table: EventTable
    tells_source: bool = False
    whose: Numbers | None = None

    @property
    def instants(self) -> Numbers:
        return self.table.hi

    @property
    def shown(self) -> EventTable:
        """As others see it: what events agree on as `source` only definitions of this language do."""
        if self.tells_source or SOURCE not in self.table.fields:
            return self.table
        fields = {name: array for name, array in self.table.fields.items() if name != SOURCE}
        return replace(self.table, fields=fields, _columns={})


def composed(
    program: Program,
    table: EventTable,
    groups: Groups,
    ends: tuple[Numbers, Numbers],
    slots: Slots,
    slot: Numbers,
    aliases: Mapping[str, Numbers] | None = None,
    results: Mapping[str, Column] | None = None,
) -> Found:
    """Composites, each of a group of rows of the table: their attributes are what these agree on (5.7), and `results`."""
    lo, hi = ends
    columns = _columns(_read(program, table, results or {}), table, groups, results or {})
    fields = {"type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(hi), np.int32)), pa.array([program.name]))}
    if program.given is None:
        fields.update((name, column.to_arrow()) for name, column in columns.items())
    else:
        columns["time"] = Column(len(hi), milliseconds_of(hi))
        scope: dict[str | None, VectorRows] = {None: Table(len(hi), columns, lo, hi)}
        scope.update((alias, TableRows(table.take(rows))) for alias, rows in (aliases or {}).items())
        fields.update((name, evaluate_joined(tree, scope, len(hi)).to_arrow()) for name, tree in program.given)
    keys = zip(program.keys, slots.columns(slot), strict=False)
    fields.update((name, column.to_arrow()) for name, column in keys if name not in OWN)
    if SOURCE in table.fields and not program.tells_source:
        fields[SOURCE] = agreed(table.column(SOURCE), groups).to_arrow()
    return Found(EventTable(lo, hi, fields, origins=_united(program, table, *groups)), program.tells_source)


def _united(program: Program, table: EventTable, flat: Numbers, offsets: Numbers) -> Origins:
    """The primitive events under groups of rows, each once: detections may share some."""
    if program.made_types:
        return coded([table]).united(flat, offsets).origins()
    below = table.origin()
    return Origins(below.lo[flat], below.hi[flat], below.ids.take(pa.array(flat)), offsets)


def without_copies(found: Found) -> Found:
    """Of detections with one stamp, the same events under them and the same attributes, the first."""
    table = found.table
    same = np.flatnonzero((table.hi[1:] == table.hi[:-1]) & (table.lo[1:] == table.lo[:-1]))
    if not len(same):
        return found
    tied = np.unique(np.concatenate((same, same + 1)))
    is_first, seen = np.ones(len(table), np.bool_), set()
    for row, event in zip(tied.tolist(), table.take(tied).events(), strict=True):
        copy = event.lo, event.hi, event.origin, attribute_key(event.attributes), event.source if found.tells_source else None
        is_first[row] = copy not in seen
        seen.add(copy)
    return found if is_first.all() else replace(found, table=table.take(np.flatnonzero(is_first)))


def key_ranks(slots: Slots, parts: int, slot: Numbers) -> list[str]:
    """Where equal order leaves it to the key, whose first parts are those of `per`."""
    some, index = numbered(slot, len(slots))
    ranks = [key_rank(key[:parts]) for key in slots.known.taken(some)]
    return [ranks[one] for one in index.tolist()]


def key_places(slots: Slots, slot: Numbers) -> Numbers:
    """Where keys stand in order, for what has no events."""
    some, index = numbered(slot, len(slots))
    ranks = [*map(key_rank, slots.known.taken(some))]
    places = np.empty(len(some), np.int64)
    places[sorted(range(len(some)), key=ranks.__getitem__)] = np.arange(len(some))
    return np.asarray(places[index])


def passing(
    tests: Sequence[Expr], table: EventTable, groups: Groups, ends: tuple[Numbers, Numbers], results: Mapping[str, Column]
) -> Mask:
    """Composites for which all tests hold."""
    columns = _columns(_bare(tests), table, groups, results)
    whole = Table(len(ends[0]), columns | {"time": Column(len(ends[0]), milliseconds_of(ends[1]))}, *ends)
    found = np.ones(whole.length, np.bool_)
    for test in tests:
        found &= holds(test, whole)
    return found


def _columns(names: set[str], table: EventTable, groups: Groups, results: Mapping[str, Column]) -> dict[str, Column]:
    return {name: results[name] if name in results else agreed(table.column(name), groups) for name in sorted(names)}


def _read(program: Program, table: EventTable, results: Mapping[str, Column]) -> set[str]:
    """Attributes of the composite that anybody reads."""
    if program.given is None:
        return {*table.attributes, *results}
    return _bare([tree for _, tree in program.given])


def _bare(trees: Sequence[Expr]) -> set[str]:
    """Attributes of the composite itself; its type and id are null."""
    nodes = (node for tree in trees for node in walk(tree))
    return {n.name for n in nodes if isinstance(n, Reference) and n.alias is None} - {"type", "id", "time"}


SMALL = 8
"""Members of a group for which numbers of all groups are compared at once."""

UNREAD = frozenset({"type", "space"})
"""Fields of events that no composite has."""


def read_by(program: Program, is_read: bool, trees: Sequence[Expr] = ()) -> frozenset[str] | None:
    """Fields of events that its detections are made of; None: all attributes. Others may read the source of a detection."""
    if program.given is None:
        return None
    nodes = (node for tree in (*trees, *(tree for _, tree in program.given)) for node in walk(tree))
    own = {"id", SOURCE} if is_read else {"id"}
    return frozenset({*own, *(node.name for node in nodes if isinstance(node, Reference))})


def mentioned(program: Program) -> set[str | None]:
    """Aliases of whose events something is given."""
    nodes = [node for _, tree in program.given or () for node in walk(tree)]
    return {n.alias if isinstance(n, Reference) else n.name for n in nodes if isinstance(n, (Reference, Alias))}


# The agreement rule.


def agreed(column: Column, groups: Groups) -> Column:
    """`n` has value v iff every row of the group that has a non-null `n` has v."""
    if column.rests is not None:
        return _agreed_exactly(column, groups)
    flat, offsets = groups
    starts, filled = offsets[:-1], np.flatnonzero(np.diff(offsets))
    count = len(starts)
    parts: list[tuple[str, Any, Any]] = []
    for name, values in (("numbers", column.numbers), ("codes", column.codes), ("flags", column.flags)):
        if values is not None:
            parts.append((name, *_extremes(values[flat], starts[filled])))
    kinds = np.zeros(len(filled), np.int64)  # how many kinds of values a group has
    for _, least, _ in parts:
        kinds += ~_none(least)
    found: dict[str, Any] = {}
    for name, least, most in parts:
        one = (least == most) & (kinds == 1)
        values = np.full(count, np.nan if name == "numbers" else -1, least.dtype)
        values[filled] = np.where(one, least, values[filled])
        found[name] = values
    return Column(count, found.get("numbers"), found.get("codes"), column.texts, found.get("flags"))


def _agreed_exactly(column: Column, groups: Groups) -> Column:
    """By ranks, which stand for the numbers."""
    ranks = comparable([column])[0]
    found = agreed(replace(column, numbers=ranks, rests=None), groups)
    known, first = np.unique(ranks, return_index=True)
    assert found.numbers is not None
    missing = np.isnan(found.numbers)
    picked = column.take(first[np.searchsorted(known, np.where(missing, known[0], found.numbers))])
    assert picked.numbers is not None
    assert picked.rests is not None
    return replace(found, numbers=np.where(missing, np.nan, picked.numbers), rests=np.where(missing, np.int16(0), picked.rests))


def _none(values: Any) -> Any:
    return np.isnan(values) if values.dtype == np.float64 else values < 0


def _extremes(values: Any, starts: Numbers) -> tuple[Any, Any]:
    """The least and the greatest value of each group, none apart."""
    if not len(starts):
        return values[:0], values[:0]
    if values.dtype == np.float64:
        return _folded(np.fmin, values, starts), _folded(np.fmax, values, starts)
    far = np.iinfo(values.dtype).max
    least = _folded(np.minimum, np.where(values < 0, far, values), starts)
    return np.where(least == far, values.dtype.type(-1), least), _folded(np.maximum, values, starts)


def _folded(function: np.ufunc, values: Any, starts: Numbers) -> Any:
    """As `reduceat`; of groups that are small and of one size a member of all of them at once."""
    size = len(values) // len(starts)
    if size > SMALL or size * len(starts) != len(values) or (np.diff(starts) != size).any():
        return function.reduceat(values, starts)
    found = values[::size]
    for member in range(1, size):
        found = function(found, values[member::size])
    return found


# Places.


@dataclass(frozen=True, eq=False)
class Instants:
    """How the instants of a step came about: by the first event, which sets their timer, or by another timer."""

    order: int  # of the plan, for its timers
    rows: Rows
    first: Numbers  # the first row of each
    timers: dict[int, Place] = field(default_factory=dict)

    @cached_property
    def hi(self) -> Numbers:
        return self.rows.hi[self.first]

    @cached_property
    def roots(self) -> Numbers:
        return self.rows.roots(self.first)

    def only(self, instants: Sequence[int]) -> Instants:
        """Those that are among these: of the others nothing has to be worked out."""
        found = np.searchsorted(self.hi, instants)
        return replace(self, first=self.first[found[found < len(self.hi)]])

    def place(self, instant: int) -> Place:
        at = int(np.searchsorted(self.hi, instant))
        if at < len(self.hi) and self.hi[at] == instant:
            number, generation = self.roots[at, 1:].tolist()
            cause = self.rows.place(int(self.first[at])) if generation else (instant, 0, number, 0)
            return instant_place(instant, cause, self.order)
        return self.timers.get(instant) or instant_place(instant, (instant, 0, 0, 0), self.order)


def published(found: Sequence[tuple[int | Numbers, Found]], instants: Instants) -> EventBatch:
    """Detections of all definitions (by their orders, or by that of each), at their places."""
    some = [(order, one.shown) for order, one in found if len(one.table)]
    if not some:
        return EMPTY
    table = _merged(some) if len(some) > 1 else some[0][1]
    orders = np.concatenate([np.broadcast_to(order, len(one)) for order, one in some])
    if (orders[1:] != orders[:-1]).any():
        index = np.lexsort((orders, table.hi))  # stable: of one definition as they are
        table, orders = table.take(index), orders[index]
    here, ones = np.arange(len(table)), np.ones(len(table), np.int64)
    first = np.concatenate(([True], (table.hi[1:] != table.hi[:-1]) | (orders[1:] != orders[:-1])))
    ranks = here - np.maximum.accumulate(np.where(first, here, 0))

    def place(row: int) -> Place:
        return caused(instants.place(int(table.hi[row])), int(orders[row]), int(ranks[row]))

    matrix = LazyPlaces(lambda: np.column_stack((table.hi, -ones, ones)))
    foreign = ForeignPlaces(len(table), place)
    return EventBatch(table=EventTable(table.lo, table.hi, table.fields, 0, matrix, table.origins, foreign))


def _merged(some: Sequence[tuple[object, EventTable]]) -> EventTable:
    """Tables one after another."""
    tables = [table for _, table in some]
    names = dict.fromkeys(name for table in tables for name in table.fields)
    fields = {n: concatenated_arrays([_plain(t.fields.get(n, pa.nulls(len(t)))) for t in tables]) for n in names}
    origins = [table.origin() for table in tables]
    sizes = np.concatenate([np.diff(o.offsets) for o in origins if o.offsets is not None])
    ids = pa.concat_arrays([o.ids.cast(pa.string()) for o in origins])
    lo, hi = (np.concatenate([getattr(o, end) for o in origins]) for end in ("lo", "hi"))
    below = Origins(lo, hi, ids, np.concatenate(([0], np.cumsum(sizes))))
    return EventTable(np.concatenate([t.lo for t in tables]), np.concatenate([t.hi for t in tables]), fields, origins=below)


def _plain(array: pa.Array) -> pa.Array:
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
