"""What a source can tell of an event in advance: tests that every event passes which is some item.

They may let through more; so only what a source and we understand alike is in them."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from typing import TypeGuard

from coincide.detection.sequence.program import CATEGORY, is_field
from coincide.expr.tree import And, Compare, Expr, HasOne, Literal, Or, Reference, Resembles
from coincide.lang.eql.definition import Among, Filter, Item, Matching
from coincide.lang.eql.functions import spelled
from coincide.model.event import Value
from coincide.model.numbers import number_of, number_of_text

OTHER_CASE = {"i": "İ", "k": "\u212a"}
"""Beside its own capital, what is lower-cased to a letter of ASCII."""


def relevance(items: Iterable[Item]) -> Expr | None:
    return _either([_filter(item.filter) for item in items])


def _filter(found: Filter) -> Expr | None:
    category = None
    if found.category is not None:
        category = Or((Compare("=", Reference("type"), Literal(found.category)), HasOne(CATEGORY, (found.category,))))
    return _both([category, _implied(found.condition)])


def _implied(tree: Expr) -> Expr | None:
    """What holds wherever the condition does; None: nothing can be said."""
    match tree:
        case And(operands=operands):
            return _both([_implied(operand) for operand in operands])
        case Or(operands=operands):
            return _either([_implied(operand) for operand in operands])
        case Compare(op="=", left=Reference(name=name) as left, right=Literal(value=value)) if is_field(left):
            return _has_one(name, [value])
        case Compare(op="<" | "<=" | ">" | ">=", left=left, right=Literal(value=value)) if is_field(left):
            return Compare(tree.op, left, Literal(_value(value))) if _is_number(value) else None
        case Among(operand=Reference(name=name) as operand, negated=False) if is_field(operand):
            return _among(name, tree)
        case Matching(operand=Reference(name=name) as operand) if is_field(operand) and not tree.is_regular:
            return _resembles(name, tree)
    return None


def _value(number: float) -> float:
    """Whole numbers are integers to EQL."""
    return number_of(number) if isinstance(number, int) else number


def _is_number(value: Value) -> TypeGuard[float]:
    return type(value) in (int, float)


def _both(tests: Sequence[Expr | None]) -> Expr | None:
    known = tuple(dict.fromkeys(test for test in tests if test is not None))
    return And(known) if len(known) > 1 else known[0] if known else None


def _either(tests: Sequence[Expr | None]) -> Expr | None:
    known = tuple(dict.fromkeys(test for test in tests if test is not None))
    if any(test is None for test in tests) or not known:
        return None
    return Or(known) if len(known) > 1 else known[0]


def _among(name: str, tree: Among) -> Expr | None:
    values = [option.value if isinstance(option, Literal) else None for option in tree.options]
    if not tree.any_case:
        return _has_one(name, values)
    texts = [value for value in values if isinstance(value, str)]
    return Resembles(name, tuple(_whole(text, True) for text in texts)) if len(texts) == len(values) else None


def _has_one(name: str, values: Sequence[Value]) -> Expr | None:
    """Text and number are equal by spelling."""
    if any(not isinstance(value, (str, int, float)) or isinstance(value, bool) for value in values):
        return None
    texts = dict.fromkeys(spelled(value) or "" for value in values)
    numbers = dict.fromkeys(number for text in texts if (number := _number(text)) is not None)
    return HasOne(name, tuple(texts), tuple(numbers))


def _number(text: str) -> float | None:
    """The number that is spelled so."""
    try:
        number = number_of_text(text)
    except ValueError:
        return None
    return number if number - number == 0 and spelled(number) == text else None


# Patterns


def _resembles(name: str, tree: Matching) -> Expr | None:
    patterns = [pattern.value for pattern in tree.patterns]
    if not all(isinstance(pattern, str) for pattern in patterns):
        return None
    return Resembles(name, tuple(_expression(str(pattern), tree.any_case) for pattern in patterns))


def _expression(pattern: str, any_case: bool) -> str:
    """Of a pattern with `*` its two ends, or what is longest between them: the search takes linear time."""
    head, *rest = pattern.split("*")
    if not rest:
        return _whole(pattern, any_case, "?")
    *between, tail = rest
    if head or tail:
        return rf"(?s)\A{_literal(head, any_case, '?')}.*{_literal(tail, any_case, '?')}\z"
    return f"(?s){_literal(max(between, key=len, default=''), any_case, '?')}"


def _whole(text: str, any_case: bool, one: str = "") -> str:
    return rf"(?s)\A{_literal(text, any_case, one)}\z"


def _literal(text: str, any_case: bool, one: str = "") -> str:
    return "".join("." if char == one else _character(char, any_case) for char in text)


def _character(char: str, any_case: bool) -> str:
    if not any_case or (char.isascii() and char not in string.ascii_letters):
        return char if char in string.ascii_letters + string.digits else f"\\x{{{ord(char):x}}}"
    if not char.isascii():
        return "."
    small = char.lower()
    return f"[{small}{small.upper()}{OTHER_CASE.get(small, '')}]"
