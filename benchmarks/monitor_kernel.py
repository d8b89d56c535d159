"""How far is the kernel tier from a loop that somebody writes by hand for one automaton?"""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.measure import best, show
from benchmarks.workloads import THREE_STEPS, fresh, keyed
from coincide import loads
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch

EVENTS, KEYS, TYPES = 5_000_000, 10_000, 8


@numba.njit
def by_hand(types, keys, count, out):  # type: ignore[no-untyped-def]
    """t0, then t1, then t2, per key; the rows that complete it."""
    states, made = np.zeros(count, np.int8), 0
    for i in range(len(types)):
        key = keys[i]
        state = states[key]
        if types[i] == state:
            if state == 2:
                states[key] = 0
                out[made] = i
                made += 1
            else:
                states[key] = state + 1
    return out[:made]


def main() -> None:
    table = keyed(EVENTS, KEYS, TYPES)
    types, keys = (table.fields[name].indices.to_numpy() for name in ("type", "k"))
    out = np.empty(EVENTS, np.int64)
    rules = loads(THREE_STEPS)

    def ours() -> EventBatch:
        graph = Graph(rules.plans("kernel"))
        return graph.advance(graph.initial(), EventBatch(table=fresh(table)))

    hand, rows = best(lambda: by_hand(types, keys, KEYS, out))
    kernel, made = best(ours)
    assert made.table.origin().ids.to_pylist() == (rows + 1).tolist()
    show(
        f"A keyed three-step monitor over {EVENTS:,} events in memory, {KEYS:,} keys, {len(made):,} detections",
        {
            "a bare loop, written by hand for it": f"{EVENTS / hand / 1e6:.0f} M events/s",
            "kernel tier, detections as columns": f"{EVENTS / kernel / 1e6:.0f} M events/s",
            "ratio of times": f"{kernel / hand:.1f}",
        },
        "4 at most",
    )


if __name__ == "__main__":
    main()
