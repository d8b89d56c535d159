"""Correlation expressions, read structurally (ecl.md, section 3, "The same, structurally").

`visit` shows a letter to a part that is waiting. It returns an outcome (0: none yet, 1: success, 2: failure) and, without
one, the part's next configuration. In a composite, the slot of a part that has completed holds its outcome; waiting parts
hold 0 (a predicate) or a tuple, so the two cannot be confused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coincide.lang.ecl.definition import (
    Accumulate,
    Correlation,
    DoUnless,
    Fail,
    Loop,
    Modes,
    Parallel,
    Persist,
    Predicate,
    Push,
    Repeat,
    Select,
    SelectStar,
    Sequential,
)

NONE, SUCCESS, FAILURE = 0, 1, 2
Visit = tuple[int, Any]


class Node:
    """A part of a compiled expression."""

    start: Any

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        raise NotImplementedError

    def accepts(self, configuration: Any) -> bool:
        """Is this a configuration of the part while it waits?"""
        raise NotImplementedError


def is_slot(part: Node, slot: Any) -> bool:
    """A configuration of the part, or its outcome."""
    return (type(slot) is int and slot in (SUCCESS, FAILURE)) or part.accepts(slot)


def is_numbered(configuration: Any, first: int, last: int) -> bool:
    """A pair with a number within these bounds."""
    pair = isinstance(configuration, tuple) and len(configuration) == 2
    return pair and type(configuration[0]) is int and first <= configuration[0] <= last


class Test(Node):
    start = 0

    def __init__(self, bit: int) -> None:
        self.bit = bit

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        return (SUCCESS, None) if letter & self.bit else (NONE, 0)

    def accepts(self, configuration: Any) -> bool:
        return type(configuration) is int and configuration == 0


class Group(Node):
    """Parts that all see every event: accumulate, select, select*, parallel differ in how outcomes decide."""

    def __init__(self, parts: Sequence[Node], decide: Callable[[tuple[Any, ...]], int]) -> None:
        self.parts = parts
        self.decide = decide
        self.start = tuple(part.start for part in parts)

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        slots = tuple(visited(part, slot, letter, emitted) for part, slot in zip(self.parts, configuration, strict=True))
        return self.decide(slots), slots

    def accepts(self, configuration: Any) -> bool:
        whole = isinstance(configuration, tuple) and len(configuration) == len(self.parts)
        return whole and all(map(is_slot, self.parts, configuration))


def visited(part: Node, slot: Any, letter: int, emitted: list[int]) -> Any:
    """The slot after the letter; a part that has completed is not visited again."""
    if slot in (SUCCESS, FAILURE):
        return slot
    outcome, following = part.visit(slot, letter, emitted)
    return outcome or following


def all_succeed(slots: tuple[Any, ...]) -> int:
    if FAILURE in slots:
        return FAILURE
    return SUCCESS if all(slot == SUCCESS for slot in slots) else NONE


def one_succeeds(slots: tuple[Any, ...]) -> int:
    if SUCCESS in slots:
        return SUCCESS
    return FAILURE if all(slot == FAILURE for slot in slots) else NONE


def first_decides(slots: tuple[Any, ...]) -> int:
    if SUCCESS in slots:
        return SUCCESS
    return FAILURE if FAILURE in slots else NONE


def never(slots: tuple[Any, ...]) -> int:
    return NONE


def unless(slots: tuple[Any, ...]) -> int:
    body, preempting = slots
    if body == SUCCESS:
        return SUCCESS
    return FAILURE if body == FAILURE or preempting == SUCCESS else NONE


class Sequence_(Node):
    def __init__(self, parts: Sequence[Node]) -> None:
        self.parts = parts
        self.start = (0, parts[0].start)

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        current, inner = configuration
        outcome, following = self.parts[current].visit(inner, letter, emitted)
        if outcome == NONE:
            return NONE, (current, following)
        if outcome == SUCCESS and current + 1 < len(self.parts):
            return NONE, (current + 1, self.parts[current + 1].start)
        return outcome, None

    def accepts(self, configuration: Any) -> bool:
        return is_numbered(configuration, 0, len(self.parts) - 1) and self.parts[configuration[0]].accepts(configuration[1])


class Exchange(Node):
    """fail {φ}"""

    def __init__(self, body: Node) -> None:
        self.body = body
        self.start = body.start

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        outcome, following = self.body.visit(configuration, letter, emitted)
        return (FAILURE if outcome == SUCCESS else SUCCESS if outcome else NONE), following

    def accepts(self, configuration: Any) -> bool:
        return self.body.accepts(configuration)


class Emit(Node):
    """push(x) {φ}"""

    def __init__(self, body: Node, output: int) -> None:
        self.body = body
        self.output = output
        self.start = body.start

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        outcome, following = self.body.visit(configuration, letter, emitted)
        if outcome == SUCCESS:
            emitted.append(self.output)
        return outcome, following

    def accepts(self, configuration: Any) -> bool:
        return self.body.accepts(configuration)


class Again(Node):
    """persist, repeat, loop: `ends` is the outcome of the body that ends it (0: none does)."""

    def __init__(self, body: Node, ends: int) -> None:
        self.body = body
        self.ends = ends
        self.start = body.start

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        outcome, following = self.body.visit(configuration, letter, emitted)
        if outcome == NONE:
            return NONE, following
        return (outcome, None) if outcome == self.ends else (NONE, self.body.start)

    def accepts(self, configuration: Any) -> bool:
        return self.body.accepts(configuration)


class Rounds(Node):
    """The same with a maximum: after the last round, `at_maximum`. A counter stands for the copies of the body."""

    def __init__(self, body: Node, ends: int, maximum: int, at_maximum: int) -> None:
        self.body = body
        self.ends = ends
        self.maximum = maximum
        self.at_maximum = at_maximum
        self.start = (1, body.start)

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        number, inner = configuration
        outcome, following = self.body.visit(inner, letter, emitted)
        if outcome == NONE:
            return NONE, (number, following)
        if outcome == self.ends:
            return outcome, None
        return (self.at_maximum, None) if number == self.maximum else (NONE, (number + 1, self.body.start))

    def accepts(self, configuration: Any) -> bool:
        return is_numbered(configuration, 1, self.maximum) and self.body.accepts(configuration[1])


class Switch(Node):
    """Modes: a guard of another mode takes the event away from the running one."""

    def __init__(self, guards: Sequence[int], bodies: Sequence[Node]) -> None:
        self.guards = guards
        self.bodies = bodies
        self.start = (0, bodies[0].start)

    def visit(self, configuration: Any, letter: int, emitted: list[int]) -> Visit:
        current, slot = configuration
        for mode, guard in enumerate(self.guards):
            if mode != current and letter & guard:
                return NONE, (mode, self.bodies[mode].start)
        return NONE, (current, visited(self.bodies[current], slot, letter, emitted))

    def accepts(self, configuration: Any) -> bool:
        return is_numbered(configuration, 0, len(self.bodies) - 1) and is_slot(self.bodies[configuration[0]], configuration[1])


GROUPS: dict[type[Correlation], Callable[[tuple[Any, ...]], int]] = {
    Accumulate: all_succeed,
    Select: one_succeeds,
    SelectStar: first_decides,
    Parallel: never,
    DoUnless: unless,
}

# What ends a repetition, and what it completes with after its last round (decisions 13 and 14).
REPETITIONS: dict[type[Correlation], tuple[int, int]] = {
    Persist: (SUCCESS, FAILURE),
    Repeat: (NONE, SUCCESS),
    Loop: (FAILURE, SUCCESS),
}


def compile_expression(expression: Correlation, bits: dict[str, int], pushes: list[Push]) -> Node:
    """The expression as nodes; `pushes` is filled in post-order."""

    def compiled(part: Correlation) -> Node:
        return compile_expression(part, bits, pushes)

    match expression:
        case Predicate():
            return Test(bits[expression.label])
        case Accumulate() | Select() | SelectStar() | Parallel() | DoUnless():
            return Group([compiled(part) for part in expression.children], GROUPS[type(expression)])
        case Sequential():
            return Sequence_([compiled(part) for part in expression.parts])
        case Fail():
            return Exchange(compiled(expression.body))
        case Push():
            body = compiled(expression.body)
            pushes.append(expression)
            return Emit(body, len(pushes) - 1)
        case Persist() | Repeat() | Loop():
            ends, at_maximum = REPETITIONS[type(expression)]
            body = compiled(expression.body)
            if expression.maximum is None:
                return Again(body, ends)
            return Rounds(body, ends, expression.maximum, at_maximum)
        case Modes():
            guards = [bits[mode.guard.label] for mode in expression.modes]
            return Switch(guards, [compiled(mode.body) for mode in expression.modes])
    raise TypeError(f"not a correlation expression: {expression!r}")
