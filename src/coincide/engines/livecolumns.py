"""What a stage has to know of columns that come in order, to let them pass as they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.model.event import HEARTBEAT
from coincide.model.stamp import order_key
from coincide.model.table import EventTable
from coincide.stages import Ordered

_DIGITS = r"^[1-9][0-9]{0,17}$"


def in_order(table: EventTable) -> Ordered | None:
    """None: times fall, ids do not count up, or heartbeats are among them."""
    rows = len(table)
    if not rows or not bool((table.hi[1:] >= table.hi[:-1]).all()):
        return None
    ids = _numbers(table.fields["id"])
    if ids is None or not bool((ids[1:] > ids[:-1]).all()) or HEARTBEAT in table.column("type").texts:
        return None
    lo = table.lo
    if lo is not table.hi and bool(((table.hi[1:] == table.hi[:-1]) & (lo[1:] < lo[:-1])).any()):
        return None
    first, last = (order_key(int(lo[row]), int(table.hi[row]), str(int(ids[row]))) for row in (0, rows - 1))
    return Ordered(first, last, rows)


def _numbers(ids: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Ids that are whole numbers from 1 on, spelled as such."""
    if not pa.types.is_integer(ids.type):
        ids = ids.cast(pa.string())
        if ids.null_count or not pc.all(pc.match_substring_regex(ids, _DIGITS)).as_py():
            return None
        ids = ids.cast(pa.int64())
    numbers = ids.to_numpy(zero_copy_only=False)
    return numbers if not ids.null_count and numbers[0] > 0 else None
