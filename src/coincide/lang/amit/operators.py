"""Amit's operators, an object each: how one is written in XML, YAML and Python, what is checked of it, which warnings it gives,
how it is drawn. Parsers, printers, the schema, pictures and random rules are made from these. What operators do stands in
`detection/situation/operators.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coincide.expr.tree import Expr, Literal
from coincide.lang.amit.definition import Operator
from coincide.lang.amit.pattern import PatternError, parse_pattern

MODES = ("immediate", "delayed", "deferred")
OPERAND = ("event", "as", "threshold")
QUANTIFIED = ("quantifier", "quantifierType", "override")
CONSUMED = ("retain", "consumption")
WEIGHTED = ("weight", "counted", "distinct")
OPERATOR_SYNONYMS = {"condition": "where"}
OPERAND_SYNONYMS = {"alias": "as"}


def _unbounded(operator: Operator, position: int) -> bool:
    return False


def _bounded(operator: Operator, position: int) -> bool:
    return True


def _sound(operator: Operator) -> str | None:
    return None


@dataclass(frozen=True)
class OperatorKind:
    """One of the operators. Defaults of what is written are those of the paper's DTD."""

    name: str
    attributes: tuple[str, ...]
    operands: tuple[str, ...] = ()  # names of operand elements, by position; the last one repeated
    operand_attributes: tuple[str, ...] = OPERAND
    least: int = 1
    most: int | None = None
    keyed: bool = True
    modes: tuple[str, ...] = MODES
    mode: str = "immediate"
    repeat: str = "always"
    quantifier: str = "each"
    quantity: int | None = 1  # if it is not given; None: it must be
    quantities: tuple[int, ...] = (2, 1, 3, 0, -1)  # that random rules take
    synonyms: tuple[str, ...] = ()  # other names of its element
    method: str = ""  # what `coincide.amit` calls it, if not by its name
    leading: str = ""  # the attribute that comes first there, before the operands
    refused: int | None = None  # operands from this position on are what must not come
    refused_attributes: tuple[str, ...] = OPERAND  # and these are theirs
    fault: Callable[[Operator], str | None] = _sound  # what is wrong with it, if anything is
    bounded: Callable[[Operator, int], bool] = _unbounded  # does an operand keep few candidates, however long its lifespan is?
    lasting: bool = True  # do partitions stay until the end of their lifespan?
    label: str = ""  # what a picture says of it, if not its name
    ordered: bool = False  # does the position of an operand matter?

    def operand_element(self, position: int) -> str:
        return self.operands[min(position, len(self.operands) - 1)]

    def refuses(self, position: int) -> bool:
        return self.refused is not None and position >= self.refused

    def attributes_of(self, position: int) -> tuple[str, ...]:
        """Of the operand at this position."""
        return self.refused_attributes if self.refuses(position) else self.operand_attributes


# When candidates are bounded


def _is_used_at_once(operator: Operator) -> bool:
    """Does a candidate that completes a selection leave with it, at once and whatever it is?"""
    return operator.mode != "deferred" and operator.where is None and not any(o.may_retain for o in operator.operands)


def always_is(tree: Expr | None, value: bool) -> bool:
    return isinstance(tree, Literal) and tree.value is value


def _uses_all(operator: Operator) -> bool:
    return _is_used_at_once(operator) and all(o.counted and o.quantifier == "each" for o in operator.operands)


def _is_alone(operator: Operator, position: int) -> bool:
    return _is_used_at_once(operator) and len(operator.operands) == 1


def _reaches_quantity(operator: Operator, position: int) -> bool:
    return _uses_all(operator) and all(o.weight > 0 for o in operator.operands)


def _meets_quantity(operator: Operator, position: int) -> bool:
    return _uses_all(operator) and operator.quantity > 0 and all(o.weight == 1 for o in operator.operands)


def _is_one_that_blocks(operator: Operator, position: int) -> bool:
    return position == 1 and operator.where is None


def _pattern_fault(operator: Operator) -> str | None:
    try:
        parse_pattern(operator.pattern)
    except PatternError as problem:
        return str(problem)
    return None


# The operators

_JOIN = ("detectionMode", "where", "repeatMode")
_COUNTED = ("quantity", *_JOIN)
_JOINED = (*OPERAND, *QUANTIFIED, *CONSUMED)

_ALL = OperatorKind("all", _JOIN, ("operandAll",), _JOINED, quantifier="first", synonyms=("conjunction",), bounded=_is_alone)
_SEQUENCE = OperatorKind("sequence", _JOIN, ("operandSequence",), _JOINED, least=2, quantifier="first", ordered=True)
_ATLEAST = OperatorKind(
    "atleast",
    _COUNTED,
    ("operandAtleast",),
    (*_JOINED, *WEIGHTED),
    repeat="once",
    quantity=None,
    method="at_least",
    leading="quantity",
    bounded=_reaches_quantity,
    label="at least {quantity}",
)
_NTH = OperatorKind(
    "nth",
    _COUNTED,
    ("operandNth",),
    (*_JOINED, *WEIGHTED),
    mode="deferred",
    repeat="once",
    leading="quantity",
    bounded=_meets_quantity,
    label="number {quantity}",
)
_ATMOST = OperatorKind(
    "atmost",
    ("quantity", "detectionMode", "where"),
    ("operandAtmost",),
    (*OPERAND, *QUANTIFIED, *WEIGHTED),
    modes=("deferred",),
    mode="deferred",
    quantity=None,
    method="at_most",
    leading="quantity",
    label="at most {quantity}",
)
_NOT = OperatorKind(
    "not",
    ("detectionMode",),
    ("operandNot",),
    keyed=False,
    modes=("deferred",),
    mode="deferred",
    method="none",
    refused=0,
    bounded=_bounded,
    ordered=True,
)
_UNLESS = OperatorKind(
    "unless",
    ("detectionMode", "where"),
    ("operandUnless", "operandNot"),
    (*OPERAND, *QUANTIFIED),
    least=2,
    most=2,
    modes=("deferred",),
    mode="deferred",
    quantifier="first",
    refused=1,
    refused_attributes=(*OPERAND, "quantifier", "quantifierType"),
    bounded=_is_one_that_blocks,
    ordered=True,
)
_EVERY = OperatorKind(
    "every",
    ("interval", "detectionMode", "repeatMode"),
    least=0,
    most=0,
    keyed=False,
    modes=MODES[:2],
    leading="interval",
    label="every {interval}",
)
_AT = OperatorKind(
    "at",
    ("timePattern", "detectionMode", "repeatMode"),
    least=0,
    most=0,
    keyed=False,
    modes=MODES[:2],
    leading="timePattern",
    fault=_pattern_fault,
    label="at {pattern}",
)
_AFTER = OperatorKind(
    "after",
    ("interval", "correlate", "detectionMode"),
    ("operandAfter",),
    modes=MODES[:2],
    leading="interval",
    bounded=_bounded,
    lasting=False,
    label="after {interval}",
)

OPERATORS: dict[str, OperatorKind] = {
    kind.name: kind for kind in (_ALL, _SEQUENCE, _ATLEAST, _NTH, _ATMOST, _NOT, _UNLESS, _EVERY, _AT, _AFTER)
}
"""All operators, by name."""


def elements() -> dict[str, OperatorKind]:
    """All operators, by the names that their elements may have."""
    return {**OPERATORS, **{synonym: kind for kind in OPERATORS.values() for synonym in kind.synonyms}}
