"""Detection in a batch DataFrame: one scan for all groups of detectors.

Events are filtered, projected and tagged natively (tags.py), spread by the keys of the groups that want them, and each partition
is handed to Python as a whole, where the events of each group are put in total order and run through its graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from pyspark.sql import DataFrame

from coincide.detection.base import DetectorPlan
from coincide.engines.graph import Graph
from coincide.engines.identity import digests_of
from coincide.engines.instance import StabilityPolicy
from coincide.engines.ranges import RangedGraph
from coincide.engines.spark.batchranges import RangedBatch
from coincide.engines.spark.frame import Layout, Source
from coincide.engines.spark.groups import WHOLE, Cutting, Group, groups, reasons_against_ranges
from coincide.engines.spark.outputs import outputs
from coincide.engines.spark.policies import arrivals_batch, goes_by_arrival
from coincide.engines.spark.rejects import span_of
from coincide.engines.spark.report import counts, met
from coincide.engines.spark.staging import staged
from coincide.engines.spark.tables import tables_of
from coincide.engines.spark.tags import Tagging
from coincide.engines.spark.telling import Watch
from coincide.engines.spark.worker import Span, Task, detect_partition, named, sources_of, tagged
from coincide.errors import Diagnostic, warn
from coincide.rulebook import Rulebook
from coincide.unmet import Unmet


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
    versions: bool = False,
    ranges: int | None = None,
) -> DataFrame:
    """Detections, with the column ORDER, and, if they are wanted, late events in the column LATE and, under policies, LATENCY;
    with `keys`, in the column KEY, those. Rows with a value in the column `closing` are no arrivals. `counted` is the same
    source with observed metrics. Where a job must be run before, `unmet` is asked what it met. If it is not `closed`, what only
    the end of the input would decide stays undecided. What has no key runs in `ranges` of time."""
    shape = outputs(rules.compiled.plans, source, late, digests_of(rules) if keys else None)
    shape = replace(shape, versions=digests_of(rules)) if versions else shape
    counted = counted or source
    if goes_by_arrival(rules, policy):
        return arrivals_batch(rules, counted, replace(shape, latencies=latency), policy, until, tier, closing)
    planned = _planned(rules, source, until)
    if not planned:
        return source.original.sparkSession.createDataFrame([], shape.spark())
    span = replace(_span(source, [plan for _, plans in planned for plan in plans], until, unmet), closed=closed)
    tables = tables_of(rules, source.original.sparkSession)
    told = unmet is None or counted is not source or any(plan.timed for _, plans in planned for plan in plans)
    tagging = Tagging(counted, planned, None if told or unmet is None else Watch(unmet).on)
    works = tuple(
        (Task(sources_of(rules), group.members, tier, layout, shape, tables), _span_for(plans, span))
        for (group, plans), layout in zip(planned, tagging.layouts, strict=True)
    )
    if ranges is not None and ranges > 1:
        against = ["keys number detections over the whole run"] if shape.digests is not None else reasons_against_ranges(planned)
        cut = against[0] if against else _in_ranges(source, planned, tagging, works[0], ranges)
        if not isinstance(cut, str):
            return cut
        warn((Diagnostic(f"ranges={ranges}: all that has no key goes to one task", severity="warning", hint=cut),))
    if tagging.stages > 1:
        return staged(tagging, works)
    return tagging.exchanged().mapInArrow(_Detection(tagging.layout, works), shape.spark())


def _in_ranges(
    source: Source, planned: Sequence[tuple[Group, Sequence[DetectorPlan]]], tagging: Tagging, work: tuple[Task, Span], count: int
) -> DataFrame | str:
    """What ranges of time detect side by side, or why one task is needed."""
    early = RangedGraph(Graph(planned[0][1])).begins_early
    return RangedBatch(Tagging(source, planned).plain(), tagging.plain(), *work, early).detected(count)


def _planned(rules: Rulebook, source: Source, until: float | None) -> list[tuple[Group, Sequence[DetectorPlan]]]:
    """If time goes on until nothing is waited for, rules with timers must know of one another what they wait for."""
    together = until == inf and any(plan.timed for plan in rules.compiled.plans)
    return [(group, group.plans(rules)) for group in groups(rules, source.several, WHOLE if together else Cutting())]


def _span(source: Source, plans: Sequence[DetectorPlan], until: float | None, unmet: Unmet | None) -> Span:
    """Without timers the time of other partitions' events does not matter, and no job is run to find it."""
    if not any(plan.timed for plan in plans):
        return Span(until=until)
    asked = span_of(source) if unmet is None else counts(source, unmet)
    found = source.frame.agg(*asked).collect()[0].asDict()
    if unmet is not None:
        warn(met(found, unmet, source))
    return Span(found["earliest"], found["latest"], until)


def _span_for(plans: Sequence[DetectorPlan], span: Span) -> Span:
    return span if any(plan.timed for plan in plans) else Span(until=span.until, closed=span.closed)


@dataclass(frozen=True)
class _Detection:
    """The function that Spark sends to its workers: what is to be done with the rows of each tag."""

    layout: Layout
    works: tuple[tuple[Task, Span], ...]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for tag, events in tagged(self.layout, batches):
            task, span = self.works[tag]
            yield from detect_partition(task, span, named(self.layout, events, task.layout.fields))
