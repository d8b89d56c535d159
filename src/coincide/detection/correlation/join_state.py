"""The join tier's state, and the way between it and the interpreter's.

Every live instance follows from the messages that are live on their own: it is one of their combinations in which all conditions
that can be decided hold. So instances are left out on the way in, and worked out again on the way out, unless what is written
says so (`partial`, in older snapshots)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations as subsets
from typing import Any

import numpy as np

from coincide.detection.columns.store import NOTHING
from coincide.detection.correlation.join import Buffer, Combinations, Joiner
from coincide.detection.correlation.join_rows import Messages, Numbers, clocks
from coincide.detection.correlation.join_trees import Trees
from coincide.detection.correlation.live import Instance
from coincide.detection.correlation.program import Program
from coincide.detection.correlation.state import State, expiry_of, fresh
from coincide.detection.correlation.view import Message, message_of
from coincide.model.column import column_of
from coincide.model.compound import Compound
from coincide.model.event import Event
from coincide.model.table import EventTable, table_of

LITTLE = 1 << 14
"""Messages that may have been removed before all is written again."""

ENVELOPE_FIELDS = frozenset({"type", "id", "source", "space"})


@dataclass(eq=False)
class Compact:
    """The envelopes of all messages that may still be combined, in order of arrival, and each source's messages among them. They
    have `numbers`, which ascend; `count` is the next one. Of what was written last are known: its epoch (0: nothing was), the
    next number then, and what has been removed of it since; `renewed`: all has changed."""

    table: EventTable
    messages: list[Messages]
    numbers: Numbers
    count: int
    epoch: int = 0
    written: int = 0
    removed: list[Numbers] = field(default_factory=list)
    renewed: bool = True

    def go_on(self) -> None:
        """All is written: what comes from now on is what changes."""
        self.epoch += 1
        self.written, self.removed, self.renewed = self.count, [], False

    def renumber(self) -> None:
        self.numbers, self.count = np.arange(len(self.table)), len(self.table)

    def replaced(self, table: EventTable, messages: list[Messages], numbers: Numbers, rows: Numbers) -> Compact:
        """With other messages, of which `rows` have been kept of all those with these numbers."""
        count = self.count + len(numbers) - len(self.numbers)
        found = replace(self, table=table, messages=messages, numbers=numbers[rows], count=count)
        if not self.renewed and len(rows) < len(numbers):
            gone = np.delete(numbers, rows)
            found.removed = [*self.removed, gone[gone < self.written]]
            found.renewed = sum(map(len, found.removed)) > max(LITTLE, 2 * len(rows))
        return found


def empty(trees: Trees) -> Compact:
    nothing = np.empty(0, np.int64)
    return Compact(NOTHING, [Messages(NOTHING, nothing) for _ in trees.sources], nothing, 0)


def loaded(trees: Trees, state: State) -> Compact | None:
    """From the interpreter's; None where there are sets or ranges in it."""
    found: list[dict[Any, Message]] = [{} for _ in trees.sources]
    for live in state.live:
        for instance in live.instances.values():
            mapped = [(s, m) for s, m in enumerate(instance.messages) if m is not None]
            if len(mapped) == 1:
                found[mapped[0][0]][mapped[0][1].place] = mapped[0][1]
    if any(isinstance(value, Compound) for some in found for m in some.values() for value in m.values.values()):
        return None
    all_messages = {place: m for some in found for place, m in some.items()}
    places = sorted(all_messages)
    table = table_of([_event(all_messages[place]) for place in places]) if places else NOTHING
    number = {place: row for row, place in enumerate(places)}
    messages = [_messages(trees, s, table, number, some) for s, some in enumerate(found)]
    return Compact(table, messages, np.arange(len(places)), len(places))


def _event(m: Message) -> Event:
    return Event(m.type, m.lo, m.hi, m.id, {}, m.origin, m.source, m.space, m.place)


def _messages(trees: Trees, source: int, table: EventTable, number: dict[Any, int], some: dict[Any, Message]) -> Messages:
    messages = [some[place] for place in sorted(some)]
    rows = np.array([number[m.place] for m in messages], np.int64)
    return Messages(table, rows, {a.name: column_of([m.values.get(a.name) for m in messages]) for a in trees.declared[source]})


# The way out.


def objects(program: Program, trees: Trees, compact: Compact) -> State:
    state = fresh(program)
    events = compact.table.events()
    messages = [
        [_message(trees, s, some, n, events[row]) for n, row in enumerate(some.rows.tolist())]
        for s, some in enumerate(compact.messages)
    ]
    now = clocks(compact.table)
    buffers = [
        Buffer(some, now[some.rows], source.within, len(some))
        for source, some in zip(program.sources, compact.messages, strict=True)
    ]
    for number, selection in enumerate(trees.selections):
        joiner = Joiner(trees, selection, program.groups[number].links, buffers)
        for mapping, terms in _instances(joiner):
            slots = [messages[s][mapping[s]] if s in mapping else None for s in range(program.slots)]
            state.live[number].add(Instance(tuple(slots), terms), expiry_of(program, slots))
    return state


def _message(trees: Trees, source: int, some: Messages, number: int, event: Event) -> Message:
    message = message_of(event)
    message.values = {a.name: some.columns[a.name].value(number) for a in trees.declared[source]}
    return message


def _instances(joiner: Joiner) -> list[tuple[dict[int, int], tuple[int, ...]]]:
    """Incomplete combinations in order of creation: for each source the position, and the possible terms."""
    found: dict[tuple[int, ...], list[Combinations]] = {}
    pos = joiner.selection.pos
    for size in range(1, len(pos)):
        for some in subsets(pos, size):
            if size == 1:
                found[some] = [joiner.single(some[0], np.arange(len(joiner.buffers[some[0]])))]
                continue
            end = len(joiner.buffers[some[-1]])
            found[some] = [x for part in found[some[:-1]] if len(part) for x in joiner.extended(part, some[-1], end)]
    made = []
    for some, parts in found.items():
        for part in parts:
            positions = zip(*(part.at[s].tolist() for s in some), strict=True)
            for chosen, terms in zip(positions, part.terms.tolist(), strict=True):
                mapping = dict(zip(some, chosen, strict=True))
                made.append((mapping, tuple(n for n, possible in enumerate(terms) if possible)))
    return sorted(made, key=lambda one: _creation(joiner, one[0]))


def _creation(joiner: Joiner, mapping: dict[int, int]) -> tuple[int, ...]:
    """By the newest message, then the next to it; a shorter one first; then by the sources, from the oldest on."""
    arrivals = sorted((int(joiner.buffers[s].messages.rows[at]), s) for s, at in mapping.items())
    return (*(row for row, _ in reversed(arrivals)), -1, *(s for _, s in arrivals))
