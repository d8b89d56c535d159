"""Indexes for equality: of each event, the candidates of another operand that have the same value.

All candidates of a step are known before the loop begins, so an index is a sorting of those in the cells that it touches, and a
search is made once for each event, over whole columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coincide.detection.situation.kernel.tables import Index

Stream = tuple[Any, Any, Any]
"""Cells, refs and positions, by cell and position."""


def by_equality(indexes: Sequence[Index], streams: Mapping[int, Stream], values: Any, ranges: Any) -> Any:
    """Notes by index and ref from where to where in the result the candidates are; there stand positions, by cell and value."""
    equal, length = [np.zeros(0, np.int64)], 0
    for number, index in enumerate(indexes):
        if index.operand not in streams:
            continue
        cells, refs, positions = streams[index.operand]
        other_cells, other_refs, _ = streams[index.other]
        codes, other_codes = _codes(values[index.column, refs], values[index.other_column, other_refs])
        groups = np.where(codes < 0, -1, cells * (1 + len(refs)) + codes)
        order = np.argsort(groups, kind="stable")
        wanted = np.where(other_codes < 0, -2, other_cells * (1 + len(refs)) + other_codes)
        for side in range(2):
            found = np.searchsorted(groups[order], wanted, "right" if side else "left")
            ranges[2 * number + side, other_refs] = length + found
        equal.append(positions[order])
        length += len(refs)
    return np.concatenate(equal).astype(np.int64)


def _codes(values: Any, others: Any) -> tuple[Any, Any]:
    """Equal numbers for equal values; -1 for null, and for what is not among the values."""
    known = np.unique(values[~np.isnan(values)])
    if not len(known):
        return np.full(len(values), -1), np.full(len(others), -1)
    found = [np.minimum(np.searchsorted(known, some), len(known) - 1) for some in (values, others)]
    codes, other_codes = (np.where(known[at] == some, at, -1) for at, some in zip(found, (values, others), strict=True))
    return codes, other_codes
