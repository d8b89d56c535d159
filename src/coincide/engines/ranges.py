"""A run over all events, cut into ranges of time that run side by side.

A range does not know what was before it, so it begins early, with events before its own: so many that what was before them is
likely to make no difference any more. What it detects of these, others tell. Whether they were enough is looked at afterwards:
what a range has come to before its first own event must be what the range before has come to at its end (DetectorPlan.essence).
Where that does not hold, the range runs again, from there; so the answer is that of the whole run, whatever the rules are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

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


Digests = tuple[bytes, bytes]
"""Of a range's state at its beginning and at its end."""


@dataclass(frozen=True)
class Stretch:
    """What a range has come to: digests of its state before its first own event and after its last one, and that state."""

    digests: Digests
    state: bytes


def run_range(
    graph: Graph, part: Range, events: EventBatch, start: int | None, ending: Ending, entry: bytes | None = None
) -> tuple[list[EventBatch], Stretch]:
    """Detections of one range, of the events that it reads, in order. `start`: when the whole run began. With an `entry`, it goes
    on from that state, which another range has come to."""
    early, own = _parted(events, part)
    state = graph.initial() if entry is None else graph.decode(entry)
    if entry is None:
        state.start, state.consumed = start, part.before
        if part.first is not None:
            graph.advance(state, early, part.first)
    begins = _essence(graph, state)
    made = [graph.advance(state, own, part.end)]
    if part.end is None:
        state.hi = state.hi if ending.last is None else max(state.hi, ending.last)
        made.append(graph.finish(state, ending.until, ending.closed))
        return made, Stretch((begins, b""), b"")
    return made, Stretch((begins, _essence(graph, state)), graph.encode(state))


def _parted(events: EventBatch, part: Range) -> tuple[EventBatch, EventBatch]:
    if part.first is None or not len(events):
        return EMPTY, events
    return events.split(int(events.table.hi.searchsorted(part.first)))


def _essence(graph: Graph, state: GraphState) -> bytes:
    told = [plan.essence(own) for plan, own in zip(graph.plans, state.states, strict=True)]
    return blake2b(msgspec.msgpack.encode((state.consumed, state.start, state.hi, told)), digest_size=16).digest()


def settled(count: int, run: Callable[[Sequence[int], bool], Mapping[int, Digests]], rounds: int = ROUNDS) -> bool:
    """Have ranges `run` until each has begun with what the one before has come to: first all of them, as if there was nothing
    before; then those that do not fit `again`, each from the end of the one before. False: so many rounds were not enough."""
    known = dict(run(range(count), False))
    for _ in range(rounds):
        wrong = [number for number in range(1, count) if known[number][0] != known[number - 1][1]]
        if not wrong:
            return True
        known.update(run(wrong, True))
    return all(known[number][0] == known[number - 1][1] for number in range(1, count))
