"""A query, row by row: when rows are known (section 7), and what the passing of time decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coincide.detection.base import Clock
from coincide.detection.eventwise import Cause, Timer, Timers, step_eventwise
from coincide.detection.rowpattern.expressions import EventCompiler
from coincide.detection.rowpattern.order import sorter
from coincide.detection.rowpattern.partition import Key, Partition, Program
from coincide.detection.rowpattern.state import FOREVER, NEVER, State
from coincide.errors import RunError
from coincide.lang.matchrecognize.definition import HELD, Query
from coincide.lang.matchrecognize.functions import lowered
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Place, timer_place

AFTER_TIMERS = 2
"""In a place: the end of an instant, when all its events and timers are over."""

AT_THE_END = 3
"""In a place: the end of the input."""

FIRST: Place = (NEVER, 0, 0, 0)
"""Before all that was ever set."""


class Interpreter:
    """Steps one query."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.query: Query = program.query
        self.within = program.clause.within
        self._sort = sorter(program.clause.order)
        where = self.query.source.where
        self._where = None if where is None else EventCompiler().compile(lowered(where))
        self._held_types = {feeder + HELD: feeder for feeder, how in self.query.feeders if how == "rows"}
        self._has_feeders = bool(self.query.feeders)
        clause = program.clause
        plain = len(clause.order) <= 1 and not self._has_feeders
        self.known = "at the end" if not clause.by_time else "at once" if plain else "after its instant"

    def step(self, state: State, batch: EventBatch, clock: Clock) -> tuple[State, EventBatch]:
        made = step_eventwise(
            batch,
            clock,
            state.timers,
            lambda event, cause: self._stopping(cause, lambda: self._on_event(state, event, cause)),
            lambda timer, cause: self._stopping(cause, lambda: self._on_timer(state, timer, cause)),
        )
        if not clock.closing:
            return state, made
        place = (clock.bound - 1, AT_THE_END, (state.level, 0, self.program.order, 0), 0)
        cause = Cause(place, state.timers, list(made.events))
        self._stopping(cause, lambda: self._close(state, cause))
        return state, EventBatch(sorted(cause.made, key=lambda d: d.place))

    def _stopping(self, cause: Cause, act: Callable[[], None]) -> None:
        """An error stops the run here; what was made before stays."""
        try:
            act()
        except RunError as error:
            error.place = cause.place
            error.detections = EventBatch(sorted(cause.made, key=lambda d: d.place))
            raise

    def restored(self, state: State) -> State:
        """Timers follow from the rows."""
        state.timers = Timers()
        for row in state.waiting:
            self._set_instant_of(state, row)
        for partition in state.partitions.values():
            self._set_bound(state, partition, None)
        return state

    # Events

    def _on_event(self, state: State, event: Event, cause: Cause) -> None:
        self._pass(state, cause)
        if event.type in self._held_types and event.is_detection:
            state.held[event.type] = event.hi
        elif self._is_row(event):
            self._take(state, event, cause)
        else:
            return
        self._settle(state, cause)
        self._tell(state, cause)

    def _pass(self, state: State, cause: Cause) -> None:
        """While an event or timer is processed, its instant is not over."""
        kind = cause.place[1]
        state.passed = max(state.passed, cause.now if kind >= AFTER_TIMERS else cause.now - 1)
        if kind == AT_THE_END:
            state.level = max(state.level, cause.place[2][0] + 1)

    def _is_row(self, event: Event) -> bool:
        table = self.query.source.table
        fits = not event.is_detection if table == "events" else event.type == table
        return fits and (self._where is None or self._where(event) is True)

    def _take(self, state: State, event: Event, cause: Cause) -> None:
        if self.known == "at once":
            self._add(state, self.program.key_of(event), [event], cause, state.passed)
            return
        state.waiting.append(event)
        self._set_instant_of(state, event)

    def _add(self, state: State, key: Key, rows: Iterable[Event], cause: Cause, passed: int) -> None:
        """Rows in order, of one partition."""
        for row in rows:
            partition = state.partitions.get(key)  # it may have been forgotten after the row before
            if partition is None:
                partition = state.partitions[key] = Partition(key)
            partition.rows.append(row)
            self._scan(state, partition, cause, passed)

    def _scan(self, state: State, partition: Partition, cause: Cause, passed: int) -> None:
        self.program.scan(partition, cause, passed)
        if self.program.forgets(partition):
            del state.partitions[partition.key]
        else:
            self._set_bound(state, partition, cause)

    # Time

    def _set_instant_of(self, state: State, row: Event) -> None:
        """A row that waits is in order when its instant is over, unless only the end, or a rule that makes the table, says so."""
        if self.known == "after its instant" and row.hi > state.passed:
            self._set_instant(state, row.hi)

    def _set_instant(self, state: State, instant: int) -> None:
        kind = AFTER_TIMERS if self._has_feeders else 1
        place: Place = (instant, kind, (*FIRST, self.program.order, 0, 0), 0)
        if all(timer.place != place for timer in state.timers.heap):
            state.timers.add(Timer(place, None))

    def _set_bound(self, state: State, partition: Partition, cause: Cause | None) -> None:
        """The timer of WITHIN for the pending start, unless time decides nothing more there."""
        row = partition.pending
        if self.within is None or row is None or partition.timer == partition.start or partition.closed:
            return
        due = row.hi + self.within
        if due > max(state.passed, cause.now - 1 if cause is not None else NEVER):
            partition.timer = partition.start
            if self._has_feeders:
                self._set_instant(state, due)
            else:
                state.timers.add(Timer(timer_place(due, row.place, self.program.order, 0), (partition.key, row.place)))

    def _on_timer(self, state: State, timer: Timer, cause: Cause) -> None:
        if timer.payload is None:
            state.passed = max(state.passed, timer.due)
            self._settle(state, cause)
        else:
            self._pass(state, cause)
            key, place = timer.payload
            partition = state.partitions.get(key)  # the row may have been decided, and the partition have begun anew
            if partition is not None and (row := partition.pending) is not None and row.place == place:
                self._scan(state, partition, cause, timer.due)
        self._tell(state, cause)

    def _settle(self, state: State, cause: Cause) -> None:
        """Take the rows, and let the bounds pass, that the clock of the table has passed."""
        if self.known == "at once":
            return
        limit = min(state.passed, self._held_back(state) - 1)
        while True:
            instant = FOREVER if self.known == "at the end" else min((r.hi for r in state.waiting), default=FOREVER)
            bound = self._next_bound(state) if self._has_feeders else FOREVER
            if min(instant, bound) > limit:
                return
            if instant <= bound:
                self._take_instant(state, instant, cause)
            else:
                self._pass_bound(state, bound, cause)

    def _held_back(self, state: State) -> int:
        """The time of the first row that the rules which make the table may still make."""
        if any(how == "end" for _, how in self.query.feeders) and FOREVER not in state.held.values():
            return NEVER + 1
        return min(state.held.values(), default=FOREVER)

    def _take_instant(self, state: State, instant: int, cause: Cause) -> None:
        rows = self._sort([row for row in state.waiting if row.hi <= instant])
        state.waiting = [row for row in state.waiting if row.hi > instant]
        self._take_sorted(state, rows, cause, instant - 1)

    def _take_sorted(self, state: State, rows: list[Event], cause: Cause, passed: int) -> None:
        """Partition by partition, in order of their first events."""
        by_key: dict[Key, list[Event]] = {}
        for row in rows:
            by_key.setdefault(self.program.key_of(row), []).append(row)
        there = [key for key in state.partitions if key in by_key]
        new = [key for key in by_key if key not in state.partitions]
        for key in [*there, *sorted(new, key=lambda key: min(row.place for row in by_key[key]))]:
            self._add(state, key, by_key[key], cause, passed)

    def _next_bound(self, state: State) -> int:
        if self.within is None:
            return FOREVER
        pending = (p.pending for p in state.partitions.values() if p.timer == p.start)
        return min((row.hi + self.within for row in pending if row is not None), default=FOREVER)

    def _pass_bound(self, state: State, bound: int, cause: Cause) -> None:
        assert self.within is not None
        due = [p for p in state.partitions.values() if (row := p.pending) is not None and row.hi + self.within == bound]
        for partition in sorted((p for p in due if p.timer == p.start), key=lambda p: p.row(p.start).place):
            partition.timer = None
            self._scan(state, partition, cause, bound)
            if partition.timer is None:
                partition.timer = -1 if partition.start < partition.count else None

    # The end, and what others may know

    def _close(self, state: State, cause: Cause) -> None:
        """The end of the input is the end of every partition."""
        self._pass(state, cause)
        state.held = dict.fromkeys([*state.held, ""], FOREVER)
        self._settle(state, cause)
        rows, state.waiting = self._sort(state.waiting), []
        self._take_sorted(state, rows, cause, state.passed)
        for partition in list(state.partitions.values()):
            partition.closed = True
            self.program.scan(partition, cause, state.passed)
        state.partitions.clear()
        self._tell(state, cause)

    def _tell(self, state: State, cause: Cause) -> None:
        """Queries that read this one must know how far back its next rows may lie."""
        if not self.query.is_read:
            return
        held = self._held_back(state)
        for partition in state.partitions.values():
            if (row := partition.pending) is not None:
                held = min(held, row.hi)
        held = min(held, min((row.hi for row in state.waiting), default=FOREVER))
        if held != state.told:
            state.told = held
            cause.emit(self.program.order, self.query.name + HELD, (held, held), {}, (), hidden=True)
