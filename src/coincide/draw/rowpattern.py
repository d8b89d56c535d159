"""Row patterns, drawn: the states of the automaton, each a variable about to take a row, and the ways between them. Where there
are several ways, their numbers say which is preferred."""

from __future__ import annotations

from coincide.detection.rowpattern.automaton import MATCH, NOWHERE, Automaton, State, Way
from coincide.draw.graph import Arrow, Drawing, Node, wrapped
from coincide.errors import CoincideError
from coincide.lang.matchrecognize.definition import Query
from coincide.lang.matchrecognize.print import interval_text, pattern_text, text

LARGEST = 60
"""States of an automaton that somebody can still read."""


def row_pattern(query: Query) -> Drawing:
    automaton, arrows = _explored(query)
    tests = {condition.variable: text(condition.test) for condition in query.clause.conditions}
    names = [automaton.variables[s.variable] for s in automaton.states]
    nodes = [Node(f"s{n}", "state", name, wrapped(tests.get(name, "any row"))) for n, name in enumerate(names)]
    bound = "" if query.clause.within is None else f" WITHIN {interval_text(query.clause.within)}"
    caption = f"PATTERN ({pattern_text(query.clause.pattern)}){bound}"
    return Drawing(query.name, caption, (Node("start", "start"), *nodes, Node("match", "final", "match")), tuple(arrows))


def state_names(query: Query) -> dict[State, str]:
    """Of nodes, by the states that they stand for."""
    return {state: f"s{n}" for n, state in enumerate(_explored(query)[0].states)}


def _explored(query: Query) -> tuple[Automaton, list[Arrow]]:
    automaton = Automaton(query.clause.pattern, query.clause.variables)
    arrows = _arrows("start", automaton.first)
    state = 0
    while state < len(automaton.states):  # states are made when they are reached
        if state >= LARGEST:
            raise CoincideError(f"the pattern of '{query.name}' has too many states to be drawn")
        arrows += _arrows(f"s{state}", automaton.after(state))
        state += 1
    return automaton, arrows


def _arrows(source: str, ways: tuple[Way, ...]) -> list[Arrow]:
    shown = [way for way in ways if way.state != NOWHERE]
    made = []
    for number, way in enumerate(shown, 1):
        target = "match" if way.state == MATCH else f"s{way.state}"
        labels = ((str(number),) if len(shown) > 1 else ()) + ((way.anchors,) if way.anchors else ())
        made.append(Arrow(source, target, "begin" if source == "start" else "weak", (" ".join(labels),) if labels else ()))
    return made
