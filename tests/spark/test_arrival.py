"""Stability policies on Spark: the answers of the embedded engine, whatever the order of rows; late events as a second frame."""

from __future__ import annotations

import os
import random
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support import Memory, random_events, texts, texts_of_rows

from coincide import spark as on_spark
from coincide.engines.instance import StabilityPolicy
from coincide.engines.policies import run_with_policy
from coincide.engines.spark import arrival
from coincide.engines.spark.bucket import FOREVER, Arrived, Bucket
from coincide.engines.spark.division import Division
from coincide.engines.spark.frame import Layout
from coincide.engines.spark.groups import groups
from coincide.engines.spark.latecomers import LateShape
from coincide.engines.spark.outputs import Outputs
from coincide.engines.spark.packing import BARE, Packing, Road, from_bytes, to_bytes
from coincide.engines.spark.policies import sources_by_key
from coincide.engines.spark.stateful import arrived_rows
from coincide.engines.spark.timing import BELIEVED
from coincide.engines.spark.worker import Task, sources_of
from coincide.errors import CoincideError
from coincide.expr.functions import NUMBER
from coincide.model.batch import merged
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook, loads
from coincide.stages import arrival_of

SCHEMA = "type string, time bigint, id string, source string, arrival bigint, k double, s string, v double"
FIELDS = ("hi", "type", "id", "source", "arrival", ".k", ".s", ".v")
ECL = loads("monitor m by k = repeat { push(x, v: v) { sequential { a, b } } }")
OPERA = loads("sources p, q\ndetect X = ([a(k = ?k)], [b(k = ?k)]) T = 3s\ndetect Y policy best-effort = [c][d]", "ce")
OPERA_PLAIN = loads("sources p, q\ndetect X = ([a(k = ?k)], [b(k = ?k)]) T = 3s", "ce")
KEYED = loads(
    "sources p, q\ndetect X = ([a(k = ?k)], [b(k = ?k)]) T = 3s\ndetect Z = ([a(k = ?k)], [T in {T, b(k = ?k)}]) T = 2s", "ce"
)
POLICIES = ["guaranteed", "best-effort", "probabilistic 0.7"]


def arrivals(size: int = 400, seed: int = 1) -> list[Event]:
    """Points of two sources by arrival, and what arrives at one instant in total order; one in ten comes late."""
    rng = random.Random(seed)
    made = []
    for event in random_events(size, seed, keys=(1.0, 2.0, 3.0)):
        delay = rng.randrange(100) + (9_000 if rng.random() < 0.1 else 0)  # milliseconds
        made.append(_sent(event, rng.choice("pq"), event.hi + delay * 1000))
    return sorted(made, key=lambda event: (arrival_of(event), event.origin))


def _sent(event: Event, source: str, came: int) -> Event:
    attributes = {name: event.attributes[name] for name in "ksv"}
    return Event(event.type, event.hi, event.hi, event.id, attributes, event.origin, source, arrival=came)


def rows(events: list[Event]) -> list[tuple[Any, ...]]:
    return [(e.type, e.hi // 1000, e.id, e.source, arrival_of(e) // 1000, *(e.attributes[n] for n in "ksv")) for e in events]


def outcome(rules: Rulebook, events: list[Event], policy: str | None, until: float | None = None) -> tuple[Any, ...]:
    run = run_with_policy(rules, events, policy, until)
    late = sorted((e.id, sorted(map(str, policies))) for e, policies in run.latecomers())
    return texts(run.detections), sorted(latency.milliseconds for latency in run.latencies), late


class StateStore:
    data: bytes | None = None
    silent: bytes | None = None
    wakes: int | None = None

    def state(self) -> bytes | None:
        return self.data

    def put_state(self, data: bytes) -> None:
        self.data = data

    def silence(self) -> bytes | None:
        return self.silent

    def put_silence(self, data: bytes) -> None:
        self.silent = data

    def wake(self, before: int | None, at: int | None) -> None:
        assert before == self.wakes or before is None
        self.wakes = at


class Run:
    """Micro-batches of a stream, without Spark."""

    def __init__(self, rules: Rulebook, policy: StabilityPolicy) -> None:
        members = tuple(d.order for d in rules.detectors)
        outputs = Outputs((("k", NUMBER),), latencies=True)
        self.job = arrival.Job(Task(sources_of(rules), members, "interpreter", Layout(FIELDS), outputs), policy, BELIEVED)
        self.store = StateStore()
        self.rows = self.late = self.consumed = 0

    def take(self, events: list[Event], closing: int | None = None) -> None:
        shuffled = random.Random(3).sample(events, len(events))
        blobs = [_blob(part) for part in (shuffled[::2], shuffled[1::2]) if part]  # of two tasks
        blob, counts = arrival.advance(self.job, self.store, Arrived([], blobs, closing))
        self.rows += 0 if blob is None else len(from_bytes(blob))
        self.late += counts.late
        self.consumed += counts.consumed


def _blob(events: list[Event]) -> bytes:
    return to_bytes(pa.table(dict(zip(FIELDS, _columns(events), strict=True))))


def _columns(events: list[Event]) -> list[pa.Array]:
    fields = [[e.hi for e in events], *([getattr(e, name) for e in events] for name in FIELDS[1:5])]
    return [pa.array(values) for values in (*fields, *([e.attributes[name[1:]] for e in events] for name in FIELDS[5:]))]


@pytest.mark.parametrize("forgetful", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_micro_batches_of_any_size(policy: str, forgetful: bool) -> None:
    """A worker that has forgotten its engine goes on from the store; a micro-batch that is repeated leaves no trace."""
    events = arrivals()
    expected = run_with_policy(OPERA_PLAIN, events, policy, 200_000_000)
    run = Run(OPERA_PLAIN, StabilityPolicy.parse(policy))
    for start, stop in ((0, 100), (100, 101), (101, 300), (300, 400)):
        before = run.store.data, run.rows, run.late, run.consumed
        run.take(events[start:stop])
        run.store.data, run.rows, run.late, run.consumed = before
        if forgetful:
            arrival.ENGINES.clear()
        run.take(events[start:stop])
    run.take([], closing=200_000_000)
    assert run.rows == len(expected.detections) > 10
    assert run.late == sum(map(len, expected.late.values()))
    assert run.consumed == len(events) - run.late


def test_without_a_policy_events_may_come_so_late() -> None:
    events = arrivals()
    run = Run(OPERA_PLAIN, StabilityPolicy("delayed", delay=20_000_000))
    run.take(events[:200])
    run.take(events[200:])
    run.take([], closing=FOREVER)
    assert run.late == 0
    assert run.rows == len(run_with_policy(OPERA_PLAIN, events, None).detections)
    strict = Run(OPERA_PLAIN, StabilityPolicy("delayed", delay=6_000_000))
    strict.take(events)
    assert 10 < strict.late < 60


@pytest.mark.brief(parameters=3)
@pytest.mark.spark
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("rules", [ECL, OPERA], ids=["ecl", "opera"])
def test_batch(spark: Any, rules: Rulebook, policy: str) -> None:
    events = arrivals()
    frame = spark.createDataFrame(rows(events), SCHEMA).repartition(3, "k")
    found = frame.transform(on_spark.detect(rules, policy=policy, late=True, latency=True, until=150_000)).cache()
    detections, late = on_spark.split(found)
    expected = outcome(rules, events, policy, 150_000_000)
    assert texts_of_rows(detections.drop("_latency").collect()) == expected[0]
    assert sorted(row["_latency"] for row in detections.collect()) == expected[1]
    assert sorted((row.id, sorted(row.policies)) for row in late.collect()) == expected[2]
    assert "_late" not in frame.transform(on_spark.detect(rules, policy=policy)).columns


@pytest.mark.spark
def test_late_events_are_as_they_were(spark: Any) -> None:
    events = arrivals(50)
    _, late = on_spark.split(on_spark.detect(ECL, spark.createDataFrame(rows(events), SCHEMA), policy="guaranteed", late=True))
    assert late.columns == ["type", "time", "id", "source", "arrival", "policies", "k", "s", "v"]
    given = {event.id: record(event) for event in events}
    found = late.drop("policies", "arrival").collect()
    assert found
    for row in found:
        expected = given[row.id]
        assert (row.source, row.k, row.s, row.v, row.time.lo.timestamp() * 1000) == (
            *(expected[name] for name in ("source", "k", "s", "v")), expected["time"],
        )  # fmt: skip


@pytest.mark.spark
def test_streaming_from_a_checkpoint_with_both_frames_of_one_query(spark: Any, tmp_path: Path) -> None:
    events = arrivals()
    detections: list[str] = []
    late: list[tuple[str, list[str]]] = []

    def take(batch: Any, number: int) -> None:
        found, refused = on_spark.split(batch.drop("_latency"))
        detections.extend(texts_of_rows(found.collect()))
        late.extend((row.id, sorted(row.policies)) for row in refused.collect())

    counts = []
    folder = tmp_path / "events"
    for number, start in enumerate((0, 200)):
        _write(spark, folder, number, rows(events[start : start + 200]))
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
        query = (
            stream.transform(on_spark.detect(OPERA, policy="guaranteed", late=True))
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        counts += [progress.observedMetrics["coincide"].late for progress in query.recentProgress if progress.numInputRows]
    expected = outcome(OPERA, events, "guaranteed")
    assert sorted(detections) == expected[0]
    assert sorted(late) == expected[2]
    assert sum(counts) == len(late) > 10


@pytest.mark.spark
def test_late_events_of_a_stream_without_a_policy(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    for number, some in enumerate(([("a", 9000, 1.0), ("a", 9100, 2.0)], [("b", 3000, 1.0), ("b", 9500, 2.0)])):
        _write(spark, folder, number, [(kind, time, f"{kind}{time}", "p", time, k, "p", 0.5) for kind, time, k in some])
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    late: list[Any] = []
    query = (
        stream.transform(on_spark.detect(ECL, delay="1 second", late=True))
        .writeStream.foreachBatch(lambda batch, number: late.extend(on_spark.split(batch)[1].collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [(row.id, row.source, row.k, row.v, row.policies) for row in late] == [("b3000", "p", 1.0, 0.5, None)]


@pytest.mark.parametrize("sizes", [[400], [1] * 400, [13, 200, 100, 87]])
def test_guaranteed_by_keys(sizes: list[int]) -> None:
    """Buckets that are told how far sources have come each order the events of their own keys, however the stream is cut."""
    events, buckets = arrivals(), (0, 1, 2)
    layout = Layout(FIELDS)
    task = Task(sources_of(KEYED), (0, 1), "interpreter", layout, Outputs((("k", NUMBER), ("v", NUMBER)), late=LateShape(())))
    stores = [Memory() for _ in buckets]
    made, late = [], []
    for stop, size in zip(accumulate(sizes), sizes, strict=True):
        packed = pa.Table.from_batches(
            Packing(layout, (Road("by k", layout, buckets),), marked=True)([_placed(events[stop - size : stop], buckets)])
        )
        for number, store in enumerate(stores):
            arrived = arrived_rows(packed.filter(pc.equal(packed.column("bucket"), number)).to_pandas())
            outcome = Bucket(task, BELIEVED, True, Division(["k"], 3, 1), store, ("p", "q")).advance(arrived)
            made += merged(outcome.made).events
            late += [event.id for event in outcome.late_events.events]
            assert outcome.late == len(outcome.late_events)
    expected = run_with_policy(KEYED, events, "guaranteed")
    assert texts(made) == texts(expected.detections)
    assert len(made) > 20
    assert sorted(late) == sorted(e.id for e, _ in expected.latecomers() if e.type in "ab")


def _placed(events: list[Event], buckets: tuple[int, ...]) -> pa.RecordBatch:
    """As one task of a micro-batch gets them, in any order: events of interest for their buckets, of the others only the time."""
    some = random.Random(4).sample(events, len(events))
    here = [int(e.attributes["k"]) % len(buckets) if e.type in "ab" else BARE for e in some]
    columns = dict(zip(FIELDS, _columns(some), strict=True))
    places = {
        "page0": [0] * len(some),
        "bucket0": here,
        "closing": pa.nulls(len(some), pa.int64()),
        "wall": pa.nulls(len(some), pa.int64()),
    }
    return pa.record_batch({**columns, **places})


@pytest.mark.spark
def test_guaranteed_by_keys_in_a_stream(spark: Any, tmp_path: Path) -> None:
    events = arrivals()
    folder, found, late = tmp_path / "events", [], []
    for number, start in enumerate((0, 150, 300)):
        _write(spark, folder, number, rows(events[start : start + 150]))

    def take(batch: Any, number: int) -> None:
        detections, refused = on_spark.split(batch)
        found.extend(texts_of_rows(detections.collect()))
        late.extend(row.id for row in refused.collect())

    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    detected = stream.transform(on_spark.detect(KEYED, policy="guaranteed", late=True))
    query = detected.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    expected = run_with_policy(KEYED, events, "guaranteed")
    assert sorted(found) == texts(expected.detections)
    assert sorted(late) == sorted(e.id for e, _ in expected.latecomers() if e.type in "ab")


def test_what_can_be_divided_by_keys() -> None:
    guaranteed = StabilityPolicy("guaranteed")
    assert sources_by_key(KEYED, groups(KEYED), guaranteed) == ("p", "q")
    assert sources_by_key(KEYED, groups(KEYED), StabilityPolicy("best-effort")) == ()
    assert sources_by_key(OPERA, groups(OPERA), guaranteed) == ()  # Y is best effort and has no key
    assert sources_by_key(ECL, groups(ECL), guaranteed) == ()  # no sources are declared


def _write(spark: Any, folder: Path, number: int, some: list[tuple[Any, ...]]) -> None:
    """One file, which a stream reads after those written before."""
    target = folder.parent / f"part{number}"
    spark.createDataFrame(some, SCHEMA).coalesce(1).write.parquet(str(target))
    folder.mkdir(exist_ok=True)
    [path] = target.glob("*.parquet")
    path.rename(folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1000 + number, 1000 + number))


@pytest.mark.spark
def test_latencies_need_a_policy(spark: Any) -> None:
    with pytest.raises(CoincideError, match="need a policy"):
        on_spark.detect(ECL, spark.createDataFrame(rows(arrivals(5)), SCHEMA), latency=True)
