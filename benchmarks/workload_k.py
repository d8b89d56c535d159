"""Workload K: A, then B, then C of one key within 10 seconds; every A counts (skip till next match).

1,000 keys, 8 types, 1 ms mean gap. Opera says it with a parameter and a timer, Amit with a lifespan for each A; ECL, for
comparison, without the time bound."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

import numpy as np

from benchmarks.measure import best, show
from benchmarks.peers.questions import AMIT
from benchmarks.workloads import THREE_STEPS, fresh, keyed
from coincide import loads
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import Rulebook

EVENTS, KEYS, TYPES = 1_000_000, 1_000, 8
PREFIX = 20_000
BATCH = 100_000
WITHIN = 10_000_000
RULE = "detect K = ([t0(k = ?k)], [t1(k = ?k)] [t2(k = ?k)]) T = 10s"


def main() -> None:
    table = keyed(EVENTS, KEYS, TYPES)
    rules = loads(RULE, "ce")
    kernel, made = best(lambda: _run(rules, "kernel", table, EVENTS), 3)
    cut, made_in_batches = best(lambda: _run(rules, "kernel", table, BATCH), 3)
    expected = by_hand(table)
    assert _matches(made) == _matches(made_in_batches) == expected
    prefix = table.take(np.arange(PREFIX))
    interpreter, few = best(lambda: _run(rules, "interpreter", prefix, PREFIX), 1)
    assert _matches(few) == by_hand(prefix)
    amit_rules = loads(AMIT, "amit.xml")
    amit, situations = best(lambda: _run(amit_rules, "kernel", table, BATCH), 3)
    assert _situations(situations) == sorted(expected)
    ecl, _ = best(lambda: _run(loads(THREE_STEPS), "kernel", table, EVENTS), 3)
    show(
        f"Workload K: keyed A, B, C within 10 s; {EVENTS:,} events, {KEYS:,} keys, {len(expected):,} detections",
        {
            "Opera, kernel tier, one batch": f"{EVENTS / kernel / 1e6:.2f} M events/s",
            f"Opera, kernel tier, batches of {BATCH:,}": f"{EVENTS / cut / 1e6:.2f} M events/s",
            f"Opera, interpreter, first {PREFIX:,} events": f"{PREFIX / interpreter / 1e3:.1f} k events/s",
            f"Amit, kernel tier, batches of {BATCH:,}": f"{EVENTS / amit / 1e6:.2f} M events/s",
            "ECL without the time bound, kernel tier": f"{EVENTS / ecl / 1e6:.1f} M events/s",
        },
        "2.3 M events/s",
    )


def _run(rules: Rulebook, tier: str, table: EventTable, size: int) -> list[EventBatch]:
    graph = Graph(rules.plans(tier))
    state = graph.initial()
    made = []
    for first in range(0, len(table), size):
        part = table if size >= len(table) else _part(table, first, first + size)
        made.append(graph.advance(state, EventBatch(table=fresh(part))))
    return [*made, graph.finish(state)]


def _part(table: EventTable, first: int, end: int) -> EventTable:
    fields = {name: array[first:end] for name, array in table.fields.items()}
    return EventTable(table.lo[first:end], table.hi[first:end], fields)


def _matches(made: list[EventBatch]) -> list[tuple[int, ...]]:
    """The ids of each detection's events."""
    found: list[tuple[int, ...]] = []
    for batch in made:
        if len(batch):
            found += [tuple(map(int, ids)) for ids in batch.table.origin().lists().to_pylist()]
    return found


def _situations(made: list[EventBatch]) -> list[tuple[int, ...]]:
    """The same of Amit, which has opened a lifespan by the first one."""
    first = [int(value) for batch in made if len(batch) for value in batch.table.fields["a"].to_pylist()]
    return sorted((a, *rest) for a, rest in zip(first, _matches(made), strict=True))


def by_hand(table: EventTable) -> list[tuple[int, ...]]:
    """Each A with the first B after it and the first C after that, if they come in time; by (C, A)."""
    kinds, keys = (table.fields[name].to_pylist() for name in ("type", "k"))
    ids, times = table.fields["id"].to_pylist(), table.hi
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, kind_and_key in enumerate(zip(kinds, keys, strict=True)):
        rows[kind_and_key].append(row)
    found = []
    for (kind, key), starts in list(rows.items()):
        if kind != "t0":
            continue
        for a in starts:
            b = _next(rows["t1", key], a)
            c = _next(rows["t2", key], b) if b is not None else None
            if c is not None and times[c] <= times[a] + WITHIN:
                found.append((c, a, b))
    return [(ids[a], ids[b], ids[c]) for c, a, b in sorted(found)]


def _next(rows: list[int], after: int) -> int | None:
    at = bisect_left(rows, after + 1)
    return rows[at] if at < len(rows) else None


if __name__ == "__main__":
    main()
