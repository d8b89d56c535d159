"""Can the start of a detector fail (section 3.4)?"""

from __future__ import annotations

from collections.abc import Iterable

from coincide.detection.automaton.construction import Automaton, Numbering, Transitions
from coincide.lang.opera.definition import EventSet, Expression, Union


def start_can_fail(body: Expression) -> bool:
    """Has some start group, of the expression or of a side of `||`, an item in its domain that it does not match?"""
    numbering = Numbering()
    Automaton(body, numbering)
    return any(_group_can_fail(a, group) for a in numbering.automata for start in a.starts for group in start.state)


def _group_can_fail(automaton: Automaton, group: Transitions) -> bool:
    positions = [automaton.positions[p] for _, p in group]
    matched = {item for position in positions for item in _taken_apart(position.matched)}
    domain = {item for position in positions for item in _taken_apart(position.written_domain)}
    return not domain <= matched


def _taken_apart(sets: Iterable[EventSet]) -> Iterable[EventSet]:
    """Unions taken apart; otherwise sets compare as they are written."""
    for events in sets:
        if isinstance(events, Union):
            yield from _taken_apart(events.members)
        else:
            yield events
