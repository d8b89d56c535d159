"""Detection in a DataFrame, batch or streaming: the front door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from pyspark.sql import DataFrame

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.engines.choice import Until, until_microseconds
from coincide.engines.spark.batch import detect_batch
from coincide.engines.spark.frame import Source
from coincide.engines.spark.outputs import ORDER
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
) -> DataFrame | Transformation:
    """The detections that the rules make of the events in a DataFrame; without one, a function for `df.transform`.

    `mapping` tells which columns are the envelope of events. A batch run ends with its last event, or goes on `until`
    (milliseconds since the epoch, ISO-8601 text, a datetime or inf). In a streaming run events may come `delay` late; `buckets`
    and `pages` divide its state (see docs/decisions/0003) and must stay as they are over the life of a checkpoint."""
    book = rulebook(rules)

    def apply(frame: DataFrame) -> DataFrame:
        source = Source(frame, mapping or DEFAULT)
        if frame.isStreaming:
            from coincide.engines.spark.streaming import detect_streaming

            return detect_streaming(book, source, delay, tier, buckets, pages).drop(ORDER)
        return detect_batch(book, source, until_microseconds(until), tier).drop(ORDER)

    return apply if df is None else apply(df)
