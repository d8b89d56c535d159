"""The correlation machine M(φ) of an expression, by the table of ecl.md, section 3.

It shows what the paper builds (for people and for drawings), and it is written apart from the structural reading that
runs, so the two can be held against each other. A maximum of n copies its body n times: sizes multiply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from coincide.lang.ecl.definition import (
    Accumulate,
    Correlation,
    DoUnless,
    Fail,
    Loop,
    Machine,
    Modes,
    Monitor,
    Output,
    Parallel,
    Persist,
    Predicate,
    Push,
    Repeat,
    Select,
    SelectStar,
    Sequential,
    Transition,
)

States = tuple[str, ...]
Clauses = tuple[States, ...]


@dataclass(frozen=True)
class Construction:
    """A machine that can be stepped and printed like one that was written out; its body has completed when `success` or
    `failure` is active."""

    machine: Machine
    success: str
    failure: str


@dataclass(frozen=True)
class Module:
    """A part of the machine, with its states of success and failure. Of the order of its transitions only the ends count
    for others: `first`, which nothing in it precedes, and `last`, which precede nothing in it."""

    states: States
    initial: States
    success: str
    failure: str
    first: States
    last: States


@dataclass(frozen=True)
class Step:
    """A new transition of a composite: internal, it clears all states of `parts`."""

    enabling: Clauses
    parts: Sequence[Module]
    target: States
    output: Output | None = None


Steps = Callable[[str, str], Iterable[Step]]
"""The new transitions, most urgent first, from the composite's states of success and failure."""


def construct(monitor: Monitor) -> Construction:
    builder = _Builder()
    module = builder.module(monitor.body)
    transitions, order = tuple(builder.transitions), tuple(builder.order)
    machine = Machine(monitor.name, monitor.keys, module.initial, transitions, order, span=monitor.span)
    return Construction(machine, module.success, module.failure)


class _Builder:
    def __init__(self) -> None:
        self.transitions: list[Transition] = []
        self.order: list[tuple[str, str]] = []
        self._modules = 0

    def module(self, expression: Correlation) -> Module:
        match expression:
            case Predicate():
                return self._predicate(expression)
            case Persist() | Repeat() | Loop():
                return self._repetition(expression)
            case Modes():
                return self._modes(expression)
        parts = [self.module(part) for part in expression.children]
        initial = parts[0].initial if isinstance(expression, Sequential) else _initial(parts)
        return self._composite(parts, initial, lambda s, f: _steps(expression, parts, (s,), (f,)))

    def _predicate(self, predicate: Predicate) -> Module:
        q, s, f = self._fresh("q", "s", "f")
        name = self._transition(((q,),), predicate, (q,), (s,), None)
        return Module((q, s, f), (q,), s, f, (name,), (name,))

    def _composite(self, parts: Sequence[Module], initial: States, steps: Steps) -> Module:
        s, f = self._fresh("s", "f")
        names = [self._internal(step) for step in steps(s, f)]
        first = tuple(chain.from_iterable(part.first for part in parts))
        last = tuple(chain.from_iterable(part.last for part in parts))
        if names:  # inner activity ends first
            self.order += [(inner, names[0]) for inner in last]
            self.order += pairwise(names)
        return Module((*_states(parts), s, f), initial, s, f, first, (names[-1],) if names else last)

    def _repetition(self, expression: Persist | Repeat | Loop) -> Module:
        copies = [self.module(expression.body) for _ in range(expression.maximum or 1)]
        bounded = expression.maximum is not None
        return self._composite(copies, copies[0].initial, lambda s, f: _rounds(expression, copies, bounded, s, f))

    def _modes(self, expression: Modes) -> Module:
        guards = [self._predicate(mode.guard) for mode in expression.modes]
        bodies = [self.module(mode.body) for mode in expression.modes]
        parts = [*guards, *bodies]

        def entered(i: int) -> States:
            return bodies[i].initial + _initial(g for j, g in enumerate(guards) if j != i)

        # A guard takes the event away from the running mode.
        self.order += [(g, t) for guard in guards for g in guard.last for body in bodies for t in body.first]
        switches = [Step(((guard.success,),), parts, entered(i)) for i, guard in enumerate(guards)]
        return self._composite(parts, entered(0), lambda s, f: switches)

    def _internal(self, step: Step) -> str:
        return self._transition(step.enabling, None, _states(step.parts), step.target, step.output)

    def _transition(self, enabling: Clauses, test: Predicate | None, clear: States, target: States, output: Output | None) -> str:
        name = f"t{len(self.transitions) + 1}"
        self.transitions.append(Transition(name, enabling, test, clear, target, output))
        return name

    def _fresh(self, *letters: str) -> States:
        self._modules += 1
        return tuple(f"{letter}{self._modules}" for letter in letters)


def _steps(expression: Correlation, parts: Sequence[Module], s: States, f: States) -> Iterator[Step]:
    """The rows of the table, repetitions and modes left out."""
    succeeded, failed = tuple(part.success for part in parts), tuple(part.failure for part in parts)
    match expression:
        case Accumulate():
            yield Step(_all(succeeded), parts, s)
            yield Step(_any(failed), parts, f)
        case Select():
            yield Step(_any(succeeded), parts, s)
            yield Step(_all(failed), parts, f)
        case SelectStar():
            yield Step(_any(succeeded), parts, s)
            yield Step(_any(failed), parts, f)
        case Sequential():
            for part, target in zip(parts, [*(part.initial for part in parts[1:]), s], strict=True):
                yield Step(_any((part.success,)), [part], target)
                yield Step(_any((part.failure,)), [part], f)
        case DoUnless():
            yield Step(_any(succeeded[:1]), parts, s)
            yield Step(_any((failed[0], succeeded[1])), parts, f)
        case Fail():
            yield Step(_any(failed), parts, s)
            yield Step(_any(succeeded), parts, f)
        case Push():
            yield Step(_any(succeeded), parts, s, expression.output)
            yield Step(_any(failed), parts, f)
        case Parallel():
            return
        case _:
            raise TypeError(f"not a correlation expression: {expression!r}")


def _rounds(expression: Correlation, copies: Sequence[Module], bounded: bool, s: str, f: str) -> Iterator[Step]:
    """What is again leads to the next copy, and from the last to the outcome of the maximum; without one, to the copy itself."""
    at_maximum = (f,) if isinstance(expression, Persist) else (s,)
    for i, copy in enumerate(copies):
        after_last = at_maximum if bounded else copy.initial
        again = copies[i + 1].initial if i + 1 < len(copies) else after_last
        yield Step(_any((copy.success,)), [copy], (s,) if isinstance(expression, Persist) else again)
        yield Step(_any((copy.failure,)), [copy], (f,) if isinstance(expression, Loop) else again)


def _any(states: States) -> Clauses:
    return (states,)


def _all(states: States) -> Clauses:
    return tuple((state,) for state in states)


def _states(parts: Iterable[Module]) -> States:
    return tuple(chain.from_iterable(part.states for part in parts))


def _initial(parts: Iterable[Module]) -> States:
    return tuple(chain.from_iterable(part.initial for part in parts))
