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

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.adapters.tableorder import sliced, taken
from coincide.detection.snapshots import opened, reading_state, sealed
from coincide.engines.arrivals import arrival_instants
from coincide.engines.instance import StabilityPolicy
from coincide.engines.policies import PolicyEngine, PolicyRun
from coincide.engines.spark.bucket import FOREVER, Arrived
from coincide.engines.spark.frame import TURN, Layout
from coincide.engines.spark.packing import from_bytes, to_bytes
from coincide.engines.spark.rejects import SHOWN
from coincide.engines.spark.silence import Silence
from coincide.engines.spark.timing import Timing
from coincide.engines.spark.worker import Task, events_of, in_order, named, rules_for
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
    timing: Timing

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
    layout = Layout(tuple(name for name in layout.fields if name != TURN))
    if TURN in columns:
        return taken(events_of(layout, columns), np.argsort(columns[TURN].to_numpy(), kind="stable"))
    table = in_order(layout, columns).table
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
    def silence(self) -> bytes | None: ...
    def put_silence(self, data: bytes) -> None: ...
    def wake(self, before: int | None, at: int | None) -> None:
        """As a bucket has it (bucket.py)."""


ENGINES: OrderedDict[tuple[Job, bytes], PolicyEngine] = OrderedDict()
"""Of this process, by the token that was stored with the state: after a retry or a restart it is another one (pages.py)."""


@dataclass(frozen=True)
class Counts:
    late: int = 0
    consumed: int = 0
    waiting: int = 0
    ahead: int = 0


def advance(job: Job, store: Store, arrived: Arrived) -> tuple[bytes | None, Counts]:
    """One micro-batch: the rows that come of it, as a blob."""
    engine = _engine(job, store.state())
    silence = _silence(store.silence())
    before = _counts(engine)
    rows: list[pa.RecordBatch] = []
    ahead = 0
    if arrived.blobs:
        table = pa.concat_tables([from_bytes(blob) for blob in arrived.blobs], promote_options="default")
        table, set_aside = _parted(table, _limit(job, silence, arrived))
        ahead = len(set_aside)
        if ahead and SHOWN in set_aside.column_names:
            rows.append(job.task.outputs.rejected_batch(set_aside.column(SHOWN)))
        if len(table):
            silence.note(int(table.column("hi").to_numpy().max()), _sources(table), arrived.wall)
        rows += job.arrive(engine, {name: table.column(name).combine_chunks() for name in job.task.layout.fields})
    rows += _slept(job, engine, silence, store, arrived.wall)
    if arrived.closing is not None:
        rows += job.written(engine.end(inf if arrived.closing == FOREVER else arrived.closing))
    _keep(job, engine, store)
    store.put_silence(sealed(msgspec.msgpack.encode(silence)))
    after = _counts(engine)
    counts = Counts(after.late - before.late, after.consumed - before.consumed, after.waiting, ahead)
    return to_bytes(pa.Table.from_batches(rows)) if rows else None, counts


def _silence(data: bytes | None) -> Silence:
    if data is None:
        return Silence()
    with reading_state("the checkpoint cannot be read"):
        return msgspec.msgpack.decode(opened(data), type=Silence)


def _limit(job: Job, silence: Silence, arrived: Arrived) -> int:
    guard = job.timing.guard
    if guard is None:
        return FOREVER
    return guard.limit(guard.joined(arrived.runs, arrived.wall), arrived.wall, silence.clock)


def _parted(table: pa.Table, limit: int) -> tuple[pa.Table, pa.Table]:
    """What arrives, and what is set aside because it is later."""
    far = pa.array(table.column("hi").to_numpy() > limit)
    return (table.filter(pc.invert(far)), table.filter(far)) if pc.any(far).as_py() else (table, table.slice(0, 0))


def _sources(table: pa.Table) -> list[str]:
    return [source or "" for source in table.column("source").unique().to_pylist()] if "source" in table.column_names else [""]


def _slept(job: Job, engine: PolicyEngine, silence: Silence, store: Store, wall: int | None) -> Iterator[pa.RecordBatch]:
    """What comes of sources that have been silent for too long."""
    idle = job.timing.idle
    if idle is None or wall is None:
        return
    for heartbeat in silence.heartbeats(engine, idle, wall):
        yield from job.written(engine.process(EventBatch([heartbeat])))
    at = None if (instant := silence.wakes_at(engine, idle, wall)) is None else -(-instant // 1000)
    before = silence.wakes if silence.wakes is not None and silence.wakes * 1000 > wall else None
    if at != before:
        store.wake(before, at)
    silence.wakes = at


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
    waiting = sum(len(each.stage.buffer) for each in engine.instances)
    return Counts(sum(engine.refused().values()), sum(each.state.consumed for each in engine.instances), waiting)
