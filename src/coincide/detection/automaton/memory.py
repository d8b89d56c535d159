"""The kernel's state: its tables, how they grow, and how what nobody refers to is dropped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from coincide.detection.automaton.layout import KEY, KEYS, NODE, NODES, OF, RUN, RUNS, TABLES, TIMER, TIMERS
from coincide.detection.automaton.loop import purge
from coincide.detection.automaton.pools import COUNTERS, FAILED_ONE, MADE_ONE, Cells, Pools, relink
from coincide.detection.automaton.state import Failures
from coincide.detection.automaton.tables import EARLY, Tables
from coincide.detection.columns.compiling import compiled
from coincide.detection.columns.dues import NEVER, TableDues
from coincide.detection.columns.heaps import ENTRY
from coincide.detection.columns.known import KeyedTable
from coincide.detection.columns.records import Mask
from coincide.detection.columns.store import Store
from coincide.detection.columns.tables import UNASKED, Table, distinct, longer
from coincide.detection.keys import Key
from coincide.model.event import Place

Numbers = npt.NDArray[np.int64]

LITTLE = 1 << 14
"""Nodes that may be there before anybody looks for those that are needed no more."""
MUCH = 1 << 17
"""The same, within a batch: so many stay in a processor's cache, more or less."""


class Memory:
    """All that changes. Nodes refer to events by their numbers in the store; timers from another state keep the places that they
    had, those of others follow from what set them."""

    def __init__(self, tables: Tables, columns: frozenset[str], shared: bool = False) -> None:
        """If it is shared, a key begins with the number of the detector that it is of."""
        self.tables = tables
        self.shared = shared
        self.timings = len(tables.program.timings)
        self.heads = np.array([[0, -1, 0, UNASKED]] * len(TABLES), np.int64)
        self.keys = KeyedTable(KEYS, head=self.heads[OF.keys])
        self.timers, self.nodes = Table(TIMERS, head=self.heads[OF.timers]), Table(NODES, head=self.heads[OF.nodes])
        self.runs = Table(RUNS, self.timings, head=self.heads[OF.runs])
        self.all = self.keys, self.timers, self.nodes, self.runs
        self.dues = TableDues(self.runs, self._due)
        self.store = Store(columns)
        self.lists = np.zeros((0, 0), np.int64)
        self.queue, self.made, self.failed = (np.zeros(0, kind) for kind in (ENTRY, MADE_ONE, FAILED_ONE))
        self.scratch, self.counters = np.zeros(0, np.int64), np.zeros(1, COUNTERS)
        self.n = self.counters[0]
        self.n.entered = self.n.root = self.n.firing = -1
        self.failures: defaultdict[int, Failures] = defaultdict(dict)  # by detector
        self.timer_places: dict[int, Place] = {}
        self.now = EARLY  # timers due before have fired
        self.swept = LITTLE  # number of nodes at which those needed no more are looked for
        self.grown = 0  # nodes that the last step has made
        # Of what was written last: the numbers that configurations have there (by number and whether they are bound), how many
        # of these, of nodes, timers and events were there; whether rows have been numbered anew since.
        self.configurations: dict[tuple[int, int], int] = {}
        self.written = (0, 0, 0, 0)
        self.renewed = True

    def names(self, slots: Numbers) -> list[Key]:
        """The values of the parameters."""
        return [key[self.shared :] for key in self.keys.values_at(slots)]

    def whose(self, slots: Numbers) -> Numbers:
        """Of which detector each of some keys is."""
        if not self.shared:
            return np.zeros(len(slots), np.int64)
        some, index = np.unique(slots, return_inverse=True)
        return np.array([key[0] for key in self.keys.values_at(some)], np.int64)[index]

    @property
    def pools(self) -> Pools:
        """What the loops work on."""
        return Pools(
            self.keys.rows, self.timers.rows, self.nodes.rows, self.runs.rows, self.heads, self.lists,
            self.queue, self.made, self.failed, self.scratch, self.counters,
        )  # fmt: skip

    def next_epoch(self) -> None:
        """All is told: what changes from now on is what is told next."""
        for table in (self.keys, self.timers, self.nodes):
            table.next_epoch()
        self.dues.next_epoch()

    def make_room(self, starts: int) -> None:
        """For what the loop said that it needs."""
        n = self.n
        more, set_more = int(n.need), self.timings * int(n.entering + n.need)
        self.runs.reserve(len(self.runs) + more)
        self.nodes.reserve(len(self.nodes) + more)
        self.timers.reserve(len(self.timers) + set_more)
        self.queue = longer(self.queue, n.queue + set_more)
        self.made = longer(self.made, n.made + more)
        self.failed = longer(self.failed, n.failed + starts)
        self.scratch = np.zeros(len(self.runs.rows) + n.made - n.step + more, np.int64)

    def expect_as_much(self, starts: int) -> None:
        """Room for as many nodes as the last step has made: to stop for more of it and more again costs as much as the loop."""
        if self.grown:
            self.n.need, self.n.entering = self.grown, 0
            self.make_room(starts)

    def slots(self, keys: Sequence[Key]) -> Numbers:
        """The numbers of these keys, and room for all configurations in each."""
        found, new = self.keys.with_keys(keys)
        self.keys.rows[new, KEY.ended], self.keys.rows[new, KEY.live] = 0, 0
        self._widen()
        return found

    def _widen(self) -> None:
        shape = len(self.keys.rows), max(2 * len(self.tables.configurations), self.lists.shape[1])
        if shape != self.lists.shape:
            more = [(0, new - old) for new, old in zip(shape, self.lists.shape, strict=True)]
            self.lists = np.pad(self.lists, more, constant_values=-1)

    def link(self, cells: Cells) -> None:
        """Lists and the queue, made anew from the runs."""
        self.queue = longer(self.queue, len(self.runs) * self.timings)
        self.lists = self.lists[:0]
        self._widen()
        relink(self.pools, cells)

    # What nobody refers to.

    def settle(self, cells: Cells) -> None:
        """Runs that timers have failed are gone."""
        if self.timings:
            purge(self.pools, cells, self.now, self.dues.now().before(self.now))

    def _due(self, runs: Numbers) -> Numbers:
        """When the first timer is due that each of these runs waits for."""
        held = self.runs.rows[runs, RUN.parts :]
        due: Numbers = np.where(held >= 0, self.timers.rows[held, TIMER.due], NEVER).min(axis=1, initial=NEVER)
        return due

    def paths(self, runs: Numbers, above: int = 0) -> Numbers:
        """The nodes on the paths of these runs, from a number on."""
        marks = np.zeros(len(self.nodes) - above, np.bool_)
        _mark(self.nodes.rows, self.runs.rows, runs, marks, above)
        return np.flatnonzero(marks) + above

    def used_timers(self, runs: Numbers, nodes: Numbers) -> Numbers:
        """Those that runs wait for or that are among their events. What set one is among the events, too."""
        held = self.runs.rows[runs, RUN.parts :].reshape(-1)
        found = distinct(np.concatenate((held, self.nodes.rows[nodes, NODE.timer])))
        return found[found >= 0]

    @property
    def crowded(self) -> bool:
        """Is it better to drop nodes than to make room for more? Not while a timer fires."""
        return self.n.firing < 0 and len(self.nodes) > max(MUCH, 2 * self.swept, len(self.keys))

    def clear(self, cells: Cells, base: int, now: int) -> None:
        """In the middle of a batch, whose keys keep their numbers. Timers due before now have fired."""
        self.now, self.grown = max(self.now, now), len(self.nodes)
        self._sweep_runs(cells)
        self._sweep_store(base)
        self.link(cells)
        self.expect_as_much(0)

    def sweep(self, cells: Cells, base: int) -> None:
        """Runs, nodes, timers, keys and stored events that are needed no more go. Events from `base` on are of the batch at
        hand."""
        self._sweep_runs(cells)
        self._sweep_keys()
        self._sweep_store(base)
        self.link(cells)

    def _sweep_runs(self, cells: Cells) -> None:
        self.settle(cells)
        alive = self.runs.live()
        needed = self.paths(alive)
        timers = self.used_timers(alive, needed)
        node, timer = _renumbering(needed, len(self.nodes)), _renumbering(timers, len(self.timers))
        for table, used in ((self.runs, alive), (self.nodes, needed), (self.timers, timers)):
            table.keep(used)
        runs, nodes = self.runs.rows, self.nodes.rows
        runs[:, RUN.node], runs[:, RUN.parts :] = node[runs[:, RUN.node]], timer[runs[:, RUN.parts :]]
        nodes[:, NODE.parent], nodes[:, NODE.timer] = node[nodes[:, NODE.parent]], timer[nodes[:, NODE.timer]]
        nodes[:, NODE.child], nodes[:, NODE.sibling] = -1, -1
        self.timers.rows[:, TIMER.timer] = timer[self.timers.rows[:, TIMER.timer]]
        self.timer_places = {int(timer[t]): place for t, place in self.timer_places.items() if timer[t] >= 0}
        self.n.root = -1
        self.swept = max(LITTLE, 2 * len(needed))
        self.renewed = True

    def _sweep_keys(self) -> None:
        """Keys that wait for nothing and have lost no start."""
        used = self.keys.column("ended") != 0
        used[self.runs.rows[:, RUN.key]] = True
        number = _renumbering(np.flatnonzero(used), len(used))
        self.keys.keep(np.flatnonzero(used))
        self.runs.rows[:, RUN.key] = number[self.runs.rows[:, RUN.key]]

    def _sweep_store(self, base: int) -> None:
        events, setters = self.nodes.column("event"), self.timers.column("event")
        used = distinct(events[(events >= 0) & (events < base)])
        if len(used) < base:
            self.store.keep(used)
            for column in (events, setters):
                old, new = (column >= 0) & (column < base), column >= base
                column[old] = _renumbering(used, base)[column[old]]
                column[new] -= base - len(used)


@compiled
def _mark(nodes: Numbers, runs: Numbers, some: Numbers, marks: Mask, above: int) -> None:
    for i in range(len(some)):
        node = runs[some[i], RUN.node]
        while node >= above and not marks[node - above]:
            marks[node - above] = True
            node = nodes[node, NODE.parent]


def _renumbering(used: Numbers, size: int) -> Numbers:
    """From old numbers to new ones; -1 stays."""
    number = np.full(size + 1, -1, np.int64)
    number[used] = np.arange(len(used))
    return number
