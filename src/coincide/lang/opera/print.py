"""Opera's core language as text that parses back to equal definitions, with no more parentheses than needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from coincide.expr.functions import number_text
from coincide.expr.print import expression_text
from coincide.expr.tokens import name_text
from coincide.lang.opera.definition import (
    All,
    Alternation,
    Atom,
    Bind,
    Concatenation,
    Definition,
    Detect,
    Difference,
    Empty,
    EventDeclaration,
    EventSet,
    Expression,
    ExpressionDefinition,
    File,
    Group,
    Inlined,
    Intersection,
    Item,
    Iteration,
    Limit,
    Named,
    OfSet,
    OfType,
    OwnTimer,
    Parallel,
    Policy,
    Sequence,
    SetDefinition,
    Sources,
    Statement,
    Terms,
    Timing,
    Union,
)
from coincide.lang.opera.sets import RESERVED
from coincide.lang.shared.times import At, TimeSpec
from coincide.ordering import POLICIES
from coincide.source import room_for_recursion
from coincide.syntax import walk

# How tightly an expression binds: the levels of the grammar, loosest first.
PARALLEL, ALTERNATION, SEQUENCE, CONCATENATION, POSTFIX, PRIMARY = range(6)


def print_file(file: File) -> str:
    return "".join(statement_text(statement) + "\n" for statement in file.statements)


def statement_text(statement: Statement) -> str:
    with room_for_recursion():
        text: str = STATEMENTS[type(statement)](statement)
    return text


def definition_text(definition: Definition) -> str:
    """With the sets that it names."""
    with room_for_recursion():
        sets = {node.name: node.contents for node in walk(definition) if isinstance(node, OfSet)}
        return "\n".join([*(f"set {_name(name)} = {set_text(sets[name])}" for name in sorted(sets)), _detect(definition)])


def _name(name: str) -> str:
    return name_text(name, RESERVED)


def _event(statement: EventDeclaration) -> str:
    return f"event {_name(statement.name)}({', '.join(f'{_name(name)} {kind}' for name, kind in statement.attributes)})"


def _limit(statement: Limit) -> str:
    per = f" per {', '.join(map(_name, statement.keys))}" if statement.keys else ""
    every = "" if statement.every is None else f" every {time_text(statement.every)}"
    until = "" if statement.until is None else f" until {set_text(statement.until)}"
    return f"limit {_name(statement.type)}{per}{every}{until}"


def _detect(statement: Detect | Definition) -> str:
    head = f"detect {_name(statement.name)}{' restart' if statement.restart else ''}"
    if statement.policy is not None:
        head += f" policy {policy_text(statement.policy)}"
    text = f"{head} = {core_text(statement.body)}"
    if statement.condition is not None:
        text += f" where {expression_text(statement.condition.value)}"
    attributes = [f"{_name(a.name)} = {expression_text(a.value)}" for a in statement.attributes]
    return f"{text} with {', '.join(attributes)}" if attributes else text


STATEMENTS: dict[type, Callable[[Any], str]] = {
    Sources: lambda s: f"sources {', '.join(map(_name, s.names))}",
    EventDeclaration: _event,
    Limit: _limit,
    SetDefinition: lambda s: f"set {_name(s.name)} = {set_text(s.events)}",
    ExpressionDefinition: lambda s: f"expr {_name(s.name)} = {core_text(s.body)}",
    Detect: _detect,
}


def policy_text(policy: Policy) -> str:
    return f"{policy.kind} {number_text(policy.threshold)}" if POLICIES[policy.kind].has_threshold else policy.kind


def time_text(time: TimeSpec) -> str:
    return "at '" + time.text.replace("'", "''") + "'" if isinstance(time, At) else time.text


# Expressions.


def core_text(expression: Expression) -> str:
    return _at(expression, PARALLEL)


def _at(expression: Expression, level: int) -> str:
    """The expression where the grammar wants something that binds at least so tightly."""
    write, own = EXPRESSIONS[type(expression)]
    text: str = write(expression)
    return f"({text})" if own < level else text


def _chain(operator: str, level: int) -> Callable[[Any], str]:
    """Left-associative: only the first part may be of the same level."""

    def write(node: Concatenation | Sequence | Alternation) -> str:
        return operator.join(_at(part, level + 1 if index else level) for index, part in enumerate(node.parts))

    return write


def _timing(node: Timing) -> str:
    return f"({core_text(node.first)}, {core_text(node.second)}) {_name(node.timer)} = {time_text(node.time)}"


def _group(node: Group) -> str:
    """The first token inside must be a bracket or a parenthesis."""
    body = _at(node.body, PRIMARY)
    return f"[{body if body[0] in '[(' else f'({body})'} in {set_text(node.domain)}]"


def _atom(node: Atom) -> str:
    inside = ("!" if node.negated else "") + ", ".join(map(_item, node.items))
    return f"[{inside} in {set_text(node.domain)}]" if node.domain is not None else f"[{inside}]"


def _item(item: Item) -> str:
    return set_text(item.events) + (f" as {_name(item.alias)}" if item.alias else "")


EXPRESSIONS: dict[type[Expression], tuple[Callable[[Any], str], int]] = {
    Atom: (_atom, PRIMARY),
    Group: (_group, PRIMARY),
    Empty: (lambda _: "eps", PRIMARY),
    Inlined: (lambda node: _name(node.name), PRIMARY),
    Timing: (_timing, PRIMARY),
    Iteration: (lambda node: f"{_at(node.body, POSTFIX)}*", POSTFIX),
    Concatenation: (_chain(" ", CONCATENATION), CONCATENATION),
    Sequence: (_chain(" ; ", SEQUENCE), SEQUENCE),
    Alternation: (_chain(" | ", ALTERNATION), ALTERNATION),
    Parallel: (lambda node: f"{_at(node.left, PARALLEL)} || {_at(node.right, ALTERNATION)}", PARALLEL),
}


# Event sets.


def set_text(events: EventSet) -> str:
    text: str = SETS[type(events)](events)
    return text


def _binary(operator: str) -> Callable[[Any], str]:
    """There are no parentheses in sets: braces group a right operand that is an operation itself."""

    def write(node: Difference | Intersection) -> str:
        right = set_text(node.right)
        if isinstance(node.right, Difference | Intersection):
            right = "{" + right + "}"
        return f"{set_text(node.left)} {operator} {right}"

    return write


def _filtered(name: str, terms: Terms) -> str:
    return f"{name}({', '.join(_terms(terms))})" if terms else name


def _terms(terms: Terms) -> Iterable[str]:
    for term in terms:
        yield f"{_name(term.attribute)} = ?{_name(term.parameter)}" if isinstance(term, Bind) else expression_text(term.test)


SETS: dict[type[EventSet], Callable[[Any], str]] = {
    Named: lambda node: _filtered(_name(node.name), node.terms),
    OfType: lambda node: _filtered(_name(node.name), node.terms),
    OfSet: lambda node: _filtered(_name(node.name), node.terms),
    OwnTimer: lambda node: _name(node.name),
    All: lambda node: _filtered("all", node.terms),
    Union: lambda node: "{" + ", ".join(map(set_text, node.members)) + "}",
    Difference: _binary("\\"),
    Intersection: _binary("&"),
}
