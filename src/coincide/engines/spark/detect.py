"""Detection in a DataFrame, batch or streaming: the front door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import overload

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.engines.choice import Until, until_microseconds
from coincide.engines.instance import StabilityPolicy
from coincide.engines.spark.batch import detect_batch
from coincide.engines.spark.frame import Source
from coincide.engines.spark.outputs import LATENCY, ORDER
from coincide.engines.spark.policies import goes_by_arrival
from coincide.engines.spark.rejects import ROWS, with_rejected
from coincide.engines.spark.report import Report
from coincide.engines.spark.timing import AHEAD, timing
from coincide.errors import CoincideError, warn
from coincide.rulebook import Rulebook, RuleSource, rulebook
from coincide.unmet import Unmet

Rules = Rulebook | RuleSource | Sequence[RuleSource]
Transformation = Callable[[DataFrame], DataFrame]


@overload
def detect(
    rules: Rules,
    df: None = None,
    *,
    mapping: FieldMapping | None = None,
    until: Until = None,
    delay: str = "10 seconds",
    tier: str = "kernel",
    buckets: int | None = None,
    pages: int | None = None,
    policy: str | None = None,
    late: bool = False,
    latency: bool = False,
    rejects: bool = False,
    ahead: str | None = AHEAD,
    idle: str | None = None,
    report: Report | None = None,
    keys: bool = False,
    versions: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    ranges: int | None = None,
) -> Transformation: ...


@overload
def detect(
    rules: Rules,
    df: DataFrame,
    *,
    mapping: FieldMapping | None = None,
    until: Until = None,
    delay: str = "10 seconds",
    tier: str = "kernel",
    buckets: int | None = None,
    pages: int | None = None,
    policy: str | None = None,
    late: bool = False,
    latency: bool = False,
    rejects: bool = False,
    ahead: str | None = AHEAD,
    idle: str | None = None,
    report: Report | None = None,
    keys: bool = False,
    versions: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    ranges: int | None = None,
) -> DataFrame: ...


def detect(
    rules: Rules,
    df: DataFrame | None = None,
    *,
    mapping: FieldMapping | None = None,
    until: Until = None,
    delay: str = "10 seconds",
    tier: str = "kernel",
    buckets: int | None = None,
    pages: int | None = None,
    policy: str | None = None,
    late: bool = False,
    latency: bool = False,
    rejects: bool = False,
    ahead: str | None = AHEAD,
    idle: str | None = None,
    report: Report | None = None,
    keys: bool = False,
    versions: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    ranges: int | None = None,
) -> DataFrame | Transformation:
    """The detections that the rules make of the events in a DataFrame; without one, a function for `df.transform`.

    `mapping` tells which columns are the envelope of events. A batch run ends with its last event, or goes on `until`
    (milliseconds since the epoch, ISO-8601 text, a datetime or inf). In a streaming run events may come `delay` late; `buckets`
    and `pages` divide its state (see docs/decisions/0003). If `checkpoint`, that of the query, is given, they are found there,
    and the state moves if other `buckets` are asked for; what does not fit is an error at once, and the log tells which rules
    keep their state and which start afresh.

    In a batch, rules without a key run in one task, or in as many `ranges` of time side by side, each checked against the end of
    the one before. These jobs run at once, and what is detected is kept as by `persist`.

    Under a `policy` (`best-effort`, `guaranteed`, `probabilistic 0.95`; for definitions that name none) events are consumed as
    they come, by the column `arrival`, mostly in one task (see docs/decisions/0007).

    In a stream an event whose time is more than `ahead` beyond the others of its micro-batch, or beyond the wall clock if the
    stream is live, is set aside: it does not move the clock (None: every time is believed). When nothing has come for `idle`,
    the clock follows the wall, so that deadlines pass; sources that a policy waits for and that are silent for so long are
    not waited for.

    With `late=True` the frame holds late events too, with `rejects=True` rows that are no events, for lack of a type or a time,
    and those that are set aside: `split` parts them from the detections. A `report` tells what became of the rows of a batch once
    the run is done; a stream counts them in its progress. With `latency=True` the column `_latency` has the milliseconds from a
    detection's hi to the clock at which it was made.

    With `keys=True` the column `_key` has the key of each detection: the same in every run and on every engine, if events have
    ids of their own. With `versions=True` the column `_version` has the digest of the definition that made it.

    Columns that the rules read and that are missing, or of a type that makes a comparison pointless, are told as DataWarning."""
    book = rulebook(rules)
    default = None if policy is None else StabilityPolicy.parse(policy)
    if latency and not goes_by_arrival(book, default):
        raise CoincideError("latencies need a policy: policy=, or one in the rules")

    def apply(frame: DataFrame) -> DataFrame:
        source = Source(frame, book.fields(mapping or DEFAULT), read=book.attributes)
        unmet = Unmet(book, source.mapping)
        warn(unmet.in_table(source.kinds))
        if frame.isStreaming:
            from coincide.engines.spark.checkpoint import read_checkpoint
            from coincide.engines.spark.streaming import detect_streaming

            book.check_endless()
            warn(book.streaming_warnings)
            if report is not None:
                raise CoincideError(f"a report is for batches; a stream counts its rows in its progress, as '{ROWS}'")
            if until is not None:
                raise CoincideError("a stream has no end: `until` is for batches; `idle=` lets time pass when nothing comes")
            clock = timing(delay, ahead, idle)
            before = None if checkpoint is None else read_checkpoint(frame.sparkSession, fspath(checkpoint))
            shape = tier, buckets, pages, None, default, late, latency
            found = detect_streaming(book, source, clock, *shape, keys, rejects, versions, before)
        else:
            counted = source if report is None else report.watch(source, Unmet(book, source.mapping))
            end = until_microseconds(until)
            found = detect_batch(
                book, source, end, tier, default, late, latency, None, counted, unmet, keys, versions=versions, ranges=ranges
            )
        found = found.drop(ORDER)
        found = found.withColumn(LATENCY, F.col(LATENCY) / 1000) if latency else found
        return with_rejected(found, source) if rejects else found

    return apply if df is None else apply(df)
