"""Events and timers of the kernel's state as objects and places, for all that is not done in columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coincide.detection.automaton.layout import TIMER
from coincide.detection.automaton.memory import Memory
from coincide.detection.columns.store import gathered
from coincide.model.event import Event, Place, timer_place
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]
SETTING = [TIMER.due, TIMER.event, TIMER.timer, TIMER.rank]


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
            due, event, by, rank = (int(n) for n in self.memory.timers.rows[timer, SETTING])
            setter = self.timer_place(by) if event < 0 else self._place(event)
            self._timers[timer] = known = timer_place(due, setter, self.memory.tables.program.order, rank)
        return known

    def _place(self, event: int) -> Place:
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
        due, timing = (int(n) for n in self.memory.timers.rows[timer, [TIMER.due, TIMER.timing]])
        return Event(self.memory.tables.program.timings[timing].timer, due, due, None, {}, (), place=self.timer_place(timer))
