"""Events and timers of the kernel's state as objects and places, for all that is not done in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coincide.detection.automaton.memory import Memory
from coincide.detection.columns.store import gathered
from coincide.detection.keys import Key
from coincide.model.event import Event, Place, timer_place
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]


class Moments:
    """`chunks` hold the events by number: the store's, and at the end the batch at hand if there is one."""

    def __init__(self, memory: Memory, chunks: Sequence[EventTable]) -> None:
        self.memory = memory
        self.chunks = chunks
        self._starts = np.cumsum([0, *map(len, chunks)])
        self._timers: dict[int, Place] = {}

    def timer_place(self, timer: int) -> Place:
        """Where a timer fires."""
        known = self.memory.timer_places.get(timer) or self._timers.get(timer)
        if known is None:
            timers, program = self.memory.pools.timers, self.memory.tables.program
            setter = self._place(int(self.memory.pools.nodes[timers[timer]["node"]]["event"]))
            known = timer_place(int(timers[timer]["due"]), setter, program.order, int(timers[timer]["rank"]))
            self._timers[timer] = known
        return known

    def _place(self, event: int) -> Place:
        if event < 0:
            return self.timer_place(-1 - event)
        chunk = int(np.searchsorted(self._starts, event, "right")) - 1
        table, row = self.chunks[chunk], event - int(self._starts[chunk])
        if table.foreign_places is not None:
            return table.foreign_places[row]
        (numbers,) = table.place_rows(np.array([row])).tolist()
        return (numbers[0], 0, numbers[1], *numbers[2 : 3 + 2 * numbers[2]])

    def events(self, numbers: Numbers) -> dict[int, Event]:
        """The events with these numbers; below 0 they are time events."""
        distinct = np.unique(numbers)
        real = distinct[distinct >= 0]
        found = gathered(self.chunks, real, self.memory.store.columns).events()
        out = dict(zip(real.tolist(), found, strict=True))
        out.update((event, self._time_event(-1 - event)) for event in distinct[distinct < 0].tolist())
        return out

    def _time_event(self, timer: int) -> Event:
        timers = self.memory.pools.timers
        name = self.memory.tables.program.timings[int(timers[timer]["timing"])].timer
        due = int(timers[timer]["due"])
        return Event(name, due, due, None, {}, (), place=self.timer_place(timer))

    def keys(self) -> dict[int, Key]:
        """The key of each slot."""
        return {slot: key for key, slot in self.memory.keys.items()}
