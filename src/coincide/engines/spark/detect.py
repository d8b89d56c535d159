"""Detection in a DataFrame, batch or streaming: the front door."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, TypedDict, Unpack, overload

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
from coincide.engines.spark.timing import AHEAD, Timing, timing
from coincide.errors import CoincideError, warn
from coincide.rulebook import Rulebook, RuleSource, rulebook
from coincide.unmet import Unmet

Rules = Rulebook | RuleSource | Sequence[RuleSource]
Transformation = Callable[[DataFrame], DataFrame]


class Options(TypedDict, total=False):
    """What `detect` may be told beside rules and events; it says what each is for."""

    mapping: FieldMapping | None
    until: Until
    delay: str
    tier: str
    buckets: int | None
    pages: int | None
    policy: str | None
    late: bool
    latency: bool
    rejects: bool
    ahead: str | None
    idle: str | None
    report: Report | None
    keys: bool
    versions: bool
    checkpoint: str | PathLike[str] | None
    ranges: int | None


@overload
def detect(rules: Rules, df: None = None, **options: Unpack[Options]) -> Transformation: ...


@overload
def detect(rules: Rules, df: DataFrame, **options: Unpack[Options]) -> DataFrame: ...


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

    `mapping` tells which columns are the envelope of events. A batch ends with its last event, or goes on `until` (milliseconds
    since the epoch, ISO-8601 text, a datetime or inf). There, rules without a key run in one task, or in as many `ranges` of time
    side by side: these jobs run at once, and what is detected is kept as by `persist`. A `report` tells what became of the rows.

    In a stream events may come `delay` late. `buckets` and `pages` divide its state (docs/decisions/0003); if a `checkpoint` is
    given, they are found there, and its state moves if other `buckets` are asked for. What does not fit is an error at once, and
    the log tells which rules keep their state. An event whose time is more than `ahead` beyond the others of its micro-batch, or
    beyond the wall clock if the stream is live, is set aside and does not move the clock (None: every time is believed). If
    nothing has come for `idle`, the clock follows the wall, and sources that a policy waits for are not waited for any more.

    Under a `policy` (`best-effort`, `guaranteed`, `probabilistic 0.95`; for definitions that name none) events are consumed as
    they come, by the column `arrival`, mostly in one task (docs/decisions/0007); with `latency`, the column `_latency` has the
    milliseconds from a detection's hi to the clock at which it was made.

    With `late` the frame holds late events too, with `rejects` rows that are no events and those that are set aside: `split`
    parts them from the detections. With `keys` the column `_key` has the key of each detection: the same in every run and on
    every engine, if events have ids of their own; with `versions` the column `_version` the digest of its definition.
    Columns that rules read and that are missing, or of a type that makes a comparison pointless, are reported as DataWarning."""
    book = rulebook(rules)
    default = _policy(book, policy, latency)

    def apply(frame: DataFrame) -> DataFrame:
        fields = book.fields(mapping or DEFAULT)
        unmet = Unmet(book, fields)
        source = Source(frame, fields, read=book.attributes, place=unmet.place)
        warn(unmet.in_table(source.kinds))
        if frame.isStreaming:
            shape = {"tier": tier, "buckets": buckets, "pages": pages, "policy": default, "late": late, "latency": latency}
            shape |= {"keys": keys, "rejects": rejects, "versions": versions}
            found = _in_stream(book, source, timing(delay, ahead, idle), shape, until, report, checkpoint)
        else:
            counted = source if report is None else report.watch(source, Unmet(book, source.mapping))
            given = until_microseconds(until), tier, default, late, latency, None, counted, unmet, keys, True, versions, ranges
            found = detect_batch(book, source, *given)
        return _shown(found, source, latency, rejects)

    return apply if df is None else apply(df)


def _policy(book: Rulebook, named: str | None, latency: bool) -> StabilityPolicy | None:
    policy = None if named is None else StabilityPolicy.parse(named)
    if latency and not goes_by_arrival(book, policy):
        raise CoincideError("latencies need a policy: policy=, or one in the rules")
    return policy


def _in_stream(
    book: Rulebook,
    source: Source,
    clock: Timing,
    shape: Mapping[str, Any],
    until: Until,
    report: Report | None,
    checkpoint: str | PathLike[str] | None,
) -> DataFrame:
    from coincide.engines.spark.checkpoint import read_checkpoint
    from coincide.engines.spark.streaming import detect_streaming

    book.check_endless()
    warn(book.streaming_warnings)
    if report is not None:
        raise CoincideError(f"a report is for batches; a stream counts its rows in its progress, as '{ROWS}'")
    if until is not None:
        raise CoincideError("a stream has no end: `until` is for batches; `idle=` lets time pass when nothing comes")
    before = None if checkpoint is None else read_checkpoint(source.original.sparkSession, fspath(checkpoint))
    return detect_streaming(book, source, clock, **shape, before=before)


def _shown(found: DataFrame, source: Source, latency: bool, rejects: bool) -> DataFrame:
    found = found.drop(ORDER)
    found = found.withColumn(LATENCY, F.col(LATENCY) / 1000) if latency else found
    return with_rejected(found, source) if rejects else found
