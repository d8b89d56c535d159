"""How fast are ECCO's windows, its sequences with negation and its silences, for 10,000 sensors, next to the same said in Amit?

Kernels take all `EVENTS`, interpreters as many as they can in some seconds. Windows of Amit are lifespans, which begin with
a sensor's first reading, not with the minute: the amount is the same, the answer is not."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from math import inf

import numpy as np
import pyarrow as pa

from benchmarks.amit_worlds import part
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable
from coincide.rulebook import Rulebook, loads

EVENTS = 1_000_000
SENSORS = 10_000
GAP = 1_000  # microseconds between two events: six of each sensor a minute
BATCH = 65_536  # as files are read
WARM = 100_000  # events after which everything has been compiled
PATIENCE = 10.0  # seconds of the processor for an interpreter

MEAN = "detect mean per sensor = reading^AVG(value) over 1min  give avg"
QUIET = "detect quiet per sensor = ((open ; shut) within 1min) - alarm  with recent"
JOINED = """
detect quiet = ((open as o ; shut as s where o.sensor = s.sensor) within 1min) - alarm as x
               where o.sensor = x.sensor  with recent  give o.sensor"""
LEFT_OPEN = "detect left_open per sensor = (open - shut) within 10s  give sensor"
UNHEARD = "detect unheard per sensor = not open over 20s  give sensor"

AMIT_EVENTS = "".join(
    f'<event name="{name}"><eventAttribute name="sensor" type="number"/><eventAttribute name="value" type="number"/></event>'
    for name in ("reading", "open", "shut", "alarm")
)
AMIT_KEY = (
    '<key name="sensor" type="number">'
    + "".join(f'<eventKey event="{name}" attribute="sensor"/>' for name in ("reading", "open", "shut", "alarm"))
    + "</key>"
)
AMIT_MEAN = f"""<amit>{AMIT_EVENTS}{AMIT_KEY}
  <lifespan name="minute">
    <initiator><eventInitiator event="reading" as="begin"/></initiator>
    <terminator><expirationInterval timeInterval="1 minute"/></terminator>
    <keyBy name="sensor"/>
  </lifespan>
  <situation name="mean" lifespan="minute">
    <atleast quantity="1" detectionMode="deferred"><operandAtleast event="reading" quantifier="each"/></atleast>
    <situationAttribute name="avg" type="number" expression="avg(reading.value)"/>
  </situation>
</amit>"""
AMIT_QUIET = f"""<amit>{AMIT_EVENTS}{AMIT_KEY}
  <lifespan name="opened">
    <initiator><eventInitiator event="open"/></initiator>
    <terminator>
      <eventTerminator event="alarm" terminationType="discard"/>
      <expirationInterval timeInterval="1 minute"/>
    </terminator>
    <keyBy name="sensor"/>
  </lifespan>
  <situation name="quiet" lifespan="opened">
    <atleast quantity="1"><operandAtleast event="shut"/></atleast>
    <situationAttribute name="sensor" type="number" expression="shut.sensor"/>
  </situation>
</amit>"""


@dataclass(frozen=True)
class Case:
    name: str
    language: str
    rules: str
    tier: str = "interpreter"

    def rulebook(self) -> Rulebook:
        return loads(self.rules, language="amit.xml" if self.language == "Amit" else "ecco")


READINGS = [
    Case("ECCO, kernel", "ECCO", MEAN, "kernel"),
    Case("Amit, kernel", "Amit", AMIT_MEAN, "kernel"),
    Case("ECCO, interpreter", "ECCO", MEAN),
    Case("Amit, interpreter", "Amit", AMIT_MEAN),
]
DOORS = [
    Case("ECCO, kernel, per sensor", "ECCO", QUIET, "kernel"),
    Case("ECCO, kernel, where sensors are equal", "ECCO", JOINED, "kernel"),
    Case("Amit, kernel", "Amit", AMIT_QUIET, "kernel"),
    Case("ECCO, interpreter, per sensor", "ECCO", QUIET),
    Case("ECCO, interpreter, where sensors are equal", "ECCO", JOINED),
    Case("Amit, interpreter", "Amit", AMIT_QUIET),
]

ABSENCES = [
    Case("kernel, (open - shut) within 10s", "ECCO", LEFT_OPEN, "kernel"),
    Case("kernel, not open over 20s", "ECCO", UNHEARD, "kernel"),
    Case("interpreter, (open - shut) within 10s", "ECCO", LEFT_OPEN),
    Case("interpreter, not open over 20s", "ECCO", UNHEARD),
]


def events(count: int, shares: dict[str, float], seed: int = 1) -> EventTable:
    random = np.random.default_rng(seed)
    hi = np.arange(1, count + 1, dtype=np.int64) * GAP
    codes = random.choice(len(shares), count, p=list(shares.values())).astype(np.int32)
    fields = {
        "type": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(shares))),
        "id": pa.array(np.arange(1, count + 1)),
        "sensor": pa.array(random.integers(0, SENSORS, count).astype(np.float64)),
        "value": pa.array(random.integers(0, 1000, count) / 10),
    }
    return EventTable(hi, hi, fields)


def run(case: Case, table: EventTable, patience: float = inf) -> tuple[int, int, float]:
    """How many events it took, how many detections it made, in how many seconds of the processor."""
    graph = Graph(case.rulebook().plans(case.tier))
    state = graph.initial()
    taken = made = 0
    size = BATCH if case.tier == "kernel" else BATCH // 16
    begun = time.process_time()
    while taken < len(table) and time.process_time() - begun < patience:
        batch = EventBatch(table=part(table, taken, min(taken + size, len(table))))
        made += len(graph.advance(state, batch))
        taken += len(batch)
    return taken, made, time.process_time() - begun


def compare(question: str, cases: list[Case], table: EventTable) -> None:
    print(f"\n{question:<60} {'events':>10} {'detections':>11} {'events/s':>10}")
    for case in cases:
        kernel = case.tier == "kernel"
        if kernel:
            run(case, part(table, 0, min(WARM, len(table))))
        taken, made, seconds = run(case, table, inf if kernel else PATIENCE)
        print(f"  {case.name:<58} {taken:>10,} {made:>11,} {taken / seconds:>10,.0f}", flush=True)


def main(count: int = EVENTS) -> None:
    compare(f"Averages a minute of {SENSORS:,} sensors", READINGS, events(count, {"reading": 1.0}))
    doors = events(count, {"open": 0.45, "shut": 0.45, "alarm": 0.1})
    compare(f"Open, then shut, no alarm between, of {SENSORS:,} sensors", DOORS, doors)
    compare(f"What does not come, of {SENSORS:,} sensors, in ECCO", ABSENCES, doors)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
