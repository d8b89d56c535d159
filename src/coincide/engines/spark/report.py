"""What a batch run met: rows that were no events, types that no row had. Observed while the run goes by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from coincide.adapters.seen import Seen
from coincide.engines.spark.frame import Source
from coincide.engines.spark.rejects import row_counts, span_of
from coincide.errors import CoincideError, Diagnostic
from coincide.lang.shared.reads import ATTRIBUTE, KEY, TYPE
from coincide.unmet import Unmet

NAMES = 1000
"""Of the types that are there, so many are looked at for one that is near."""


class Report:
    """Given to `detect` as `report=`, it tells what became of the rows of a batch once the run is done (`count`, `write` …).

    To count all rows keeps filters from being handed to the source. One report is for one DataFrame."""

    def __init__(self) -> None:
        self._observation = Observation()
        self._source: Source | None = None
        self._unmet: Unmet | None = None

    @property
    def rows(self) -> int:
        return int(self._counts["rows"])

    @property
    def rejected(self) -> int:
        """Rows without a type or a time."""
        return int(self._counts["rejected"])

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Rejected rows, and what the rules read and no event had."""
        assert self._source is not None
        assert self._unmet is not None
        return tuple(met(self._counts, self._unmet, self._source))

    def __str__(self) -> str:
        return "\n".join(diagnostic.render() for diagnostic in self.warnings)

    def watch(self, source: Source, unmet: Unmet) -> Source:
        """The source, whose rows are counted when they go by."""
        if self._source is not None:
            raise CoincideError("a report is for one DataFrame: make another one")
        self._source, self._unmet = source, unmet
        return source.observed(self._observe)

    def _observe(self, frame: DataFrame) -> DataFrame:
        assert self._source is not None
        assert self._unmet is not None
        return frame.observe(self._observation, *counts(self._source, self._unmet))

    @cached_property
    def _counts(self) -> Mapping[str, Any]:
        if self._source is None:
            raise CoincideError("this report was given to no DataFrame: detect(rules, df, report=report)")
        try:
            found: Mapping[str, Any] = self._observation.get
        except Exception:  # Spark's own, of several kinds: it saw that no row can be of use, and read none
            return self._counted_apart(self._source)
        return found

    def _counted_apart(self, source: Source) -> Mapping[str, Any]:
        assert self._unmet is not None
        (row,) = source.frame.agg(*counts(source, self._unmet)).collect()
        return dict(row.asDict())


def counts(source: Source, unmet: Unmet) -> list[Any]:
    """Aggregates over all rows: how many there are, and how many events have what the rules read."""
    types = [
        F.count(F.when(source.is_event & (source.type == name), 1)).alias(f"type {name}") for name in sorted(unmet.names(TYPE))
    ]
    attributes = {name: source.values(name) for name in sorted(unmet.names(KEY, ATTRIBUTE))}
    present = [
        F.count(F.when(source.is_event, F.coalesce(*(c.cast("string") for c in columns)))).alias(f"attribute {name}")
        for name, columns in attributes.items()
        if columns
    ]
    return [*row_counts(source), *span_of(source), *types, *present]


def met(counted: Mapping[str, Any], unmet: Unmet, source: Source) -> list[Diagnostic]:
    """What these counts say. Only if a type is missing is a job run, to find those that are there."""
    rejected, rows = int(counted["rejected"]), int(counted["rows"])
    seen = Seen()
    seen.types = Counter({name.removeprefix("type "): n for name, n in counted.items() if name.startswith("type ") and n})
    seen.attributes = Counter(
        {name.removeprefix("attribute "): n for name, n in counted.items() if name.startswith("attribute ")}
    )
    seen.earliest, seen.latest = counted["earliest"], counted["latest"]
    if rows > rejected and unmet.names(TYPE) - seen.types.keys():
        seen.types = _types(source)
    left_out = f"{rejected:,} of {rows:,} rows have no type or no time: left out"
    told = [Diagnostic(left_out, severity="warning", hint="detect(…, rejects=True) shows them")] if rejected else []
    return told + (unmet.after(seen) if rows == rejected or seen.types else [])


def _types(source: Source) -> Counter[str]:
    rows = source.frame.filter(source.is_event).groupBy(source.type.alias("type")).count().orderBy(F.desc("count")).limit(NAMES)
    return Counter({row["type"]: row["count"] for row in rows.collect()})
