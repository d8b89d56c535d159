"""Detection under stability policies (decision 7): all records in one task, in the order of their arrival.

That order is the column `arrival` (without one, the time of events); records that arrived at one instant are taken in total
order. In a stream the order holds within a micro-batch, and micro-batches follow one another."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from coincide.adapters.tableorder import sliced, sorted_table, taken
from coincide.detection.snapshots import reading_state
from coincide.engines.arrivals import arrival_instants
from coincide.engines.instance import StabilityPolicy
from coincide.engines.policies import PolicyEngine, PolicyRun
from coincide.engines.spark.bucket import FOREVER, Arrived
from coincide.engines.spark.frame import TURN, Layout
from coincide.engines.spark.packing import from_bytes, to_bytes
from coincide.engines.spark.worker import Task, events_of, named, rules_for
from coincide.model.batch import EventBatch
from coincide.model.table import EventTable, table_of

PIECE = 65_536
REMEMBERED = 8
TOKEN = 8


@dataclass(frozen=True)
class Job:
    """What a worker must know. `policy` is that of definitions which name none."""

    task: Task
    policy: StabilityPolicy

    def engine(self) -> PolicyEngine:
        return PolicyEngine(rules_for(self.task), self.policy, "kernel" if self.task.tier == "auto" else self.task.tier)

    def arrive(self, engine: PolicyEngine, columns: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        table = arranged(self.task.layout, columns)
        for start in range(0, len(table), PIECE):
            yield from self.written(engine.process(EventBatch(table=sliced(table, start, min(start + PIECE, len(table))))))

    def written(self, runs: Iterable[PolicyRun]) -> Iterator[pa.RecordBatch]:
        """Rows of the resulting frame."""
        outputs = self.task.outputs
        for made in runs:
            if made.detections:
                waits = [None if clock is None else clock - d.hi for d, clock in zip(made.detections, made.clocks, strict=True)]
                yield outputs.record_batch(EventBatch(made.detections), waits)
            late = made.latecomers() if outputs.late is not None else []
            if late:
                events, policies = zip(*late, strict=True)
                yield outputs.late_batch(table_of(events), [[str(policy) for policy in some] for some in policies])


def arranged(layout: Layout, columns: dict[str, Any]) -> EventTable:
    """Records in the order of arrival."""
    table = events_of(Layout(tuple(name for name in layout.fields if name != TURN)), columns)
    if TURN in columns:
        return taken(table, np.argsort(columns[TURN].to_numpy(), kind="stable"))
    table = sorted_table(table)
    return taken(table, np.argsort(arrival_instants(table.hi, table.fields.get("arrival")), kind="stable"))


@dataclass(frozen=True)
class Arrivals:
    """A whole batch; sent to one worker."""

    job: Job
    until: float | None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        received = [batch for batch in batches if batch.num_rows]
        if received:
            engine = self.job.engine()
            yield from self.job.arrive(engine, named(self.job.task.layout, received))
            yield from self.job.written(engine.end(self.until))


class Store(Protocol):
    """Where a stream keeps the state of its engine."""

    def state(self) -> bytes | None: ...
    def put_state(self, data: bytes) -> None: ...


ENGINES: OrderedDict[tuple[Job, bytes], PolicyEngine] = OrderedDict()
"""Of this process, by the token that was stored with the state: after a retry or a restart it is another one (pages.py)."""


@dataclass(frozen=True)
class Counts:
    late: int = 0
    consumed: int = 0
    waiting: int = 0


def advance(job: Job, store: Store, arrived: Arrived) -> tuple[bytes | None, Counts]:
    """One micro-batch: the rows that come of it, as a blob."""
    engine = _engine(job, store.state())
    before = _counts(engine)
    rows: list[pa.RecordBatch] = []
    if arrived.blobs:
        table = pa.concat_tables([from_bytes(blob) for blob in arrived.blobs], promote_options="default")
        rows += job.arrive(engine, {name: table.column(name).combine_chunks() for name in job.task.layout.fields})
    if arrived.closing is not None:
        rows += job.written(engine.end(inf if arrived.closing == FOREVER else arrived.closing))
    _keep(job, engine, store)
    after = _counts(engine)
    counts = Counts(after.late - before.late, after.consumed - before.consumed, after.waiting)
    return to_bytes(pa.Table.from_batches(rows)) if rows else None, counts


def _engine(job: Job, data: bytes | None) -> PolicyEngine:
    if data is not None and (remembered := ENGINES.pop((job, data[:TOKEN]), None)) is not None:
        return remembered
    engine = job.engine()
    if data is not None:
        with reading_state("the checkpoint cannot be read"):
            engine.restore(data[TOKEN:])
    return engine


def _keep(job: Job, engine: PolicyEngine, store: Store) -> None:
    token = os.urandom(TOKEN)
    store.put_state(token + engine.snapshot())
    ENGINES[job, token] = engine
    while len(ENGINES) > REMEMBERED:
        ENGINES.popitem(last=False)


def _counts(engine: PolicyEngine) -> Counts:
    """Over all policies: one that consumes an event counts it, whatever the others do."""
    waiting = sum(len(getattr(each.stage, "buffer", ())) for each in engine.instances)
    return Counts(sum(engine.refused().values()), sum(each.state.consumed for each in engine.instances), waiting)
