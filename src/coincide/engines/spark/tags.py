"""One scan for all groups of detectors: rows go out tagged for the groups that want them, through one exchange.

A row that several groups want goes out once for each, since their keys may lead to different tasks; one that none wants stays
where it was read. A copy has only the columns that its group reads: the others are null."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coincide.detection.base import DetectorPlan
from coincide.engines.spark import pushdown
from coincide.engines.spark.frame import Layout, Source
from coincide.engines.spark.groups import Group

TAG, SPREAD = "tag", "spread"


@dataclass(frozen=True)
class Tagging:
    """The groups, each with its plans; a group's tag is its number among them."""

    source: Source
    groups: Sequence[tuple[Group, Sequence[DetectorPlan]]]
    watch: Callable[[DataFrame, Column], DataFrame] | None = None  # looks at the rows that any group wants, and their types

    @cached_property
    def layouts(self) -> list[Layout]:
        return [pushdown.layout(self.source, plans) for _, plans in self.groups]

    @cached_property
    def layout(self) -> Layout:
        """The fields that any group reads."""
        return joined_layout(self.layouts)

    @property
    def stages(self) -> int:
        return 1 + max(group.stage for group, _ in self.groups)

    def exchanged(self) -> DataFrame:
        """The layout's columns and the tag, all rows of a group and key in one partition. Groups that judge each event by itself
        have no key: alone they take rows where these are. If there are several stages, how rows are spread goes along."""
        rows = self._with_marks(self._watched(self._tagged()))
        if self.stages > 1:
            return rows.repartition(TAG, SPREAD)
        if len(self.groups) > 1:
            return rows.repartition(TAG, SPREAD).drop(SPREAD)
        key = self.groups[0][0].key
        placed = rows if key == () else rows.repartition(1) if key is None else rows.repartition(SPREAD)
        return placed.drop(SPREAD)

    def plain(self) -> DataFrame:
        """The layout's columns of the rows that any group wants, where they are."""
        rows = self.source.frame.filter(reduce(or_, [pushdown.wanted(self.source, plans, group) for group, plans in self.groups]))
        return self._watched(rows.select(*self.source.wire_columns(self.layout)))

    def _tagged(self) -> DataFrame:
        wanted = [pushdown.wanted(self.source, plans, group) for group, plans in self.groups]
        rows = self.source.frame.filter(reduce(or_, wanted))
        columns = self.source.wire_columns(self.layout)
        if len(self.groups) == 1:
            return rows.select(*columns, F.lit(0).alias(TAG), self._spread(self.groups[0][0]).alias(SPREAD))
        tags = [
            F.when(wants, F.struct(F.lit(number).alias(TAG), self._spread(group).alias(SPREAD)))
            for number, (wants, (group, _)) in enumerate(zip(wanted, self.groups, strict=True))
        ]
        copies = rows.select(*columns, F.explode(F.array(*tags)).alias("for")).filter(F.col("for").isNotNull())
        return copies.select(*self._own_columns(), F.col("for")[TAG].alias(TAG), F.col("for")[SPREAD].alias(SPREAD))

    def _watched(self, rows: DataFrame) -> DataFrame:
        kind = F.col(self.layout.wire[self.layout.fields.index("type")])
        return rows if self.watch is None else self.watch(rows, kind)

    def _own_columns(self) -> list[Column]:
        """A column is null in the copies for groups that do not read it."""
        return [self._own_column(name, wire).alias(wire) for name, wire in zip(self.layout.fields, self.layout.wire, strict=True)]

    def _own_column(self, name: str, wire: str) -> Column:
        readers = [number for number, layout in enumerate(self.layouts) if name in layout.fields]
        return F.col(wire) if len(readers) == len(self.groups) else F.when(F.col("for")[TAG].isin(readers), F.col(wire))

    def _spread(self, group: Group) -> Column:
        if group.key is None:
            return F.lit(0).cast("bigint")
        return F.xxhash64(*(pushdown.key_columns(self.source, group) if group.key else [self.source.hi]))

    def _with_marks(self, rows: DataFrame) -> DataFrame:
        """With a row without an event for a group that has one task and timers: time passes there even if no event comes."""
        for number, (group, plans) in enumerate(self.groups):
            if group.key is None and any(plan.timed for plan in plans):
                nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema.fields[:-2]]
                mark = rows.sparkSession.range(0, 1, 1, 1)
                rows = rows.unionAll(mark.select(*nothing, F.lit(number), F.lit(0).cast("bigint")))
        return rows


def joined_layout(layouts: Sequence[Layout]) -> Layout:
    """All fields of these, those of the envelope first."""
    fields = dict.fromkeys(name for layout in layouts for name in layout.fields)
    return Layout(tuple(sorted(fields, key=lambda name: name.startswith("."))))
