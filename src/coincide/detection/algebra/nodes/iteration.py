"""Iteration `A*`: runs of consecutive occurrences (5.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from coincide.detection.algebra.consumption import CONSUMPTIONS
from coincide.detection.algebra.nodes.base import Instant, Keys, Node, State, maybe_so, without
from coincide.detection.algebra.nodes.relations import MAYBE, YES, Period
from coincide.detection.algebra.occurrence import Composer, Occurrence, conflict
from coincide.detection.algebra.scope import Environment, environment
from coincide.detection.keys import key_part
from coincide.lang.ecco.consumption import DEFAULT
from coincide.model.event import Value


class RunState(msgspec.Struct, array_like=True):
    elements: list[Occurrence] = []


@dataclass(eq=False)
class Iteration(Node):
    least: int = 1
    most: int | None = None
    policy: str = DEFAULT
    periods: tuple[Period, ...] = ()
    composer: Composer = field(default_factory=Composer)
    simple: bool = False  # elements are single events, which cannot conflict
    useful: tuple[Period, ...] = ()  # runs that last longer are of no use
    by: Callable[[Environment], Value] | None = None  # its different values are counted, not the elements

    state_type: ClassVar[type | None] = RunState

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        state: RunState = self.state(instant)
        for x in self.children[0].advance(instant):
            state.elements = [w for w in state.elements if w.alive(x.hi) and self._verdict((w, x)) is not None]
            if self._lasts_too_long(state, x):
                state.elements = state.elements[:1]
                continue
            if any(conflict(w, x) for w in state.elements):
                continue
            state.elements.append(x)
            run = self._run(state)
            if run is not None:
                yield run
            self._forget(state)

    def _run(self, state: RunState) -> Occurrence | None:
        """The run that the policy wants, ending with the newest element."""
        elements, policy = state.elements, CONSUMPTIONS[self.policy].runs
        counts = self._counts(elements)
        if policy.ends(counts[-1], self.least, self.most):
            state.elements = []
        runs = (self._composed(elements[-size:]) for size in policy.sizes(counts, self.least, self.most))
        return next((run for run in runs if run is not None), None)

    def _counts(self, elements: list[Occurrence]) -> Sequence[int]:
        """Of the last element, of the last two, and so on: how many count."""
        if self.by is None:
            return range(1, len(elements) + 1)
        seen: set[object] = set()
        counts: list[int] = []
        for element in reversed(elements):
            value = self.by(environment(element))
            seen |= set() if value is None else {key_part(value)}
            counts.append(len(seen))
        return counts

    def _composed(self, elements: list[Occurrence]) -> Occurrence | None:
        verdict = self._verdict(tuple(elements))
        if verdict is None:
            return None
        different = None if self.by is None else self._counts(elements)[-1]
        return maybe_so(self.composer.iteration(tuple(elements), different), verdict)

    def _verdict(self, elements: tuple[Occurrence, ...]) -> str | None:
        """Does `within` hold for them together?"""
        if not self.periods:
            return YES
        near = max(0, max(e.earliest_end for e in elements) - min(e.latest_start for e in elements))
        far = max(e.hi for e in elements) - min(e.lo for e in elements)
        verdicts = [period.holds(near, far) for period in self.periods]
        return None if None in verdicts else MAYBE if MAYBE in verdicts else YES

    def _lasts_too_long(self, state: RunState, x: Occurrence) -> bool:
        """No run is of use any more: the first element stays, and is too old for what would end with x, or later."""
        first = state.elements[0] if state.elements and not self.periods else None
        if first is None or first.expires is not None:
            return False
        return any(period.certainly_passed(x.hi - first.lo) for period in self.useful)

    def _forget(self, state: RunState) -> None:
        """Elements too far back for any run; they could still keep out one that conflicts, if conflicts are possible."""
        reach = CONSUMPTIONS[self.policy].runs.reach(self.least, self.most)
        if self.simple and reach is not None and self.by is None:
            state.elements = state.elements[-reach:]

    def forget(self, state: State, now: int) -> None:
        """Elements that the next one would put out."""
        passed = [period.certainly_passed for period in self.periods]
        state.elements = [w for w in state.elements if w.alive(now) and not any(is_over(now - w.lo) for is_over in passed)]

    def discard(self, state: State, keys: Keys) -> None:
        state.elements = without(state.elements, keys)
