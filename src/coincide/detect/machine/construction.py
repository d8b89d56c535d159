"""The correlation machine M(φ) of an expression, by the table of ecl.md, section 3.

It shows what the paper builds (for people and for drawings), and it is written apart from the structural reading that
runs, so the two can be held against each other. A maximum of n copies its body n times: sizes multiply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, pairwise

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


@dataclass(frozen=True)
class Module:
    """A machine with a state of success and one of failure. Of its transitions' order only the ends are kept: `first` are
    the most urgent, which nothing precedes, `last` the least, which precede nothing."""

    states: States
    initial: States
    success: str
    failure: str
    first: States
    last: States


@dataclass(frozen=True)
class Step:
    """A new transition of a composite: internal, it clears all the states of the parts given."""

    enabling: tuple[States, ...]
    parts: tuple[Module, ...]
    target: States
    output: Output | None = None


def construct(monitor: Monitor) -> Machine:
    """M(body). It has the outcome in its states: see `outcome_states`."""
    construction = _Construction()
    module = construction.module(monitor.body)
    return Machine(
        monitor.name,
        monitor.keys,
        module.initial,
        tuple(construction.transitions),
        tuple(construction.order),
        monitor.digest,
        span=monitor.span,
    )


def outcome_states(machine: Machine) -> tuple[str, str]:
    """The states of success and failure of the whole: the outermost module comes last."""
    number = machine.transitions[-1].name[1:] if machine.transitions else "0"
    return f"s{number}", f"f{number}"


def any_of(states: Iterable[str]) -> tuple[States, ...]:
    return (tuple(states),)


def all_of(states: Iterable[str]) -> tuple[States, ...]:
    return tuple((state,) for state in states)
