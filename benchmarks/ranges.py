"""Rules without a key, cut into ranges of time: how much sooner would as many cores be done?

The same events in one piece, and in ranges, as `ranges=` has them on Spark: monitors run from all their states, other rules begin
a sixteenth early, and ranges that do not fit what was before run again. What counts is the CPU of the range that takes longest,
in each round: cores of their own would wait for that one. Reading and the shuffle are not in it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.measure import show
from benchmarks.snapshots import timed
from coincide.adapters.tableorder import sliced
from coincide.engines.graph import Graph
from coincide.engines.ranges import RangedGraph, Unsettled
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import loads
from coincide.testing.ranges import CutRun, ranges_of

EVENTS = {"kernel": 1_000_000, "interpreter": 60_000}
CORES = (2, 4)
EARLY = 16
MANY = "\n".join(
    f"monitor m{n} = repeat {{ push(x{n}) {{ sequential {{ {', '.join(f'{t} and v > {n % 7}' for t in 'abc')} }} }} }}"
    for n in range(40)
)
RULES = {
    "ECL": ("monitor m = repeat { push(x) { sequential { a, b, c } } }", "ecl"),
    "ECL that never forgets": ("monitor m = repeat { push(x) { sequential { a, a } } }", "ecl"),
    "ECL that waits for ever": ("monitor m = push(x) { sequential { a, never, b } }", "ecl"),
    "ECL, 40 monitors": (MANY, "ecl"),
    "Opera": ("detect x = ([a], [b] [c]) T = 1s", "ce"),
    "ECCO": ("detect x = (a ; b ; c) within 1s with recent", "ecco"),
    "ECCO, all pairs": ("detect x = (a ; b ; c) within 1s", "ecco"),
    "ECCO of detections": ("detect x = (a ; b) within 1s with recent\ndetect y = (x ; c) within 2s", "ecco"),
    "EQL": ("sequence with maxspan=1s [a where true] [b where true] [c where true]", "eql"),
}


def batch(size: int) -> EventBatch:
    random, hi = np.random.default_rng(1), 100_000 * np.arange(size)
    types = pa.DictionaryArray.from_arrays(pa.array(random.integers(0, 12, size), pa.int32()), list("abcdefghijkl"))
    ids, values = pa.array(np.arange(size)).cast(pa.string()), pa.array(random.integers(0, 10, size).astype(float))
    return EventBatch(table=EventTable(hi, hi, {"type": types, "id": ids, "v": values}))


def in_ranges(graph: Graph, events: EventBatch, count: int) -> tuple[CutRun, str]:
    """With what it detects, or why one task is needed."""
    size = len(events) // count
    early = size // EARLY if RangedGraph(graph).begins_early else 0
    cut = CutRun(graph, events, ranges_of(events, [number * size for number in range(1, count)], early))
    try:
        cut.settle()
    except Unsettled as unsettled:
        return cut, f"one task: what was before still matters ({unsettled})"
    return cut, ""


def question(name: str, tier: str) -> None:
    events, graph = batch(EVENTS[tier]), Graph(loads(*RULES[name]).plans(tier))
    whole: list[int] = []

    def sequential() -> None:
        state, fresh = graph.initial(), EventBatch(table=sliced(events.table, 0, len(events)))
        whole.append(len(graph.advance(state, fresh)) + len(graph.finish(state)))

    sequential()  # compiled and warm
    took = min(timed(sequential) for _ in range(2))
    figures = {"in one piece": f"{took:,.0f} ms, {whole[-1]:,} detections"}
    for count in CORES:
        cut, said = min((in_ranges(graph, events, count) for _ in range(2)), key=lambda pair: sum(pair[0].took))
        assert said or sum(map(len, cut.made)) == whole[-1]
        figures[f"{count} ranges, {len(cut.took) - 1} rounds again"] = said or f"{took / sum(cut.took) / 1000:.2f} times as fast"
    show(f"Ranges of time: {name}, {tier}, {len(events):,} events", figures)


def main() -> None:
    for name in RULES:
        for tier in EVENTS:
            question(name, tier)


if __name__ == "__main__":
    main()
