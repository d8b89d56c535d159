"""Streams to measure on. All are made, none is read: the same seed gives the same stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coincide.model.table import EventTable

THREE_STEPS = "monitor m by k = repeat { push(x) { sequential { t0, t1, t2 } } }"


def keyed(events: int, keys: int, types: int, seed: int = 1, start: int = 0) -> EventTable:
    """Events of `types` types t0, t1 … and `keys` keys k0, k1 …, both even, with a value v from 0 to 100."""
    random = np.random.default_rng(seed)
    hi = start + np.cumsum(random.integers(1, 2000, events)).astype(np.int64)
    fields = {
        "type": _coded(random.integers(0, types, events), [f"t{n}" for n in range(types)]),
        "id": pa.array(np.arange(1, events + 1)),
        "k": _coded(random.integers(0, keys, events), [f"k{n}" for n in range(keys)]),
        "v": pa.array(np.round(random.random(events) * 100, 3)),
    }
    return EventTable(hi, hi, fields)


def fresh(table: EventTable) -> EventTable:
    """The same events without anything that was worked out about them before."""
    return EventTable(table.lo, table.hi, dict(table.fields))


def many_monitors(count: int, types: int, seed: int = 3) -> str:
    """Different monitors, each of three types, with a threshold on the second."""
    random = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        a, b, c = random.choice(types, 3, replace=False)
        second = f"t{b} and v > {random.integers(0, 100)}"
        lines.append(f"monitor m{number} by k = repeat {{ push(x{number}) {{ sequential {{ t{a}, {second}, t{c} }} }} }}")
    return "\n".join(lines)


def _coded(codes: np.ndarray, texts: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(texts))
