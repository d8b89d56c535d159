"""How far sources have come, as tasks of a micro-batch tell it to every bucket: the guaranteed policy by keys (decision 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.engines.ahead import Run
from coincide.engines.arrivals import arrival_instants

REACHED = "reached"
"""Column of an event: the greatest hi that its source had reached before it came, in its task and micro-batch."""
NEVER = -(2**63)
Instants = npt.NDArray[np.int64]

Told = tuple[int, dict[str, int]]
"""A task's word: what its sources have reached in events up to this instant."""


def marks_of(events: pa.Table, runs: Sequence[Run]) -> tuple[pa.Array, bytes]:
    """What each event's source had reached before it, and what each source has reached in the end, encoded. Later runs may be set
    aside (ahead.py): for the events of a run they do not count."""
    hi = events.column("hi").to_numpy()
    reached = np.empty(len(hi), np.int64)
    told: list[Told] = []
    for first, last, _ in runs:
        rows = np.flatnonzero(hi <= last)
        some = events if len(rows) == len(hi) else events.take(pa.array(rows))
        before, marks = _reached(some)
        own = hi[rows] >= first
        reached[rows[own]] = before[own]
        told.append((last, marks))
    return pa.array(reached), msgspec.msgpack.encode(told)


def _reached(events: pa.Table) -> tuple[Instants, dict[str, int]]:
    hi = events.column("hi").to_numpy()
    codes, names = _sources(events)
    given = events.column("arrival").combine_chunks() if "arrival" in events.column_names else None
    order = np.lexsort((hi, arrival_instants(hi, given), codes))
    ends = np.searchsorted(codes[order], np.arange(len(names) + 1))
    reached = np.empty(len(hi), np.int64)
    marks: dict[str, int] = {}
    for name, start, stop in zip(names, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        if stop > start:
            rows = order[start:stop]
            running = np.maximum.accumulate(hi[rows])
            reached[rows] = np.concatenate(([NEVER], running[:-1]))
            marks[name] = int(running[-1])
    return reached, marks


def read_marks(data: bytes) -> list[Told]:
    return msgspec.msgpack.decode(data, type=list[Told])


def merged_marks(words: Iterable[Sequence[Told]], limit: int) -> dict[str, int]:
    """What all tasks have told, of events up to the limit."""
    found: dict[str, int] = {}
    for told in words:
        for _, marks in [one for one in told if one[0] <= limit][-1:]:
            advance(found, marks)
    return found


def advance(marks: dict[str, int], told: Mapping[str, int]) -> None:
    for source, mark in told.items():
        marks[source] = max(mark, marks.get(source, NEVER))


def broken(events: pa.Table, marks: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Which events break the order of their source, given what sources had reached before this micro-batch."""
    codes, names = _sources(events)
    before = np.array([marks.get(name, NEVER) for name in names], np.int64)[codes]
    late: npt.NDArray[np.bool_] = events.column("hi").to_numpy() < np.maximum(before, events.column(REACHED).to_numpy())
    return late


def _sources(events: pa.Table) -> tuple[Instants, list[str]]:
    """A number for each row's source, and their names."""
    if "source" not in events.column_names:
        return np.zeros(len(events), np.int64), [""]
    coded = events.column("source").combine_chunks().cast(pa.string()).fill_null("").dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()
