"""Does a step cost what is touched and what is due, or all timers that are set?

Each key has a timer; a thousand keys are touched a step, a hundred others are due. `python -m benchmarks.timers NAME` asks for
one rule."""

from __future__ import annotations

import statistics
import sys

import numpy as np

from benchmarks.measure import show
from benchmarks.snapshots import AMIT, ROWS, batch, timed
from coincide.engines.graph import Graph
from coincide.rulebook import loads

SIZES = (10_000, 1_000_000)
TOUCHED, DUE, STEPS = 1_000, 100, 5
WAIT = 1_000  # seconds
WITHIN = ROWS.replace("'30' DAY", f"'{WAIT}' SECOND").replace("P+ R", "P* R?")
RULES = {
    "Amit, absence": ("amit", AMIT.replace("2592000000", f"{WAIT}000")),
    "ECCO, silence": ("ecco", f"detect unpaid per k = order ; not payment over {WAIT}s"),
    "Opera, time event": ("ce", f"detect K = ([order(k = ?k)], [T]) T = {WAIT}s"),
    "Opera, bound": ("ce", f"detect K = ([order(k = ?k)], [payment(k = ?k)] [refund(k = ?k)]) T = {WAIT}s"),
    "EQL, missing item": ("eql", f"sequence by k with maxspan={WAIT}s [order where true] ![payment where true]"),
    "row pattern, WITHIN": ("matchrecognize", WITHIN),
}


def measured(language: str, text: str, size: int) -> float:
    """Milliseconds of CPU: a step, when the next timer is due, and what has changed."""
    graph = Graph(loads(text, language).plans("kernel"))
    state, random, early = graph.initial(), np.random.default_rng(1), DUE * (STEPS + 1)

    def step(kind: str, keys: np.ndarray, second: int) -> None:
        graph.advance(state, batch(kind, keys, second), (second + 1) * 1_000_000)
        graph.due(state)
        graph.changes(state)

    for second in range(1, 2 + STEPS):
        step("order", np.arange(DUE * (second - 1), DUE * second), second)
    step("order", np.arange(early, size), 500)
    step("payment", np.arange(early, early + TOUCHED), 600)
    keys = [early + random.choice(size - early, TOUCHED, replace=False) for _ in range(STEPS)]
    return statistics.median(timed(lambda n=n: step("payment", keys[n], WAIT + 1 + n)) for n in range(STEPS))


def main(names: tuple[str, ...] = (*RULES,)) -> None:
    figures = {}
    for name in names:
        measured(*RULES[name], SIZES[0])  # compiled and warm
        few, many = (measured(*RULES[name], size) for size in SIZES)
        figures[name] = f"{few:.1f} ms; {many:.1f} ms; {many / few:.2f}"
    aim = "at most 1.5 times"
    show(f"A step with {TOUCHED:,} keys touched and {DUE} due: {SIZES[0]:,} timers; {SIZES[1]:,}; ratio", figures, aim)


if __name__ == "__main__":
    main(*([tuple(sys.argv[1:])] if sys.argv[1:] else []))
