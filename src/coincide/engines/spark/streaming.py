"""Detection in a streaming DataFrame.

    filter, project, number the buckets   native; rows of no interest stay as bare time stamps, a sample of them
    pack                                  Python, stateless: a blob of events a bucket, and what time it is
    groupBy(bucket).transformWithState    Python: reorder, detect, keep the state (bucket.py)
    unpack                                Python, stateless: blobs of detections as rows

A group of detectors without a key has one bucket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide.detection.base import DetectorPlan
from coincide.engines.identity import digests_of
from coincide.engines.instance import StabilityPolicy
from coincide.engines.spark import pushdown
from coincide.engines.spark.frame import Layout, Source
from coincide.engines.spark.groups import Group, groups
from coincide.engines.spark.outputs import Outputs, outputs
from coincide.engines.spark.packing import BARE, PACKED, Packing, balanced_buckets, unpacked
from coincide.engines.spark.policies import arrivals_streaming, goes_by_arrival, sources_by_key
from coincide.engines.spark.rejects import ROWS, row_counts
from coincide.engines.spark.session import ROCKSDB, STATE_STORE
from coincide.engines.spark.stateful import RESULT, Processor
from coincide.engines.spark.tables import Tables, tables_of
from coincide.engines.spark.worker import Task, sources_of
from coincide.errors import Diagnostic, InputError
from coincide.expr.parse import parse_duration
from coincide.expr.quantities import QuantityError
from coincide.model.event import HEARTBEAT
from coincide.rulebook import Rulebook

PAGES = 8
SAMPLE = 8
"""Of the events in which no rule takes an interest, one in so many still moves the clock (heartbeats always do)."""


def detect_streaming(
    rules: Rulebook,
    source: Source,
    delay: str = "10 seconds",
    tier: str = "kernel",
    buckets: int | None = None,
    pages: int | None = None,
    closing: str | None = None,
    policy: StabilityPolicy | None = None,
    late: bool = False,
    latency: bool = False,
    keys: bool = False,
) -> DataFrame:
    """Detections, with the column ORDER, and, if they are wanted, late events in the column LATE and, under policies, LATENCY;
    with `keys`, in the column KEY, those. A value in the column `closing` (microseconds) says that the input has ended and that
    time goes on until then."""
    spark = source.original.sparkSession
    want_rocksdb(spark)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    shape = outputs(rules.compiled.plans, source, late, digests_of(rules) if keys else None)
    divided = groups(rules, source.several)
    counted = source.observed(lambda frame: frame.observe(ROWS, *row_counts(source)))
    marked = () if latency or closing is not None or buckets == 1 else sources_by_key(rules, divided, policy)
    if goes_by_arrival(rules, policy) and not marked:
        return arrivals_streaming(rules, counted, replace(shape, latencies=latency), policy, parse_delay(delay), tier, closing)
    tables = tables_of(rules, spark)
    branches = [
        _Branch(
            rules,
            source if number else counted,
            group,
            shape,
            parse_delay(delay),
            tier,
            buckets or partitions,
            pages or PAGES,
            closing,
            tables,
            marked,
        ).detected(partitions, f"coincide_{number}")
        for number, group in enumerate(divided)
    ]
    if not branches:
        return source.frame.filter(F.lit(False)).select().mapInArrow(unpacked, shape.spark())
    return reduce(DataFrame.unionAll, branches)


class _Branch:
    """One group's road."""

    def __init__(
        self,
        rules: Rulebook,
        source: Source,
        group: Group,
        shape: Outputs,
        delay: int,
        tier: str,
        buckets: int,
        pages: int,
        closing: str | None,
        tables: Tables | None,
        marked: tuple[str, ...],
    ) -> None:
        self.source = source
        self.marked = marked
        self.group = group
        self.delay = delay
        self.closing = closing
        self.plans: Sequence[DetectorPlan] = group.plans(rules)
        self.timed = any(plan.timed for plan in self.plans)
        self.buckets, self.pages = (1, 1) if group.key is None else (buckets, pages)
        self.layout: Layout = pushdown.layout(source, self.plans, everything=shape.late is not None, arriving=bool(marked))
        self.task = Task(sources_of(rules), group.members, tier, self.layout, shape, tables)

    def detected(self, partitions: int, name: str) -> DataFrame:
        division = (list(self.group.key or ()), self.buckets, self.pages)
        packing = Packing(self.layout, balanced_buckets(self.buckets, partitions), bool(self.marked))
        processor = Processor(self.task, self.delay, self.timed, division, self.marked)
        packed = self._rows().mapInArrow(packing, PACKED)
        stepped = packed.groupBy("bucket").transformWithStateInPandas(processor, RESULT, "Append", "None")
        counts = [F.coalesce(F.sum(count), F.lit(0)).alias(count) for count in ("late", "consumed", "waiting")]
        return stepped.observe(name, *counts).select("blob").mapInArrow(unpacked, self.task.outputs.spark())

    def _rows(self) -> DataFrame:
        """Events with the numbers of their page and bucket; the bare ones have neither, nor anything but what tells the time."""
        source = self.source
        keep = F.coalesce(pushdown.wanted(source, self.plans, self.group), F.lit(False))
        sampled = (source.type == HEARTBEAT) | (F.pmod(F.xxhash64(source.hi), F.lit(SAMPLE)) == 0)
        tells = F.lit(True) if self.timed or self.marked else sampled
        rows = source.frame.filter(source.is_event & (keep | tells))
        columns = source.wire_columns(self.layout)
        told = ("hi", "source", "arrival") if self.marked else ("hi",)
        bare = [
            column if name in told else F.when(keep, column).alias(wire)
            for name, wire, column in zip(self.layout.fields, self.layout.wire, columns, strict=True)
        ]
        page, bucket = self._place()
        return rows.select(
            *bare,
            page.alias("page"),
            F.when(keep, bucket).otherwise(F.lit(BARE)).alias("bucket"),
            self._closing().alias("closing"),
        )

    def _place(self) -> tuple[Column, Column]:
        if self.group.key is None:
            return F.lit(0), F.lit(0)
        by = pushdown.key_columns(self.source, self.group) if self.group.key else [self.source.hi]
        spread = F.xxhash64(*by)
        page = F.pmod(F.shiftright(spread, 32), F.lit(self.pages))
        return page.cast("int"), F.pmod(spread, F.lit(self.buckets)).cast("int")

    def _closing(self) -> Column:
        return F.lit(None).cast("bigint") if self.closing is None else self.source.column(self.closing)


def parse_delay(text: str) -> int:
    """`10 seconds`, `5min`, `1 hour 30 minutes`: microseconds."""
    try:
        return parse_duration(text)
    except QuantityError as error:
        raise InputError(Diagnostic(f"the delay: {error}", hint="such as '10 seconds', '5 min', '1 hour 30 minutes'")) from None


def want_rocksdb(spark: SparkSession) -> None:
    """transformWithState works with no other store; a session that never chose one gets it."""
    if spark.conf.get(STATE_STORE, "").endswith("HDFSBackedStateStoreProvider") or not spark.conf.get(STATE_STORE, ""):
        spark.conf.set(STATE_STORE, ROCKSDB)
