"""A run in ranges of time, one after another, as engines have them run side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import process_time

from coincide.adapters.tableorder import sliced
from coincide.engines.graph import Graph
from coincide.engines.ranges import ROUNDS, Ending, Entry, Made, Range, RangedGraph, Starts, Stretch, settled
from coincide.model.batch import EventBatch, merged


class CutRun:
    """`made` are the detections of each range, once all fits; `again` counts ranges that ran again; `took` is the CPU time of the
    longest in each round."""

    def __init__(self, graph: Graph, events: EventBatch, parts: Sequence[Range], until: float | None = None) -> None:
        self.graph, self.events, self.parts = RangedGraph(graph), events, parts
        self.ending = Ending(None, until)
        self.found: dict[int, tuple[Made, Stretch, bytes]] = {}
        self.made: list[EventBatch] = []
        self.again = 0
        self.took: list[float] = []

    def settle(self, rounds: int = ROUNDS) -> None:
        """Raises Unsettled."""
        for number, starts in enumerate(settled(len(self.parts), self._run, rounds)):
            batches, stretch, _ = self.found[number]
            chosen = stretch.chosen(starts)
            self.made.append(merged([batch for n, batch in batches if n in chosen]))

    def _run(self, numbers: Sequence[int], starts: Sequence[Starts] | None) -> Mapping[int, Stretch]:
        before = dict(self.found)
        self.again += 0 if starts is None else len(numbers)
        times = []
        for number in numbers:
            began = process_time()
            entry = None if starts is None else Entry(before[number - 1][2], starts[number])
            self.found[number] = self.graph.run(self.parts[number], self._read(number), self._start, self.ending, entry)
            times.append(process_time() - began)
        self.took.append(max(times))
        return {number: self.found[number][1] for number in numbers}

    @property
    def _start(self) -> int:
        return int(self.events.table.hi[0])

    def _read(self, number: int) -> EventBatch:
        part, hi = self.parts[number], self.events.table.hi
        low = 0 if part.low is None else int(hi.searchsorted(part.low))
        high = len(hi) if part.end is None else int(hi.searchsorted(part.end))
        return EventBatch(table=sliced(self.events.table, low, high))


def ranges_of(events: EventBatch, cuts: Sequence[int], early: int) -> list[Range]:
    """Cut at these rows; each begins so many rows early."""
    hi = events.table.hi
    firsts = [None, *sorted({int(hi[cut]) for cut in cuts if hi[cut] > hi[0]})]
    found = []
    for first, end in zip(firsts, [*firsts[1:], None], strict=True):
        low = None if first is None else int(hi[max(0, int(hi.searchsorted(first)) - early)])
        found.append(Range(first, end, low, 0 if low is None else int(hi.searchsorted(low))))
    return found
