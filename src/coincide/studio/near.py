"""Near misses of a run: why a rule has made no detection for a key in a stretch of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coincide.errors import InputError
from coincide.misses.answer import why_not
from coincide.misses.asking import question
from coincide.model.stamp import milliseconds
from coincide.studio.running import Run

MOST = 5_000
"""Events that are looked at."""
TRIES = 1_500

Span = tuple[int, int]


def near_misses(run: Run, rule: str, key: Mapping[str, str], span: Span | None) -> dict[str, Any]:
    """Of the events with the key, in the time and as long before and behind it. Raises InputError."""
    rows = _rows(run, key, span)
    if len(rows) > MOST:
        raise InputError(f"{len(rows):,} events are too many to look at: give a key, or mark a stretch of time (Shift and drag)")
    events = run.store.events(rows.tolist())
    at = None if span is None else tuple(milliseconds(end) for end in span)
    asked = question(run.book, events, rule, dict(key) or None, at)
    answer = why_not(run.book, events, asked, None, tries=TRIES)
    return {**answer.record, "text": str(answer), "events": len(rows)}


def _rows(run: Run, key: Mapping[str, str], span: Span | None) -> Any:
    ends = run.store.times[1]
    mask = np.ones(len(ends), np.bool_)
    for name, value in key.items():
        mask &= run.store.lanes_where(name, value)[0]
    if span is not None:
        beyond = span[1] - span[0]
        mask &= (ends >= span[0] - beyond) & (ends <= span[1] + beyond)
    return np.flatnonzero(mask)
