"""The total order over columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.adapters.faults import Mask
from coincide.model.column import Rows
from coincide.model.fields import changed
from coincide.model.fields import joined as joined_columns
from coincide.model.sorting import stable_order
from coincide.model.stamp import OrderKey, order_key
from coincide.model.table import EventTable, Instants, concatenated_arrays

_WHOLE = r"^-?[0-9]+$"
_PLAIN = r"^-?[1-9][0-9]{0,17}$"  # whole numbers of which no two are spelled differently
_SURE_DIGITS = 18  # of an int64


def sorted_table(table: EventTable) -> EventTable:
    """External events in total order; the same table if they stand so already."""
    rows = total_order(table.lo, table.hi, table.fields["id"])
    return table if rows is None else taken(table, rows)


def arranged_tables(tables: Sequence[EventTable], target: int) -> Iterator[EventTable]:
    """Tables one after another, in order, in pieces of `target` rows. What is in order is not copied."""
    tables = [sorted_table(table) for table in tables]
    if not consecutive(tables):
        tables = [sorted_table(joined(tables))]
    for table in tables:
        yield from pieces(table, target)


def pieces(table: EventTable, target: int) -> Iterator[EventTable]:
    for start in range(0, len(table), target):
        yield sliced(table, start, min(start + target, len(table)))


def freed(tables: Sequence[EventTable], bound: float) -> tuple[Sequence[EventTable], Sequence[EventTable]] | None:
    """Of events in any order those before the bound, in total order, and the others, in total order, too; None: these are more
    than half, so that it would not pay to sort them now. What is in order is not copied, nor cut into small pieces."""
    if 2 * sum(int(np.count_nonzero(table.hi < bound)) for table in tables) < sum(map(len, tables)):
        return None
    tables = [sorted_table(table) for table in tables]
    if consecutive(tables):
        whole = bisect_left(tables, bound, key=lambda table: int(table.hi[-1]))
        return tables[:whole], tables[whole:]
    table = sorted_table(joined(tables))
    row = int(np.searchsorted(table.hi, bound))
    return [sliced(table, 0, row)], [sliced(table, row, len(table))]


def consecutive(tables: Sequence[EventTable]) -> bool:
    """Whether each of these sorted tables begins where the one before has ended."""
    ends = [(key_of(table, 0), key_of(table, len(table) - 1)) for table in tables]
    return all(a[1] <= b[0] for a, b in pairwise(ends))


def key_of(table: EventTable, row: int) -> OrderKey:
    return order_key(int(table.lo[row]), int(table.hi[row]), str(table.fields["id"][row].as_py()))


def total_order(lo: Instants, hi: Instants, ids: pa.Array, contents: Iterable[pa.Array] | None = None) -> Rows | None:
    """The rows in total order; None: as they are. Ids are compared only where stamps are equal, and where these are, too, events
    stand in the order of their `contents`, if they are given, else as they are."""
    later = hi[1:] > hi[:-1]
    if later.all():
        return None
    order = None if _ascending(lo, hi, later) else _by_stamp(lo, hi)
    if order is not None:
        lo, hi = lo[order], hi[order]
    same = hi[1:] == hi[:-1]
    if lo is not hi:
        same &= lo[1:] == lo[:-1]
    if order is None and _follow(ids, same, contents is not None):
        return None
    tied = np.flatnonzero(_beside(same))
    if not len(tied):
        return order
    rows = tied if order is None else order[tied]
    group = np.insert(np.cumsum(~same), 0, 0)[tied]
    keys = (*_id_keys(ids.take(pa.array(rows))), group)
    within = np.lexsort(keys)
    if contents is not None and (equal := _with_equals([key[within] for key in keys])).any():
        ranks = np.zeros(len(rows), np.int64)
        ranks[within[equal]] = _content_ranks(contents, rows[within[equal]])
        within = np.lexsort((ranks, *keys))
    if bool((within[1:] > within[:-1]).all()):
        return order
    order = np.arange(len(hi)) if order is None else order
    order[tied] = rows[within]
    return order


def _beside(same: Mask) -> Mask:
    """Rows that are the same as the one before or after them."""
    return np.append(same, False) | np.insert(same, 0, False)


def _with_equals(keys: Sequence[Instants]) -> Mask:
    """Of sorted rows, those that have an equal one."""
    same: Mask = np.logical_and.reduce([key[1:] == key[:-1] for key in keys])
    return _beside(same)


def _content_ranks(contents: Iterable[pa.Array], rows: Rows) -> Instants:
    index = pa.array(rows)
    spelled = [repr(row) for row in zip(*(array.take(index).to_pylist() for array in contents), strict=True)]
    return np.unique(np.array(spelled), return_inverse=True)[1]


def _follow(ids: pa.Array, same: Mask, strictly: bool) -> bool:
    """Do numbers stand in order where stamps are the same?"""
    if ids.type != pa.int64():
        return False
    numbers = ids.to_numpy(zero_copy_only=False)
    before, after = numbers[:-1], numbers[1:]
    return bool(((before < after if strictly else before <= after) | ~same).all())


def _ascending(lo: Instants, hi: Instants, later: Mask) -> bool:
    """`later`: where hi is greater than the one before."""
    if lo is hi:
        return bool((hi[1:] >= hi[:-1]).all())
    return bool((later | ((hi[1:] == hi[:-1]) & (lo[1:] >= lo[:-1]))).all())


def _by_stamp(lo: Instants, hi: Instants) -> Rows:
    return stable_order(hi) if lo is hi or np.array_equal(lo, hi) else stable_order(lo, hi)


def _id_keys(ids: pa.Array) -> list[Instants]:
    """Keys of ids, the least important first."""
    if pa.types.is_integer(ids.type):
        return [ids.to_numpy(zero_copy_only=False)]
    ids = ids.cast(pa.string())
    if pc.all(pc.match_substring_regex(ids, _PLAIN)).as_py():
        return [ids.cast(pa.int64()).to_numpy(zero_copy_only=False)]
    spelling = pc.rank(ids, tiebreaker="dense").to_numpy(zero_copy_only=False)  # UTF-8 bytes order as code points do
    whole = pc.match_substring_regex(ids, _WHOLE)
    if not pc.any(whole).as_py():
        return [spelling]
    digits = pc.if_else(whole, ids, "0")
    if pc.max(pc.binary_length(digits)).as_py() <= _SURE_DIGITS:
        numbers = digits.cast(pa.int64()).to_numpy(zero_copy_only=False)
    else:
        numbers = _ranked_numbers(digits)
    return [spelling, numbers, np.asarray(pc.invert(whole)).astype(np.int64)]


def _ranked_numbers(digits: pa.Array) -> Instants:
    """Numbers of any length, by their rank."""
    numbers = [int(text) for text in digits.to_pylist()]
    ranks = {number: rank for rank, number in enumerate(sorted(set(numbers)))}
    return np.array([ranks[number] for number in numbers], np.int64)


def taken(table: EventTable, rows: Rows) -> EventTable:
    """External events of a table, not yet numbered."""
    index, lo = pa.array(rows), table.lo[rows]
    hi = lo if table.hi is table.lo else table.hi[rows]
    return EventTable(lo, hi, changed(table.fields, lambda array: array.take(index)))


def without_late(table: EventTable, mark: int | None, delay: int) -> tuple[EventTable, EventTable, Instants]:
    """Of events as they come those in time, the late ones, and the time of the latest event before each of these: late is what is
    earlier than that by more than the delay. The `mark` is the time of the latest before all of them."""
    hi = table.hi
    before = np.maximum.accumulate(np.concatenate((hi[:1] if mark is None else [mark], hi[:-1])))
    late = hi < before - delay
    if not late.any():
        return table, sliced(table, 0, 0), before[:0]
    return taken(table, np.flatnonzero(~late)), taken(table, np.flatnonzero(late)), before[late]


def sliced(table: EventTable, start: int, stop: int) -> EventTable:
    fields = changed(table.fields, lambda array: array.slice(start, stop - start))
    return EventTable(table.lo[start:stop], table.hi[start:stop], fields)


def joined(tables: Sequence[EventTable]) -> EventTable:
    """External events of several tables, one after another."""
    names = dict.fromkeys(name for table in tables for name in table.fields)
    lo, hi = (np.concatenate([getattr(table, end) for table in tables]) for end in ("lo", "hi"))
    fields = joined_columns([*names], [table.fields for table in tables], lambda name: _joined_field(name, tables))
    return EventTable(lo, hi, fields)


def _joined_field(name: str, tables: Sequence[EventTable]) -> pa.Array:
    arrays = [table.fields.get(name, pa.nulls(len(table))) for table in tables]
    if name == "id" and any(array.type != pa.int64() for array in arrays):
        arrays = [array.cast(pa.string()) for array in arrays]
    return concatenated_arrays(arrays)
