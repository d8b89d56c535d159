"""Aggregates and LAST over windows, and running aggregates (5.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import msgspec

from coincide.detection.algebra.aggregates import BEHAVIOURS, Behaviour
from coincide.detection.algebra.nodes.base import Instant, Keys, Node, State, without
from coincide.detection.algebra.nodes.selection import Windows, selected
from coincide.detection.algebra.occurrence import Composer, Occurrence
from coincide.detection.algebra.scope import Environment, environment
from coincide.expr.tree import Expr
from coincide.lang.ecco.aggregates import result_of
from coincide.model import bounds
from coincide.model.event import Value

Argument = Callable[[Environment], Value] | None


def sources_between(occurrences: Iterable[Occurrence], start: int, end: int) -> list[Occurrence]:
    """Of each occurrence, the sources whose hi lies in the window; all of them, if none does (a timer made it)."""
    found: list[Occurrence] = []
    for occurrence in occurrences:
        inside = [source for source in occurrence.sources if start < source.hi <= end]
        found += inside or occurrence.sources
    return each_once(found)


def each_once(sources: list[Occurrence]) -> list[Occurrence]:
    """Sources that come from different events are different; only for others it is worth while to look closer."""
    if len({source.origin for source in sources}) == len(sources):
        return sources
    return list({source.identity: source for source in sources}.values())


@dataclass(eq=False)
class Aggregator:
    """Makes the occurrence that stands for a window; LAST is no aggregate."""

    function: str
    argument: Argument
    tree: Expr | None = None  # of the argument
    composer: Composer = field(default_factory=Composer)

    @property
    def does(self) -> Behaviour | None:
        return BEHAVIOURS.get(self.function)

    @property
    def attribute(self) -> str | None:
        return result_of(self.function)

    @property
    def fills_empty_windows(self) -> bool:
        return self.does is not None and self.does.fills_empty_windows

    def _value(self, occurrences: Sequence[Occurrence], sources: Sequence[Occurrence]) -> float | None:
        """None: nothing is made."""
        assert self.does is not None
        if self.argument is None:
            return float(len(occurrences))
        return self.does.total([self.argument(environment(source)) for source in sources])

    def aggregate(
        self, occurrences: Sequence[Occurrence], sources: Sequence[Occurrence], ends: tuple[int, int], mark: str
    ) -> Occurrence | None:
        value = self._value(occurrences, sources)
        if value is None or self.attribute is None:
            return None
        whole = self.composer.stamped(tuple(sources), ends)
        attributes: dict[str, Value] = {**whole.attributes, self.attribute: value}
        maybe = whole.maybe or any(o.maybe for o in occurrences)
        # One source and one carrier for whatever is built on it.
        return replace(whole, attributes=attributes, clash=frozenset(), aliases={}, parts=(), mark=mark, maybe=maybe)

    def last(self, occurrence: Occurrence, ends: tuple[int, int]) -> Occurrence:
        return self.composer.stamped((occurrence,), ends)


class WindowState(msgspec.Struct, array_like=True):
    """Members of the open windows by number; the window that is closed next (for those that make 0 when empty); what is
    closed; since when the key is observed."""

    members: dict[int, list[Occurrence]] = {}
    next: int | None = None
    closed: bounds.Instant | None = None
    since: bounds.Instant | None = None


@dataclass(eq=False)
class WindowNode(Node):
    """`E^AVG(x) over T every S` and the like."""

    aggregator: Aggregator = field(default_factory=lambda: Aggregator("COUNT", None))
    windows: Windows = field(default_factory=lambda: Windows(1, 1))

    state_type: ClassVar[type | None] = WindowState

    def begin(self, instant: Instant) -> None:
        self._observe(self.state(instant), instant, instant.start)

    def _observe(self, state: WindowState, instant: Instant, since: int) -> None:
        state.since = since
        if self.aggregator.fills_empty_windows:
            state.next = self.windows.first_ending(since)
            instant.wake(self.windows.end(state.next))

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        state: WindowState = self.state(instant)
        arrived = selected(self, instant)
        if state.since is None and (arrived or instant.observed):
            self._observe(state, instant, instant.now)
        for occurrence in arrived:
            self._add(state, occurrence, instant)
        return list(self._closed(state, instant))

    def _add(self, state: WindowState, occurrence: Occurrence, instant: Instant) -> None:
        for k in self.windows.containing(instant.now):
            if state.closed is not None and self.windows.end(k) <= state.closed:
                continue  # a further round of an instant at which the window was closed
            if k not in state.members:
                state.members[k] = []
                instant.wake(self.windows.end(k))
            state.members[k].append(occurrence)

    # Closing.

    def _closed(self, state: WindowState, instant: Instant) -> Iterator[Occurrence]:
        for k in self._due(state, instant):
            members = state.members.pop(k, [])
            state.closed = self.windows.end(k)
            found = self._summary(k, members, state.since)
            if found is not None:
                yield found
            if state.next is not None and k >= state.next:
                self._go_on(state, instant, k, empty=not members)

    def _due(self, state: WindowState, instant: Instant) -> Iterator[int]:
        """Windows that end now (or ended while nobody looked), in order. Under an endless clock, empty ones that begin after
        the last event stay open (5.8)."""
        while True:
            candidates = [k for k in state.members if self.windows.end(k) <= instant.now]
            if state.next is not None and self.windows.end(state.next) <= instant.now:
                candidates.append(state.next)
            if not candidates:
                return
            k = min(candidates)
            if instant.end is not None and k not in state.members and self.windows.start(k) >= instant.end:
                state.next = None
                continue
            yield k

    def _go_on(self, state: WindowState, instant: Instant, k: int, empty: bool) -> None:
        """The next window; with `per`, an empty one ends the observation of the key."""
        if instant.keyed and empty and not state.members:
            state.next = state.since = None
            return
        state.next = k + 1
        if instant.end is None or self.windows.start(k + 1) < instant.end or k + 1 in state.members:
            instant.wake(self.windows.end(k + 1))

    def _summary(self, k: int, members: list[Occurrence], since: int | None) -> Occurrence | None:
        ends = self.windows.start(k), self.windows.end(k)
        if self.aggregator.does is None:
            return self.aggregator.last(members[-1], ends) if members else None
        sources = sources_between(members, *ends)
        made = self.aggregator.aggregate(members, sources, ends, f"{self.number}:{k}")
        incomplete = self.aggregator.fills_empty_windows and since is not None and ends[0] < since
        return replace(made, incomplete=incomplete) if made is not None else None

    def awaited(self, state: State) -> Iterable[int]:
        windows = [*state.members, *([] if state.next is None else [state.next])]
        return (self.windows.end(k) for k in windows)

    def discard(self, state: State, keys: Keys) -> None:
        state.members = {k: without(members, keys) for k, members in state.members.items()}

    def waits(self, state: State, last: int) -> bool:
        return any(state.members.values()) or (state.next is not None and self.windows.start(state.next) < last)


class RunningState(msgspec.Struct, array_like=True):
    seen: list[Occurrence] = []
    lo: bounds.Instant | None = None
    count: bounds.Count = 0


@dataclass(eq=False)
class Running(Node):
    """An aggregate without `over`: at each occurrence, over all so far."""

    aggregator: Aggregator = field(default_factory=lambda: Aggregator("COUNT", None))

    state_type: ClassVar[type | None] = RunningState

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        state: RunningState = self.state(instant)
        for occurrence in selected(self, instant):
            state.seen.append(occurrence)
            state.count += 1
            state.lo = occurrence.lo if state.lo is None else min(state.lo, occurrence.lo)
            sources = each_once([source for o in state.seen for source in o.sources])
            ends = state.lo, occurrence.hi
            made = self.aggregator.aggregate(state.seen, sources, ends, f"{self.number}:{state.count}")
            if made is not None:
                yield made

    def discard(self, state: State, keys: Keys) -> None:
        state.seen = without(state.seen, keys)
