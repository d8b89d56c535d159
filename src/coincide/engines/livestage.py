"""The total order of a live run, in which columns stay columns: nothing of them is imported before the first come."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from coincide.model.event import Event, order_of
from coincide.stages import NEVER, UNCOUNTED, Live, Moments, StageState

if TYPE_CHECKING:
    from coincide.engines.livecolumns import CountedColumns, WaitingColumns
    from coincide.model.table import EventTable


@dataclass
class LiveStage(Live):
    """What waits is objects in the buffer or columns, never both."""

    columns: WaitingColumns | None = None
    _ready: list[EventTable] = field(default_factory=list)  # stable and not handed on yet

    @property
    def waiting(self) -> int:
        return len(self.buffer) + len(self.columns or ())

    def arrive_columns(self, table: EventTable) -> bool:
        """Events as columns. False: their ids do not count up, or they are to come before something that was consumed; they have
        to be taken one by one."""
        from coincide.engines.livecolumns import CountedColumns

        arrived = CountedColumns.of(table)
        if arrived is None or not self.counted < arrived.first or arrived.last >= UNCOUNTED:
            return False
        self.settle()
        timely, late, behind = arrived.parted(self.mark, self.delay, self.clock)
        if len(timely) and self._would_precede(timely):
            return False
        self.late += late
        self.refused += len(late)
        self.sufficient = max(self.sufficient, behind)
        self._take(arrived, timely)
        return True

    def _would_precede(self, timely: EventTable) -> bool:
        from coincide.adapters.tableorder import key_of

        return bool(self.last) and timely.hi[0] <= self.last[0] and key_of(timely, 0) < self.last

    def _take(self, arrived: CountedColumns, timely: EventTable) -> None:
        self.number += len(arrived)
        self.counted = arrived.last
        self.marks[""] = mark = max(self.marks.get("", NEVER), arrived.latest)
        self.clock = max(self.clock, mark)
        self._as_columns().add(timely)
        self._release_below(mark - self.delay)
        self._make_ready(mark - self.delay + 1)  # as ids count up, nothing of that instant can still come before them
        self.settle()

    def without_columns(self) -> StageState:
        """Its state but for what waits as columns."""
        return super().state()

    def restore(self, state: StageState) -> None:
        self.columns = None
        super().restore(state)

    def state(self) -> StageState:
        state = super().state()
        if self.columns:
            state.buffer.extend(enumerate(self.columns.events(), self.arrived))
            state.arrived = self.arrived + len(state.buffer)
        return state

    def arrive(self, record: Event) -> None:
        self._as_objects()
        super().arrive(record)

    def wakes_at(self) -> int | None:
        at = super().wakes_at()
        if not self.columns:
            return at
        first = self.columns.first + self.delay + 1
        return first if at is None else min(at, first)

    def _as_columns(self) -> WaitingColumns:
        from coincide.engines.livecolumns import WaitingColumns

        if self.columns is None:
            self.columns = WaitingColumns([event for _, _, event in sorted(self.buffer, key=itemgetter(0, 1))])
            self.buffer.clear()
        return self.columns

    def _as_objects(self) -> None:
        if self.columns is not None:
            columns, self.columns = self.columns, None
            for event in columns.events():
                self._keep(event, order_of(event))

    def _release_below(self, low: float) -> None:
        super()._release_below(low)
        self._make_ready(low)

    def _make_ready(self, bound: float) -> None:
        if self.columns and (found := self.columns.take(int(min(bound, UNCOUNTED)))) is not None:
            self._ready.append(found)

    def _hand_on(self, moments: Moments) -> None:
        super()._hand_on(moments)
        ready, self._ready = self._ready, []
        for table in ready:
            from coincide.engines.livecolumns import batch_and_last

            batch, self.last = batch_and_last(table)
            self.consumer.consume(batch, moments)
