"""How time passes in a stream: events that are too far in the future, and sources that are silent."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester
from support import Memory
from test_arrival import StateStore

from coincide import spark as on_spark
from coincide.engines.ahead import DAY, Guard
from coincide.engines.instance import StabilityPolicy
from coincide.engines.spark import arrival
from coincide.engines.spark.bucket import Arrived, Bucket, Outcome
from coincide.engines.spark.division import Division
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.packing import PACKED_ARROW, Packing, Road
from coincide.engines.spark.stateful import Keeper, Processor, arrived_rows
from coincide.engines.spark.timing import Timing
from coincide.engines.spark.worker import Task, sources_of
from coincide.errors import CoincideError, InputError
from coincide.model.batch import merged
from coincide.rulebook import Rulebook, loads

SECOND = 1_000_000
MINUTE = 60 * SECOND
NOW = 1_800_000_000 * SECOND
LAYOUT = Layout(("hi", "type", "id", "source"))
ROADS = (Road("all", LAYOUT, (0,)),)
Row = tuple[str, int, str]

MISSING = "detect Missing = ([A], [T in {T, B}]) T = 10s"
ABSENT = loads(MISSING, "ce")
"""An A that no B follows within ten seconds."""


class Stream:
    """Micro-batches, without Spark: a bucket that is told what tasks have packed."""

    def __init__(self, timing: Timing, rules: Rulebook = ABSENT, sources: tuple[str, ...] = ()) -> None:
        self.task = Task(sources_of(rules), tuple(d.order for d in rules.detectors), "interpreter", LAYOUT, Outputs(()))
        self.timing, self.sources, self.store = timing, sources, Memory()

    def take(self, *tasks: Iterable[Row], wall: int = NOW) -> tuple[list[str], Outcome]:
        packing = Packing(LAYOUT, ROADS, bool(self.sources), self.timing.guard)
        packed = [batch for rows in tasks for batch in packing([_batch(list(rows), wall)])]
        return self._advance(arrived_rows(pa.Table.from_batches(packed, PACKED_ARROW).to_pandas()))

    def wake(self) -> tuple[list[str], Outcome]:
        """The timer that was asked for goes off."""
        assert self.store.wakes is not None
        at, self.store.wakes = self.store.wakes * 1000, None
        return self._advance(Arrived(wall=at))

    def _advance(self, arrived: Arrived) -> tuple[list[str], Outcome]:
        outcome = Bucket(self.task, self.timing, True, Division([], 1, 1), self.store, self.sources).advance(arrived)
        return [event.type for event in merged(outcome.made).events], outcome


def _batch(rows: list[Row], wall: int) -> pa.RecordBatch:
    kinds, times, sources = (list(column) for column in zip(*rows, strict=True))
    size = len(rows)
    columns = {"w0": times, "w1": kinds, "w2": [f"{kind}{at}" for kind, at, _ in rows], "w3": sources}
    places = {"page0": [0] * size, "bucket0": [0] * size, "closing": pa.nulls(size, pa.int64()), "wall": [wall] * size}
    return pa.record_batch({**columns, **places})


def test_a_far_future_event_does_not_move_the_clock() -> None:
    stream = Stream(Timing(0, Guard()))
    made, outcome = stream.take([("A", 0, "s"), ("X", 5 * SECOND, "s")], [("X", 40 * DAY, "s")])
    assert (made, outcome.ahead, stream.store.wakes) == ([], 1, None)
    made, outcome = stream.take([("X", 6 * SECOND, "s"), ("X", 11 * SECOND, "s")])
    assert (made, outcome.ahead, outcome.late) == (["Missing"], 0, 0)


def test_the_same_of_a_source_that_is_waited_for() -> None:
    stream = Stream(Timing(0, Guard()), sources=("p", "q"))
    _, outcome = stream.take([("A", 0, "p"), ("X", 40 * DAY, "p"), ("X", SECOND, "p"), ("X", SECOND, "q")])
    assert (outcome.ahead, outcome.late) == (1, 0)
    made, outcome = stream.take([("X", 11 * SECOND, "p"), ("X", 11 * SECOND, "q")])
    assert (made, outcome.late) == (["Missing"], 0)


def test_absence_shows_when_nothing_comes() -> None:
    """The clock goes on from the latest event, after a while of silence; the delay holds here, too."""
    stream = Stream(Timing(2 * SECOND, None, 30 * SECOND))
    made, outcome = stream.take([("A", 0, "s"), ("X", 5 * SECOND, "s")])
    assert (made, outcome.waiting) == ([], 1)
    assert stream.store.wakes == (NOW + 30 * SECOND) // 1000
    made, outcome = stream.wake()
    assert (made, outcome.waiting, stream.store.wakes) == (["Missing"], 0, None)
    _, outcome = stream.take([("X", 20 * SECOND, "s")], wall=NOW + 35 * SECOND)
    assert outcome.late == 1, "the clock had come to 35 s"


def test_a_deadline_that_is_later_than_the_silence() -> None:
    stream = Stream(Timing(0, None, SECOND))
    stream.take([("A", 0, "s")])
    assert stream.store.wakes == (NOW + SECOND) // 1000, "the event itself still waits for others of its instant"
    assert stream.wake()[0] == []
    assert stream.store.wakes == -(-(NOW + 10 * SECOND + 1) // 1000)
    assert stream.wake()[0] == ["Missing"]
    assert stream.store.wakes is None


def test_a_source_that_sleeps_does_not_hold_the_rest() -> None:
    stream = Stream(Timing(0, None, MINUTE), sources=("p", "q"))
    stream.take([("A", 0, "p"), ("X", 1, "q")])
    made, _ = stream.take([("X", 20 * SECOND, "p")], wall=NOW + 20 * SECOND)
    assert made == [], "q may still say something"
    assert stream.store.wakes == (NOW + MINUTE) // 1000
    assert stream.wake()[0] == ["Missing"]


@pytest.mark.parametrize("policy", ["guaranteed", "best-effort"])
def test_silence_under_policies(policy: str) -> None:
    rules = loads(f"sources p, q\n{MISSING}", "ce")
    task = Task(sources_of(rules), (0,), "interpreter", LAYOUT, Outputs((), latencies=True))
    job = arrival.Job(task, StabilityPolicy.parse(policy), Timing(0, Guard(), MINUTE))
    store = StateStore()

    def take(arrived: Arrived) -> tuple[bool, arrival.Counts]:
        blob, counts = arrival.advance(job, store, arrived)
        return blob is not None, counts

    rows = [("A", NOW, "p"), ("X", NOW + 1, "q"), ("X", NOW + 3 * DAY, "q")]
    packed = Packing(LAYOUT, ROADS, guard=job.timing.guard)([_batch(rows, NOW)])
    found, counts = take(arrived_rows(pa.Table.from_batches(packed, PACKED_ARROW).to_pandas()))
    assert (found, counts.ahead) == (False, 1)
    assert store.wakes == (NOW + MINUTE) // 1000
    found, _ = take(Arrived(wall=store.wakes * 1000))
    assert found


@pytest.mark.spark
def test_a_stream_that_falls_silent(spark: Any, tmp_path: Path) -> None:
    """Live: an event of the day after tomorrow is shown as a reject, and absence is detected though nothing more comes."""
    now = datetime.now(UTC)
    schema = "type string, time timestamp, note string"
    rows = [("A", now, "x"), ("C", now, "y"), ("A", now + timedelta(days=2), "far"), (None, now, "no type")]
    spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "events"))
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "events"))
    rules = loads(MISSING.replace("10s", "1s"), "ce")
    found = stream.transform(on_spark.detect(rules, delay="0 s", idle="1 s", rejects=True))
    detections: list[str] = []
    rejected: list[tuple[str, str]] = []

    def keep(batch: Any, number: int) -> None:
        made, rejects = on_spark.split(batch)
        detections.extend(row.type for row in made.collect())
        rejected.extend((row.note, row.reason) for row in rejects.collect())

    writer = found.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="1 second").start()
    try:
        end = time.monotonic() + 180
        while not detections and query.isActive and time.monotonic() < end:
            time.sleep(0.1)  # processAllAvailable would wait for ever: with timers, micro-batches go on without data
    finally:
        query.stop()
    assert query.exception() is None
    assert detections == ["Missing"]
    far = "time is more than 1d ahead of other events, or of the wall clock"
    assert sorted(rejected) == [("far", far), ("no type", "missing type")]


@pytest.mark.spark
def test_what_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    stream = spark.readStream.schema("type string, time timestamp").parquet(str(tmp_path / "events"))
    with pytest.raises(CoincideError, match="a stream has no end"):
        on_spark.detect(ABSENT, stream, until="2026-01-01")
    with pytest.raises(InputError, match="idle: "):
        on_spark.detect(ABSENT, stream, idle="a while")


def test_timers_as_spark_keeps_them() -> None:
    """The processor in Spark's own tester: micro-batches, then silence, and the timer that it has set goes off."""
    timing = Timing(0, Guard(), SECOND)
    task = Task(sources_of(ABSENT), (0,), "interpreter", LAYOUT, Outputs(()))
    keeper = Keeper(task, True, Division([], 1, 1))
    tester = TwsTester(Processor({"all": keeper}, timing), timeMode="ProcessingTime")
    wall = NOW
    tester.setProcessingTime(wall // 1000)
    packed = Packing(LAYOUT, ROADS, guard=timing.guard)([_batch([("A", NOW, "s"), ("X", NOW + 3 * DAY, "s")], wall)])
    rows = pa.Table.from_batches(packed, PACKED_ARROW).to_pandas()
    first = tester.testInPandas("all", rows)
    assert (first["ahead"].tolist(), first["waiting"].tolist()) == ([1], [1])
    made = [tester.setProcessingTime((wall + seconds * SECOND) // 1000) for seconds in (2, 9, 12)]
    assert [[blob is not None for blob in frame["blob"]] if len(frame) else [] for frame in made] == [[False], [], [True]]
