"""Which situations the compiled loop can do, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coincide.detection.situation.conditions import conjuncts, tested
from coincide.detection.situation.operators import BEHAVIOURS
from coincide.expr.tree import ALIAS_FUNCTIONS, Alias, Call, Expr, Literal
from coincide.lang.amit.definition import Operator
from coincide.lang.amit.functions import AGGREGATES
from coincide.lang.amit.names import OPERAND
from coincide.lang.amit.resolve import Resolved
from coincide.syntax import walk

MOST = 60
"""Operands, initiators and terminators are bits of a number."""


def loop_reasons(situations: Iterable[Resolved]) -> tuple[str, ...]:
    """Empty: the compiled loop does all of them."""
    reasons: dict[str, None] = {}
    for situation in situations:
        for reason in _reasons(situation):
            reasons[f"situation '{situation.name}': {reason}"] = None
        if max(len(situation.lifespan.initiators), len(situation.lifespan.terminators)) > MOST:
            reasons[f"lifespan '{situation.lifespan.name}' has more than {MOST} initiators or terminators"] = None
    return tuple(reasons)


def _reasons(situation: Resolved) -> Iterator[str]:
    operator = situation.operator
    behaviour = BEHAVIOURS[operator.kind]
    if not behaviour.kernel:
        yield f"operator '{operator.kind}', {behaviour.without_kernel}"
        return
    if situation.component or situation.cyclic & situation.reads:
        yield "it is on a cycle or reads what a cycle detects"
    if situation.functions:
        yield "functions of the host program"
    if len(operator.operands) > MOST:
        yield f"more than {MOST} operands"
    yield from _operand_reasons(operator)
    if any(tested(part) is None for part in conjuncts(situation)):
        yield "a part of 'where' with a function of several events, or of texts of several events"
    for attribute in situation.situation.attributes:
        if attribute.expression is not None and _reads_stamps(attribute.expression, behaviour.joins):
            yield f"attribute '{attribute.name}' asks when or where an event was that there may not be"


def _operand_reasons(operator: Operator) -> Iterator[str]:
    behaviour = BEHAVIOURS[operator.kind]
    counting, deferred = behaviour.counts, operator.mode == "deferred"
    for operand in operator.operands:
        if operand.distinct is not None:
            yield "'distinct', which compares each event with all candidates"
        if operand.strict and operand.quantifier == "each" and (behaviour.joins or (counting and operator.where is not None)):
            yield "quantifier 'strict each'"
        if (counting or deferred) and not _never(operand.override):
            yield "'override' where candidates are counted or the decision is deferred"
        if (counting or deferred) and operand.may_retain:
            yield "retained candidates where they are counted or the decision is deferred"
    if behaviour.keeps_reported(operator):
        yield "an empty selection may come again"


def _never(tree: Expr | None) -> bool:
    return tree is None or (isinstance(tree, Literal) and tree.value is not True)


def _reads_stamps(tree: Expr, joins: bool) -> bool:
    """Functions of stamps and spaces, of events that are not there in every detection."""
    for node in walk(tree):
        if isinstance(node, Call) and node.name in ALIAS_FUNCTIONS and node.name not in AGGREGATES:
            aliases = [a.name for a in node.arguments if isinstance(a, Alias)]
            if not joins or not all(a is not None and a.startswith(OPERAND) for a in aliases):
                return True
    return False
