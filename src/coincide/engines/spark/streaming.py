"""Detection in a streaming DataFrame.

    filter, project, number the buckets   native; rows of no interest stay as bare time stamps, a sample of them
    pack                                  Python, stateless: a blob of events a group and bucket, and what time it is
    groupBy(name, bucket)                 of the group: stable, whatever other rules there are
        .transformWithState               Python: reorder, detect, keep the state (bucket.py)
    …                                     once more a stage, where rules whose keys differ feed one another (chaining.py)
    unpack                                Python, stateless: blobs of detections as rows

A group of detectors without a key has one bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

import msgspec
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide.detection.base import DetectorPlan
from coincide.engines.identity import digests_of
from coincide.engines.instance import StabilityPolicy
from coincide.engines.spark import pushdown
from coincide.engines.spark.chaining import Listener, StageTask, feeders, listeners
from coincide.engines.spark.checkpoint import Kept, report_changes
from coincide.engines.spark.division import Division
from coincide.engines.spark.frame import Layout, Source
from coincide.engines.spark.groups import WHOLE, Cutting, Group, groups
from coincide.engines.spark.moving import Moving
from coincide.engines.spark.outputs import Outputs, outputs
from coincide.engines.spark.packing import BARE, PACKED, Packing, Road, balanced_buckets, unpacked
from coincide.engines.spark.policies import arrivals_streaming, goes_by_arrival, sources_by_key
from coincide.engines.spark.rejects import observed_rows, shown_if_ahead, shown_type
from coincide.engines.spark.session import ROCKSDB, STATE_STORE
from coincide.engines.spark.stateful import Keeper, Processor, stepped
from coincide.engines.spark.tables import Tables, tables_of
from coincide.engines.spark.tags import joined_layout
from coincide.engines.spark.timing import Timing
from coincide.engines.spark.worker import Task, sources_of
from coincide.model.event import HEARTBEAT
from coincide.rulebook import Rulebook

BUCKETS = 8
"""Of a group, unless it is said: no more tasks can work at its state. A checkpoint keeps its number, so it follows no machine."""
PAGES = 8
SAMPLE = 8
"""Of the events in which no rule takes an interest, one in so many still moves the clock (heartbeats always do)."""


def detect_streaming(
    rules: Rulebook,
    source: Source,
    timing: Timing,
    tier: str = "kernel",
    buckets: int | None = None,
    pages: int | None = None,
    closing: str | None = None,
    policy: StabilityPolicy | None = None,
    late: bool = False,
    latency: bool = False,
    keys: bool = False,
    rejects: bool = False,
    versions: bool = False,
    before: Kept | None = None,
) -> DataFrame:
    """Detections, with the column ORDER, and, if they are wanted, late events in the column LATE and, under policies, LATENCY;
    with `keys`, in the column KEY, those; with `rejects`, in the column REJECTED, events that are set aside. A value in the
    column `closing` (microseconds) says that the input has ended and that time goes on until then. `before` is the checkpoint
    that the query is to go on from."""
    spark = source.original.sparkSession
    want_rocksdb(spark)
    shape = outputs(rules.compiled.plans, source, late, digests_of(rules) if keys else None)
    shape = replace(shape, rejected=shown_type(source)) if rejects and timing.guard is not None else shape
    shape = replace(shape, versions=digests_of(rules)) if versions else shape
    by_arrival = goes_by_arrival(rules, policy)
    most = None if before is None else before.stages
    divided = groups(rules, source.several, WHOLE if by_arrival else Cutting(most, streaming=True))
    if before is not None:
        before.check_timing(timing)
        for group in divided:
            before.check(group, buckets, pages)
        report_changes(before, divided)
    counted = observed_rows(source)
    alone = buckets == 1 and not (before is not None and before.metas)
    marked = () if latency or closing is not None or alone else sources_by_key(rules, divided, policy)
    if by_arrival and not marked:
        return arrivals_streaming(rules, counted, replace(shape, latencies=latency), policy, timing, tier, closing)
    if not divided:
        return source.frame.filter(F.lit(False)).select().mapInArrow(unpacked, shape.spark())
    tables = tables_of(rules, spark)
    lanes = [
        _Lane(
            rules,
            counted,
            group,
            shape,
            tier,
            _division(group, before, buckets, pages),
            tables,
            marked,
            None if before is None else before.moving(group, buckets, spark),
        )
        for group in divided
    ]
    return _Stream(counted, lanes, timing, closing, marked, most).detected(shape)


def _division(group: Group, before: Kept | None, buckets: int | None, pages: int | None) -> Division:
    """As the checkpoint has it, but for another wish."""
    if group.key is None:
        return Division([], 1, 1)
    kept = None if before is None else before.division(group)
    if kept is None:
        return Division([*group.key], buckets or BUCKETS, pages or PAGES)
    if buckets is not None and buckets != kept.buckets:
        kept = kept.into(buckets)
    return msgspec.structs.replace(kept, key=[*group.key])


class _Lane:
    """One group's part of the road."""

    def __init__(
        self,
        rules: Rulebook,
        source: Source,
        group: Group,
        shape: Outputs,
        tier: str,
        division: Division,
        tables: Tables | None,
        marked: tuple[str, ...],
        moving: Moving | None,
    ) -> None:
        self.source = source
        self.group = group
        self.plans: Sequence[DetectorPlan] = group.plans(rules)
        plans = self.plans
        self.timed = any(plan.timed for plan in plans)
        self.division = division
        self.moving = moving
        self.layout: Layout = pushdown.layout(source, plans, everything=shape.late is not None, arriving=bool(marked))
        self.task = Task(sources_of(rules), group.members, tier, self.layout, shape, tables)
        self.wanted = F.coalesce(pushdown.wanted(source, plans, group), F.lit(False))

    @property
    def road(self) -> Road:
        here = balanced_buckets(self.division.buckets, self.group.name)
        gone = () if self.moving is None else tuple(n for n in self.moving.before if n not in here)
        return Road(self.group.name, self.layout, here, gone)

    def keeper(self, listeners: Sequence[Listener], feeders: Sequence[str]) -> Keeper:
        task = StageTask(self.task, tuple(listeners)) if listeners or feeders else self.task
        return Keeper(task, self.timed, self.division, feeders, self.moving)

    def place(self, number: int) -> list[Column]:
        """The page and the bucket of a row."""
        page, bucket = self._spread()
        return [page.alias(f"page{number}"), F.when(self.wanted, bucket).otherwise(F.lit(BARE)).alias(f"bucket{number}")]

    def _spread(self) -> tuple[Column, Column]:
        if self.group.key is None:
            return F.lit(0), F.lit(0)
        by = pushdown.key_columns(self.source, self.group) if self.group.key else [self.source.hi]
        spread = F.xxhash64(*by)
        low, high = F.pmod(spread, F.lit(self.division.spread)), F.pmod(F.shiftright(spread, 32), F.lit(self.division.pages))
        bucket, page = self.division.place(low, high)
        return page.cast("int"), bucket.cast("int")


@dataclass(frozen=True)
class _Stream:
    """All groups in one scan, and those of a stage in one exchange and one stateful operator: so a checkpoint bears that groups
    come and go. It does not bear that stages do: if there are fewer than it has, those that are left have nothing to do."""

    source: Source
    lanes: Sequence[_Lane]
    timing: Timing
    closing: str | None
    marked: tuple[str, ...]
    stages: int | None

    def detected(self, shape: Outputs) -> DataFrame:
        packing = Packing(self._layout, tuple(lane.road for lane in self.lanes), bool(self.marked), self.timing.guard)
        return stepped(self._rows().mapInArrow(packing, PACKED), self._processors(), shape.spark())

    def _processors(self) -> list[Processor]:
        roads = [lane.road for lane in self.lanes]
        heard = listeners([(lane.group, lane.plans) for lane in self.lanes], roads, [lane.division for lane in self.lanes])
        fed = feeders(roads, heard)
        count = self.stages or 1 + max(lane.group.stage for lane in self.lanes)
        keepers: list[dict[str, Keeper]] = [{} for _ in range(count)]
        for lane, own in zip(self.lanes, heard, strict=True):
            keepers[lane.group.stage][lane.group.name] = lane.keeper(own, fed.get(lane.group.name, ()))
        return [Processor(own, self.timing, self.marked, stage + 1 < count) for stage, own in enumerate(keepers)]

    @property
    def _layout(self) -> Layout:
        return joined_layout([lane.layout for lane in self.lanes])

    def _rows(self) -> DataFrame:
        """Events with the numbers of their pages and buckets; the bare ones have neither, nor more than what tells the time."""
        source, layout = self.source, self._layout
        keep = reduce(or_, (lane.wanted for lane in self.lanes))
        beats = source.type == HEARTBEAT
        sampled = beats | (F.pmod(F.xxhash64(source.hi), F.lit(SAMPLE)) == 0)
        tells = F.lit(True) if self.marked or any(lane.timed for lane in self.lanes) else sampled
        rows = source.frame.filter(source.is_event & (keep | tells))
        told = ("hi", "source", "arrival") if self.marked else ("hi",)
        bare = [
            column if name in told else F.when(keep | beats if name == "type" else keep, column).alias(wire)
            for name, wire, column in zip(layout.fields, layout.wire, source.wire_columns(layout), strict=True)
        ]
        return rows.select(
            *bare,
            *shown_if_ahead(source, self.lanes[0].task.outputs.rejected, self.timing.guard, keep),
            *(column for number, lane in enumerate(self.lanes) for column in lane.place(number)),
            (F.lit(None).cast("bigint") if self.closing is None else source.column(self.closing)).alias("closing"),
            self.timing.wall().alias("wall"),
        )


def want_rocksdb(spark: SparkSession) -> None:
    """transformWithState works with no other store; a session that never chose one gets it."""
    if spark.conf.get(STATE_STORE, "").endswith("HDFSBackedStateStoreProvider") or not spark.conf.get(STATE_STORE, ""):
        spark.conf.set(STATE_STORE, ROCKSDB)
