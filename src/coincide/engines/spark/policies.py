"""DataFrames under stability policies: how records get to the one task that orders them (arrival.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from coincide.collecting import spare_what_is_kept
from coincide.engines.instance import IN_ORDER, StabilityPolicy
from coincide.engines.policies import policies_of
from coincide.engines.spark import pushdown
from coincide.engines.spark.arrival import Arrivals, Job, advance
from coincide.engines.spark.bucket import Arrived
from coincide.engines.spark.frame import Source
from coincide.engines.spark.groups import Group
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.packing import BARE, PACKED, Packing, Road
from coincide.engines.spark.rejects import shown_if_ahead
from coincide.engines.spark.stateful import RESULT, arrived_rows, result, set_timer, stepped, value_bytes
from coincide.engines.spark.tables import tables_of
from coincide.engines.spark.timing import BELIEVED, Timing
from coincide.engines.spark.worker import Task, sources_of
from coincide.rulebook import Rulebook


def goes_by_arrival(rules: Rulebook, policy: StabilityPolicy | None) -> bool:
    """Does the order of arrival count?"""
    return policy is not None or rules.names_policies


def sources_by_key(rules: Rulebook, divided: Sequence[Group], policy: StabilityPolicy | None) -> tuple[str, ...]:
    """The sources to wait for, if all is guaranteed, they are declared, and every detector has a key: then each bucket can order
    its own keys' events, once it is told how far the sources have come. Nothing: it cannot be divided so."""
    kinds = {own.kind for own in policies_of(rules, policy or IN_ORDER).values()}
    if kinds != {"guaranteed"} or any(group.key is None for group in divided):
        return ()
    return tuple(dict.fromkeys(rules.compiled.sources))


def arrivals_batch(
    rules: Rulebook,
    source: Source,
    shape: Outputs,
    policy: StabilityPolicy | None,
    until: float | None,
    tier: str,
    closing: str | None = None,
) -> DataFrame:
    """Definitions without a policy wait for the whole input."""
    job = _job(rules, source, shape, policy or IN_ORDER, tier)
    rows = source.frame.filter(source.is_event & _closing(source, closing).isNull())
    return rows.select(*source.wire_columns(job.task.layout)).repartition(1).mapInArrow(Arrivals(job, until), shape.spark())


def arrivals_streaming(
    rules: Rulebook,
    source: Source,
    shape: Outputs,
    policy: StabilityPolicy | None,
    timing: Timing,
    tier: str,
    closing: str | None = None,
) -> DataFrame:
    """Definitions without a policy consume events in total order, which may come `delay` late."""
    job = _job(rules, source, shape, policy or StabilityPolicy("delayed", delay=timing.delay), tier, timing)
    ends = _closing(source, closing)
    rows = source.frame.filter(source.is_event).select(
        *source.wire_columns(job.task.layout),
        *shown_if_ahead(source, shape.rejected, timing.guard, F.lit(True)),
        F.lit(0).alias("page0"),
        F.when(ends.isNull(), F.lit(0)).otherwise(F.lit(BARE)).alias("bucket0"),
        ends.alias("closing"),
        timing.wall().alias("wall"),
    )
    packing = Packing(job.task.layout, (Road("arrivals", job.task.layout, (0,)),), guard=timing.guard)
    return stepped(rows.mapInArrow(packing, PACKED), [ArrivalProcessor(job)], shape.spark())


def _job(rules: Rulebook, source: Source, shape: Outputs, policy: StabilityPolicy, tier: str, timing: Timing = BELIEVED) -> Job:
    plans = rules.compiled.plans
    layout = pushdown.layout(source, plans, everything=shape.late is not None, arriving=True)
    members = tuple(detector.order for detector in rules.detectors)
    tables = tables_of(rules, source.original.sparkSession)
    return Job(Task(sources_of(rules), members, tier, layout, shape, tables), policy, timing)


def _closing(source: Source, closing: str | None) -> Column:
    return F.lit(None).cast("bigint") if closing is None else source.column(closing)


class ArrivalProcessor(StatefulProcessor):  # type: ignore[misc]
    """Called once a micro-batch, for the only bucket."""

    schema = RESULT

    def __init__(self, job: Job) -> None:
        self.job = job
        self.timing = job.timing

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_what_is_kept()
        self._handle = handle
        self._state = handle.getValueState("arrivals", "data binary")
        self._silence = handle.getValueState("silence", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        yield result(*advance(self.job, self, arrived_rows(pd.concat(rows))))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield result(*advance(self.job, self, Arrived(wall=timerValues.getCurrentProcessingTimeInMs() * 1000)))

    def close(self) -> None:
        pass

    def state(self) -> bytes | None:
        return value_bytes(self._state.get())

    def put_state(self, data: bytes) -> None:
        self._state.update((data,))

    def silence(self) -> bytes | None:
        return value_bytes(self._silence.get())

    def put_silence(self, data: bytes) -> None:
        self._silence.update((data,))

    def wake(self, before: int | None, at: int | None) -> None:
        set_timer(self._handle, before, at)
