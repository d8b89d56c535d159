"""What is accepted but most likely not meant: starts that can fail, policies without sources, unbounded memory."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.detection.automaton.construction import Automaton, Numbering, State
from coincide.detection.automaton.starts import start_can_fail
from coincide.errors import Diagnostic
from coincide.lang.opera.definition import Atom, Definition, Expression, Iteration
from coincide.lang.opera.print import core_text, set_text
from coincide.ordering import unheard_sources


def warnings_of(definition: Definition) -> Iterator[Diagnostic]:
    for name, message in _messages(definition):
        yield Diagnostic(message, definition.span, "warning", name=name)


def _messages(definition: Definition) -> Iterator[tuple[str, str]]:
    if not definition.restart and start_can_fail(definition.body):
        yield "start", f"the start of '{definition.name}' can fail, and then it detects no more; 'restart' keeps it"
    policy = definition.policy
    if policy is not None and not definition.sources and (text := unheard_sources(policy.kind)):
        yield "sources", text
    numbering = Numbering()
    Automaton(definition.body, numbering)
    for automaton in numbering.automata:
        yield from _unbounded(definition.name, automaton)


def _unbounded(name: str, automaton: Automaton) -> Iterator[tuple[str, str]]:
    """Section 9: a run is bounded in time while it is in the second part of a timing."""
    for text in dict.fromkeys(_awaited(automaton, state) for state in entered_states(automaton)):
        if text:
            yield "unbounded", f"{name} can wait without limit for {text}"
    for position in automaton.positions:
        part = position.part
        accepts = any(outcome.accept and outcome.state for outcome in automaton.outcomes(position.number, frozenset()))
        while part.parent is not None and not isinstance(part.expression, Iteration):
            part = part.parent
        if accepts and isinstance(part.expression, Iteration):
            what = _text(part.parts[0].expression)
            yield "square", f"{name} reports every run of {what}: cost grows with the square of the input"


def entered_states(automaton: Automaton) -> list[State]:
    """The states that runs can be in."""
    found: dict[State, None] = {}
    waiting = [p for start in automaton.starts for group in start.state for _, p in group]
    seen = set(waiting)
    while waiting:
        number = waiting.pop(0)
        states = [outcome.state for outcome in automaton.outcomes(number, frozenset()) if outcome.state]
        states += [automaton.waiting(p, frozenset())[1] for p in automaton.positions[number].partner_missing if p >= 0]
        found.update(dict.fromkeys(states))
        more = {p for state in states for group in state for _, p in group} - seen
        seen |= more
        waiting += sorted(more)
    return list(found)


def _awaited(automaton: Automaton, state: State) -> str:
    """What a state waits for; nothing if a timer ends it."""
    positions = [automaton.positions[number] for number in sorted({p for group in state for _, p in group})]
    return ", ".join(dict.fromkeys(_text(p.part.expression) for p in positions if not p.timers))


def _text(expression: Expression) -> str:
    if isinstance(expression, Atom) and not expression.negated:
        return ", ".join(set_text(item.events) for item in expression.items)
    return core_text(expression)
