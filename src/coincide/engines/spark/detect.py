"""Detection in a DataFrame, batch or streaming: the front door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from coincide.errors import CoincideError
from coincide.rulebook import Rulebook, RuleSource, rulebook

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
) -> DataFrame | Transformation:
    """The detections that the rules make of the events in a DataFrame; without one, a function for `df.transform`.

    `mapping` tells which columns are the envelope of events. A batch run ends with its last event, or goes on `until`
    (milliseconds since the epoch, ISO-8601 text, a datetime or inf). In a streaming run events may come `delay` late; `buckets`
    and `pages` divide its state (see docs/decisions/0003) and must stay as they are over the life of a checkpoint.

    Under a `policy` (`best-effort`, `guaranteed`, `probabilistic 0.95`; for definitions that name none) events are consumed as
    they come, by the column `arrival`, mostly in one task (see docs/decisions/0007).

    With `late=True` the frame holds late events too: `split` parts them from the detections. With `latency=True` the column
    `_latency` has the milliseconds from a detection's hi to the clock at which it was made."""
    book = rulebook(rules)
    default = None if policy is None else StabilityPolicy.parse(policy)
    if latency and not goes_by_arrival(book, default):
        raise CoincideError("latencies need a policy: policy=, or one in the rules")

    def apply(frame: DataFrame) -> DataFrame:
        source = Source(frame, mapping or DEFAULT)
        if frame.isStreaming:
            from coincide.engines.spark.streaming import detect_streaming

            found = detect_streaming(book, source, delay, tier, buckets, pages, None, default, late, latency)
        else:
            found = detect_batch(book, source, until_microseconds(until), tier, default, late, latency)
        found = found.drop(ORDER)
        return found.withColumn(LATENCY, F.col(LATENCY) / 1000) if latency else found

    return apply if df is None else apply(df)
