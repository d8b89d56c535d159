"""The join tier: a description over columns.

Without preferences nothing that waits is ever dropped but for its age, so live instances need not be held: they follow from the
messages that each source has matched. The state is these messages, as columns; a batch is joined with them and with itself
(join.py). What has to be written down, or comes in a form that columns cannot hold (sets and ranges, places with timers in
them), goes through the interpreter's state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from coincide.detection.base import Clock
from coincide.detection.columns.codec import encode
from coincide.detection.columns.store import NOTHING, joined, picked
from coincide.detection.columns.tables import distinct
from coincide.detection.correlation import join_state, join_tables
from coincide.detection.correlation.interpreter import Interpreter
from coincide.detection.correlation.join import Buffer, Combinations, Joiner
from coincide.detection.correlation.join_emission import pieces, published
from coincide.detection.correlation.join_rows import Messages, appended, clocks, compacted, match
from coincide.detection.correlation.join_state import ENVELOPE_FIELDS, Compact
from coincide.detection.correlation.join_trees import Trees
from coincide.detection.correlation.program import Program
from coincide.detection.correlation.state import State
from coincide.detection.snapshots import damaged
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.column import concatenated
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]


@dataclass
class KernelState:
    """Columns, or the interpreter's objects where columns will not do."""

    compact: Compact | None
    objects: State | None = None


class Kernel:
    """Steps one description. `fed` are the classes of messages that come from detectors. `early=False` tests all conditions on
    complete combinations, for measuring."""

    def __init__(self, program: Program, order: int, early: bool = True, fed: frozenset[str] = frozenset()) -> None:
        self.program = program
        self.order = order
        self.early = early
        self.trees = Trees(program)
        self._interpreter = Interpreter(program, order)
        self._lasting = [self._longest(number, fed) for number in range(len(self.trees.sources))]
        self._classes = frozenset(node.message_class for node in self.trees.sources)
        self._declared = {a.name for some in self.trees.declared for a in some if a.lookup is None}

    def _longest(self, source: int, fed: frozenset[str]) -> int | None:
        """How long after its time a message is of use; None: for ever."""
        timely = {s for s, node in enumerate(self.trees.sources) if node.access == "external" or node.message_class not in fed}
        waiting = [selection for selection in self.trees.selections if source in selection.pos and len(selection.pos) > 1]
        found = [selection.lasting(source, timely) for selection in waiting]
        known = [most for most in found if most is not None]
        return max(known, default=0) if len(known) == len(found) else None

    def fresh(self) -> KernelState:
        return KernelState(join_state.empty(self.trees))

    def state(self, objects: State, partial: bool) -> KernelState:
        compact = self.compact(objects)
        if partial and compact is None:
            damaged("a message has a set or a range, which columns do not hold")
        return KernelState(None, objects) if compact is None else KernelState(compact)

    def compact(self, objects: State) -> Compact | None:
        """None where there are sets or ranges in it, or messages that came after later ones."""
        found = join_state.loaded(self.trees, objects)
        return found if found is not None and _go_on(clocks(found.table)) else None

    def read(self, base: bytes, later: Sequence[bytes]) -> KernelState:
        return KernelState(join_tables.read(self.trees, base, later))

    def changes(self, compact: Compact, everything: bool) -> tuple[bytes, bool]:
        """What has changed since this was called last, or all if that is wanted or as much; and whether it is all."""
        everything = everything or compact.renewed
        if everything:
            compact.renumber()
        relations = join_tables.relations(compact, not everything)
        compact.go_on()
        relations.epoch = compact.epoch
        return encode(relations), everything

    def objects(self, state: KernelState) -> State:
        """The state as the interpreter would hold it."""
        if state.compact is None:
            assert state.objects is not None
            return state.objects
        return join_state.objects(self.program, self.trees, state.compact)

    def step(self, state: KernelState, batch: EventBatch, clock: Clock) -> tuple[KernelState, EventBatch]:
        if not len(batch):
            return state, EMPTY
        if clock.arrival is None and all(part.table.sortable for part in batch.parts):
            table = self._concerned(batch.table)
            if not len(table):
                return state, EMPTY
            compact = state.compact or self.compact(self.objects(state))
            if compact is not None and self._is_plain(table, compact):
                return self._joined(compact, table)
        state = KernelState(None, self.objects(state))
        assert state.objects is not None
        _, made = self._interpreter.step(state.objects, batch, clock)
        return state, made

    def _concerned(self, table: EventTable) -> EventTable:
        """Rows of other classes change nothing, not even the clock that forgetting goes by."""
        return table if "*" in self._classes else table.of_types(self._classes)

    def _is_plain(self, table: EventTable, compact: Compact) -> bool:
        """No sets and ranges, and a clock that never goes back."""
        columns = (table.column(name) for name in self._declared if name in table.attributes)
        if any(c.compounds is not None and any(v is not None for v in c.compounds) for c in columns):
            return False
        return _go_on(np.concatenate((clocks(compact.table), clocks(table))))

    def _joined(self, compact: Compact, table: EventTable) -> tuple[KernelState, EventBatch]:
        now = clocks(table)
        sources = self.program.sources
        matched = [match(self.trees, s.number, table, now, s.within) for s in sources]
        rows = distinct(np.concatenate([m.rows for m in matched]), len(table))
        base = len(compact.table)
        numbers = np.concatenate((compact.numbers, compact.count + np.arange(len(rows))))
        working = joined([t for t in (compact.table, picked(table, rows, ENVELOPE_FIELDS)) if len(t)] or [NOTHING])
        buffers = [
            self._buffer(s.within, working, old, new, base + np.searchsorted(rows, new.rows))
            for s, old, new in zip(sources, compact.messages, matched, strict=True)
        ]
        found = []
        for selection, group in zip(self.trees.selections, self.program.groups, strict=True):
            joiner = Joiner(self.trees, selection, group.links, buffers, self.early)
            combinations = list(joiner.new())
            found.append(pieces(joiner, together(combinations)) if combinations else [])
        causes = np.concatenate((np.full(base, -1), rows))
        made = published(found, self.order, working, table, causes)
        return KernelState(self._remaining(compact, numbers, working, buffers, int(now[-1]))), made

    def _buffer(self, within: int | None, table: EventTable, old: Messages, new: Messages, rows: Numbers) -> Buffer:
        all_rows = np.concatenate((old.rows, rows))
        columns = {name: appended(old.columns.get(name), column) for name, column in new.columns.items()}
        return Buffer(Messages(table, all_rows, columns), clocks(table)[all_rows], within, len(old))

    def _remaining(self, before: Compact, numbers: Numbers, table: EventTable, buffers: list[Buffer], now: int) -> Compact:
        """What may still be combined, and is not too old. Messages that no waiting combination can hold go."""
        used = {s for selection in self.trees.selections if len(selection.pos) > 1 for s in selection.pos}
        kept = []
        for number, buffer in enumerate(buffers):
            lasting = self._lasting[number]
            there = buffer.expiry >= now if lasting is None else (buffer.expiry >= now) & (buffer.hi + lasting >= now)
            alive = np.flatnonzero(there) if number in used else np.empty(0, np.int64)
            kept.append(buffer.messages if len(alive) == len(buffer) else buffer.messages.take(alive))
        rows = distinct(np.concatenate([m.rows for m in kept]), len(table))
        shrunk = table if len(rows) == len(table) else picked(table, rows, ENVELOPE_FIELDS)
        numbered = [m.rows if shrunk is table else np.searchsorted(rows, m.rows) for m in kept]
        columns = [{name: compacted(column) for name, column in m.columns.items()} for m in kept]
        return before.replaced(shrunk, list(map(partial(Messages, shrunk), numbered, columns)), numbers, rows)


def _go_on(now: Numbers) -> bool:
    return bool((now[1:] >= now[:-1]).all())


def together(parts: list[Combinations]) -> Combinations:
    """Combinations of one group in one."""
    if len(parts) == 1:
        return parts[0]
    at = {s: np.concatenate([p.at[s] for p in parts]) for s in parts[0].at}
    common = set.intersection(*(set(p.known) for p in parts))
    known = {n: concatenated([p.known[n] for p in parts]) for n in common}
    now, expiry, terms = (np.concatenate([getattr(p, name) for p in parts]) for name in ("now", "expiry", "terms"))
    return Combinations(at, now, expiry, terms, known)
