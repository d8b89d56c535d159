"""What the checkpoint of a streaming query holds (engines/holdings.py). The rules are in it, too."""

from __future__ import annotations

from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from coincide.detection.base import Unfinished, in_tier
from coincide.detection.snapshots import reading_state
from coincide.engines.graph import Graph
from coincide.engines.holdings import Holding, snapshot_holdings
from coincide.engines.spark.arrival import TOKEN
from coincide.engines.spark.bucket import Meta, read_meta
from coincide.engines.spark.checkpoint import PARTS, StoredBucket, operators_of, stored_buckets, variables
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.pages import CHECKPOINT, Pages
from coincide.engines.spark.session import session
from coincide.engines.spark.worker import Sources, Task, rules_of
from coincide.errors import InputError
from coincide.rulebook import Rulebook


def stream_holdings(path: Path, book: Rulebook | None = None) -> list[Holding]:
    """A holding for each group. `book` is needed under a policy, where the checkpoint does not have the rules."""
    spark = SparkSession.getActiveSession() or session("coincide state")
    operators = operators_of(spark, str(path))
    names = variables(operators)
    if "arrivals" in names:
        return _arrivals(spark, path, book)
    if not set(PARTS) <= names:
        raise InputError(f"'{path}' is not the checkpoint of a stream of coincide, or has nothing in it yet")
    found = stored_buckets(spark, str(path), len(operators))
    return [_group(name, [*buckets.values()]) for name, buckets in sorted(found.items())]


def _arrivals(spark: SparkSession, path: Path, book: Rulebook | None) -> list[Holding]:
    if book is None:
        raise InputError(f"the stream of '{path}' is under a policy: give its rules, too")
    reader = spark.read.format("statestore").option("path", str(path)).option("stateVarName", "arrivals")
    (row,) = reader.load().select("value.data").collect()
    return snapshot_holdings(bytes(row["data"])[TOKEN:], book)


def _group(name: str, buckets: list[StoredBucket]) -> Holding:
    found: list[Unfinished] = []
    metas: list[Meta] = []
    for bucket in buckets:
        data = bucket.meta()
        if data is not None:
            metas.append(meta := read_meta(data))
            found += _unfinished(bucket, meta)
    clock = max((meta.clock for meta in metas), default=None)
    waiting = sum(segment.count for meta in metas for segment in meta.segments)
    return Holding(name, clock, waiting, found)


def _unfinished(bucket: StoredBucket, meta: Meta) -> list[Unfinished]:
    found: list[Unfinished] = []
    for number, page in meta.pages.items():
        with reading_state(CHECKPOINT):
            sources, members = msgspec.msgpack.decode(bucket.rules(page.rules), type=tuple[Sources, tuple[int, ...]])
        task = Task(sources, members, "kernel", Layout(()), Outputs(()))
        state = Pages(task, bucket, meta.pages, meta.rules).load(number)
        book = rules_of(sources)
        plans = book.compiled.plans_for([d for d in book.detectors if d.order in members])
        interpreted = Graph(in_tier(plans, "interpreter"))
        found += interpreted.unfinished(interpreted.decode(task.graph.encode(state)))
    return found
