"""The join tier: a description over columns.

Without preferences nothing that waits is ever dropped but for its age, so live instances need not be held: they follow from the
messages that each source has matched. The state is these messages, as columns; a batch is joined with them and with itself
(join.py). Time events follow from the messages that set them (times.py), what is remembered is looked through when a
combination is complete (memory.py). What comes in a form that columns cannot hold (sets and ranges, places with timers in
them), goes through the interpreter's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coincide.detection.base import Clock, Pending
from coincide.detection.columns.codec import encode
from coincide.detection.columns.store import NOTHING, picked
from coincide.detection.columns.tables import distinct
from coincide.detection.correlation.interpreter import Interpreter
from coincide.detection.correlation.kernel import relations as tables
from coincide.detection.correlation.kernel import state as compacts
from coincide.detection.correlation.kernel.chunks import ENVELOPE_FIELDS, Chunk
from coincide.detection.correlation.kernel.emission import pieces, published
from coincide.detection.correlation.kernel.join import Buffer, Combinations, Joiner
from coincide.detection.correlation.kernel.memory import Filled, Memory, nothing, one_after_another
from coincide.detection.correlation.kernel.rows import Messages, clocks, expiries, match
from coincide.detection.correlation.kernel.state import Compact
from coincide.detection.correlation.kernel.times import NOT_SET, Moments, both_ways, moments, settings
from coincide.detection.correlation.kernel.trees import Trees
from coincide.detection.correlation.live import Links
from coincide.detection.correlation.program import GroupProgram, Program
from coincide.detection.correlation.state import State
from coincide.detection.snapshots import damaged
from coincide.lang.cdl.definition import AnySource, TimeEvent
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.bounds import FURTHEST
from coincide.model.column import concatenated
from coincide.model.table import EventTable

Numbers = npt.NDArray[np.int64]
SHARE = 8
"""So many times as many messages as come have to wait, if only those with their keys are looked at."""


@dataclass
class KernelState:
    """Columns, or the interpreter's objects where columns will not do."""

    compact: Compact | None
    objects: State | None = None


class Kernel:
    """Steps one description. `detected` are the classes of messages that come from detectors; by the attribute `key` detection
    can be divided. `early=False` tests all conditions on complete combinations, for measuring."""

    def __init__(
        self,
        program: Program,
        order: int,
        early: bool = True,
        detected: frozenset[str] = frozenset(),
        key: str | None = None,
        trees: Trees | None = None,
    ) -> None:
        self.program = program
        self.order = order
        self.early = early
        self.key = key
        self.trees = trees or Trees(program)
        self._interpreter = Interpreter(program, order)
        waiting = [group for group in program.groups if len(group.pos) > 1]
        self._links = [self._linked(group) for group in program.groups]
        is_simple = not self.trees.dues and not any(selection.is_remembering for selection in self.trees.selections)
        self._keys = (_keys(waiting, {}) if is_simple else None) or {}
        self._others = {s: sorted({o for g in waiting if s in g.pos for o in g.pos} - {s}) for g in waiting for s in g.pos}
        self._lasting = [self._longest(number, detected) for number in range(len(self.trees.sources))]
        self._classes = frozenset(s.message_class for s in program.sources if s.message_class is not None)
        self._declared = {a.name for some in self.trees.declared for a in some if a.lookup is None}

    def _longest(self, source: int, detected: frozenset[str]) -> int | None:
        """How long after its time a message is of use; None: for ever."""
        timely = {s for s, node in enumerate(self.trees.sources) if _is_timely(node, detected)}
        waiting = [selection for selection in self.trees.selections if source in selection.pos and len(selection.pos) > 1]
        due = frozenset(self.program.sources[source].triggers)
        found = [selection.lasting(source, timely, due) for selection in waiting]
        known = [most for most in found if most is not None]
        return max(known, default=0) if len(known) == len(found) else None

    def _linked(self, group: GroupProgram) -> Links:
        """Also with what is remembered, by the keys that join filters compare."""
        keys = {s.number: (s.join_key,) for s in self.program.sources if s.join_key is not None and s.number not in group.pos}
        return {**both_ways(group.links), **keys}

    def fresh(self) -> KernelState:
        return KernelState(compacts.empty(self.trees))

    def state(self, objects: State, partial: bool) -> KernelState:
        compact = self.compact(objects)
        if partial and compact is None:
            damaged("a message has a set or a range, which columns do not hold")
        return KernelState(None, objects) if compact is None else KernelState(compact)

    def compact(self, objects: State) -> Compact | None:
        """None where there are sets or ranges in it, or messages that came after later ones."""
        found = compacts.loaded(self.trees, objects)
        if found is None or not _go_on(clocks(found.whole().table)):
            return None
        return found if not self.trees.dues or (found.whole().table.sortable and self._goes_on(found, objects)) else None

    def _goes_on(self, found: Compact, objects: State) -> bool:
        """Are the time events that the state waits for those that follow from its messages? Then it is known which are over."""
        waits = {(timer.payload[0], timer.payload[1].place): timer.place for timer in objects.timers.live()}
        found.due = min((place[0] for place in waits.values()), default=None)
        all_ = moments(self.trees, found.whole(), np.zeros(len(found), np.int64), FURTHEST)
        times = {
            (time, all_.table.place_tuple(int(all_.setter[row]))): all_.place(int(row), self.order)
            for time in self.trees.dues
            for row in all_.messages[time].rows
        }
        over = [place[0] for key, place in times.items() if key not in waits]
        found.until = max(over, default=NOT_SET) + 1 if found.due is None else found.due
        follow = all(times.get(key, place) == place for key, place in waits.items())
        return follow and found.until > max(over, default=NOT_SET)

    def read(self, base: bytes, later: Sequence[bytes]) -> KernelState:
        compact = tables.read(self.trees, self.key, base, later)
        compact.due = self.next_due(compact)
        return KernelState(compact)

    def encode(self, compact: Compact) -> bytes:
        compact.keep(compact.whole(), self._ends)
        return encode(tables.relations(compact, self.key))

    def changes(self, compact: Compact, everything: bool) -> tuple[bytes, bool]:
        """What has changed since this was called last, or all if that is wanted or as much; and whether it is all."""
        everything = everything or compact.renewed
        if everything:
            compact.keep(compact.whole(), self._ends)
            compact.renumber()
        relations = tables.relations(compact, self.key, not everything)
        compact.go_on()
        relations.epoch = compact.epoch
        return encode(relations), everything

    def objects(self, state: KernelState) -> State:
        """The state as the interpreter would hold it."""
        if state.compact is None:
            assert state.objects is not None
            return state.objects
        return self._instances(state.compact)

    def _instances(self, compact: Compact) -> State:
        whole = compact.whole()
        all_ = moments(self.trees, whole, np.zeros(len(whole), np.int64), compact.until)
        return compacts.objects(self.trees, all_, self._links, compact.until, self.order)

    def step(self, state: KernelState, batch: EventBatch, clock: Clock) -> tuple[KernelState, EventBatch]:
        is_timed = bool(self.trees.dues)
        if not len(batch) and not is_timed:
            return state, EMPTY
        if clock.arrival is None and all(part.table.sortable for part in batch.parts):
            table = self._concerned(batch.table) if len(batch) else NOTHING
            if not len(table) and not is_timed:
                return state, EMPTY
            compact = self.compact(self.objects(state)) if state.compact is None else state.compact
            if compact is not None and self._is_plain(table, compact):
                until = max(compact.until, clock.bound, _last(batch.table) if len(batch) else -FURTHEST)
                if len(table) or (compact.due is not None and compact.due < until):
                    return self._joined(compact, table, until)
                compact.until = until
                return KernelState(compact), EMPTY
        state = KernelState(None, self.objects(state))
        assert state.objects is not None
        _, made = self._interpreter.step(state.objects, batch, clock)
        return state, made

    def pending(self, state: KernelState) -> Pending | None:
        if state.compact is None:
            return None if state.objects is None else state.objects.timers.pending()
        return None if state.compact.due is None else Pending(state.compact.due, True)

    def _concerned(self, table: EventTable) -> EventTable:
        """Rows of other classes change nothing, not even the clock that forgetting goes by."""
        return table if "*" in self._classes else table.of_types(self._classes)

    def _is_plain(self, table: EventTable, compact: Compact) -> bool:
        """No sets and ranges, and a clock that never goes back; with time events it is that of the roots."""
        columns = (table.column(name) for name in self._declared if name in table.attributes)
        if any(c.compounds is not None and any(v is not None for v in c.compounds) for c in columns):
            return False
        now = clocks(table)
        if self.trees.dues and len(table) and (now != table.place_matrix()[:, 0]).any():
            return False
        return _go_on(np.concatenate((clocks(compact.chunks[-1].table, slice(-1, None)), now)))

    def _joined(self, compact: Compact, table: EventTable, until: int) -> tuple[KernelState, EventBatch]:
        now = clocks(table)
        sources = self.program.sources
        matched = [match(self.trees, s.number, table, now, s.within) for s in sources]
        rows = distinct(np.concatenate([m.rows for m in matched]), len(table))
        arrived = self._arrived(table, rows, matched, compact.count)
        is_whole = not self._keys or SHARE * len(rows) >= len(compact)
        waiting = compact.whole() if is_whole else self._partners(compact, matched)
        working = waiting.followed_by(arrived)
        all_ = moments(self.trees, working, np.concatenate((np.full(len(waiting), -1), rows)), until)
        made = self._found(all_, self._buffers(all_, waiting, compact.until), table)
        compact.now = max(compact.now, int(now[-1]) if len(now) else -FURTHEST)
        compact.until = until
        compact.count += len(rows)
        if is_whole:
            compact.keep(working, self._ends)
        else:
            compact.add(arrived, self._ends)
        compact.due = self.next_due(compact)
        return KernelState(compact), made

    def _buffers(self, all_: Moments, waiting: Chunk, until: int) -> list[Buffer]:
        """Time events that were due before are old."""
        clock, buffers = clocks(all_.table), []
        for source, old, messages in zip(self.program.sources, waiting.messages, all_.messages, strict=True):
            now = clock[messages.rows]
            known = int(np.searchsorted(now, until)) if source.is_time else len(old)
            buffers.append(Buffer(messages, now, source.within, known))
        return buffers

    def _found(self, all_: Moments, buffers: list[Buffer], table: EventTable) -> EventBatch:
        found = []
        for selection, links in zip(self.trees.selections, self._links, strict=True):
            joiner = Joiner(self.trees, selection, links, buffers, self.early)
            combinations = list(joiner.new())
            complete: list[Filled] = [(some, nothing(len(some))) for some in combinations]
            if selection.is_remembering and combinations:
                complete = list(Memory(joiner).completed(together(combinations)))
            members = one_after_another([members for _, members in complete]) if complete else nothing(0)
            found.append(pieces(joiner, together([some for some, _ in complete]), members) if complete else [])
        return published(found, all_.table, lambda made, rows, ranks: all_.placed(made, table, rows, ranks, self.order))

    def next_due(self, compact: Compact) -> int | None:
        """When the next time event is due that messages have set."""
        if not self.trees.dues:
            return None
        messages = compact.whole().messages
        found = [due for s, some in enumerate(messages) for due in settings(self.trees, s, some).due.values()]
        later = [int(due[due >= compact.until].min()) for due in found if (due >= compact.until).any()]
        return min(later, default=None)

    def _arrived(self, table: EventTable, rows: Numbers, matched: list[Messages], first: int) -> Chunk:
        envelopes = picked(table, rows, ENVELOPE_FIELDS) if len(rows) else NOTHING
        messages = [Messages(envelopes, np.searchsorted(rows, some.rows), some.columns) for some in matched]
        return Chunk(envelopes, messages, first + np.arange(len(rows)))

    def _partners(self, compact: Compact, matched: list[Messages]) -> Chunk:
        """What waits and may be combined with these messages: it has their keys."""
        came = {s: keys for s, name in self._keys.items() if (keys := matched[s].column(name)) is not None and len(keys)}
        wanted = {s: [came[other] for other in others if other in came] for s, others in self._others.items()}
        return compact.of_keys(self._keys, {s: columns for s, columns in wanted.items() if columns})

    def _ends(self, source: int, messages: Messages) -> Numbers:
        """After which instants messages are too old, or no combination that waits can hold them."""
        own, hi = self.program.sources[source], messages.table.hi[messages.rows]
        ends, lasting = expiries(messages, own.within), self._lasting[source]
        joined = np.full(len(messages), -FURTHEST)
        if source in self._others:
            joined = ends if lasting is None else np.minimum(ends, hi + lasting)
            for due in settings(self.trees, source, messages).due.values():
                joined = np.maximum(joined, np.minimum(ends, due))
        if own.in_history:
            joined = np.maximum(joined, ends if own.floor is None else np.minimum(ends, hi + own.floor))
        return joined


def _keys(groups: Sequence[GroupProgram], chosen: Mapping[int, str]) -> Mapping[int, str] | None:
    """For each source an attribute, such that those of all messages of a combination are equal; None: there are none."""
    if not groups:
        return chosen
    group, *others = groups
    first = min(group.pos)
    links = group.links.get(first, ())
    for name in dict.fromkeys(own for own, *_ in links):
        equal = {first: name, **{other: its for own, other, its in links if own == name}}
        if equal.keys() >= group.pos and all(chosen.get(source, its) == its for source, its in equal.items()):
            found = _keys(others, {**chosen, **equal})
            if found is not None:
                return found
    return None


def _is_timely(node: AnySource, detected: frozenset[str]) -> bool:
    return isinstance(node, TimeEvent) or node.access == "external" or node.message_class not in detected


def _last(table: EventTable) -> int:
    return int(table.place_rows(np.array([len(table) - 1]))[0, 0])


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
