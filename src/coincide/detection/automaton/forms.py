"""What detectors of one form have in common: all but the types and tests of their leaves, and their names."""

from __future__ import annotations

from coincide.detection.automaton.construction import Part, Position
from coincide.detection.automaton.program import Program
from coincide.detection.eventsets import narrowed
from coincide.lang.opera.definition import All, Atom, Bind, EventSet, OfSet, OfType, OwnTimer, Timing, Union
from coincide.syntax import walk

MOST = 62
"""Leaves of a detector, as bits of a number."""


def form_of(program: Program) -> object | None:
    """None: it is stepped by itself. What waits for its timers' events has places of its own."""
    positions, definition = program.root.positions, program.definition
    matched = [events for position in positions for events in position.matched]
    if program.sides or program.every or len(program.leaves.leaves) > MOST or any(map(_is_timed, matched)):
        return None
    sets = tuple((tuple(map(_set, p.matched)), tuple(item.alias for item in p.items), _domain(p), p.timers) for p in positions)
    return definition.restart, definition.parameters, definition.computed, _part(program.root.root), sets


def _domain(position: Position) -> object:
    """Items that are their own domain have fewer leaves."""
    atom = position.part.expression
    return isinstance(atom, Atom) and atom.domain is None, *map(_set, position.written_domain)


def _is_timed(events: EventSet) -> bool:
    return not isinstance(events, OfType) and any(isinstance(node, OwnTimer) for node in walk(events))


def _part(part: Part) -> object:
    expression = part.expression
    timing = (expression.timer, expression.time) if isinstance(expression, Timing) else None
    return type(expression), part.forks, part.position, part.timing, timing, *map(_part, part.parts)


def _set(events: EventSet) -> object:
    """How it is made of leaves, and what these bind."""
    if isinstance(events, OfSet):
        return _set(narrowed(events.contents, events.terms))
    if isinstance(events, OfType | All):
        return tuple((term.attribute, term.parameter) for term in events.terms if isinstance(term, Bind))
    if isinstance(events, OwnTimer):
        return events.name
    members = events.members if isinstance(events, Union) else [part for part in events.children if isinstance(part, EventSet)]
    return type(events), *map(_set, members)
