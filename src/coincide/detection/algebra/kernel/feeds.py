"""What a definition that refers to detections reads: events and detections as rows of one table, in ascending order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.algebra.kernel.rows import Numbers, Rows
from coincide.detection.columns.origins import ascending, coded
from coincide.detection.columns.store import gathered, joined
from coincide.detection.columns.tables import distinct
from coincide.model.table import EventTable


def rows_for(types: frozenset[str], foreign: frozenset[str], rows: Rows, found: Mapping[str, EventTable]) -> Rows:
    """Rows of some types, and what definitions have `found` now. Of `foreign` names are detections of other languages."""
    numbers = rows.of_types(types)
    own = numbers[numbers < rows.length]
    tables = [_without_ids(gathered(rows.tables, own, None, placed=False), foreign)] if len(own) else []
    tables += [table for name, table in sorted(found.items()) if name in types and len(table)]
    if not tables:
        return Rows([], rows.limit)
    table = joined(tables, placed=False)
    order = ascending(table.hi, table.lo, coded([table]))
    return Rows([table.take(order)], rows.limit)


def _without_ids(table: EventTable, foreign: frozenset[str]) -> EventTable:
    """Ids of detections are null to every rule."""
    rows = table.rows_of_types(foreign)
    if not len(rows) or "id" not in table.fields:
        return table
    is_made = np.zeros(len(table), np.bool_)
    is_made[rows] = True
    ids = pc.if_else(pa.array(is_made), pa.scalar(None, pa.string()), table.fields["id"].cast(pa.string()))
    return EventTable(table.lo, table.hi, {**table.fields, "id": ids}, origins=table.origin())


def is_plain(rows: Rows, made: Numbers, foreign: frozenset[str]) -> bool:
    """Are rows with names that definitions make detections of other languages, none of them late or a copy of another?"""
    if not len(made):
        return True
    roots = rows.roots(made)
    if (roots[:, 2] == 0).any() or (roots[:, 0] != rows.ends(made)).any():
        return False
    table = rows.pick(made)
    if len(table.rows_of_types(foreign)) < len(table):
        return False
    ties = np.flatnonzero(table.hi[1:] == table.hi[:-1])
    if not len(ties):
        return True
    some = table.take(distinct(np.concatenate((ties, ties + 1))))
    kinds = some.column("type")
    assert kinds.codes is not None
    keys = list(zip(kinds.codes.tolist(), some.lo.tolist(), some.hi.tolist(), some.origin().keys(), strict=True))
    return len(set(keys)) == len(keys)
