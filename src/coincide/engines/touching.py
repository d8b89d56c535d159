"""Which keys events touch, as hashes (columns/hashes.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.hashes import Hashes, are_among, key_hashes
from coincide.detection.columns.keys import key_codes
from coincide.model.batch import EventBatch

ANY = 1 << 62
"""In place of the hash of what has no key: it is of no matter, or of all."""


def row_hashes(events: EventBatch, key: Sequence[str]) -> Hashes | None:
    """Of the key of each event. None: it is not to be told, since events have several keys."""
    columns = [events.table.column(name) for name in key]
    if any(column.compounds is not None for column in columns):
        return None
    codes, keys = key_codes(columns)
    found: Hashes = np.append(key_hashes(keys), ANY)[codes]  # the last, for -1
    return found


def touched(rows: Hashes) -> Hashes:
    """The keys that there are, in order."""
    found: Hashes = np.unique(rows[rows != ANY])
    return found


def of_keys(rows: Hashes, hashes: Hashes) -> npt.NDArray[np.int64]:
    """The numbers of the rows that touch keys with these hashes, which ascend."""
    return np.flatnonzero(are_among(rows, hashes) | (rows == ANY))
