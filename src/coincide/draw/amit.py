"""Amit, drawn: a situation's operator with its operands, in the lifespan in which it is looked for."""

from __future__ import annotations

from collections.abc import Iterable

from coincide.draw.graph import Drawing
from coincide.draw.tree import Tree
from coincide.expr.print import expression_text
from coincide.expr.quantities import duration_text
from coincide.expr.tree import Expr
from coincide.lang.amit.definition import Initiator, KeyBy, Lifespan, Operand, Operator, Terminator
from coincide.lang.amit.operators import OPERATORS
from coincide.lang.amit.resolve import Resolved


def situation(resolved: Resolved) -> Drawing:
    """What opens and closes the lifespan on the left, the operands below, what is detected on the right."""
    tree = Tree()
    own = resolved.situation
    span = _lifespan(tree, resolved.lifespan)
    operator = tree.add("operator", _operator(own.operator), _operator_notes(own.operator))
    tree.connect(span, operator, "while it is open")
    for number, operand in enumerate(own.operator.operands, 1):
        word = str(number) if OPERATORS[own.operator.kind].ordered and len(own.operator.operands) > 1 else ""
        tree.connect(tree.add("event", operand.event, _operand_notes(operand)), operator, word)
    attributes = ", ".join(attribute.name for attribute in own.attributes)
    result = tree.add("result", own.name, ["internal" if own.internal else "", f"with {attributes}" if attributes else ""])
    tree.connect(operator, result)
    return tree.drawing(own.name, f"situation {own.name}, looked for in lifespan {resolved.lifespan.name}")


def _lifespan(tree: Tree, lifespan: Lifespan) -> str:
    expiration = lifespan.expiration
    notes = [_keys(lifespan.keys)]
    if expiration is not None:
        notes.append(f"for {duration_text(expiration.interval)}{_discarding(expiration.termination)}")
    name = tree.add("span", lifespan.name, notes)
    if lifespan.startup:
        tree.connect(tree.add("start", ""), name, "opens at the start")
    for role in lifespan.roles:
        tree.connect(tree.add("event", role.event, [_alias(role.alias), _where(role.where)]), name, _role(role))
    return name


def _role(role: Initiator | Terminator) -> str:
    if isinstance(role, Initiator):
        return "opens" if role.correlate == "ignore" else f"opens, each time ({role.correlate})"
    quantifier = "" if role.quantifier == "each" else f" ({role.quantifier})"
    return f"closes{_discarding(role.termination)}{quantifier}"


def _discarding(termination: str) -> str:
    return "" if termination == "terminate" else f", {termination}s"


def _operator(operator: Operator) -> str:
    label = OPERATORS[operator.kind].label or operator.kind
    return label.format(quantity=operator.quantity, interval=duration_text(operator.interval), pattern=operator.pattern)


def _operator_notes(operator: Operator) -> Iterable[str]:
    yield _keys(operator.keys)
    yield _where(operator.where)
    if operator.mode != "immediate":
        yield operator.mode
    if operator.repeat == "once":
        yield "once"


def _operand_notes(operand: Operand) -> Iterable[str]:
    yield _alias(operand.alias)
    yield _where(operand.threshold)
    if operand.quantifier != "each":
        yield f"the {operand.quantifier} one{' of all' if operand.strict else ''}"
    if operand.weight != 1:
        yield f"counts {operand.weight}"
    for word in ("override", "retain", "consumption"):
        if (test := getattr(operand, word)) is not None:
            yield f"{word}: {expression_text(test)}"


def _alias(alias: str | None) -> str:
    return f"as {alias}" if alias else ""


def _where(test: Expr | None) -> str:
    return "" if test is None else expression_text(test)


def _keys(keys: Iterable[KeyBy]) -> str:
    names = ", ".join(key.name or key.attribute or "" for key in keys)
    return f"per {names}" if names else ""
