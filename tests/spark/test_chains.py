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
from coincide.engines.spark.bucket import FOREVER
from coincide.engines.spark.chaining import Listener, StageTask, feeders, listeners
from coincide.engines.spark.crossing import Reader
from coincide.engines.spark.groups import Cutting, groups
from coincide.engines.spark.packing import BARE, PACKED_ARROW, Packing, Road, Telling, balanced_buckets, unpacked
from coincide.engines.spark.rows import ordered
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

    def removeKey(self, item: Any) -> None:
        self.handle.data.pop(self._key(item), None)


class Chain:
    """A streaming query."""

    def __init__(self, book: Rulebook, delay: int, buckets: int = 3, tier: str = "kernel") -> None:
        self.groups = groups(book, cutting=STREAMED)
        planned = [(group, group.plans(book)) for group in self.groups]
        counts = [1 if group.key is None else buckets for group in self.groups]
        self.roads = [Road(g.name, LAYOUT, balanced_buckets(n, g.name)) for g, n in zip(self.groups, counts, strict=True)]
        sizes = [1 if group.key is None else PAGES for group in self.groups]
        heard = listeners(planned, self.roads, sizes)
        fed = feeders(self.roads, heard)
        stages = 1 + max(group.stage for group in self.groups)
        keepers: list[dict[str, Keeper]] = [{} for _ in range(stages)]
        for (group, plans), count, size, own in zip(planned, counts, sizes, heard, strict=True):
            task = Task(sources_of(book), group.members, tier, LAYOUT, OUTPUTS)
            timed = any(plan.timed for plan in plans)
            division = [*(group.key or ())], count, size
            keepers[group.stage][group.name] = Keeper(StageTask(task, own), timed, division, fed.get(group.name, ()))
        self.processors = [Processor(own, Timing(delay), (), n + 1 < stages) for n, own in enumerate(keepers)]
        self.handles = [Handle() for _ in self.processors]
        for processor, handle in zip(self.processors, self.handles, strict=True):
            processor.init(handle)
        self.found: list[pa.RecordBatch] = []
        self.late = 0

    def take(self, events: list[Event], closing: int | None = None) -> None:
        """A micro-batch, of two tasks."""
        packing = Packing(LAYOUT, tuple(self.roads))
        batches = [self._rows(part, closing) for part in (events[::2], events[1::2])]
        packed = [made for batch in batches if batch.num_rows for made in packing([batch])]
        rows = pa.Table.from_batches(packed, PACKED_ARROW).to_pandas()
        for processor, handle in zip(self.processors, self.handles, strict=True):
            rows = pd.concat(self._stepped(processor, handle, rows))
        self.late += int(rows["late"].sum())
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
        for number, (group, road) in enumerate(zip(self.groups, self.roads, strict=True)):
            spreads = [Reader(0, group.key or (), False, frozenset()).spread(event) for event in events]
            pages = [(spread >> 32) % (PAGES if group.key else 1) for spread in spreads]
            named[f"page{number}"] = pa.array([*pages, *[0] * last], pa.int32())
            named[f"bucket{number}"] = pa.array([*(s % len(road.buckets) for s in spreads), *[BARE] * last], pa.int32())
        named["closing"] = pa.array([*[None] * size, *[closing] * last], pa.int64())
        named["wall"] = pa.nulls(size + last, pa.int64())
        return pa.RecordBatch.from_pydict(named)

    def texts(self) -> list[str]:
        table = pa.Table.from_batches(self.found, OUTPUTS.arrow())
        return texts(event for some in ordered(table, table.column_names) for event in some.events)


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
        *(("monitors", 0, False), ("monitors", 1, True), ("timers behind", 0, False), ("timers behind", 1, True)),
        ("every language", 0, True),
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
        if forgetful:
            pages.MEMORY.states.clear()
    chain.take([], closing=FOREVER)
    assert chain.late == 0
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
