"""Why, over a DataFrame: what led to a detection that Spark has made, or why it made none. The rows that can have to do with it
are fetched, and the rules run over them in this process: engines give the same answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Any, overload

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from coincide.adapters.frames import from_arrow
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.order import in_total_order
from coincide.adapters.write import KEY
from coincide.causes import Cause, Observed
from coincide.engines.choice import Until, until_microseconds
from coincide.engines.embedded import run
from coincide.engines.identity import with_key
from coincide.engines.spark.detect import Rules
from coincide.errors import InputError
from coincide.misses.answer import Answer, why_not
from coincide.misses.asking import Key, detector_named, question
from coincide.model.batch import EventBatch
from coincide.rulebook import Rulebook, rulebook

MOST = 1_000_000
"""Rows that are fetched."""


@overload
def why(
    rules: Rules,
    df: DataFrame,
    *,
    detection: Row | Mapping[str, Any] | str,
    until: Until = None,
    mapping: FieldMapping = DEFAULT,
    most: int = MOST,
) -> Cause: ...


@overload
def why(
    rules: Rules,
    df: DataFrame,
    *,
    rule: str | None = None,
    key: Key = None,
    at: Any = None,
    until: Until = None,
    mapping: FieldMapping = DEFAULT,
    most: int = MOST,
) -> Answer: ...


def why(
    rules: Rules,
    df: DataFrame,
    *,
    detection: Row | Mapping[str, Any] | str | None = None,
    rule: str | None = None,
    key: Key = None,
    at: Any = None,
    until: Until = None,
    mapping: FieldMapping = DEFAULT,
    most: int = MOST,
) -> Cause | Answer:
    """What led to a detection of `detect(rules, df, keys=True)`: a row of it, or its `_key`; or for a rule and a key, why there
    is none. `df` are the events that were read, with ids of their own. Of a row, or a key, only its events are fetched."""
    book, end = rulebook(rules), until_microseconds(until)
    if df.isStreaming:
        raise InputError("give the events that the stream has read as a batch: why() fetches those of one key")
    if detection is None:
        given = key if isinstance(key, Mapping) else {}
        detector = detector_named(book, rule)
        own = book.needed_for({detector.order})
        events = [event for batch in _fetched(own, df, given, mapping, most) for event in batch.events]
        return why_not(own, events, question(own, events, detector.name if rule is None else rule, key, at), end)
    row = detection.asDict(recursive=True) if isinstance(detection, Row) else detection
    own = book if isinstance(row, str) else book.needed_for({d.order for d in book.detectors if row.get("type") in d.outputs})
    kept = Observed()
    batches = kept.reading(_fetched(own, df, {} if isinstance(row, str) else row, mapping, most))
    for _ in kept.making(run(own, batches, end)):
        pass
    causes = kept.causes(own)
    return causes.of(with_key(own, causes.detections, row if isinstance(row, str) else str(row[KEY])))


def _fetched(book: Rulebook, df: DataFrame, values: Mapping[str, Any], mapping: FieldMapping, most: int) -> list[EventBatch]:
    """In total order. Raises InputError if there are too many."""
    names = [name for name in book.independent_names if values.get(name) is not None and name in df.columns]
    tests = [F.col(f"`{name}`") == F.lit(values[name]) for name in names]
    narrowed = df.where(reduce(and_, tests)) if tests else df
    table = narrowed.limit(most + 1).toArrow()
    if table.num_rows > most:
        raise InputError(f"there are more than {most:,} rows to look at: give a row of the detection, a key, or fewer events")
    return list(in_total_order(from_arrow(table, book.fields(mapping))))
