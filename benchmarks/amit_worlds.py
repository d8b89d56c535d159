"""How fast are the four worlds of the Amit paper (section 4), and does the time grow with the number of events?

Events have the distribution of `benchmarks/amit/make_events.py`, made as columns. The interpreter reads a prefix."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import show
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import Rulebook, load

WORLDS = {"standby": "50 M", "noisy": "20 M", "filtered": "2 M", "complex": "0.2 M"}
SHARES = (0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.02, 0.02, 0.0025, 0.0025, 0.0025, 0.0025)
GAP = 10_000  # microseconds between two events
SIZES = (100_000, 1_000_000)
PREFIX = 10_000  # of events for the interpreter
BATCH = 100_000


def events(count: int, seed: int = 1) -> EventTable:
    """Table 1 of the paper: E1 … E14 by their shares, X even in 1 … 10."""
    random = np.random.default_rng(seed)
    hi = np.arange(1, count + 1, dtype=np.int64) * GAP
    codes = random.choice(len(SHARES), count, p=SHARES).astype(np.int32)
    names = pa.array([f"E{n}" for n in range(1, len(SHARES) + 1)])
    fields = {
        "type": pa.DictionaryArray.from_arrays(pa.array(codes), names),
        "id": pa.array(np.arange(1, count + 1)),
        "X": pa.array(random.integers(1, 11, count).astype(np.float64)),
    }
    return EventTable(hi, hi, fields)


def part(table: EventTable, start: int, end: int) -> EventTable:
    fields = {name: array.slice(start, end - start) for name, array in table.fields.items()}
    return EventTable(table.lo[start:end], table.hi[start:end], fields)


def run(rules: Rulebook, table: EventTable, tier: str) -> tuple[float, dict[str, Any]]:
    """CPU seconds, and the statistics (AMIT-63). Detections are made as they would be handed on, then let go."""
    graph = Graph(rules.plans(tier))
    state = graph.initial()
    begun = time.process_time()
    for start in range(0, len(table), BATCH):
        graph.advance(state, EventBatch(table=part(table, start, min(start + BATCH, len(table)))))
    return time.process_time() - begun, graph.statistics(state)


def main(sizes: tuple[int, ...] = SIZES) -> None:
    table = events(max(sizes))
    for world, aim in WORLDS.items():
        rules = load(Path(__file__).parent / "amit" / f"{world}.amit.xml")
        run(rules, part(table, 0, 1000), "kernel")  # compiled and warm
        figures, times = {}, []
        for size in sizes:
            seconds, counts = run(rules, part(table, 0, size), "kernel")
            times.append(seconds)
            figures[f"kernel tier, {size:,} events"] = speed(size, seconds)
            figures[f"  detections, {size:,} events"] = f"{counts.get('detections', 0):,}"
            opened, closed = (counts.get(f"lifespans_{word}", 0) for word in ("initiated", "terminated"))
            figures[f"  lifespans opened, closed, {size:,} events"] = f"{opened:,} {closed:,}"
        seconds, _ = run(rules, part(table, 0, PREFIX), "interpreter")
        figures[f"interpreter, {PREFIX:,} events"] = speed(PREFIX, seconds)
        if len(sizes) > 1:
            figures["growth of the time at ten times the events"] = f"{times[-1] / max(times[0], 1e-9):.1f}"
        show(f"Amit's {world} world", figures, f"{aim} events/s")


def speed(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-9) / 1e6:.3g} M events/s"


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or SIZES)
