"""A run over all events of a session that can be gone through again: detections with the moment at which each was made, and
snapshots at intervals, from which the state at any moment is made."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

import numpy as np

from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.engines.embedded import Engine
from coincide.errors import CoincideError, Diagnostic, RunError
from coincide.model.batch import EventBatch
from coincide.model.event import Event
from coincide.rulebook import Rulebook
from coincide.studio.lanes import Lanes, lanes_of
from coincide.studio.store import Store
from coincide.unmet import Unmet

PARTS, LEAST = 200, 500
"""So many snapshots of a run, and so many events between two at least."""
ROOM = 256 << 20
"""Bytes of snapshots; where they are more, every second one goes."""

T = TypeVar("T")


@dataclass
class Run:
    """Moments count events: at moment n the first n have been consumed, and what they brought about was made. The last moment is
    the one after the end of the input."""

    book: Rulebook
    store: Store
    mapping: FieldMapping = DEFAULT
    number: int = 0
    consumed: int = 0
    seconds: float = 0.0
    ended: bool = False
    cancelled: bool = False
    failure: tuple[Diagnostic, ...] = ()
    warnings: list[Diagnostic] = field(default_factory=list)
    detections: list[Event] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    snapshots: list[tuple[int, bytes]] = field(default_factory=list)
    _kinds: dict[str, int] = field(default_factory=dict)
    _codes: array[int] = field(default_factory=lambda: array("i"))
    _ends: array[int] = field(default_factory=lambda: array("q"))
    _cursor: tuple[int, Engine] | None = None
    _lock: Lock = field(default_factory=Lock)
    _lanes: tuple[int, Lanes] | None = None

    @property
    def last(self) -> int:
        """The moment after the end."""
        return len(self.store) + 1

    def go(self) -> None:
        """To the end, unless it is cancelled. What goes wrong is kept as its `failure`."""
        begun = time.perf_counter()
        try:
            self._go()
        except RunError as error:
            self._keep(error.detections)
            self.failure = error.diagnostics
        except CoincideError as error:
            self.failure = error.diagnostics
        finally:
            self.seconds = time.perf_counter() - begun
            self.ended = True

    def _go(self) -> None:
        engine, size = Engine(self.book), len(self.store)
        every = max(LEAST, size // PARTS)
        for first in range(0, size, every):
            if self.cancelled:
                return
            for piece in self.store.pieces(first, first + every):
                self._keep(engine.process(piece))
            self.consumed = min(size, first + every)
            self._keep_snapshot(engine)
        self._keep(engine.finish())
        self.warnings = [*Unmet(self.book, self.mapping).after(self.store.seen), *self._under_policies()]

    def _under_policies(self) -> list[Diagnostic]:
        if not self.book.names_policies:
            return []
        return [Diagnostic("rules name stability policies: here events are taken in total order", severity="warning")]

    def add(self, batch: EventBatch) -> None:
        """What a live run has made."""
        self._keep(batch)

    def _keep(self, batch: EventBatch | None) -> None:
        for event in () if batch is None else batch.events:
            self.moments.append(self._moment(event))
            self._codes.append(self._kinds.setdefault(event.type, len(self._kinds)))
            self._ends.append(event.hi)
            self.detections.append(event)

    def _moment(self, detection: Event) -> int:
        """An event that completes it is consumed at the next moment; a timer fires when an event behind it comes."""
        place = detection.place
        if self.store.live:
            return len(self.store)
        return int(place[2]) + 1 if place[1] == 0 else int(np.searchsorted(self.store.times[1], place[0], "right")) + 1

    def _keep_snapshot(self, engine: Engine) -> None:
        self.snapshots.append((self.consumed, engine.snapshot()))
        if sum(len(data) for _, data in self.snapshots) > ROOM:
            del self.snapshots[-2::-2]

    # What there is to see.

    @property
    def lanes(self) -> Lanes:
        """Of the detections, one a type."""
        count = len(self.detections)
        if self._lanes is None or self._lanes[0] != count:
            codes, ends = np.array(self._codes[:count], np.int32), np.array(self._ends[:count], np.int64)
            self._lanes = count, lanes_of(list(self._kinds), codes, ends, stable=True)
        return self._lanes[1]

    @property
    def names(self) -> dict[int, str]:
        """Of definitions, by their numbers."""
        return {detector.order: detector.name for detector in self.book.detectors}

    def by_rule(self) -> Counter[int]:
        """How many detections each definition, by its number, has made."""
        return Counter(detection.place[-2] for detection in self.detections)

    def next_moment(self, moment: int) -> int | None:
        """The next at which something was made."""
        return min((at for at in self.moments if at > moment), default=None)

    def state_at(self, moment: int, look: Callable[[Engine], T]) -> T:
        """What `look` finds in the engine at a moment; it may change nothing there."""
        with self._lock:
            return look(self._engine_at(moment))

    def _engine_at(self, moment: int) -> Engine:
        """One that has consumed so many events: the one used last, if that is not far behind, else from a snapshot."""
        wanted = max(0, min(moment, len(self.store)))
        nearest = bisect_right(self.snapshots, wanted, key=lambda entry: entry[0]) - 1
        begin = self.snapshots[nearest][0] if nearest >= 0 else 0
        if self._cursor is None or not begin <= self._cursor[0] <= wanted:
            engine = Engine(self.book, "interpreter")
            if nearest >= 0:
                engine.restore(self.snapshots[nearest][1])
            self._cursor = begin, engine
        at, engine = self._cursor
        self._cursor = None  # if a step fails, it is of no more use
        for piece in self.store.pieces(at, wanted):
            engine.process(piece)
        self._cursor = wanted, engine
        return engine
