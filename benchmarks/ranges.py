"""Rules without a key, cut into ranges of time: how much sooner would as many cores be done?

The same events in one piece, and in ranges that each begin an eighth early, as `ranges=` has them on Spark; ranges that do not
fit what was before run again. What counts is the CPU of the range that takes longest, in each round: cores of their own would
wait for that one. Reading and the shuffle are not in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from benchmarks.measure import show
from benchmarks.snapshots import timed
from coincide.adapters.tableorder import sliced
from coincide.engines.graph import Graph
from coincide.engines.ranges import Digests, Ending, Range, Stretch, run_range, settled
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import loads

EVENTS = {"kernel": 1_000_000, "interpreter": 60_000}
CORES = (2, 4)
EARLY = 8
RULES = {
    "ECL": ("monitor m = repeat { push(x) { sequential { a, b, c } } }", "ecl"),
    "ECL that never forgets": ("monitor m = repeat { push(x) { sequential { a, a } } }", "ecl"),
    "Opera": ("detect x = ([a], [b] [c]) T = 1s", "ce"),
    "ECCO": ("detect x = (a ; b ; c) within 1s with recent", "ecco"),
    "EQL": ("sequence with maxspan=1s [a where true] [b where true] [c where true]", "eql"),
}


def batch(size: int) -> EventBatch:
    random, hi = np.random.default_rng(1), 100_000 * np.arange(size)
    types = pa.DictionaryArray.from_arrays(pa.array(random.integers(0, 12, size), pa.int32()), list("abcdefghijkl"))
    ids = pa.array(np.arange(size)).cast(pa.string())
    return EventBatch(table=EventTable(hi, hi, {"type": types, "id": ids}))


class Cut:
    """A run in ranges, one after another; `took` is the time of the longest in each round."""

    def __init__(self, graph: Graph, events: EventBatch, count: int) -> None:
        self.graph, self.events = graph, events
        size, hi = len(events) // count, events.table.hi
        firsts = [number * size for number in range(1, count)]
        lows = [first - size // EARLY for first in firsts]
        cuts = [int(hi[first]) for first in firsts]
        starts = [(None, None, 0), *((cut, int(hi[low]), low) for cut, low in zip(cuts, lows, strict=True))]
        self.parts = [Range(first, end, low, before) for (first, low, before), end in zip(starts, [*cuts, None], strict=True)]
        self.found: dict[int, Stretch] = {}
        self.made: dict[int, int] = {}
        self.took: list[float] = []

    def run(self, numbers: Sequence[int], again: bool) -> Mapping[int, Digests]:
        before = dict(self.found)
        times = [timed(lambda n=n: self._one(n, before[n - 1].state if again else None)) for n in numbers]
        self.took.append(max(times))
        return {number: self.found[number].digests for number in numbers}

    def _one(self, number: int, entry: bytes | None) -> None:
        part, hi = self.parts[number], self.events.table.hi
        low = 0 if part.low is None else int(hi.searchsorted(part.low))
        high = len(hi) if part.end is None else int(hi.searchsorted(part.end))
        read = EventBatch(table=sliced(self.events.table, low, high))
        made, self.found[number] = run_range(self.graph, part, read, int(hi[0]), Ending(), entry)
        self.made[number] = sum(map(len, made))


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
        cut = Cut(graph, events, count)
        fits = settled(count, cut.run)
        assert not fits or sum(cut.made.values()) == whole[-1]
        said = f"{took / sum(cut.took):.2f} times as fast" if fits else "one task: they depend on all that was before"
        figures[f"{count} ranges, {len(cut.took) - 1} rounds again"] = said
    show(f"Ranges of time: {name}, {tier}, {len(events):,} events", figures)


def main() -> None:
    for name in RULES:
        for tier in EVENTS:
            question(name, tier)


if __name__ == "__main__":
    main()
