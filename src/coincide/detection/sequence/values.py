"""Conditions of EQL on events (section 4): closures from an event to the values of an expression.

A field with several values makes several values of every expression over it; a test of them has one: it holds if it holds for
one combination. Numbers are Python's: an `int` is an integer, a `float` stays one within the expression."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from coincide.detection.sequence.functions import FUNCTIONS, network_test
from coincide.expr.patterns import like, lowered, matches_whole
from coincide.expr.tree import And, Arithmetic, Call, Compare, Expr, Literal, Negate, Not, Or, Reference
from coincide.lang.eql.conditions import instant_text, instant_value
from coincide.lang.eql.definition import TIMESTAMP, Among, Matching
from coincide.lang.eql.functions import spelled
from coincide.model.compound import ValueList, ValueSet
from coincide.model.event import Event, Value
from coincide.model.stamp import MILLISECOND

Plain = int | float | str | bool | None
Plains = Sequence[Plain]
Values = Callable[[Event], Plains]
Holds = Callable[[Event], bool]

NULL: Plains = (None,)
TRUE: Plains = (True,)
FALSE: Plains = (False,)


def condition(tree: Expr) -> Holds:
    """In a boolean position only true holds; null and anything else is false."""
    match tree:
        case Or(operands=operands):
            parts = [condition(o) for o in operands]
            return lambda event: any(part(event) for part in parts)
        case And(operands=operands):
            parts = [condition(o) for o in operands]
            return lambda event: all(part(event) for part in parts)
        case Not(operand=operand):
            inner = condition(operand)
            return lambda event: not inner(event)
        case Literal(value=value):
            return lambda event: value is True
    values = compiled(tree)
    return lambda event: any(value is True for value in values(event))


def compiled(tree: Expr) -> Values:
    match tree:
        case Literal(value=value):
            constant = (value,)
            return lambda event: constant
        case Reference(name=name):
            return field_values(name)
        case Or() | And() | Not():
            holds = condition(tree)
            return lambda event: TRUE if holds(event) else FALSE
        case Compare():
            return _compare(tree)
        case Among():
            return _among(tree)
        case Matching():
            return _matching(tree)
        case Arithmetic(op=op, left=left, right=right):
            return combined(ARITHMETIC[op], [compiled(left), compiled(right)])
        case Negate(operand=operand):
            return combined(_negated, [compiled(operand)])
        case Call(name="cidrMatch", arguments=(address, *networks)):
            texts = [network.value for network in networks if isinstance(network, Literal) and isinstance(network.value, str)]
            return combined(network_test(texts), [compiled(address)])
        case Call(name=name, arguments=arguments):
            return combined(ARITHMETIC.get(OPERATORS.get(name, "")) or FUNCTIONS[name], [compiled(a) for a in arguments])
    raise TypeError(tree)


def field_values(name: str) -> Values:
    """How a name is read from an event: the values of the field, null if it is not there."""
    special = ENVELOPE_VALUES.get(name)
    if special is not None:
        return special
    return lambda event: several(event.attributes.get(name))


ENVELOPE_VALUES: dict[str, Values] = {
    "type": lambda event: (event.type,),
    "id": lambda event: (event.id,),
    "time": lambda event: (plain(event.hi / MILLISECOND),),
    TIMESTAMP: lambda event: (plain(event.hi / MILLISECOND),),
    "source": lambda event: (event.source,),
}


def several(value: Value) -> Plains:
    if isinstance(value, (ValueSet, ValueList)):
        found = tuple(plain(m) for m in value.members if isinstance(m, (float, int, str)))
        return found or NULL
    return (plain(value),) if isinstance(value, (float, int, str)) else NULL


def plain(value: float | str | bool) -> Plain:
    """A number that is whole is an integer, however written."""
    return int(value) if type(value) is float and value.is_integer() else value


def combined(function: Callable[..., Plain], arguments: Sequence[Values]) -> Values:
    """The function's values of all combinations; equal ones once."""
    if len(arguments) == 1:
        (only,) = arguments
        return lambda event: distinct([function(value) for value in only(event)])

    def evaluate(event: Event) -> Plains:
        return distinct([function(*values) for values in product(*[argument(event) for argument in arguments])])

    return evaluate


def distinct(values: list[Plain]) -> Plains:
    return values if len(values) == 1 else list({(type(value), value): value for value in values}.values())


def tested(test: Callable[..., bool | None], arguments: Sequence[Values]) -> Callable[[Event], bool | None]:
    """Does it hold for one combination? Null if it is null for all."""

    def evaluate(event: Event) -> bool | None:
        result: bool | None = None
        for values in product(*[argument(event) for argument in arguments]):
            found = test(*values)
            if found:
                return True
            result = False if found is False else result
        return result

    return evaluate


# Tests


def equal(a: Plain, b: Plain) -> bool:
    """Null-safe; text against number by spelling; booleans equal booleans only."""
    if a is None or b is None:
        return a is b
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, str) is isinstance(b, str):
        return a == b
    return spelled(a) == spelled(b)


def equal_any_case(a: Plain, b: Plain) -> bool:
    return equal(lowered(a) if isinstance(a, str) else a, lowered(b) if isinstance(b, str) else b)


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[Plain, Plain], bool | None]:
    def compare(a: Plain, b: Plain) -> bool | None:
        if (is_number(a) and is_number(b)) or (isinstance(a, str) and isinstance(b, str)):
            return test(a, b)
        return None

    return compare


def is_number(value: Plain) -> bool:
    return type(value) in (int, float)


COMPARISONS: dict[str, Callable[[Plain, Plain], bool | None]] = {
    "=": equal,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}


def _compare(node: Compare) -> Values:
    left, right = _instants(node.left, node.right), _instants(node.right, node.left)
    if node.op == "!=":
        return _negative(tested(equal, [left, right]))
    return _single(tested(COMPARISONS[node.op], [left, right]))


def _instants(tree: Expr, other: Expr) -> Values:
    """A text beside the event's time is an instant."""
    text = instant_text(other, tree)
    if text is None:
        return compiled(tree)
    constant = (plain((instant_value(text) or 0) / MILLISECOND),)
    return lambda event: constant


def _single(test: Callable[[Event], bool | None]) -> Values:
    return lambda event: (test(event),)


def _negative(test: Callable[[Event], bool | None]) -> Values:
    return lambda event: FALSE if test(event) else TRUE


def _among(node: Among) -> Values:
    same = equal_any_case if node.any_case else equal
    operand = compiled(node.operand)
    tests = [tested(same, [operand, compiled(option)]) for option in node.options]

    def found(event: Event) -> bool:
        return any(test(event) for test in tests)

    return _negative(found) if node.negated else _single(found)


def patterns_of(node: Matching) -> list[str]:
    """As texts are held against them: in lower case, where case does not matter (of wildcards)."""
    patterns = [text for p in node.patterns if (text := spelled(p.value)) is not None]
    return [lowered(pattern) for pattern in patterns] if node.any_case and not node.is_regular else patterns


def _matching(node: Matching) -> Values:
    patterns = patterns_of(node)
    return _single(tested(_pattern_test(node, patterns), [compiled(node.operand)]))


def _pattern_test(node: Matching, patterns: list[str]) -> Callable[[Plain], bool | None]:
    any_case = node.any_case
    if node.is_regular:

        def matches(text: str) -> bool:
            return any(matches_whole(text, pattern, any_case) for pattern in patterns)

    else:

        def matches(text: str) -> bool:
            text = lowered(text) if any_case else text
            return any(like(text, pattern, "*", "?") for pattern in patterns)

    def test(value: Plain) -> bool | None:
        text = spelled(value)
        return None if text is None or not patterns else matches(text)

    return test


# Arithmetic


def _arithmetic(compute: Callable[[Any, Any], float | None]) -> Callable[[Plain, Plain], Plain]:
    """Of numbers, in doubles; two integers make an integer."""

    def evaluate(a: Plain, b: Plain) -> Plain:
        if not is_number(a) or not is_number(b):
            return None
        try:
            result = compute(a, b)
            double = None if result is None else float(result)
        except OverflowError:
            return None
        if double is None or not math.isfinite(double):
            return None
        return int(double) if type(a) is int and type(b) is int else double

    return evaluate


def _doubles(compute: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda a, b: compute(float(a), float(b))


def _quotient(a: float, b: float) -> float | None:
    """Whole numbers divide to a whole number, towards zero."""
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        a, b = int(float(a)), int(float(b))
        whole = abs(a) // abs(b)
        return whole if (a < 0) == (b < 0) else -whole
    return float(a) / float(b)


def _remainder(a: float, b: float) -> float | None:
    return None if b == 0 else math.fmod(a, b)


ARITHMETIC: dict[str, Callable[[Plain, Plain], Plain]] = {
    "+": _arithmetic(_doubles(operator.add)),
    "-": _arithmetic(_doubles(operator.sub)),
    "*": _arithmetic(_doubles(operator.mul)),
    "/": _arithmetic(_quotient),
    "%": _arithmetic(_remainder),
}
OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%"}


def _negated(value: Plain) -> Plain:
    """A constant is no arithmetic: it keeps its digits."""
    return -value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
