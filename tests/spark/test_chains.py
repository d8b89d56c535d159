"""Streams in stages, without Spark: its part, the exchanges between chained operators and their stores, is played by lists."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pytest
from support import expected, texts
from test_stages import AGAIN, ALL, EVERY_LANGUAGE, HOSTS, KINDS, LAYOUT, OUTPUTS, QUIET, USERS, events_of

from coincide.engines.spark import pages
from coincide.engines.spark.bucket import FOREVER, Meta, read_meta
from coincide.engines.spark.chaining import Listener, StageTask, feeders, listeners
from coincide.engines.spark.checkpoint import StoredBucket
from coincide.engines.spark.crossing import Reader
from coincide.engines.spark.division import Division
from coincide.engines.spark.groups import Cutting, Group, groups
from coincide.engines.spark.moving import Content, Moving, moved
from coincide.engines.spark.packing import BARE, PACKED_ARROW, Packing, Road, Telling, balanced_buckets, unpacked
from coincide.engines.spark.rows import ordered
from coincide.engines.spark.shipping import Shipped
from coincide.engines.spark.stateful import Keeper, Processor
from coincide.engines.spark.timing import Timing
from coincide.engines.spark.worker import Task, sources_of
from coincide.model.event import Event
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText

STREAMED = Cutting(streaming=True)
PAGES = 3


class Handle:
    """Spark's state store: of the key that is current."""

    def __init__(self) -> None:
        self.current: Any = None
        self.data: dict[Any, Any] = {}

    def getValueState(self, name: str, _: str) -> State:
        return State(self, name)

    def getMapState(self, name: str, _: str, __: str) -> State:
        return State(self, name)


class State:
    def __init__(self, handle: Handle, name: str) -> None:
        self.handle, self.name = handle, name

    def _key(self, item: Any) -> Any:
        return self.handle.current, self.name, item

    def get(self) -> Any:
        return self.handle.data.get(self._key(None))

    def update(self, value: Any) -> None:
        self.handle.data[self._key(None)] = value

    def getValue(self, item: Any) -> Any:
        return self.handle.data.get(self._key(item))

    def updateValue(self, item: Any, value: Any) -> None:
        self.handle.data[self._key(item)] = value

    def clear(self) -> None:
        for key in [key for key in self.handle.data if key[:2] == (self.handle.current, self.name)]:
            del self.handle.data[key]

    def removeKey(self, item: Any) -> None:
        self.handle.data.pop(self._key(item), None)


class Chain:
    """A streaming query. `before`: another one, whose checkpoint it goes on from."""

    def __init__(self, book: Rulebook, delay: int, buckets: int = 3, tier: str = "kernel", before: Chain | None = None) -> None:
        self.groups = groups(book, cutting=STREAMED)
        planned = [(group, group.plans(book)) for group in self.groups]
        movings = [None if before is None or group.key is None else before.moving(group, buckets) for group in self.groups]
        self.divisions = [Division([*group.key], buckets, PAGES) if group.key else Division([], 1, 1) for group in self.groups]
        if before is not None:
            self.divisions = [own.into(buckets) if own.key else own for own in before.divisions]
        self.roads = [self._road(*lane) for lane in zip(self.groups, self.divisions, movings, strict=True)]
        heard = listeners(planned, self.roads, self.divisions)
        fed = feeders(self.roads, heard)
        stages = 1 + max(group.stage for group in self.groups)
        keepers: list[dict[str, Keeper]] = [{} for _ in range(stages)]
        for (group, plans), division, own, moving in zip(planned, self.divisions, heard, movings, strict=True):
            task = Task(sources_of(book), group.members, tier, LAYOUT, OUTPUTS)
            timed = any(plan.timed for plan in plans)
            keepers[group.stage][group.name] = Keeper(StageTask(task, own), timed, division, fed.get(group.name, ()), moving)
        self.processors = [Processor(own, Timing(delay), (), n + 1 < stages) for n, own in enumerate(keepers)]
        self.handles = [Handle() for _ in self.processors] if before is None else before.handles
        for processor, handle in zip(self.processors, self.handles, strict=True):
            processor.init(handle)
        self.found: list[pa.RecordBatch] = [] if before is None else before.found
        self.late, self.consumed = (0, 0) if before is None else (before.late, before.consumed)
        self.waiting = 0

    def _road(self, group: Group, division: Division, moving: Moving | None) -> Road:
        here = balanced_buckets(division.buckets, group.name)
        return Road(group.name, LAYOUT, here, () if moving is None else tuple(n for n in moving.before if n not in here))

    def moving(self, group: Group, buckets: int) -> Moving:
        stored: dict[int, StoredBucket] = {}
        for ((name, bucket), part, item), (data,) in self.handles[group.stage].data.items():
            if name == group.name:
                stored.setdefault(bucket, StoredBucket([])).parts[part, item or ()] = data
        found = moved(group.name, stored, buckets)
        after = [msgspec.msgpack.decode(data, type=Content).meta for data in found.values()]
        assert _dues(after) == _dues([read_meta(own.meta() or b"") for own in stored.values()]), "pages wake when they would have"
        return Moving(tuple(stored), {number: Shipped(data) for number, data in found.items()})

    def buckets(self) -> set[Any]:
        """Those that anything is stored of."""
        return {place for handle in self.handles for place, *_ in handle.data}

    def take(self, events: list[Event], closing: int | None = None) -> None:
        """A micro-batch, of two tasks."""
        packing = Packing(LAYOUT, tuple(self.roads))
        batches = [self._rows(part, closing) for part in (events[::2], events[1::2])]
        packed = [made for batch in batches if batch.num_rows for made in packing([batch])]
        rows = pa.Table.from_batches(packed, PACKED_ARROW).to_pandas()
        for processor, handle in zip(self.processors, self.handles, strict=True):
            rows = pd.concat(self._stepped(processor, handle, rows))
        self.late += int(rows["late"].sum())
        self.consumed += int(rows["consumed"].sum())
        self.waiting = int(rows["waiting"].sum())
        blobs = pa.RecordBatch.from_pydict({"blob": pa.array(rows["blob"].tolist(), pa.binary())})
        self.found += unpacked([blobs])

    def _stepped(self, processor: Processor, handle: Handle, rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
        for handle.current, own in rows.groupby(["name", "bucket"]):
            yield from processor.handleInputRows(handle.current, iter([own]), None)

    def _rows(self, events: list[Event], closing: int | None) -> pa.RecordBatch:
        """With a bare row that tells the end."""
        size, last = len(events), 0 if closing is None else 1
        values = [(e.hi, e.lo, e.type, e.id, e.attributes["user"], e.attributes["host"]) for e in events]
        wire = list(zip(*values, *[(0, 0, None, None, None, None)] * last, strict=True)) or [()] * 6
        columns = [pa.array(column, kind) for column, kind in zip(wire, KINDS, strict=True)]
        named = dict(zip(LAYOUT.wire, columns, strict=True))
        for number, group in enumerate(self.groups):
            spreads = [Reader(0, group.key or (), False, frozenset()).spread(event) for event in events]
            places = [self.divisions[number].place_of(spread) for spread in spreads]
            named[f"page{number}"] = pa.array([*(page for _, page in places), *[0] * last], pa.int32())
            named[f"bucket{number}"] = pa.array([*(bucket for bucket, _ in places), *[BARE] * last], pa.int32())
        named["closing"] = pa.array([*[None] * size, *[closing] * last], pa.int64())
        named["wall"] = pa.nulls(size + last, pa.int64())
        return pa.RecordBatch.from_pydict(named)

    def texts(self) -> list[str]:
        table = pa.Table.from_batches(self.found, OUTPUTS.arrow())
        return texts(event for some in ordered(table, table.column_names) for event in some.events)


def _dues(metas: Sequence[Meta]) -> list[int]:
    return sorted(due for meta in metas for due in meta.due.values())


AGAIN_QUIET = QUIET.replace('name="a"', 'name="x"').replace('event="a"', 'event="x"').replace("a.", "x.")
"""Timers of a situation by host that detections by user begin."""
LATER = AGAIN_QUIET.replace('situation name="x"', 'situation name="q"').replace(
    'keyBy attribute="user"', 'keyBy attribute="host"'
)
SETS = {
    "monitors": [SourceText("r.ecl", USERS + HOSTS.replace("x, w, c", "x, a, c") + ALL)],
    "timers behind": [SourceText("r.ecl", USERS), SourceText("q.amit.xml", LATER)],
    "every language": [SourceText("1.ecl", USERS), *EVERY_LANGUAGE[1:]],
}


@pytest.mark.parametrize(
    ("name", "seed", "forgetful"),
    [
        *(("monitors", 0, False), ("timers behind", 1, True), ("every language", 0, True)),
        *(pytest.param(*rest, marks=pytest.mark.matrix) for rest in (("monitors", 1, True), ("timers behind", 0, False))),
    ],
)
def test_a_chain_gives_what_one_task_gives(name: str, seed: int, forgetful: bool) -> None:
    """Micro-batches of any size, out of order within the delay; workers that remember states, and such that do not."""
    rng = random.Random(seed)
    book = load(*SETS[name])
    events = events_of(seed)
    delay = rng.choice([0, 7_000])
    arriving = sorted(events, key=lambda event: event.hi + rng.randrange(delay + 1))
    chain = Chain(book, delay)
    assert len(chain.processors) > 1
    while arriving:
        size = rng.randrange(1, 60)
        chain.take(arriving[:size])
        arriving = arriving[size:]
        assert chain.consumed + chain.waiting == len(events) - len(arriving), "each event is counted by one of its groups"
        if forgetful:
            pages.MEMORY.forget()
    chain.take([], closing=FOREVER)
    assert chain.late == 0
    assert chain.texts() == expected(book, events, float("inf"))


@pytest.mark.parametrize(("name", "counts"), [("monitors", [3, 1, 8]), ("timers behind", [2, 5, 2]), ("every language", [3, 4])])
def test_another_number_of_buckets(name: str, counts: list[int]) -> None:
    """A query that is stopped goes on with fewer or more: its pages move."""
    book, events, delay = load(*SETS[name]), events_of(3), 7_000
    rng = random.Random(1)
    arriving = sorted(events, key=lambda event: event.hi + rng.randrange(delay + 1))
    part = -(-len(arriving) // len(counts))
    chain = None
    for number, count in enumerate(counts):
        chain = Chain(book, delay, count, before=chain)
        for start in range(number * part, (number + 1) * part, part // 3 + 1):
            chain.take(arriving[start : min(start + part // 3 + 1, (number + 1) * part)])
        assert chain.buckets() == {(road.name, bucket) for road in chain.roads for bucket in road.buckets}
    assert chain is not None
    chain.take([], closing=FOREVER)
    assert (chain.late, chain.consumed, chain.waiting) == (0, len(events), 0)
    assert chain.texts() == expected(book, events, float("inf"))


def test_one_that_lags_holds_the_others() -> None:
    """A bucket that has come less far than others holds up whom it feeds, and only these; what has come from others waits."""
    book = load(*SETS["monitors"])
    events = sorted(events_of(5), key=lambda event: event.hi)
    chain = Chain(book, 0)
    first, second = chain.processors[:2]

    def held(key: object, rows: Iterator[pd.DataFrame], timers: object) -> Iterator[pd.DataFrame]:
        """The second stage hears of one bucket of the first that it is where it was in the beginning."""
        for frame in rows:
            frame["told"] = [lagging(data) for data in frame["told"]]
            yield from stepping(key, iter([frame]), timers)

    def lagging(data: bytes) -> bytes:
        telling = msgspec.msgpack.decode(data, type=Telling) if data else Telling()
        if telling.sender != slow:
            return data
        telling.bound = 0
        return telling.to_bytes()

    slow = feeders(chain.roads[:1], [listeners_of(first)])[chain.groups[1].name][0]
    stepping, second.handleInputRows = second.handleInputRows, held
    for start in range(0, len(events), 40):
        chain.take(events[start : start + 40])
    assert {json.loads(text)["type"] for text in chain.texts()} == {"x"}, "hosts and all wait"
    second.handleInputRows = stepping
    chain.take([], closing=FOREVER)
    assert chain.texts() == expected(book, events)


def listeners_of(processor: Processor) -> Sequence[Listener]:
    [keeper] = processor.keepers.values()
    assert isinstance(keeper.task, StageTask)
    return keeper.task.listeners


def test_timers_do_not_feed_other_stages_of_a_stream() -> None:
    """Nor does what they lead to; what comes before them is a stage."""
    rules = "monitor u by user = repeat { push(a, host: host) { sequential { b, b } } }\n" + AGAIN + HOSTS
    book = load(SourceText("q.amit.xml", QUIET), SourceText("r.ecl", rules))
    assert [(group.stage, group.names) for group in groups(book, cutting=Cutting())] == [
        (0, ("x", "u", "again")),
        (1, ("hosts",)),
    ]
    first, rest = groups(book, cutting=STREAMED)
    assert (first.names, first.key) == (("u",), ("user",))
    assert (rest.names, rest.key, rest.stage) == (("x", "again", "hosts"), None, 1)
    assert "what timers of 'x' detect goes back to events that a stream has let go of" in rest.reasons


def test_a_checkpoint_of_fewer_stages() -> None:
    book = load(*SETS["monitors"])
    assert [group.stage for group in groups(book, cutting=STREAMED)] == [0, 1, 2]
    [whole] = groups(book, cutting=Cutting(2, streaming=True))
    assert whole.reasons[-1] == "the checkpoint is of 2 stages, and these would be 3"
