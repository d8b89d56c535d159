"""Events and timers of the kernel's state as objects and places, for all that is not done in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from coincide.detection.automaton.layout import TIMER
from coincide.detection.automaton.memory import Memory
from coincide.detection.columns.store import Store, gathered
from coincide.detection.columns.tables import distinct
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

    def timer_places(self, timers: Numbers) -> Callable[[int], Place]:
        """The same of some timers, each when it is asked for, whatever has become of the state till then."""
        timers = distinct(timers)
        due, event, _, rank = self.memory.timers.rows[timers][:, SETTING].T
        foreign = any(chunk.foreign_places is not None for chunk in self.chunks)
        plain = (event >= 0) & ~np.isin(timers, list(self.memory.timer_places)) & (not foreign)
        known = {timer: self.timer_place(timer) for timer in timers[~plain].tolist()}
        numbers, order = distinct(event[plain]), self.memory.tables.program.order
        setters = Store(None, [*self.chunks]).places(numbers)

        def place(timer: int) -> Place:
            if timer in known:
                return known[timer]
            row = int(np.searchsorted(timers, timer))
            set_at = setters[np.searchsorted(numbers, event[row])].tolist()
            return timer_place(int(due[row]), (set_at[0], 0, set_at[1], *set_at[2 : 3 + 2 * set_at[2]]), order, int(rank[row]))

        return place

    def _place(self, event: int) -> Place:
        chunk = int(np.searchsorted(self._starts, event, "right")) - 1
        table, row = self.chunks[chunk], event - int(self._starts[chunk])
        if table.foreign_places is not None:
            return table.foreign_places[row]
        (numbers,) = table.place_rows(np.array([row])).tolist()
        return (numbers[0], 0, numbers[1], *numbers[2 : 3 + 2 * numbers[2]])

    def events(self, numbers: Numbers) -> dict[int, Event]:
        """The events with these numbers; below 0 they are time events."""
        every = distinct(numbers)
        real = every[every >= 0]
        found = gathered(self.chunks, real, self.memory.store.columns).events()
        out = dict(zip(real.tolist(), found, strict=True))
        out.update((event, self._time_event(-1 - event)) for event in every[every < 0].tolist())
        return out

    def _time_event(self, timer: int) -> Event:
        due, timing = (int(n) for n in self.memory.timers.rows[timer, [TIMER.due, TIMER.timing]])
        return Event(self.memory.tables.program.timings[timing].timer, due, due, None, {}, (), place=self.timer_place(timer))
