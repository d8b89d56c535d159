"""Which situations the compiled loop can do, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coincide.detection.situation.operators import BEHAVIOURS
from coincide.expr.tree import (
    ALIAS_FUNCTIONS,
    Alias,
    And,
    Arithmetic,
    Call,
    Compare,
    Expr,
    Literal,
    Reference,
    aliases_of,
    transform,
)
from coincide.lang.amit.definition import Operator
from coincide.lang.amit.functions import AGGREGATES
from coincide.lang.amit.names import GLOBAL_KEY, LOCAL_KEY, OPERAND
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
    if operator.where is not None:
        yield from _where_reasons(situation)
    for attribute in situation.situation.attributes:
        if attribute.expression is not None and _reads_stamps(attribute.expression, behaviour.joins):
            yield f"attribute '{attribute.name}' asks when or where an event was that there may not be"


def _operand_reasons(operator: Operator) -> Iterator[str]:
    behaviour = BEHAVIOURS[operator.kind]
    counting, deferred = behaviour.counts, operator.mode == "deferred"
    for operand in operator.operands:
        if operand.distinct is not None:
            yield "'distinct', which compares each event with all candidates"
        if operand.strict and operand.quantifier == "each" and not counting:
            yield "quantifier 'strict each'"
        if (counting or deferred) and not _never(operand.override):
            yield "'override' where candidates are counted or the decision is deferred"
        if (counting or deferred) and operand.may_retain:
            yield "retained candidates where they are counted or the decision is deferred"
    if behaviour.keeps_reported(operator):
        yield "an empty selection may come again"


def _never(tree: Expr | None) -> bool:
    return tree is None or (isinstance(tree, Literal) and tree.value is not True)


def _where_reasons(situation: Resolved) -> Iterator[str]:
    if not BEHAVIOURS[situation.operator.kind].joins:
        yield "'where' of an operator that does not join"
        return
    for part in conjuncts(situation):
        if comparison(part) is None:
            yield "a part of 'where' that is not a comparison of two events, or reads a lifespan's initiator or the clock"


def conjuncts(situation: Resolved) -> list[Expr]:
    """The parts of a join's `where`; a key's value is that of any candidate, so it is read from the first operand."""
    where = situation.operator.where
    if where is None:
        return []
    first = situation.operator.operands[0].event
    keys = {LOCAL_KEY: situation.local_keys, GLOBAL_KEY: situation.global_keys}

    def read(node: Expr) -> Expr:
        if not isinstance(node, Reference) or node.alias not in keys:
            return node
        return Reference(dict(keys[node.alias][int(node.name)])[first], f"{OPERAND}0")

    tree = transform(where, read)
    return list(tree.operands) if isinstance(tree, And) else [tree]


@dataclass(frozen=True)
class Comparison:
    """A conjunct. `left` and `right` are about one operand each; `combination` is of both, to be compared with `constant`."""

    op: str
    left: Expr
    right: Expr
    combination: str = ""
    constant: Expr | None = None


def comparison(part: Expr) -> Comparison | None:
    """What the loop can test of candidates as they are chosen; None: it cannot."""
    aliases = aliases_of(part)
    if not all(alias is not None and alias.startswith(OPERAND) for alias in aliases):
        return None
    if len(aliases) == 1:
        return Comparison("holds", part, part)
    if not isinstance(part, Compare):
        return None
    left, right, op = part.left, part.right, part.op
    if _single(left) and _single(right):
        return Comparison(op, left, right)
    if isinstance(left, Literal):
        left, right, op = right, left, MIRRORED.get(op, op)
    if not isinstance(right, Literal) or not isinstance(left, Arithmetic) or left.op not in "+-":
        return None
    return Comparison(op, left.left, left.right, left.op, right) if _single(left.left) and _single(left.right) else None


MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _single(tree: Expr) -> bool:
    return len(aliases_of(tree)) == 1


def _reads_stamps(tree: Expr, joins: bool) -> bool:
    """Functions of stamps and spaces, of events that are not there in every detection."""
    for node in walk(tree):
        if isinstance(node, Call) and node.name in ALIAS_FUNCTIONS and node.name not in AGGREGATES:
            aliases = [a.name for a in node.arguments if isinstance(a, Alias)]
            if not joins or not all(a is not None and a.startswith(OPERAND) for a in aliases):
                return True
    return False
