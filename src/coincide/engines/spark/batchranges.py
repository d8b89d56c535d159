"""A batch of rules without a key, in ranges of time that run side by side (engines/ranges.py says how).

Two small jobs find where to cut. Then all ranges run, a task for each, and the driver puts together what they have come to; those
that do not fit run again. What they detect is kept by Spark (`persist`), packed, so that who reads the frame does not have them
run once more. Of what depends on the beginning of a range, what did not come about is left out then."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coincide.engines.graph import Graph
from coincide.engines.ranges import ROUNDS, Ending, Entry, Range, RangedGraph, Starts, Stretch, Unsettled, settled
from coincide.engines.spark.packing import balanced_buckets, from_bytes, to_bytes
from coincide.engines.spark.worker import Span, Task, by_tag, events_in, graph_for, in_order, named, written
from coincide.errors import RunError

EARLY = 16
"""A range begins early by one of so many parts of its length."""
BUCKET = "bucket"
GIVEN = "given"
RESULT = "number int, stretch binary, state binary, blob binary"
RESULT_ARROW = pa.schema([("number", pa.int32()), *((name, pa.binary()) for name in ("stretch", "state", "blob"))])
LOG = logging.getLogger("coincide.spark")


@dataclass(frozen=True)
class RangedBatch:
    """The rows that a group without a key wants, in its layout; `counted` are the same, with observed metrics."""

    rows: DataFrame
    counted: DataFrame
    task: Task
    span: Span
    early: bool

    def detected(self, wanted: int) -> DataFrame | str:
        """The detections, or why one task is needed."""
        parts, start = self._parts(wanted)
        if len(parts) < 2:
            return "there is too little to cut"
        rounds = _Rounds(self, parts, start)
        try:
            found = rounds.found(settled(len(parts), rounds.run))
        except Unsettled as unsettled:
            rounds.forget()
            return f"what was before ranges still matters after {ROUNDS} more rounds: {unsettled}"
        except _Unfit:
            rounds.forget()
            return "a range has stopped with an error, which may be none of the whole run's"
        LOG.info("%d ranges of time; run again: %d", len(parts), rounds.again)
        return found

    @property
    def hi(self) -> Column:
        return F.col(self.task.layout.wire[self.task.layout.fields.index("hi")])

    def _parts(self, wanted: int) -> tuple[list[Range], int | None]:
        """Ranges of about equal size, and when the run began."""
        shares = [number / (wanted * EARLY) for number in range(1, wanted * EARLY)]
        start, found = self.rows.agg(F.min(self.hi), F.percentile_approx(self.hi, shares)).collect()[0]
        if start is None:
            return [], None
        cuts = sorted({found[number * EARLY - 1] for number in range(1, wanted)} - {start})
        sooner = [max(found[max(0, found.index(cut) - 1)], before) for cut, before in zip(cuts, [start, *cuts], strict=False)]
        lows = sooner if self.early else cuts
        counts = self.rows.agg(*(F.count(F.when(self.hi < low, 1)) for low in lows)).collect()[0] if lows else ()
        firsts: list[int | None] = [None, *cuts]
        return [Range(*part) for part in zip(firsts, [*cuts, None], [None, *lows], [0, *counts], strict=True)], start


class _Unfit(Exception):
    """A range has stopped with an error."""


class _Rounds:
    """Ranges that run, again and again."""

    def __init__(self, batch: RangedBatch, parts: Sequence[Range], start: int | None) -> None:
        self.batch, self.parts = batch, parts
        self.start = start if batch.span.start is None else batch.span.start
        self.buckets = balanced_buckets(len(parts))
        self.frames: list[DataFrame] = []
        self.latest: dict[int, tuple[int, Stretch]] = {}  # by range, the round that has the last word, and that
        self.again = 0

    def run(self, numbers: Sequence[int], starts: Sequence[Starts] | None) -> Mapping[int, Stretch]:
        entries = {} if starts is None else self._entries(numbers, starts)
        self.again += len(entries)
        span = self.batch.span
        ending = Ending(span.last, span.until, span.closed)
        running = _Running(self.batch.task, tuple(self.parts), self.buckets, self.start, ending, entries)
        rows = self._spread(self.batch.rows, numbers) if entries else self._spread(self.batch.counted)
        frame = rows.mapInArrow(running, RESULT).persist()
        self.frames.append(frame)
        found = frame.select("number", "stretch").collect()
        if len(found) < len(numbers) or not all(row.stretch for row in found):
            raise _Unfit
        made = {row.number: msgspec.msgpack.decode(row.stretch, type=Stretch) for row in found}
        self.latest.update((number, (len(self.frames) - 1, stretch)) for number, stretch in made.items())
        return made

    def found(self, starts: Sequence[Starts]) -> DataFrame:
        """What came about from these states."""
        valid = [
            frame.filter(F.col("number").isin([number for number, (last, _) in self.latest.items() if last == turn]))
            for turn, frame in enumerate(self.frames)
        ]
        blobs = reduce(DataFrame.unionAll, valid).select("number", "blob")
        chosen = {number: stretch.chosen(starts[number]) for number, (_, stretch) in self.latest.items()}
        return blobs.mapInArrow(_Choosing(chosen), self.batch.task.outputs.spark())

    def forget(self) -> None:
        for frame in self.frames:
            frame.unpersist()

    def _entries(self, numbers: Sequence[int], starts: Sequence[Starts]) -> dict[int, Entry]:
        """The states that ranges before these have come to."""
        entries: dict[int, Entry] = {}
        for turn, frame in enumerate(self.frames):
            wanted = [number - 1 for number in numbers if self.latest[number - 1][0] == turn]
            rows = frame.filter(F.col("number").isin(wanted)).select("number", "state").collect() if wanted else []
            entries.update((row.number + 1, Entry(bytes(row.state), starts[row.number + 1])) for row in rows)
        return entries

    def _spread(self, rows: DataFrame, again: Sequence[int] | None = None) -> DataFrame:
        """The rows of each range in a task of its own, with a number that leads there."""
        chosen = F.explode(self._buckets(0, len(self.parts))).alias(BUCKET)
        spread = rows.select("*", chosen)
        if again is not None:
            spread = spread.filter(F.col(BUCKET).isin([self.buckets[number] for number in again]))
        return spread.repartition(len(self.parts), BUCKET)

    def _buckets(self, low: int, high: int) -> Column:
        """Of the ranges from `low` on, before `high`, those that read a row: a search by halves."""
        hi = self.batch.hi
        if high - low > 1:
            middle = (low + high) // 2
            return F.when(hi < self.parts[middle].first, self._buckets(low, middle)).otherwise(self._buckets(middle, high))
        own = F.array(F.lit(self.buckets[low]))
        if low + 1 == len(self.parts):
            return own
        return F.when(hi >= self.parts[low + 1].low, F.array(*map(F.lit, self.buckets[low : low + 2]))).otherwise(own)


@dataclass(frozen=True)
class _Running:
    """Sent to workers: what becomes of the rows of a range."""

    task: Task
    parts: tuple[Range, ...]
    buckets: tuple[int, ...]
    start: int | None
    ending: Ending
    entries: Mapping[int, Entry]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        held: dict[int, list[pa.RecordBatch]] = {}
        for batch in batches:
            for bucket, rows in by_tag(batch, len(self.task.layout.fields)):
                held.setdefault(self.buckets.index(bucket), []).append(events_in(rows, self.task.layout))
        for number in sorted(held):
            yield self._ran(number, named(self.task.layout, held.pop(number)))

    def _ran(self, number: int, columns: dict[str, Any]) -> pa.RecordBatch:
        events = in_order(self.task.layout, columns)
        graph = _ranged(graph_for(self.task, len(events)))
        try:
            made, stretch, state = graph.run(self.parts[number], events, self.start, self.ending, self.entries.get(number))
        except RunError:
            return _result(number, b"", b"", None)
        rows = [
            row.append_column(GIVEN, pa.array([given] * len(row), pa.int32()))
            for given, batch in made
            for row in written(self.task, batch, None)
        ]
        blob = to_bytes(pa.Table.from_batches(rows)) if rows else None
        return _result(number, msgspec.msgpack.encode(stretch), state, blob)


@lru_cache(maxsize=16)
def _ranged(graph: Graph) -> RangedGraph:
    return RangedGraph(graph)


def _result(*values: Any) -> pa.RecordBatch:
    columns = [pa.array([value], field.type) for value, field in zip(values, RESULT_ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=RESULT_ARROW)


@dataclass(frozen=True)
class _Choosing:
    """Sent to workers: the detections of ranges, of which some did not come about."""

    chosen: Mapping[int, Sequence[int]]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number, blob in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                if blob.is_valid:
                    table = from_bytes(blob.as_py())
                    given = pc.is_in(table.column(GIVEN), pa.array(self.chosen[number], pa.int32()))
                    yield from table.filter(given).drop_columns(GIVEN).to_batches()
