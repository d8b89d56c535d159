"""Correlation machines written out: ⟨Q, I, T, ≺⟩ stepped as section 3 says. A configuration is the sorted tuple of the
numbers of the active states."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from coincide.lang.ecl.definition import Machine, Predicate, Transition

ENDED = -1


class NeverSettles(Exception):
    """The internal transitions run for ever."""


@dataclass(frozen=True)
class Arc:
    """A transition over numbered states."""

    enabling: tuple[frozenset[int], ...]
    bit: int  # of its label; 0: internal
    clear: frozenset[int]
    target: frozenset[int]
    output: int | None
    more_urgent: frozenset[int]  # numbers of the transitions that take precedence


class LiteralTransducer:
    """A `machine` definition. Outputs come step by step, those of one step in the order in which they are written."""

    def __init__(self, machine: Machine) -> None:
        self.states = _states(machine)
        labels = {t.test.label: t.test for t in machine.transitions if t.test is not None}
        self.labels: tuple[Predicate, ...] = tuple(labels.values())
        self.outputs = tuple(t.output for t in machine.transitions if t.output is not None)
        self._arcs = _arcs(machine, self.states, {label: 1 << i for i, label in enumerate(labels)})
        initial = frozenset(self.states.index(s) for s in machine.initial)
        settled, self.pushes_before_any_event = self._settle_from_start(initial)
        self.start: Any = settled

    def _settle_from_start(self, initial: frozenset[int]) -> tuple[Any, bool]:
        emitted: list[int] = []
        return self._settled(initial, emitted), bool(emitted)

    def step(self, configuration: Any, letter: int) -> tuple[Any, tuple[int, ...]]:
        if configuration == ENDED:
            return ENDED, ()
        emitted: list[int] = []
        active, moved = self._fire(frozenset(configuration), letter, emitted)
        if not moved:
            return configuration, ()
        try:
            return self._settled(active, emitted), tuple(emitted)
        except NeverSettles:
            return ENDED, ()

    def accepts(self, configuration: Any) -> bool:
        if not isinstance(configuration, tuple):
            return type(configuration) is int and configuration == ENDED
        known = all(type(state) is int and 0 <= state < len(self.states) for state in configuration)
        return known and tuple(sorted(set(configuration))) == configuration

    def _settled(self, active: frozenset[int], emitted: list[int]) -> Any:
        seen = {active}
        while True:
            active, moved = self._fire(active, 0, emitted)
            if not moved:
                return tuple(sorted(active))
            if active in seen:
                raise NeverSettles
            seen.add(active)

    def _fire(self, active: frozenset[int], letter: int, emitted: list[int]) -> tuple[frozenset[int], bool]:
        """One step: of the event whose letter is given, or with no letter an internal one."""
        enabled = {
            number
            for number, arc in enumerate(self._arcs)
            if (arc.bit & letter if letter else not arc.bit) and all(not clause.isdisjoint(active) for clause in arc.enabling)
        }
        fired = [number for number in sorted(enabled) if not (self._arcs[number].more_urgent & enabled)]
        cleared = active.difference(*(self._arcs[n].clear for n in fired))
        emitted.extend(output for n in fired if (output := self._arcs[n].output) is not None)
        return cleared.union(*(self._arcs[n].target for n in fired)), bool(fired)


def _states(machine: Machine) -> list[str]:
    named = [*machine.initial]
    for t in machine.transitions:
        named += [s for clause in t.enabling for s in clause] + [*t.clear, *t.target]
    return list(dict.fromkeys(named))


def _arcs(machine: Machine, states: list[str], bits: dict[str, int]) -> list[Arc]:
    number = {state: i for i, state in enumerate(states)}
    urgent = more_urgent(machine)
    index = {t.name: i for i, t in enumerate(machine.transitions)}
    outputs = iter(range(len(machine.transitions)))

    def arc(t: Transition) -> Arc:
        return Arc(
            enabling=tuple(frozenset(number[s] for s in clause) for clause in t.enabling),
            bit=0 if t.test is None else bits[t.test.label],
            clear=frozenset(number[s] for s in t.clear),
            target=frozenset(number[s] for s in t.target),
            output=None if t.output is None else next(outputs),
            more_urgent=frozenset(index[name] for name in urgent[t.name]),
        )

    return [arc(t) for t in machine.transitions]


def more_urgent(machine: Machine) -> dict[str, set[str]]:
    """For each transition those that take precedence over it: `order`, closed transitively."""
    above: dict[str, set[str]] = {t.name: set() for t in machine.transitions}
    for chain in machine.order:
        for first, second in itertools.pairwise(chain):
            above[second].add(first)
    changed = True
    while changed:
        changed = False
        for names in above.values():
            wider = names.union(*(above[n] for n in names))
            if wider != names:
                names |= wider
                changed = True
    return above
