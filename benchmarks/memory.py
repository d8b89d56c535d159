"""What does an open match take of memory, and does memory stay the same however long a bounded rule runs?

    python -m benchmarks.memory [LANGUAGE …]            a million open matches (rules of `snapshots`), kernel tier
    python -m benchmarks.memory soak [EVENTS [LANGUAGE …]]   the curve over a hundred million events, ten thousand keys

A process for each language, so that memory is its own. What the events themselves take is given back before it is looked at."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import show
from benchmarks.snapshots import RULES, batch
from benchmarks.spark_sizes import resident
from benchmarks.workloads import keyed
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.rulebook import loads

OPEN, PIECE = 1_000_000, 100_000
EVENTS, KEYS, STEP, POINTS = 100_000_000, 10_000, 1_000_000, 10
BOUNDED = {
    "ce": "detect K = ([t0(k = ?k)], [t1(k = ?k)] [t2(k = ?k)]) T = 10s",
    "ecco": "detect K per k = (t0 ; t1 ; t2) within 10s with recent",
    "amit": """<amit>
      <event name="t0"><eventAttribute name="k" type="string"/></event>
      <event name="t1"><eventAttribute name="k" type="string"/></event>
      <lifespan name="L"><initiator><eventInitiator event="t0" correlate="add"/></initiator><terminator>
        <eventTerminator event="t1" terminationType="discard"/><expirationInterval timeInterval="10 s"/></terminator>
        <keyBy attribute="k"/></lifespan>
      <situation name="K" lifespan="L"><not detectionMode="deferred"><operandNot event="t1"/></not></situation></amit>""",
    "eql": "sequence by k with maxspan=10s [t0 where true] [t1 where true] [t2 where true]",
    "ecl": "monitor m by k = repeat { push(x) { sequential { t0, t1, t2 } } }",
}


def settled() -> int:
    """Bytes in use, after what is free was given back."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return resident()


def open_matches(language: str) -> float:
    """Bytes of each, a million open."""
    graph = Graph(loads(RULES[language], language).plans("kernel"))
    graph.advance(graph.initial(), batch("order", np.arange(1000), 1))  # compiled and warm
    state, before = graph.initial(), settled()
    for number, first in enumerate(range(0, OPEN, PIECE), 1):
        graph.advance(state, batch("order", np.arange(first, first + PIECE), number))
    return (settled() - before) / OPEN


def curve(language: str, events: int) -> tuple[list[float], float]:
    """MiB at even distances, and events for each second of the processor, those of making the events left out."""
    graph = Graph(loads(BOUNDED[language], language).plans("kernel"))
    state, now, used, curve = graph.initial(), 0, 0.0, list[float]()
    for number in range(1, events // STEP + 1):
        table = keyed(STEP, KEYS, 8, seed=number, start=now)
        begun = time.process_time()
        graph.advance(state, EventBatch(table=table))
        used += time.process_time() - begun
        now = int(table.hi[-1])
        del table
        if number * POINTS % (events // STEP) < POINTS:
            curve.append(settled() / 2**20)
    return curve, events / used


def apart(question: Callable[..., Any], *arguments: Any) -> Any:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(question, arguments)


def main(arguments: tuple[str, ...] = ()) -> None:
    if arguments[:1] != ("soak",):
        figures = {language: f"{apart(open_matches, language):,.0f} bytes" for language in arguments or RULES}
        show(f"An open match, of {OPEN:,}, in the kernel tier", figures, "at most 200")
        return
    events = int(arguments[1]) if arguments[1:] else EVENTS
    for language in arguments[2:] or BOUNDED:
        points, speed = apart(curve, language, events)
        figures = {f"MiB after {events * n // POINTS:,} events": f"{point:,.0f}" for n, point in enumerate(points, 1)}
        show(f"Memory of a bounded rule in {language}; {speed:,.0f} events/s", figures)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
