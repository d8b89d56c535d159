"""Silences: `not A over T`, `p ; not E over T`; and the delay `A + T`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from coincide.detection.algebra.consumption import choose
from coincide.detection.algebra.nodes.base import Instant, Keys, Node, State, without
from coincide.detection.algebra.nodes.chain import Made, Match, Step, StepState
from coincide.detection.algebra.nodes.prefix import Prefix
from coincide.detection.algebra.nodes.relations import MAYBE
from coincide.detection.algebra.occurrence import Composer, Occurrence
from coincide.detection.algebra.scope import environment
from coincide.model import bounds


@dataclass(eq=False)
class SilenceStep(Step):
    """`p ; not E over T`: `between.node` is E. It is known when the time is over (5.2)."""

    length: int = 0
    alias: str | None = None

    def prefixes(self, instant: Instant) -> list[Prefix]:
        assert self.between is not None
        state: StepState = self.state(instant)
        for prefix in self._left_prefixes(instant):
            state.prefixes.append(prefix)
            instant.wake(self.due(prefix.occurrence))
        state.between += self.between.node.advance(instant)
        due = sorted({p.occurrence.hi for p in state.prefixes if p.occurrence.hi + self.length <= instant.now})
        made = [m for end in due for m in self._after(state, end)]
        state.prefixes = [p for p in state.prefixes if p.occurrence.hi not in due]
        self._prune(state, instant.now)
        return self._reduced(made)

    def _after(self, state: StepState, end: int) -> list[Made]:
        """The silence that began at `end`, joined with the prefixes that ended then and pass."""
        right = self.silence(end)
        same = [p for p in state.prefixes if p.occurrence.hi == end]
        fitting = self._ordered(m for p in same if (m := self.match(state, p, right)))
        return [self._make(matches) for matches in choose(self.policy, fitting).groups]

    def due(self, o: Occurrence) -> int:
        return o.hi + self.length

    def silence(self, end: int) -> Occurrence:
        """That began then."""
        right = self.composer.silence(end, end + self.length)
        return right.binding(self.alias) if self.alias else right

    def match(self, state: StepState, prefix: Prefix, right: Occurrence) -> Match | None:
        if not prefix.alive(right.hi) or any(self.breaks(n, prefix) for n in state.between):
            return None
        verdicts = [period.holds(right.near, right.far) for period in self.operand_periods]
        verdicts += self._chain_verdicts(prefix, right)
        if None in verdicts:
            return None
        found = Match(prefix, right, None, MAYBE in verdicts)
        return found if self._conjuncts_hold(found) else None

    def breaks(self, n: Occurrence, prefix: Prefix) -> bool:
        assert self.between is not None
        since = prefix.occurrence.hi
        if not (since < n.lo and n.hi <= since + self.length):
            return False
        names = environment(prefix.occurrence)
        names.update(n.aliases)
        return all(test(names) for test in self.between.counts)

    def _too_old(self, prefix: Prefix, now: int) -> bool:
        return False

    def waits(self, state: State, last: int) -> bool:
        return bool(state.prefixes)


class NotState(msgspec.Struct, array_like=True):
    since: bounds.Instant = 0
    armed: bool = False


@dataclass(eq=False)
class Absence(Node):
    """`not A over T`: once per silence, after the last A or the start of observation (5.4)."""

    length: int = 0
    composer: Composer = field(default_factory=Composer)

    state_type: ClassVar[type | None] = NotState

    def begin(self, instant: Instant) -> None:
        self._arm(self.state(instant), instant, instant.start)

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        state: NotState = self.state(instant)
        if self.children[0].advance(instant):
            self._arm(state, instant, instant.now)
        elif state.armed and instant.now >= state.since + self.length:
            state.armed = False
            return [self.composer.silence(state.since, state.since + self.length)]
        return []

    def _arm(self, state: NotState, instant: Instant, since: int) -> None:
        state.since, state.armed = since, True
        instant.wake(since + self.length)

    def waits(self, state: State, last: int) -> bool:
        return bool(state.armed)


class PendingState(msgspec.Struct, array_like=True):
    pending: list[Occurrence] = []


@dataclass(eq=False)
class DelayNode(Node):
    """`E + T`."""

    length: int = 0
    composer: Composer = field(default_factory=Composer)

    state_type: ClassVar[type | None] = PendingState

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        state: PendingState = self.state(instant)
        for occurrence in self.children[0].advance(instant):
            state.pending.append(occurrence)
            instant.wake(self.due(occurrence))
        due = [o for o in state.pending if self.due(o) <= instant.now]
        state.pending = [o for o in state.pending if self.due(o) > instant.now]
        return [self.later(o) for o in due]

    def due(self, o: Occurrence) -> int:
        return o.hi + self.length

    def later(self, o: Occurrence) -> Occurrence:
        return self.composer.stamped((o,), (o.lo, self.due(o)), (o.latest_start, o.earliest_end + self.length))

    def discard(self, state: State, keys: Keys) -> None:
        state.pending = without(state.pending, keys)

    def waits(self, state: State, last: int) -> bool:
        return bool(state.pending)
