"""The join tier's state, and the way between it and the interpreter's.

Every live instance follows from the messages that are live on their own: it is one of their combinations in which all conditions
that can be decided hold. So instances are left out on the way in, and worked out again on the way out, unless what is written
says so (`partial`, in older snapshots)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations as subsets
from typing import Any

import numpy as np

from coincide.detection.columns.store import NOTHING
from coincide.detection.correlation.kernel.chunks import NO_ROWS, Chunk, Ends, Keys, nothing, together
from coincide.detection.correlation.kernel.join import Buffer, Combinations, Joiner
from coincide.detection.correlation.kernel.rows import Messages, Numbers, clocks
from coincide.detection.correlation.kernel.times import NOT_SET, Moments, settings
from coincide.detection.correlation.kernel.trees import Trees
from coincide.detection.correlation.live import Instance, Links
from coincide.detection.correlation.program import Program
from coincide.detection.correlation.state import State, expiry_of, fresh
from coincide.detection.correlation.view import Message, message_of
from coincide.detection.eventwise import Timer
from coincide.model.bounds import FURTHEST
from coincide.model.column import Column, column_of
from coincide.model.compound import Compound
from coincide.model.event import Event, Place, timer_place
from coincide.model.table import EventTable, table_of

LITTLE = 1 << 14
"""Messages that may have been removed before all is written again."""
LEAST = 1 << 10
"""A chunk that is no larger is joined with what comes after it."""


@dataclass(eq=False)
class Compact:
    """All messages that may still be combined, in order of arrival, by numbers, of which `count` is the next one; `now` is the
    clock at the last step. Of what was written last are known: its epoch (0: nothing was), the next number then, and what has
    been removed of it since; `renewed`: all has changed."""

    chunks: list[Chunk]  # one at least, and an empty one only if it is alone
    count: int
    now: int = -FURTHEST
    until: int = NOT_SET + 1  # time events that are due before it are over
    due: int | None = None  # when the next one is
    epoch: int = 0
    written: int = 0
    removed: list[Numbers] = field(default_factory=list)
    renewed: bool = True
    keys: Keys = field(default_factory=Keys)

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def whole(self) -> Chunk:
        self.chunks = [together(self.chunks)]
        return self.chunks[0]

    def since(self, number: int) -> Chunk:
        """Messages with this number or a higher one."""
        later = [chunk.since(number) for chunk in self.chunks[1:] if chunk.numbers[-1] >= number]
        return together([self.chunks[0].since(number), *later])

    def of_keys(self, names: Mapping[int, str], wanted: Mapping[int, Sequence[Column]]) -> Chunk:
        """By source, messages that have any of these values of an attribute."""
        found = [[NO_ROWS] * len(chunk.messages) for chunk in self.chunks]
        for source, columns in wanted.items():
            indexes = [chunk.index(source, names[source], self.keys) for chunk in self.chunks]
            keys = self.keys.known(columns)
            for positions, index in zip(found, indexes, strict=True):
                positions[source] = index.having(keys)
        some = [chunk.only(positions) for chunk, positions in zip(self.chunks, found, strict=True) if any(map(len, positions))]
        return together(some or [nothing(len(found[0]))])

    def go_on(self) -> None:
        """All is written: what comes from now on is what changes."""
        self.epoch += 1
        self.written, self.removed, self.renewed = self.count, [], False

    def renumber(self) -> None:
        self.whole().numbers, self.count = np.arange(len(self)), len(self)

    # What comes and goes.

    def keep(self, chunk: Chunk, ends: Ends) -> None:
        """What of this is of use, and nothing else."""
        self.chunks, self.keys = [self._useful(chunk, ends)], Keys()

    def add(self, chunk: Chunk, ends: Ends) -> None:
        """Behind the others, joined with those that are not much larger, so that they are never many. Of each of these goes what
        is of no more use once that is half of it: so to find it costs as much as it has cost to get it."""
        if len(self.keys) > 4 * len(self) + LEAST:
            self.keep(self.whole(), ends)
        chunk = self._useful(chunk, ends)
        while self.chunks and len(self.chunks[-1]) <= max(LEAST, 2 * len(chunk)):
            chunk = self.chunks.pop().followed_by(chunk)
        chunks = [self._useful(some, ends) if some.half(ends) < self.now else some for some in (*self.chunks, chunk)]
        self.chunks = [some for some in chunks if len(some)] or chunks[:1]

    def _useful(self, chunk: Chunk, ends: Ends) -> Chunk:
        found = chunk.useful(ends, self.now)
        if not self.renewed and len(found) < len(chunk):
            stays = np.zeros(len(chunk), np.bool_)
            stays[np.searchsorted(chunk.numbers, found.numbers)] = True
            gone = chunk.numbers[~stays]
            self.removed.append(gone[gone < self.written])
            self.renewed = sum(map(len, self.removed)) > max(LITTLE, 2 * len(self))
        return found


def empty(trees: Trees) -> Compact:
    return Compact([nothing(len(trees.sources))], 0)


def loaded(trees: Trees, state: State) -> Compact | None:
    """From the interpreter's; None where there are sets or ranges in it."""
    found: list[dict[Any, Message]] = [{} for _ in trees.sources]
    for live in state.live:
        for instance in live.instances.values():
            mapped = [(s, m) for s, m in enumerate(instance.messages) if m is not None and m.trigger is None]
            if len(mapped) == 1:
                found[mapped[0][0]][mapped[0][1].place] = mapped[0][1]
    for source, history in enumerate(state.history):
        found[source].update((m.place, m) for m in history if m.trigger is None)
    if any(isinstance(value, Compound) for some in found for m in some.values() for value in m.values.values()):
        return None
    all_messages = {place: m for some in found for place, m in some.items()}
    places = sorted(all_messages)
    table = table_of([_event(all_messages[place]) for place in places]) if places else NOTHING
    number = {place: row for row, place in enumerate(places)}
    messages = [_messages(trees, s, table, number, some) for s, some in enumerate(found)]
    return Compact([Chunk(table, messages, np.arange(len(places)))], len(places))


def _event(m: Message) -> Event:
    return Event(m.type, m.lo, m.hi, m.id, {}, m.origin, m.source, m.space, m.place)


def _messages(trees: Trees, source: int, table: EventTable, number: dict[Any, int], some: dict[Any, Message]) -> Messages:
    messages = [some[place] for place in sorted(some)]
    rows = np.array([number[m.place] for m in messages], np.int64)
    return Messages(table, rows, {a.name: column_of([m.values.get(a.name) for m in messages]) for a in trees.declared[source]})


# The way out.


def objects(trees: Trees, moments: Moments, links: Sequence[Links], until: int, order: int) -> State:
    """Of messages with the time events among them that are over, as are all that were due before an instant."""
    program = trees.program
    state, events = fresh(program), moments.table.events()
    known = [
        [_message(trees, s, some, n, events[row]) for n, row in enumerate(some.rows.tolist())]
        for s, some in enumerate(moments.messages)
    ]
    _set_timers(trees, moments, known, state, until, order)
    now = clocks(moments.table)
    buffers = [
        Buffer(some, now[some.rows], source.within, len(some))
        for source, some in zip(program.sources, moments.messages, strict=True)
    ]
    for number, selection in enumerate(trees.selections):
        joiner = Joiner(trees, selection, links[number], buffers)
        for mapping, terms in _instances(joiner):
            slots = [known[s][mapping[s]] if s in mapping else None for s in range(program.slots)]
            if not any(_is_in_vain(program, state, time, slots) for time in program.groups[number].times):
                state.live[number].add(Instance(tuple(slots), terms), expiry_of(program, slots))
    for source in program.sources:
        for message in known[source.number] if source.in_history else ():
            state.history[source.number].add(message)
    return state


def _set_timers(trees: Trees, moments: Moments, known: list[list[Message]], state: State, until: int, order: int) -> None:
    """Time events that are to come are set, the others know what has set them."""
    by_row: dict[int, Place] = {}
    for source, messages in enumerate(known):
        setting = settings(trees, source, moments.messages[source])
        for time, due in setting.due.items():
            for n in np.flatnonzero(due >= until).tolist():
                place = timer_place(int(due[n]), messages[n].place, order, int(setting.number[time][n]))
                state.timers.add(Timer(place, (time, messages[n])))
                state.pending.add((time, messages[n].place))
            by_row.update(zip(moments.messages[source].rows.tolist(), (m.place for m in messages), strict=True))
    for time in trees.dues:
        for message, row in zip(known[time], moments.messages[time].rows.tolist(), strict=True):
            message.type, message.place = trees.sources[time].anchor, moments.place(row, order)
            message.trigger = by_row[int(moments.setter[row])]


def _is_in_vain(program: Program, state: State, time: int, slots: Sequence[Message | None]) -> bool:
    """Is the time event there without what has set it, or over without it?"""
    trigger = slots[program.sources[time].trigger]
    if slots[time] is not None:
        return trigger is None
    return trigger is not None and (time, trigger.place) not in state.pending


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
