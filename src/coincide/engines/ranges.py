"""A run over all events, cut into ranges of time that run side by side.

A range does not know what was before it. Rules whose states are few, as ECL's, run from all of them at once
(DetectorPlan.opened): which of these was the right one is known as soon as all ranges are done, since the state at the end of one
is that at the beginning of the next. Other rules begin early, with events before their own: so many that what was before them is
likely to make no difference any more. What a range detects of these, others tell. Whether they were enough is looked at
afterwards: what it has come to before its first own event must be what the range before has come to at its end
(DetectorPlan.essence). Where that does not hold, the range runs again, from there; so the answer is that of the whole run,
whatever the rules are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from coincide.detection.base import Ends
from coincide.engines.graph import Graph, GraphState
from coincide.model.batch import EMPTY, EventBatch

ROUNDS = 2
"""So often ranges run again; if they still do not fit, cutting does not pay."""


@dataclass(frozen=True)
class Range:
    """Its own events have `first` <= hi < `end` (None: no bound); it reads those from `low` on, before which there are `before`
    events."""

    first: int | None
    end: int | None
    low: int | None
    before: int


@dataclass(frozen=True)
class Ending:
    """The end of a whole run: the last event, and how far time goes on."""

    last: int | None = None
    until: float | None = None
    closed: bool = True


Starts = tuple[bytes, ...]
"""The state of each part of the rules at a beginning."""


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """What a range has come to, part by part. Detections numbered n depend on the beginning: `conditions[n - 1]` says of which
    part, and the states from which they come about; those numbered 0 are sure."""

    parts: list[Ends]
    conditions: list[tuple[int, list[bytes]]]

    def fits(self, starts: Starts) -> bool:
        return not any(self.unfit(starts))

    def unfit(self, starts: Starts) -> Iterator[str]:
        """The names of the parts that did not begin so."""
        return (part.name for part, start in zip(self.parts, starts, strict=True) if not part.fits(start))

    def chosen(self, starts: Starts) -> list[int]:
        """The numbers of the detections that came about."""
        return [0, *(n for n, (part, some) in enumerate(self.conditions, 1) if starts[part] in some)]


@dataclass(frozen=True)
class Entry:
    """What another range has come to, from which this one goes on: the state of the rules that are compared, and the states in
    which the parts are thought to be."""

    state: bytes
    starts: Starts


Made = list[tuple[int, EventBatch]]
"""Detections, by number."""


class RangedGraph(Graph):
    """A graph as it runs in ranges: with rules that run from all states."""

    def __init__(self, graph: Graph) -> None:
        read = frozenset().union(*(plan.inputs.detections for plan in graph.plans))
        opened = [plan.opened(not plan.outputs.isdisjoint(read)) for plan in graph.plans]
        super().__init__([new or plan for new, plan in zip(opened, graph.plans, strict=True)], together=False)
        self.open = {number: plan for number, plan in enumerate(opened) if plan is not None}

    @property
    def begins_early(self) -> bool:
        """Is anything not tried from all states?"""
        return not self.is_open or not all(plan.is_complete for plan in self.open.values())

    @property
    def is_open(self) -> bool:
        """Is nothing compared?"""
        return len(self.open) == len(self.plans)

    def run(
        self, part: Range, events: EventBatch, start: int | None, ending: Ending, entry: Entry | None = None
    ) -> tuple[Made, Stretch, bytes]:
        """Detections of one range, of the events that it reads, in order; what has become of its parts, and the state that others
        can go on from. `start`: when the whole run began."""
        early, own = _parted(events, part)
        state = self._entered(part, early, start) if entry is None else self._resumed(entry)
        begins = self._essence(state)
        made = [self.advance(state, own, part.end)]
        if part.end is None:
            state.hi = state.hi if ending.last is None else max(state.hi, ending.last)
            made.append(self.finish(state, ending.until, ending.closed))
        found, conditions = self._parts(state, begins)
        told = [told for number, plan in self.open.items() for told in plan.told(state.states[number])]
        numbered = [(0, batch) for batch in made] + [(n, batch) for n, (_, _, batch) in enumerate(told, 1)]
        return numbered, Stretch(found, conditions), b"" if part.end is None else self.encode(state)

    def _entered(self, part: Range, early: EventBatch, start: int | None) -> GraphState:
        state = self.initial()
        state.start, state.consumed = start, part.before
        for number, plan in self.open.items() if part.first is None else ():
            state.states[number] = plan.begun()
        if part.first is not None:
            self.advance(state, early, part.first)
            for number, plan in self.open.items():
                state.states[number] = plan.begin(state.states[number])
        return state

    def _resumed(self, entry: Entry) -> GraphState:
        state = self.decode(entry.state)
        starts = iter(entry.starts)
        for number, plan in self.open.items():
            count = len(plan.ends(state.states[number]))
            state.states[number] = plan.assuming([next(starts) for _ in range(count)])
        return state

    def _parts(self, state: GraphState, begins: bytes) -> tuple[list[Ends], list[tuple[int, list[bytes]]]]:
        """Those of open plans, then what is compared as a whole."""
        found: list[Ends] = []
        conditions = []
        for number, plan in self.open.items():
            conditions += [(len(found) + part, sorted(starts)) for part, starts, _ in plan.told(state.states[number])]
            found += plan.ends(state.states[number])
        if not self.is_open:
            names = [name for plan in self._compared(self.plans) for name in plan.definitions]
            found.append(Ends(", ".join(names), {begins: self._essence(state)}, begins, True))
        return found, conditions

    def _essence(self, state: GraphState) -> bytes:
        if self.is_open:
            return b""
        plans = zip(self._compared(self.plans), self._compared(state.states), strict=True)
        essences = [plan.essence(own) for plan, own in plans]
        return blake2b(msgspec.msgpack.encode((state.consumed, state.start, state.hi, essences)), digest_size=16).digest()

    def _compared(self, each: Sequence[Any]) -> Iterator[Any]:
        return (one for number, one in enumerate(each) if number not in self.open)


def _parted(events: EventBatch, part: Range) -> tuple[EventBatch, EventBatch]:
    if part.first is None or not len(events):
        return EMPTY, events
    return events.split(int(events.table.hi.searchsorted(part.first)))


class Unsettled(Exception):
    """Ranges still do not fit what was before them: of these rules."""


def settled(
    count: int, run: Callable[[Sequence[int], Sequence[Starts] | None], Mapping[int, Stretch]], rounds: int = ROUNDS
) -> list[Starts]:
    """Have ranges `run` until each has begun with what the one before has come to: first all of them, as if there was nothing
    before; then those that do not fit again, each from the end of the one before, where its parts are in the states given.
    Returns these states."""
    known: dict[int, Stretch] = {}
    wrong: Sequence[int] = range(count)
    starts: list[Starts] | None = None
    unfit: dict[str, None] = {}
    for _ in range(rounds + 1):
        known.update(run(wrong, starts))
        starts = composed([known[number] for number in range(count)])
        wrong = [number for number in range(count) if not known[number].fits(starts[number])]
        if not wrong:
            return starts
        unfit = dict.fromkeys(name for number in wrong for name in known[number].unfit(starts[number]))
    raise Unsettled(", ".join(unfit))


def composed(stretches: Sequence[Stretch]) -> list[Starts]:
    """The states at the beginning of each range; as far as all before fit, these are right."""
    found = [tuple(part.assumed for part in stretches[0].parts)]
    for stretch in stretches[:-1]:
        found.append(tuple(part.after(start) for part, start in zip(stretch.parts, found[-1], strict=True)))
    return found
