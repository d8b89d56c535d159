"""How far sources have come, as tasks of a micro-batch tell it to every bucket: the guaranteed policy by keys (decision 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coincide.engines.arrivals import arrival_instants

REACHED = "reached"
"""Column of an event: the greatest hi that its source had reached before it came, in its task and micro-batch."""
NEVER = -(2**63)
Instants = npt.NDArray[np.int64]


def marks_of(events: pa.Table) -> tuple[pa.Array, bytes]:
    """What each event's source had reached before it, and what each source has reached in the end, encoded."""
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
    return pa.array(reached), msgspec.msgpack.encode(marks)


def merged_marks(encoded: Iterable[bytes]) -> dict[str, int]:
    """What all tasks have told."""
    found: dict[str, int] = {}
    for data in encoded:
        advance(found, msgspec.msgpack.decode(data, type=dict[str, int]))
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
