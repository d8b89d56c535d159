"""The parts of a `where` as the compiled loop tests them: comparisons of two candidates, and otherwise short programs for a stack
of numbers. What depends on one event alone is a *leaf*, computed for all events beforehand, over whole columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coincide.expr.scalar import Evaluate, compile_scalar
from coincide.expr.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Expr,
    In,
    IsNull,
    Literal,
    Negate,
    Not,
    Or,
    Reference,
    aliases_of,
    transform,
)
from coincide.lang.amit.names import GLOBAL_KEY, INITIATOR, LOCAL_KEY, NOW, OPERAND, TERMINATOR
from coincide.lang.amit.resolve import Resolved
from coincide.model.event import Event, Value
from coincide.model.numbers import rest_of

COMPARED, NUMBER, REST = "compared", "number", "rest"
"""Of a leaf: something that compares as its values do; numbers and flags as doubles; what whole numbers are more than those."""


@dataclass(frozen=True)
class Leaf:
    """A tree about one event, which is that of a slot (lang/amit/names.py); `absent`: its value where there is none."""

    slot: str
    tree: Expr
    kind: str
    absent: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Of two candidates. `left` and `right` are about one operand each; `combination` is of both, compared with `constant`."""

    op: str
    left: Leaf
    right: Leaf
    combination: str = ""
    constant: float = 0.0

    @property
    def last(self) -> int:
        """The operand that completes it."""
        return max(operand_of(self.left.slot), operand_of(self.right.slot))


Step = str | float | Leaf | None
"""What is put on the stack, or the name of an operation on what is there."""


@dataclass(frozen=True)
class Computation:
    """True if 1 is left on the stack."""

    steps: tuple[Step, ...]

    @property
    def last(self) -> int:
        leaves = [step.slot for step in self.steps if isinstance(step, Leaf) and step.slot.startswith(OPERAND)]
        return max(map(operand_of, leaves), default=0)


def operand_of(slot: str) -> int:
    return int(slot.removeprefix(OPERAND))


def conjuncts(situation: Resolved) -> list[Expr]:
    """The parts of `where`; a key's value is that of any candidate, so it is read from the first operand."""
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


def tested(part: Expr) -> Comparison | Computation | None:
    """How the loop tests a conjunct; None: it cannot."""
    found = _comparison(part)
    if found is not None:
        return found
    steps: list[Step] = []
    try:
        _add(part, steps)
    except _Unfit:
        return None
    return Computation(tuple(steps))


MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _comparison(part: Expr) -> Comparison | None:
    if _of_operand(part):
        return Comparison("holds", _leaf(part, COMPARED), _leaf(part, COMPARED))
    if not isinstance(part, Compare):
        return None
    left, right, op = part.left, part.right, part.op
    if _of_operand(left) and _of_operand(right):
        return Comparison(op, _leaf(left, COMPARED), _leaf(right, COMPARED))
    if isinstance(left, Literal):
        left, right, op = right, left, MIRRORED.get(op, op)
    if not isinstance(right, Literal) or type(right.value) is not float:
        return None
    if not isinstance(left, Arithmetic) or left.op not in "+-" or not (_of_operand(left.left) and _of_operand(left.right)):
        return None
    return Comparison(op, _leaf(left.left, NUMBER), _leaf(left.right, NUMBER), left.op, right.value)


def _of_operand(tree: Expr) -> bool:
    return _slot(tree).startswith(OPERAND)


def _slot(tree: Expr) -> str:
    """The slot of the one event that a tree is about, if so."""
    aliases = [*aliases_of(tree)]
    if len(aliases) != 1 or aliases[0] is None or not aliases[0].startswith((OPERAND, INITIATOR, TERMINATOR)):
        return ""
    return aliases[0]


class _Unfit(Exception):
    """Nothing for a stack of numbers."""


class _Nothing:
    """No event."""

    def reference(self, node: Reference) -> Evaluate:
        return lambda _: None

    def event(self, alias: str | None) -> Callable[[Any], Event | None]:
        return lambda _: None


def _value(tree: Expr) -> Value:
    """Of a constant, or where there is no event."""
    return compile_scalar(tree, _Nothing())(None)


def _leaf(tree: Expr, kind: str) -> Leaf:
    slot = _slot(tree)
    value = None if slot.startswith(OPERAND) else _value(tree)
    if value is None:
        return Leaf(slot, tree, kind)
    if not isinstance(value, bool) and (kind == COMPARED or not isinstance(value, int | float)):
        raise _Unfit  # what stands for it among the others is not known here
    assert isinstance(value, int | float)
    return Leaf(slot, tree, kind, float(rest_of(value) if kind == REST else value))


def _add(tree: Expr, steps: list[Step]) -> None:
    """What computes a tree. Types are checked when rules are loaded, so texts are found in comparisons of two leaves only."""
    if not aliases_of(tree):
        _add_constant(_value(tree), steps)
        return
    if _slot(tree):
        steps.append(_leaf(tree, NUMBER))
        return
    match tree:
        case Reference(alias=alias) if alias == NOW:
            steps.append("now")
        case And(operands) | Or(operands):
            for number, operand in enumerate(operands):
                _add(operand, steps)
                steps += ["and" if isinstance(tree, And) else "or"] if number else []
        case In(operand, options, negated):
            tests: Expr = Or(tuple(Compare("=", operand, option) for option in options))
            _add(Not(tests) if negated else tests, steps)
        case Between(operand, low, high, negated):
            both: Expr = And((Compare(">=", operand, low), Compare("<=", operand, high)))
            _add(Not(both) if negated else both, steps)
        case Not(operand) | Negate(operand) | Call("abs", (operand,)):
            _add(operand, steps)
            steps.append("not" if isinstance(tree, Not) else "negate" if isinstance(tree, Negate) else "abs")
        case IsNull(operand, negated):
            _add(operand, steps)
            steps.append("is not null" if negated else "is null")
        case Arithmetic(op, left, right):
            _add(left, steps)
            _add(right, steps)
            steps.append(op)
        case Compare(op, left, right):
            _add_comparison(op, left, right, steps)
        case _:
            raise _Unfit


def _add_constant(value: Value, steps: list[Step]) -> None:
    if value is not None and not isinstance(value, int | float):
        raise _Unfit
    steps.append(None if value is None else float(value))


def _add_comparison(op: str, left: Expr, right: Expr, steps: list[Step]) -> None:
    """What is computed is a double, but a leaf or a constant may be a whole number that is none: see `order`."""
    if _slot(left) and _slot(right):
        steps += [_leaf(left, COMPARED), _leaf(right, COMPARED), op]
        return
    if _slot(left) or not aliases_of(left):
        left, right, op = right, left, MIRRORED.get(op, op)
    _add(left, steps)
    _add(right, steps)
    if _slot(right):
        steps += [_leaf(right, REST), "order", 0.0]
    elif not aliases_of(right) and type(value := _value(right)) is int:
        steps += [float(rest_of(value)), "order", 0.0]
    steps.append(op)
