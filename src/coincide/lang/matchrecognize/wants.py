"""What a row pattern waits for: rows of its variables, in the order of the pattern."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.lang.matchrecognize.definition import Alternation, Pattern, Query, Repetition, Variable
from coincide.lang.shared.wants import Slot, Wants, present

MOST = 20
"""So often a variable is written out, at most."""


def wants_of(query: Query) -> Wants:
    clause, source = query.clause, query.source
    tests = {condition.variable: condition.test for condition in clause.conditions}
    table = None if source.table == "events" else source.table
    slots = [Slot(table, present(source.where, tests.get(name))) for name in _needed(clause.pattern)]
    optional = [
        Slot(table, present(source.where, tests.get(name))) for name in clause.variables if name not in _needed(clause.pattern)
    ]
    within = () if clause.within is None else (clause.within,)
    return Wants((*slots, *optional), present(query.where, *tests.values()), within)


def _needed(pattern: Pattern) -> list[str]:
    """The shortest rows that it matches, first options first."""
    return list(_variables(pattern))[: 10 * MOST]


def _variables(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, Variable):
        yield pattern.name
    elif isinstance(pattern, Repetition):
        for _ in range(min(pattern.least, MOST)):
            yield from _variables(pattern.body)
    elif isinstance(pattern, Alternation):
        yield from _variables(pattern.options[0])
    else:
        for child in pattern.children:
            yield from _variables(child)
