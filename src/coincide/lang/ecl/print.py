"""ECL as text that parses back to equal definitions: one line where it fits, otherwise one part a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from coincide.expr.print import expression_text
from coincide.expr.tokens import back_quoted, name_text
from coincide.lang.ecl.definition import (
    Accumulate,
    Correlation,
    DoUnless,
    Fail,
    File,
    Loop,
    Machine,
    Mode,
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
from coincide.lang.ecl.parse import RESERVED
from coincide.source import room_for_recursion
from coincide.syntax import rebuilt

WIDTH = 100
INDENT = "    "

WORDS: dict[type[Correlation], str] = {
    Accumulate: "accumulate",
    Select: "select",
    SelectStar: "select*",
    Sequential: "sequential",
    Parallel: "parallel",
    Fail: "fail",
    Persist: "persist",
    Repeat: "repeat",
    Loop: "loop",
}


def print_file(file: File) -> str:
    """Named predicates first (their place among the definitions does not matter), then monitors and machines in order."""
    with room_for_recursion():
        predicates = "".join(f"{_name(name)} = {expression_text(tree)}\n" for name, tree in file.predicates)
        detectors = [_monitor(d) if isinstance(d, Monitor) else _machine(d) for d in file.detectors]
    return "\n".join([predicates, *detectors] if predicates else detectors)


def definition_text(definition: Monitor | Machine) -> str:
    """With named predicates in their places."""
    with room_for_recursion():
        whole = _expanded(definition)
        return _monitor(whole) if isinstance(whole, Monitor) else _machine(whole)


def _expanded(node: Any) -> Any:
    """A definition, or a part of it, as if it had been written without named predicates."""
    whole = rebuilt(node, _expanded, (Correlation, Output, Transition))
    if isinstance(whole, Predicate):
        return replace(whole, written=whole.test)
    return replace(whole, written=tuple(tree for _, tree in whole.attributes)) if isinstance(whole, Output) else whole


def _monitor(monitor: Monitor) -> str:
    head = f"monitor {_name(monitor.name)}{_keys(monitor.keys)} ="
    line = f"{head} {_flat(monitor.body)}"
    return f"{line}\n" if len(line) <= WIDTH else f"{head}\n{_laid_out(monitor.body, INDENT)}\n"


def _keys(keys: tuple[str, ...]) -> str:
    """Dots are refused outside back quotes."""
    return f" by {', '.join(back_quoted(key) if '.' in key else _name(key) for key in keys)}" if keys else ""


def _name(name: str) -> str:
    return name_text(name, RESERVED)


# Expressions. A construct is a row of blocks, each with what stands before its brace: `do {…} unless {…}` is two.

Block = tuple[str, tuple[Correlation, ...]]


def _blocks(expression: Correlation) -> list[Block]:
    if isinstance(expression, DoUnless):
        return [("do", (expression.body,)), ("unless", (expression.unless,))]
    if isinstance(expression, Modes):
        return [block for mode in expression.modes for block in _blocks(mode)]
    if isinstance(expression, Mode):
        return [(f"in ({_predicate(expression.guard)}) do", (expression.body,))]
    if isinstance(expression, Push):
        return [(_output(expression.output), (expression.body,))]
    word = WORDS[type(expression)]
    if isinstance(expression, Persist | Repeat | Loop) and expression.maximum is not None:
        word = f"{word}({expression.maximum})"
    return [(word, expression.children)]


def _flat(expression: Correlation) -> str:
    """On one line."""
    if isinstance(expression, Predicate):
        return _predicate(expression)
    return " ".join(f"{head} {{ {', '.join(map(_flat, parts))} }}" for head, parts in _blocks(expression))


def _laid_out(expression: Correlation, indent: str) -> str:
    """Indented, on one line if that fits."""
    line = indent + _flat(expression)
    if len(line) <= WIDTH or isinstance(expression, Predicate):
        return line
    between = " " if isinstance(expression, DoUnless) else f"\n{indent}"
    return indent + between.join(_laid_out_block(head, parts, indent) for head, parts in _blocks(expression))


def _laid_out_block(head: str, parts: Iterable[Correlation], indent: str) -> str:
    """From its head, which stands on a line that is indented already."""
    inside = ",\n".join(_laid_out(part, indent + INDENT) for part in parts)
    return f"{head} {{\n{inside}\n{indent}}}"


def _predicate(predicate: Predicate) -> str:
    return expression_text(predicate.written)


def _output(output: Output) -> str:
    names = [name for name, _ in output.attributes]
    values = output.written or [value for _, value in output.attributes]
    attributes = [f"{_name(name)}: {expression_text(value)}" for name, value in zip(names, values, strict=True)]
    return f"push({', '.join([_name(output.token), *attributes])})"


# Machines.


def _machine(machine: Machine) -> str:
    every = _every_state(machine)
    items = [f"initial {', '.join(map(_name, machine.initial))}"]
    items += [_transition(t, every) for t in machine.transitions]
    items += [f"order {' < '.join(map(_name, chain))}" for chain in machine.order]
    lines = "".join(f"{INDENT}{item};\n" for item in items)
    return f"machine {_name(machine.name)}{_keys(machine.keys)} {{\n{lines}}}\n"


def _every_state(machine: Machine) -> tuple[str, ...] | None:
    """What `clear *` would mean; None if a state occurs in `clear` only, which must then be written out."""
    states = set(machine.initial)
    for transition in machine.transitions:
        states |= _enabling(transition) | set(transition.target)
    cleared = {state for t in machine.transitions for state in t.clear}
    return tuple(sorted(states)) if cleared <= states else None


def _enabling(transition: Transition) -> set[str]:
    return {state for clause in transition.enabling for state in clause}


def _transition(transition: Transition, every: tuple[str, ...] | None) -> str:
    parts = [f"{_name(transition.name)}:", " & ".join(" | ".join(map(_name, clause)) for clause in transition.enabling)]
    if transition.test is not None:
        parts.append(f"on {_predicate(transition.test)}")
    if set(transition.clear) != _enabling(transition):
        parts.append(f"clear {_clear(transition.clear, every)}")
    parts.append("->")
    if transition.target:
        parts.append(", ".join(map(_name, transition.target)))
    if transition.output is not None:
        parts.append(_output(transition.output))
    return " ".join(parts)


def _clear(states: tuple[str, ...], every: tuple[str, ...] | None) -> str:
    if not states:
        return "none"
    if states == every:
        return "*"
    # First in the list, `none` would be the word and not the state of that name.
    return ", ".join(_name(state) for state in sorted(states, key=lambda state: state == "none"))
