"""The state of a query in tables: partitions, and of each the rows that are kept of it, as numbers of events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.dues import TableDues
from coincide.detection.columns.known import KeyedTable
from coincide.detection.columns.store import Store
from coincide.detection.columns.tables import KEYED, Numbers, Shape, distinct, longer, numbered, taken
from coincide.detection.keys import Key, key_part, key_value
from coincide.detection.rowpattern import partition
from coincide.detection.rowpattern.interpreter import Interpreter
from coincide.detection.rowpattern.partition import Partition
from coincide.detection.rowpattern.state import FOREVER, NEVER, State
from coincide.model.event import Event
from coincide.model.table import EventTable, table_of

# `base` is the number of the first row that is kept, `start` that of the row whose match is sought, counted from there; `number`
# is that of the next match, rows before `covered` lie in one. By their turns partitions stand in order. `due` is when the bound
# of the pending start passes (FOREVER: none is to come). The rows are the events from `first` on.
PARTITIONS = Shape("partitions", "base start number covered turn due", "first size", valued=True, use=KEYED)
ROW = PARTITIONS.columns
SPARE = 4096
"""Events that nobody refers to may be so many more than those that somebody does, before they go."""


@dataclass(eq=False)
class Open:
    """Some partitions, in order. `table` holds their rows, which are these events, partition by partition; `sizes` how many each
    has."""

    numbers: Numbers
    keys: list[Key]
    bases: Numbers
    starts: Numbers
    matches: Numbers
    covered: Numbers
    sizes: Numbers
    events: Numbers
    table: EventTable | None


@dataclass(eq=False)
class Left:
    """What a step leaves: of which partitions it read (known ones, then new ones), those that stay, in order, and which of them
    begin; how their scans stand, and their rows: numbers of those that were open, and after them of the new ones."""

    stay: Numbers
    begin: npt.NDArray[np.bool_]
    bases: Numbers
    starts: Numbers
    matches: Numbers
    covered: Numbers
    sizes: Numbers
    rows: Numbers


@dataclass(eq=False)
class Memory:
    """`waiting`, `held` and `told` are the interpreter's (state.py). Rows are in `events`, as far as it is `used`."""

    store: Store
    within: int | None
    partitions: KeyedTable = field(default_factory=lambda: KeyedTable(PARTITIONS))
    events: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    used: int = 0
    live: int = 0  # rows of partitions that are there
    turns: int = 0  # that were given
    passed: int = NEVER
    due: int = FOREVER  # no bound passes before; if it is exact
    exact: bool = True
    waiting: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    held: dict[str, int] = field(default_factory=dict)
    told: int = FOREVER
    written: int = 0  # events that were written, if they were needed
    renewed: bool = True  # has all changed since the state was written last?

    def __post_init__(self) -> None:
        self.dues = TableDues(self.partitions, self._still_due)

    def _still_due(self, partitions: Numbers) -> Numbers:
        due = self.partitions.rows[partitions, ROW.due]
        return np.where(due > self.passed, due, FOREVER)

    def next_due(self) -> int | None:
        """When the next bound of a pending start passes: those that have passed decide nothing more."""
        if not self.exact:
            self.due, self.exact = self.dues.now().first(), True
        return None if self.due == FOREVER else self.due

    def overdue(self, passed: int) -> Numbers:
        """Partitions with a bound that has passed by then."""
        if (due := self.next_due()) is None or due > passed:
            return np.zeros(0, np.int64)
        return self.dues.now().before(passed + 1)

    def open(self, numbers: Numbers) -> Open:
        """Partitions, with their rows."""
        numbers = numbers[np.argsort(self.partitions.rows[numbers, ROW.turn])]
        rows = self.partitions.rows[numbers]
        events = self.rows_of(numbers)
        wanted, index = numbered(events, len(self.store))
        table = self.store.taken(wanted).take(index) if len(events) else None
        keys = self.partitions.values_at(numbers)
        bases, starts, matches, covered = (rows[:, at] for at in (ROW.base, ROW.start, ROW.number, ROW.covered))
        return Open(numbers, keys, bases, starts, matches, covered, rows[:, ROW.size], events, table)

    def rows_of(self, partitions: Numbers) -> Numbers:
        rows = self.partitions.rows[partitions]
        return self.events[taken(rows[:, ROW.first], rows[:, ROW.size])]

    def put(self, before: Open, keys: Sequence[Key], left: Left, new: EventTable | None) -> None:
        """What is left of partitions that were open, and of new ones; the keys are those of all."""
        known, stored = len(before.numbers), len(before.events)
        rows, self.live = self.partitions.rows, self.live - stored
        self.exact = self.exact and (self.due == FOREVER or not (rows[before.numbers, ROW.due] == self.due).any())
        numbers = np.concatenate((before.numbers, np.full(len(keys) - known, -1)))
        self.partitions.free(before.numbers[np.setdiff1d(np.arange(known), left.stay)])
        added = left.stay[left.stay >= known]
        numbers[added] = self.partitions.add(len(added))
        self.partitions.known.put([keys[number] for number in added.tolist()], numbers[added])
        stay, events = numbers[left.stay], self._numbered(before.events, left.rows, stored, new)
        turns = self.partitions.rows[stay, ROW.turn]
        begin = np.flatnonzero(left.begin)
        turns[begin] = self.turns + np.arange(len(begin))
        self.turns += len(begin)
        self._write(stay, left, turns, events)
        if max(self.used, len(self.store)) > 2 * (self.live + len(self.waiting)) + SPARE:
            self._compact()

    def _numbered(self, known: Numbers, rows: Numbers, stored: int, new: EventTable | None) -> Numbers:
        """Rows as events; new ones are stored."""
        if new is None:
            return known[rows]
        is_new = rows >= stored
        wanted, index = numbered(rows[is_new] - stored, len(new))
        events = np.empty(len(rows), np.int64)
        events[~is_new], events[is_new] = known[rows[~is_new]], len(self.store) + index
        self.store.add(new, wanted)
        return events

    def _write(self, numbers: Numbers, left: Left, turns: Numbers, events: Numbers) -> None:
        first = self.used + np.cumsum(left.sizes) - left.sizes
        self.events = longer(self.events, self.used + len(events))
        self.events[self.used : self.used + len(events)] = events
        self.used, self.live = self.used + len(events), self.live + len(events)
        columns = (left.bases, left.starts, left.matches, left.covered, turns, self._dues(left, events), first, left.sizes)
        self.partitions.rows[numbers, ROW.base :] = np.stack(columns, axis=1)
        self.partitions.touch(numbers)

    def _dues(self, left: Left, events: Numbers) -> Numbers:
        due = np.full(len(left.sizes), FOREVER, np.int64)
        if self.within is None:
            return due
        pending = np.flatnonzero(left.starts < left.sizes)
        rows = (np.cumsum(left.sizes) - left.sizes + left.starts)[pending]
        wanted, index = numbered(events[rows], len(self.store))
        due[pending] = self.store.hi(wanted)[index] + self.within
        due[due <= self.passed] = FOREVER
        self.due = min(self.due, int(due.min(initial=FOREVER)))
        return due

    def _compact(self) -> None:
        """Events that somebody refers to, numbered anew, and rows without gaps."""
        live = self.partitions.live()
        events, sizes = self.rows_of(live), self.partitions.rows[live, ROW.size]
        wanted = distinct(np.concatenate((events, self.waiting)), len(self.store))
        self.store.keep(wanted)
        self.events, self.waiting = np.searchsorted(wanted, events), np.searchsorted(wanted, self.waiting)
        self.used = len(events)
        self.partitions.rows[live, ROW.first] = np.cumsum(sizes) - sizes
        self.renewed = True


# From and to the interpreter's objects.


def plain_keys(keys: Iterable[partition.Key]) -> list[Key]:
    """Keys of partitions as all others are."""
    return [tuple([key_part(value) for _, value in key]) for key in keys]


def partition_keys(keys: Iterable[Key]) -> list[partition.Key]:
    """Back again."""
    return [tuple([(isinstance(part, tuple), key_value(part)) for part in key]) for key in keys]


def empty(columns: frozenset[str] | None, within: int | None) -> Memory:
    """`columns` are those of rows that are kept; None: all."""
    return Memory(Store(None if columns is None else columns | {"type", "id", "source"}), within)


def from_objects(state: State, columns: frozenset[str] | None, within: int | None, back: int) -> Memory:
    """Without rows that nobody reads."""
    memory = empty(columns, within)
    memory.passed, memory.held, memory.told = state.passed, dict(state.held), state.told
    partitions = list(state.partitions.values())
    gone = [max(0, p.start - back - p.base) for p in partitions]
    own = [p.rows[first:] for p, first in zip(partitions, gone, strict=True)]
    rows = [row for some in own for row in some]
    table, at = _in_order([*rows, *state.waiting])
    if table is not None:
        memory.store.add(table, np.arange(len(table)))
    memory.waiting = at[len(rows) :]
    left = Left(
        np.arange(len(partitions)),
        np.ones(len(partitions), np.bool_),
        np.array([p.base + first for p, first in zip(partitions, gone, strict=True)], np.int64),
        np.array([p.start - p.base - first for p, first in zip(partitions, gone, strict=True)], np.int64),
        np.array([p.number for p in partitions], np.int64),
        np.array([p.covered for p in partitions], np.int64),
        np.array([len(some) for some in own], np.int64),
        at[: len(rows)],
    )
    nothing = np.zeros(0, np.int64)
    before = Open(nothing, [], nothing, nothing, nothing, nothing, nothing, np.arange(len(memory.store)), None)
    memory.live = len(memory.store)
    memory.put(before, plain_keys(p.key for p in partitions), left, None)
    return memory


def _in_order(rows: Sequence[Event]) -> tuple[EventTable | None, Numbers]:
    """Rows by place, as a table, and where each is."""
    order = sorted(range(len(rows)), key=lambda n: rows[n].place)
    at = np.empty(len(rows), np.int64)
    at[order] = np.arange(len(rows))
    return table_of([rows[n] for n in order]) if rows else None, at


def to_objects(memory: Memory, interpreter: Interpreter) -> State:
    state = State(passed=memory.passed, held=dict(memory.held), told=memory.told)
    wanted = distinct(np.concatenate((memory.rows_of(memory.partitions.live()), memory.waiting)), len(memory.store))
    events = dict(zip(wanted.tolist(), memory.store.taken(wanted).events(), strict=True))
    state.waiting = [events[number] for number in memory.waiting.tolist()]
    opened = memory.open(memory.partitions.live())
    ends = np.cumsum(opened.sizes)
    scans = zip(*(a.tolist() for a in (opened.bases, opened.starts, opened.matches, opened.covered)), strict=True)
    for key, (base, start, number, covered), end, size in zip(
        partition_keys(opened.keys), scans, ends.tolist(), opened.sizes.tolist(), strict=True
    ):
        rows = [events[number] for number in opened.events[end - size : end].tolist()]
        state.partitions[key] = Partition(key, rows, base, base + start, number, covered)
    return interpreter.restored(state)
