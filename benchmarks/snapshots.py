"""Does a snapshot, and a step, cost what is touched, or what is open?

Each key has something open: in Amit a lifespan that waits for an event that is absent, in the others the beginning of what is
looked for. Then, again and again, a thousand keys are touched: what they had open ends or goes on, and more is opened. What is
measured is the step, what has changed since the last one, and the whole. `python -m benchmarks.snapshots NAME` asks for one."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import show
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import loads

AMIT = """<amit>
  <event name="order"><eventAttribute name="k" type="string"/></event>
  <event name="payment"><eventAttribute name="k" type="string"/></event>
  <key name="K"><eventKey event="order" attribute="k"/><eventKey event="payment" attribute="k"/></key>
  <lifespan name="L">
    <initiator><eventInitiator event="order" correlate="add"/></initiator>
    <terminator>
      <eventTerminator event="payment" terminationType="discard"/>
      <expirationInterval timeInterval="2592000000"/>
    </terminator>
    <keyBy name="K"/>
  </lifespan>
  <situation name="unpaid" lifespan="L">
    <not detectionMode="deferred"><operandNot event="payment"/></not>
  </situation>
</amit>"""
ECL = "monitor refunds by k = push(refunded) { sequential { order, payment, refund } }"
EQL = "sequence by k with maxspan=30d [order where true] [payment where true] [refund where true]"
OPERA = "detect K = ([order(k = ?k)], [payment(k = ?k)] [refund(k = ?k)]) T = 30d"
ROWS = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY time MEASURES LAST(R.time) AS refunded
    PATTERN (O P+ R) WITHIN INTERVAL '30' DAY
    DEFINE O AS type = 'order', P AS type = 'payment' OR type = 'order', R AS type = 'refund') AS refunds"""
ECCO = "detect refunds per k = (order ; payment ; refund) within 30d with recent"
CDL = """<cd id="refunds" version="1" within="30 d">
  <sources>
    <source class="order" anchor="O"><attribute name="k" type="string"/></source>
    <source class="refund" anchor="R"><attribute name="k" type="string"/></source>
  </sources>
  <predicates><predicate name="equal" anchor="same">O.k, R.k</predicate></predicates>
  <expressions><expression anchor="X">same</expression></expressions>
  <events><event class="refunded" trigger="X"/></events>
</cd>"""
SIGMA = """name: order
logsource: {category: order}
detection: {s: {k|exists: true}, condition: s}
---
name: payment
logsource: {category: payment}
detection: {s: {k|exists: true}, condition: s}
---
name: many
correlation: {type: event_count, rules: [order, payment], group-by: [k], timespan: 30d, condition: {gte: 100}}
---
name: twice
correlation: {type: temporal_ordered, rules: [order, payment, order, payment], group-by: [k], timespan: 30d}
"""
RULES = {"amit": AMIT, "ecl": ECL, "eql": EQL, "ce": OPERA, "matchrecognize": ROWS, "ecco": ECCO, "cdl.xml": CDL, "sigma": SIGMA}
SIZES = (1_000, 10_000, 100_000, 1_000_000)
TOUCHED = 1_000
TIMES = 9


def batch(kind: str, keys: Any, second: int) -> EventBatch:
    hi = np.full(len(keys), second * 1_000_000, np.int64)
    fields = {
        "type": pa.array([kind] * len(keys)),
        "id": pa.array([f"{kind}{second}-{key}" for key in keys.tolist()]),
        "k": pa.array([f"customer {key}" for key in keys.tolist()]),
    }
    return EventBatch(table=EventTable(hi, hi, fields))


def timed(action: Callable[[], Any]) -> float:
    begun = time.process_time()
    action()
    return 1000 * (time.process_time() - begun)


def measured(language: str, size: int) -> dict[str, float]:
    """Milliseconds of CPU, medians."""
    graph = Graph(loads(RULES[language], language).plans("kernel"))
    state = graph.initial()
    graph.advance(state, batch("order", np.arange(size), 1))
    random, parts = np.random.default_rng(1), list[bytes]()
    base = graph.changes(state, everything=True)
    found: dict[str, list[float]] = {"step": [], "changes": [], "whole": [], "read": []}
    for second in range(2, 2 + TIMES):
        keys = random.choice(size, TOUCHED, replace=False)
        events = [batch("payment", keys, 2 * second), batch("order", keys, 2 * second + 1)]
        found["step"].append(sum(timed(lambda each=each: graph.advance(state, each)) for each in events))
        found["changes"].append(timed(lambda: parts.append(graph.changes(state))))
    found["whole"] = [timed(lambda: graph.encode(state))]
    found["read"] = [timed(lambda: graph.with_changes(base, parts))]
    return {name: statistics.median(values) for name, values in found.items()} | {"bytes": float(len(parts[-1]))}


def question(language: str) -> None:
    measured(language, TOUCHED)  # compiled and warm
    rows = {size: measured(language, size) for size in SIZES}
    figures = {}
    for size, row in rows.items():
        figures[f"{size:,} open: step with {TOUCHED:,} keys touched"] = f"{row['step']:.1f} ms"
        figures[f"  {size:,}: the whole; read with changes"] = f"{row['whole']:.0f} ms; {row['read']:.0f} ms"
        figures[f"  {size:,}: what has changed"] = f"{row['changes']:.1f} ms, {row['bytes']:,.0f} bytes"
    ratio = rows[SIZES[-1]]["changes"] / rows[SIZES[1]]["changes"]
    aim = f"changes at {SIZES[-1]:,} open / at {SIZES[1]:,}: {ratio:.2f} (at most 1.5)"
    show(f"Snapshots of the state of a rule in {language}", figures, aim)


def main() -> None:
    for language in sys.argv[1:] if __name__ == "__main__" and len(sys.argv) > 1 else RULES:
        question(language)


if __name__ == "__main__":
    main()
