"""What does each stability policy cost? Workload K with one event in ten so late that it breaks the order of its source.

Ten sources, each with a delay of its own; Opera, ECL (without the time bound) and Amit say the same. Without a policy the whole
input is sorted first and nothing is late."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.peers.questions import AMIT
from benchmarks.workload_k import RULE
from benchmarks.workloads import THREE_STEPS, fresh, keyed
from coincide import loads
from coincide.adapters.tableorder import sliced, sorted_table, taken
from coincide.engines.graph import Graph
from coincide.engines.policies import PolicyEngine
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import Rulebook

EVENTS, KEYS, TYPES, SOURCES = 500_000, 1_000, 8, 10
PREFIX = 50_000
BATCH = 65_536
LATE = 1_000_000  # microseconds
POLICIES = ("guaranteed", "best-effort", "probabilistic 0.9")
HEAD = ("language", "tier", "events", "policy", "events/s", "detections", "late")

Made = tuple[int, int]
"""Detections, and late events."""


def main() -> None:
    table = arriving(keyed(EVENTS, KEYS, TYPES))
    print(f"\nWorkload K, one event in ten late, {SOURCES} sources; events per CPU second")
    _line(HEAD)
    for language, rules in versions().items():
        for tier, size in (("kernel", EVENTS), ("interpreter", PREFIX)):
            some = sliced(table, 0, size)
            runs = {"none": partial(_in_order, rules, tier, some)}
            runs |= {policy: partial(_under, policy, rules, tier, some) for policy in POLICIES}
            for policy, action in runs.items():
                seconds, (found, late) = _timed(action)
                _line((language, tier, f"{size:,}", policy, f"{size / seconds / 1000:,.0f} k/s", f"{found:,}", f"{late:,}"))


def versions() -> dict[str, Rulebook]:
    sources = f"sources {', '.join(f's{n}' for n in range(SOURCES))}\n"
    return {
        "Opera": loads(sources + RULE, "ce"),
        "ECL": loads(THREE_STEPS),
        "Amit": loads(AMIT, "amit.xml"),
    }


def arriving(table: EventTable, seed: int = 5) -> EventTable:
    """The events by arrival, with their sources. A source's delay is the same for all but the late ones."""
    random = np.random.default_rng(seed)
    sources = random.integers(0, SOURCES, len(table)).astype(np.int32)
    arrival = table.hi + sources * 5_000 + np.where(random.random(len(table)) < 0.1, LATE, 0)
    names = pa.DictionaryArray.from_arrays(pa.array(sources), pa.array([f"s{n}" for n in range(SOURCES)]))
    fields = {**table.fields, "source": names, "arrival": pa.array(arrival)}
    return taken(EventTable(table.lo, table.hi, fields), np.argsort(arrival, kind="stable"))


def _in_order(rules: Rulebook, tier: str, table: EventTable) -> Made:
    graph = Graph(rules.plans(tier))
    state = graph.initial()
    found = 0
    ordered = sorted_table(fresh(table))
    for part in _parts(ordered):
        found += len(graph.advance(state, part).events)
    return found + len(graph.finish(state).events), 0


def _under(policy: str, rules: Rulebook, tier: str, table: EventTable) -> Made:
    engine = PolicyEngine(rules, policy, tier)
    found = sum(len(run.detections) for part in _parts(fresh(table)) for run in engine.process(part))
    return found, sum(engine.refused().values())


def _parts(table: EventTable) -> list[EventBatch]:
    return [EventBatch(table=sliced(table, start, min(start + BATCH, len(table)))) for start in range(0, len(table), BATCH)]


def _timed(action: Callable[[], Made]) -> tuple[float, Made]:
    """The better of two runs: the first may compile."""
    seconds = []
    for _ in range(2):
        begun = time.process_time()
        made = action()
        seconds.append(time.process_time() - begun)
    return min(seconds), made


def _line(cells: tuple[str, ...]) -> None:
    print("  " + " ".join(f"{cell:<12}" if number < 2 else f"{cell:>18}" for number, cell in enumerate(cells)))


if __name__ == "__main__":
    main()
