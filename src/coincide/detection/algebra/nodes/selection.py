"""Selections that pass instances on: FIRST, n-th, LAST without `over`, LESS and MORE (5.5). Aliases end at a selection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from coincide.detection.algebra.nodes.base import Instant, Node, State
from coincide.detection.algebra.occurrence import Occurrence, distinct
from coincide.detection.algebra.scope import Environment, environment
from coincide.expr.tree import Expr
from coincide.model import bounds
from coincide.model.event import Value
from coincide.model.numbers import is_number


@dataclass(frozen=True)
class Windows:
    """Windows `(O + kS, O + kS + T]`, in microseconds."""

    length: int
    step: int
    offset: int = 0

    def containing(self, instant: int) -> range:
        """Numbers of the windows that contain an instant."""
        since = instant - self.offset
        return range(-((self.length - since) // self.step), -(-since // self.step))

    def start(self, number: int) -> int:
        return self.offset + number * self.step

    def end(self, number: int) -> int:
        return self.start(number) + self.length

    def first_ending(self, instant: int) -> int:
        """The first window that ends at or after an instant."""
        return -((self.length + self.offset - instant) // self.step)


def selected(node: Node, instant: Instant) -> list[Occurrence]:
    """What a selection sees of its operand: one of the copies that differ in alias bindings only."""
    return distinct((o.without_aliases() for o in node.children[0].advance(instant)), with_aliases=False)


class CountState(msgspec.Struct, array_like=True):
    """So many were seen in each open window; number 0 stands for all time."""

    counts: dict[int, bounds.Count] = {}


@dataclass(eq=False)
class Nth(Node):
    """FIRST is the first."""

    position: int = 1
    windows: Windows | None = None

    state_type: ClassVar[type | None] = CountState

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        state: CountState = self.state(instant)
        open_now = list(self.windows.containing(instant.now)) if self.windows else [0]
        state.counts = {k: count for k, count in state.counts.items() if k in open_now}
        for occurrence in selected(self, instant):
            for k in open_now:
                state.counts[k] = state.counts.get(k, 0) + 1
            if self.position in [state.counts[k] for k in open_now]:
                yield occurrence

    def forget(self, state: State, now: int) -> None:
        if self.windows is not None:
            state.counts = {k: count for k, count in state.counts.items() if self.windows.end(k) >= now}


class OnceState(msgspec.Struct, array_like=True):
    """The hi of the last occurrence that passed, until it no longer matters."""

    last: int | None = None


@dataclass(eq=False)
class Once(Node):
    """`E^ONCE over T until B`: one passes, then none less than T later, or until a B. What comes at the instant of a B is new."""

    length: int | None = None

    state_type: ClassVar[type | None] = OnceState

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        state: OnceState = self.state(instant)
        arrived = selected(self, instant)
        if any(child.advance(instant) for child in self.children[1:]):
            state.last = None
        for occurrence in arrived:
            if state.last is None or (self.length is not None and occurrence.hi - state.last >= self.length):
                state.last = occurrence.hi
                yield occurrence

    def forget(self, state: State, now: int) -> None:
        if state.last is not None and self.length is not None and now - state.last >= self.length:
            state.last = None


@dataclass(eq=False)
class Every(Node):
    """LAST without `over`: every occurrence passes."""

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        return selected(self, instant)


@dataclass(eq=False)
class Threshold(Node):
    """LESS and MORE, strict. `value` is that of the aggregate or of the argument."""

    less: bool = True
    limit: float = 0.0
    value: Callable[[Environment], Value] = field(default=lambda names: None)
    tree: Expr | None = None  # of the value

    def made(self, instant: Instant) -> Iterable[Occurrence]:
        for occurrence in selected(self, instant):
            value = self.value(environment(occurrence))
            if is_number(value) and self._passes(value) and not (self.less and occurrence.incomplete):
                yield occurrence

    def _passes(self, value: float) -> bool:
        return value < self.limit if self.less else value > self.limit
