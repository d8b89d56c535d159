"""Negation `A - B` and `(A - B) within T` (5.4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from coincide.detection.algebra.nodes.base import Instant, Keys, Node, State, without
from coincide.detection.algebra.nodes.equality import Equality, index_of
from coincide.detection.algebra.occurrence import Composer, Occurrence, conflict
from coincide.detection.algebra.scope import Conjunct, environment


class NegationState(msgspec.Struct, array_like=True, dict=True):
    """Occurrences of B that may still count, by hi; those with a life of their own; a's that wait for their time."""

    negated: list[Occurrence] = []
    living: list[Occurrence] = []
    pending: list[Occurrence] = []


def _end(occurrence: Occurrence) -> int:
    return occurrence.hi


@dataclass(eq=False)
class Negation(Node):
    """`children` are A and B. `length`: the T of `(A - B) within T`; `right_length`: that of `- (C within T)`; `reach`: how
    long an A can last, if that is known."""

    length: int | None = None
    right_length: int | None = None
    counts: tuple[Conjunct, ...] = ()
    reach: int | None = None
    composer: Composer = field(default_factory=Composer)
    equality: Equality | None = None  # what A and a B that counts have in common
    keeps_one: bool = False  # is the b with the latest start enough?

    state_type: ClassVar[type | None] = NegationState

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        state: NegationState = self.state(instant)
        left, right = (child.advance(instant) for child in self.children)
        if not (left or right or state.pending):
            return []  # nor has the store grown
        self._store(state, right)
        if self.length is None:
            found = [a for a in left if not self.hit(state, a, a.hi)]
        else:
            found = self._after(state, left, instant, self.length)
        self._prune(state, instant.now)
        return found

    def _store(self, state: NegationState, right: list[Occurrence]) -> None:
        index = None if self.equality is None else index_of(state, state.negated, self.equality)
        for b in right:
            insort(state.negated if b.expires is None else state.living, b, key=_end)
            if index is not None and b.expires is None:
                index.add([b])

    def _after(self, state: NegationState, left: list[Occurrence], instant: Instant, length: int) -> list[Occurrence]:
        """Known only when the time is over."""
        for a in left:
            state.pending.append(a)
            instant.wake(self.due(a))
        due = sorted((a for a in state.pending if self.due(a) <= instant.now), key=lambda a: a.order)
        state.pending = [a for a in state.pending if self.due(a) > instant.now]
        return [self.later(a) for a in due if not self.hit(state, a, a.lo + length)]

    def due(self, a: Occurrence) -> int:
        return max(a.hi, a.lo + (self.length or 0))

    def later(self, a: Occurrence) -> Occurrence:
        return self.composer.stamped((a,), (a.lo, self.due(a)), (a.latest_start, self.due(a)))

    def hit(self, state: NegationState, a: Occurrence, end: int) -> bool:
        if self.right_length is not None:
            end = min(end, a.lo + self.right_length)
        if any(a.lo <= b.lo and b.hi <= end and self._counts(a, b) for b in self._candidates(state, a, end)):
            return True
        living = state.living[: bisect_right(state.living, end, key=_end)]
        return any(b.alive(a.lo) and self._counts(a, b) for b in living)

    def _candidates(self, state: NegationState, a: Occurrence, end: int) -> Sequence[Occurrence]:
        if self.equality is not None:
            return index_of(state, state.negated, self.equality).partners(a)
        return state.negated[bisect_left(state.negated, a.lo, key=_end) : bisect_right(state.negated, end, key=_end)]

    def _counts(self, a: Occurrence, b: Occurrence) -> bool:
        if conflict(a, b):
            return False
        if not self.counts:
            return True
        names = environment(a)
        names.update(b.aliases)
        return all(test(names) for test in self.counts)

    def _prune(self, state: NegationState, now: int) -> None:
        self._forget(state, now, at_once=False)

    def forget(self, state: State, now: int) -> None:
        self._forget(state, now, at_once=True)

    def _forget(self, state: NegationState, now: int, at_once: bool) -> None:
        """No later A starts before `now - reach`; pending ones may."""
        if self.keeps_one:
            state.negated = [max(state.negated, key=lambda b: b.lo)] if state.negated else []
        if self.reach is None:
            return
        least = min((now - self.reach, *(a.lo for a in state.pending)))
        if state.negated and state.negated[0].hi < least and (at_once or not self._has_room(state)):
            state.negated = state.negated[bisect_left(state.negated, least, key=_end) :]
        state.living = [b for b in state.living if b.alive(least)]

    def _has_room(self, state: NegationState) -> bool:
        """With an index, what is too old is in nobody's way: it goes when there is much of it."""
        return self.equality is not None and not index_of(state, state.negated, self.equality).crowded

    def discard(self, state: State, keys: Keys) -> None:
        state.negated = without(state.negated, keys)
        state.living = without(state.living, keys)
        state.pending = without(state.pending, keys)

    def waits(self, state: State, last: int) -> bool:
        return bool(state.pending)
