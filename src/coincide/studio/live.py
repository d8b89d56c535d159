"""A run over events that are still coming: what arrives and what is made of it is kept, up to a point, for the page to show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread

from coincide.adapters.mapping import FieldMapping
from coincide.adapters.report import Intake
from coincide.engines.embedded import Engine
from coincide.engines.live import LiveEngine
from coincide.model.batch import EventBatch
from coincide.rulebook import Rulebook
from coincide.streams.arrivals import Arrival
from coincide.streams.base import Reading, Source
from coincide.streams.encode import Encoder
from coincide.streams.registry import open_source
from coincide.streams.run import LiveRun, Pace
from coincide.studio.running import Run
from coincide.studio.store import Store

MOST = 1_000_000
"""Events that are kept: older ones go."""
APART = 10**9
"""Between the generated ids of two sources."""
PATIENCE = 5.0
"""Seconds that somebody waits for a turn of the run: there is one each second, at least."""
SHARE = 20
"""To look at the state takes at most one in so many seconds of a run."""


@dataclass
class Live:
    """Sources that are read in a thread. Rules may change while it runs: those that are unchanged keep their state."""

    urls: Sequence[str]
    mapping: FieldMapping
    delay: int = 0
    clock: str | None = None
    store: Store = field(default_factory=lambda: Store(live=True))
    arrived: int = 0
    failure: str | None = None
    running: bool = False
    lock: Lock = field(default_factory=Lock)
    run: Run | None = None
    _going: LiveRun | None = None
    _thread: Thread | None = None
    _change: tuple[Rulebook, Run] | None = None
    _asked: list[Future[bytes]] = field(default_factory=list)
    _looked: tuple[float, bytes] | None = None  # until when a look at the state is new enough, and what was seen

    def __post_init__(self) -> None:
        self.sources: list[Source] = []
        self.store.name = ", ".join(self.urls)

    def start(self, book: Rulebook, number: int) -> Run:
        """Raises CoincideError for a source that cannot be read."""
        readings = [Reading(self.mapping, Intake(before=n * APART)) for n in range(len(self.urls))]
        self.sources = [open_source(url, reading) for url, reading in zip(self.urls, readings, strict=True)]
        self.store.name = ", ".join(source.name for source in self.sources)
        self.run = Run(book, self.store, self.mapping, number)
        self._engine = Engine(book)
        self._going = LiveRun(LiveEngine(self._engine, self.delay), self.sources, [], Encoder(book), Pace(self.clock))
        self.running, self.failure = True, None
        self._thread = Thread(target=self._work, args=(self._going,), name="live", daemon=True)
        self._thread.start()
        return self.run

    def change_rules(self, book: Rulebook, number: int) -> Run:
        """From the next turn on; the page shows what is made from then on."""
        with self.lock:
            self._change = book, Run(book, self.store, self.mapping, number)
            return self._change[1]

    def state(self) -> Engine | None:
        """An engine that stands where the run stood between two turns, a moment ago; None: it makes no turns."""
        asked: Future[bytes] = Future()
        with self.lock:
            self._asked.append(asked)
            book = None if self.run is None else self.run.book
        if book is None or not self.running:
            return None
        try:
            data = asked.result(PATIENCE)
        except TimeoutError:
            return None
        engine = Engine(book, "interpreter")
        engine.restore(data)
        return engine

    def stop(self) -> None:
        if self._going is not None:
            self._going.stop()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join(10)

    def _work(self, going: LiveRun) -> None:
        try:
            for batch in going.detections(self._come, self._between):
                self._add_made(batch)
            for batch in going.rest(closed=False):
                self._add_made(batch)
        except Exception as error:  # told on the page
            self.failure = str(error)
        finally:
            going.close()
            self.running = False

    def _come(self, arrival: Arrival) -> None:
        batch = arrival.delivery.batch
        if len(batch):
            self.arrived += len(batch)
            self.store.add(batch)
            self.store.forget(MOST)

    def _add_made(self, batch: EventBatch) -> None:
        with self.lock:
            assert self.run is not None
            self.run.add(batch)

    def _between(self) -> None:
        assert self._going is not None
        self._going.live.latecomers()
        with self.lock:
            change, self._change = self._change, None
            if change is not None:
                self._going.change_rules(change[0])
                self.run, self._looked = change[1], None
            asked, self._asked = self._asked, []
            for each in asked:
                each.set_result(self._look())

    def _look(self) -> bytes:
        begun = time.monotonic()
        if self._looked is None or self._looked[0] <= begun:
            data = self._engine.snapshot()
            ended = time.monotonic()
            self._looked = ended + SHARE * (ended - begun), data
        return self._looked[1]
