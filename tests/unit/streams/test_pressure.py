"""A sink that is slow slows the sources; nothing piles up in between."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import nats
from servers import Site, until

import coincide
from coincide.engines.embedded import Engine
from coincide.engines.live import LiveEngine
from coincide.model.batch import EventBatch
from coincide.model.event import primitive
from coincide.streams.arrivals import AHEAD, MOST, Arrival
from coincide.streams.base import Delivery, Made, Position, Reading, Sink, Source
from coincide.streams.encode import Encoder
from coincide.streams.registry import open_sink, open_source
from coincide.streams.run import LiveRun, Pace

RULES = "monitor all = repeat { push(seen) { a } }"
SIZE, DELIVERIES = 1_000, 120


class Fast(Source):
    """As much as anybody wants."""

    given = 0

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        for number in range(DELIVERIES):
            first = number * SIZE
            events = [primitive("b" if n % SIZE else "a", n, n, str(n), {}) for n in range(first, first + SIZE)]
            self.given += 1
            yield self.delivery(EventBatch(events), None)


class Slow(Sink):
    """Takes nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__("slow:")
        self.told = Flag()
        self.taken = 0

    def write(self, made: Sequence[Made]) -> None:
        self.told.wait()
        self.taken += len(made)

    def close(self) -> None:
        pass


def run_of(sources: Sequence[Source], sinks: Sequence[Sink], delay: int = 0) -> LiveRun:
    book = coincide.loads(RULES)
    live = LiveEngine(Engine(book, "interpreter"), delay)
    return LiveRun(live, sources, sinks, Encoder(book, kept=True), Pace(clock="event"))


def in_thread(run: LiveRun, came: list[Arrival]) -> Thread:
    thread = Thread(target=lambda: [len(batch) for batch in run.detections(came.append)], daemon=True)
    thread.start()
    return thread


def test_a_source_waits_for_a_sink() -> None:
    source, sink = Fast("fast:", Reading()), Slow()
    thread = in_thread(run_of([source], [sink]), [])
    most = MOST // SIZE + AHEAD + 3  # of the turn that waits, of the queue, and what is being put there
    before = -1
    while source.given != before:  # until it stands still
        before = source.given
        time.sleep(0.3)
    assert 0 < source.given <= most
    sink.told.set()
    thread.join(30)
    assert source.given == DELIVERIES
    assert sink.taken == DELIVERIES


def test_several_sources_and_sinks_of_different_kinds(site: Site, broker: str, tmp_path: Path) -> None:
    async def publish() -> None:
        client = await nats.connect(f"nats://{broker}")
        await client.jetstream().add_stream(name="SEVERAL", subjects=["several"])
        await client.jetstream().publish("several", b'{"type": "a", "time": 2, "id": "nats"}')
        await client.close()

    asyncio.run(publish())
    site.records = [b'{"type": "a", "time": 1, "id": "http"}']
    (tmp_path / "log.jsonl").write_text('{"type": "a", "time": 3, "id": "file"}\n')
    urls = [f"{site.url}/events", f"nats://{broker}/several?stream=SEVERAL", f"tail:{tmp_path}/log.jsonl"]
    sinks = [open_sink(f"{site.url}/hook"), open_sink(f"sqlite:///{tmp_path}/found.db#found")]
    run = run_of([open_source(url, Reading()) for url in urls], sinks, delay=60_000_000)
    came: list[Arrival] = []
    thread = in_thread(run, came)
    until(lambda: len(came) == 3)
    run.stop()
    thread.join(10)
    assert sum(len(batch) for batch in run.rest()) == 3
    run.close()
    assert [json.loads(body)["from"] for _, body in site.posted] == [["http"], ["nats"], ["file"]]
    with sqlite3.connect(tmp_path / "found.db") as found:
        assert found.execute("SELECT time FROM found ORDER BY time").fetchall() == [(1,), (2,), (3,)]
