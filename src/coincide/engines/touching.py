"""Which keys events touch, as hashes (columns/hashes.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coincide.detection.columns.hashes import Hashes, key_hashes
from coincide.detection.columns.keys import key_codes
from coincide.model.batch import EventBatch


def touched(events: EventBatch, key: Sequence[str]) -> Hashes | None:
    """In order. None: it is not to be told, since events have several keys, or none have one."""
    found = _by_row(events, key) if len(events) else None
    return None if found is None else np.unique(found[1])


def of_keys(events: EventBatch, key: Sequence[str], hashes: Hashes) -> EventBatch:
    """Those events that touch keys with these hashes; if it is not to be told, all."""
    found = _by_row(events, key)
    if found is None:
        return events
    codes, known = found
    wanted = np.append(np.isin(known, hashes), True)  # behind the last, for -1: what has no key is of no matter, or of all
    return EventBatch(table=events.table.take(np.flatnonzero(wanted[codes])))


def _by_row(events: EventBatch, key: Sequence[str]) -> tuple[Hashes, Hashes] | None:
    """For each row the number of its key, or -1; and the hashes of keys."""
    columns = [events.table.column(name) for name in key]
    if any(column.compounds is not None for column in columns):
        return None
    codes, keys = key_codes(columns)
    return codes.astype(np.int64), key_hashes(keys)
