"""Detection in a batch DataFrame: one pass a group of detectors.

Events are filtered and projected natively, spread by the group's key, and each partition is handed to Python as a whole,
where it is put in total order and run through the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from coincide.detection.base import DetectorPlan
from coincide.engines.identity import digests_of
from coincide.engines.instance import StabilityPolicy
from coincide.engines.spark import pushdown
from coincide.engines.spark.frame import Source
from coincide.engines.spark.groups import Group, groups
from coincide.engines.spark.outputs import Outputs, outputs
from coincide.engines.spark.policies import arrivals_batch, goes_by_arrival
from coincide.engines.spark.report import counts, met
from coincide.engines.spark.tables import Tables, tables_of
from coincide.engines.spark.worker import Span, Task, detect_partition, sources_of
from coincide.rulebook import Rulebook
from coincide.unmet import Unmet, warn


def detect_batch(
    rules: Rulebook,
    source: Source,
    until: float | None = None,
    tier: str = "kernel",
    policy: StabilityPolicy | None = None,
    late: bool = False,
    latency: bool = False,
    closing: str | None = None,
    counted: Source | None = None,
    unmet: Unmet | None = None,
    keys: bool = False,
    closed: bool = True,
) -> DataFrame:
    """Detections, with the column ORDER, and, if they are wanted, late events in the column LATE and, under policies, LATENCY;
    with `keys`, in the column KEY, those. Rows with a value in the column `closing` are no arrivals. `counted` is the same
    source with observed metrics: every group reads all rows, so one of them is enough to count them. Where a job must be run
    before, `unmet` is asked what it met. If it is not `closed`, what only the end of the input would decide stays undecided."""
    shape = outputs(rules.compiled.plans, source, late, digests_of(rules) if keys else None)
    counted = counted or source
    if goes_by_arrival(rules, policy):
        return arrivals_batch(rules, counted, replace(shape, latencies=latency), policy, until, tier, closing)
    planned = [(group, group.plans(rules)) for group in groups(rules, source.several)]
    span = replace(_span(source, [plan for _, plans in planned for plan in plans], until, unmet), closed=closed)
    tables = tables_of(rules, source.original.sparkSession)
    parts = [
        _detected(rules, source if number else counted, group, plans, shape, span, tier, tables)
        for number, (group, plans) in enumerate(planned)
    ]
    if not parts:
        return source.original.sparkSession.createDataFrame([], shape.spark())
    return reduce(DataFrame.unionAll, parts)


def _span(source: Source, plans: Sequence[DetectorPlan], until: float | None, unmet: Unmet | None) -> Span:
    """Without timers the time of other partitions' events does not matter, and no job is run to find it."""
    if not any(plan.timed for plan in plans):
        return Span(until=until)
    moment = F.when(source.is_event, source.hi)
    asked = [] if unmet is None else counts(source, unmet)
    found = source.frame.agg(F.min(moment).alias("first"), F.max(moment).alias("last"), *asked).collect()[0].asDict()
    if unmet is not None:
        warn(met(found, unmet, source))
    return Span(found["first"], found["last"], until)


def _detected(
    rules: Rulebook,
    source: Source,
    group: Group,
    plans: Sequence[DetectorPlan],
    shape: Outputs,
    span: Span,
    tier: str,
    tables: Tables | None,
) -> DataFrame:
    layout = pushdown.layout(source, plans)
    task = Task(sources_of(rules), group.members, tier, layout, shape, tables)
    rows = source.frame.filter(pushdown.wanted(source, plans, group))
    if group.key == ():
        placed = rows.select(*source.wire_columns(layout))
    elif group.key is None:
        placed = rows.select(*source.wire_columns(layout)).repartition(1)
    else:
        spread = F.xxhash64(*pushdown.key_columns(source, group)).alias("spread")
        placed = rows.select(*source.wire_columns(layout), spread).repartition("spread").drop("spread")
    timed = any(plan.timed for plan in plans)
    return placed.mapInArrow(_Detection(task, span if timed else Span(until=span.until, closed=span.closed)), shape.spark())


class _Detection:
    """The function that Spark sends to its workers."""

    def __init__(self, task: Task, span: Span) -> None:
        self.task = task
        self.span = span

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        return detect_partition(self.task, self.span, batches)
