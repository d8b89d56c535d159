"""The functions of expressions: arity, types, and what they mean on plain values.

Every back end must agree with the `scalar` given here; null and wrongly typed arguments never reach it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from coincide.expr.patterns import matches, pattern_fault
from coincide.expr.tree import Expr, Literal
from coincide.model.event import Value
from coincide.model.numbers import plain_number

ANY, NUMBER, TEXT, BOOLEAN = "any", "number", "string", "boolean"


@dataclass(frozen=True)
class Function:
    """`arguments` gives the type of each argument, the last one repeated for more. `same`: any one type, but the same
    for all. `aliases`: so many leading arguments are events (they may be left out: the event under test)."""

    name: str
    least: int
    most: int | None
    arguments: tuple[str, ...]
    result: str
    scalar: Callable[..., Value] | None
    aliases: int = 0
    faults: tuple[Callable[[str], str | None] | None, ...] = ()  # what is wrong with a text that stands there as it is

    def accepts(self, count: int) -> bool:
        return self.least <= count and (self.most is None or count <= self.most)

    def argument(self, index: int) -> str:
        return self.arguments[min(index, len(self.arguments) - 1)]

    def bad_constant(self, arguments: Sequence[Expr]) -> tuple[Expr, str] | None:
        """A constant that the function can do nothing with, and why."""
        for argument, fault in zip(arguments, self.faults, strict=False):
            text = argument.value if isinstance(argument, Literal) else None
            if fault is not None and isinstance(text, str) and (reason := fault(text)) is not None:
                return argument, reason
        return None


MOST_DIGITS = 400  # no double has more decimal places in its shortest spelling, or as many digits before the point
EXACT = Context(prec=3 * MOST_DIGITS)


def finite(value: float) -> float | None:
    """Overflow is null, as division by zero is."""
    return value if value - value == 0 else None


def rounded(x: float) -> float:
    """Halves away from zero; exact also where x + 0.5 would round."""
    whole = float(math.trunc(x))
    return whole + math.copysign(1.0, x) if abs(x - whole) >= 0.5 else whole


def rounded_to(x: float, digits: float = 0.0) -> float | None:
    """To so many decimal places (tens, hundreds, … if negative), halves away from zero, of the number as it is written: 2.675
    becomes 2.68 although the double is a little less."""
    if digits == 0:
        return rounded(x)
    if digits != math.trunc(digits):
        return None
    if abs(digits) > MOST_DIGITS:
        return x if digits > 0 else 0.0
    place = Decimal((0, (1,), -int(digits)))
    return finite(float(Decimal(repr(x)).quantize(place, ROUND_HALF_UP, EXACT)))


def power(x: float, y: float) -> float | None:
    try:
        result = math.pow(x, y)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return finite(result)


def concat(*parts: str | float) -> str:
    return "".join(p if isinstance(p, str) else number_text(p) for p in parts)


def number_text(value: float) -> str:
    """A number as JSON spells it."""
    return repr(plain_number(value))


def _integral(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(function(x))


def _table(*functions: Function) -> dict[str, Function]:
    return {f.name: f for f in functions}


def _numeric(name: str, scalar: Callable[[float], float | None]) -> Function:
    return Function(name, 1, 1, (NUMBER,), NUMBER, scalar)


def _textual(name: str, scalar: Callable[[str], Value], result: str = TEXT) -> Function:
    return Function(name, 1, 1, (TEXT,), result, scalar)


def _pair(name: str, scalar: Callable[[str, str], bool | None]) -> Function:
    return Function(name, 2, 2, (TEXT, TEXT), BOOLEAN, scalar)


def _extreme(name: str, scalar: Callable[[Any], Any]) -> Function:
    return Function(name, 1, None, ("number or string, the same",), "the same", lambda *values: scalar(values))


FUNCTIONS: dict[str, Function] = _table(
    _numeric("abs", abs),
    _extreme("min", min),
    _extreme("max", max),
    Function("round", 1, 2, (NUMBER,), NUMBER, rounded_to),
    _numeric("floor", _integral(math.floor)),
    _numeric("ceil", _integral(math.ceil)),
    _numeric("sqrt", lambda x: math.sqrt(x) if x >= 0 else None),
    Function("power", 2, 2, (NUMBER, NUMBER), NUMBER, power),
    _textual("length", lambda s: float(len(s)), NUMBER),
    _textual("lower", str.lower),
    _textual("upper", str.upper),
    _textual("trim", str.strip),
    Function("concat", 1, None, ("number or string",), TEXT, concat),
    _pair("contains", lambda s, part: part in s),
    _pair("starts_with", str.startswith),
    _pair("ends_with", str.endswith),
    Function("matches", 2, 2, (TEXT, TEXT), BOOLEAN, matches, faults=(None, pattern_fault)),
    Function("coalesce", 1, None, ("the same",), "the same", None),
    Function("if", 3, 3, (BOOLEAN, "the same"), "the same", None),
    Function("start", 0, 1, (ANY,), NUMBER, None, 1),
    Function("end", 0, 1, (ANY,), NUMBER, None, 1),
    Function("duration", 0, 1, (ANY,), NUMBER, None, 1),
    Function("distance", 2, 2, (ANY,), NUMBER, None, 2),
    Function("zone", 0, 1, (ANY,), TEXT, None, 1),
    Function("within_box", 4, 5, (NUMBER,), BOOLEAN, None, 1),
    Function("within_radius", 3, 4, (NUMBER,), BOOLEAN, None, 1),
)
