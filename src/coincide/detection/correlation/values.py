"""Values of CDL: types, and sets and ranges as one value that is known only to be among these (section 2.2)."""

from __future__ import annotations

import math
from typing import Any

from coincide.expr.scalar import COMPARE, compare
from coincide.model.compound import Compound, Several, Single, ValueList, ValueRange, ValueSet, distinct
from coincide.model.event import Value
from coincide.model.numbers import is_number, same_kind
from coincide.model.stamp import MILLISECOND, parse_instant

Ternary = bool | None


def ternary(op: str, a: Value, b: Value) -> Ternary:
    """True if true for every choice, false if false for every choice, otherwise unknown."""
    if not isinstance(a, Compound) and not isinstance(b, Compound):
        return compare(COMPARE[op], a, b)
    if a is None or b is None or _kind(a, b) is None or _is_empty(a) or _is_empty(b):
        return None
    if op in ("=", "!="):
        equal = _equal(a, b)
        return equal if op == "=" or equal is None else not equal
    if op in (">", ">="):
        a, b, op = b, a, "<" if op == ">" else "<="
    return _less(a, b, strict=op == "<")


def _equal(a: Value, b: Value) -> Ternary:
    if not have_common(a, b):
        return False
    return True if only_value(a) is not None and only_value(b) is not None else None


def _less(a: Value, b: Value, strict: bool) -> Ternary:
    (a_lo, a_hi), (b_lo, b_hi) = _bounds(a), _bounds(b)
    if a_hi is not None and b_lo is not None and (a_hi < b_lo or (a_hi == b_lo and not strict)):
        return True
    if a_lo is not None and b_hi is not None and (a_lo > b_hi or (a_lo == b_hi and strict)):
        return False
    return None


def among(x: Value, options: Value) -> Ternary:
    """`x in options`: of a single value equality, of a set or range whether x is surely among it, or surely not."""
    if not isinstance(options, Compound):
        return ternary("=", x, options)
    if x is None or _is_empty(x):
        return None
    if _is_empty(options):
        return False  # nothing is among none
    if _kind(x, options) is None:
        return None
    if not have_common(x, options):
        return False
    return True if _covers(options, x) else None


def _covers(options: Compound, x: Value) -> bool:
    if isinstance(x, ValueRange):
        if isinstance(options, ValueSet):
            return x.lo is not None and x.lo == x.hi and x.lo in options.members
        from_below = options.lo is None or (x.lo is not None and options.lo <= x.lo)  # type: ignore[operator]
        return from_below and (options.hi is None or (x.hi is not None and x.hi <= options.hi))  # type: ignore[operator]
    members = x.members if isinstance(x, ValueSet) else (x,)
    return all(_holds(options, m) for m in members)


def _holds(options: Value, single: Any) -> bool:
    if isinstance(options, ValueSet):
        return single in options.members
    lo, hi = _bounds(options)
    return (lo is None or bool(lo <= single)) and (hi is None or bool(single <= hi))


def have_common(a: Value, b: Value) -> bool:
    """Have the two a possible value in common? They are of one kind."""
    if isinstance(b, ValueSet) and not isinstance(a, ValueSet):
        a, b = b, a
    if isinstance(a, ValueSet):
        return any(_holds(b, member) for member in a.members)
    (a_lo, a_hi), (b_lo, b_hi) = _bounds(a), _bounds(b)
    return (a_lo is None or b_hi is None or a_lo <= b_hi) and (b_lo is None or a_hi is None or b_lo <= a_hi)


def overlaps(a: Value, b: Value) -> Ternary:
    if a is None or b is None:
        return None
    if _is_empty(a) or _is_empty(b):
        return False
    return None if _kind(a, b) is None else have_common(a, b)


def _bounds(value: Value) -> tuple[Any, Any]:
    if isinstance(value, ValueRange):
        return value.lo, value.hi
    if isinstance(value, ValueSet):
        members: tuple[Any, ...] = value.members
        return min(members), max(members)
    return value, value


def _is_empty(value: Value) -> bool:
    """An empty set, or a range with lo > hi."""
    if isinstance(value, ValueSet):
        return not value.members
    lo, hi = (value.lo, value.hi) if isinstance(value, ValueRange) else (None, None)
    return lo is not None and hi is not None and same_kind(lo, hi) and lo > hi  # type: ignore[operator]


def only_value(value: Value) -> Single | None:
    """The one value that it can be, if there is but one."""
    if not isinstance(value, Several):
        return value
    lo, hi = (None, None) if isinstance(value, ValueList) or _is_empty(value) else _bounds(value)
    only: Single | None = lo if lo is not None and lo == hi else None
    return only


def _kind(a: Value, b: Value) -> object:
    """The type that all singles in both have, `object` where there is none at all; None if they differ."""
    kinds = {float if is_number(single) else type(single) for value in (a, b) for single in _singles(value)}
    return None if len(kinds) > 1 else kinds.pop() if kinds else object


def _singles(value: Value) -> list[Single]:
    if isinstance(value, ValueSet):
        return list(value.members)
    return [v for v in _bounds(value) if v is not None]


def set_of(values: list[Value]) -> Value:
    """Nulls are left out; of sets or ranges there is no set."""
    singles = [v for v in values if v is not None]
    if any(isinstance(v, Several) for v in singles):
        return None
    return ValueSet(distinct(singles))  # type: ignore[arg-type]


def range_of(lo: Value, hi: Value) -> Value:
    """A null bound is open; of sets or ranges, and between two kinds, there is no range."""
    if isinstance(lo, Several) or isinstance(hi, Several):
        return None
    if lo is not None and hi is not None and not same_kind(lo, hi):
        return None
    return ValueRange(lo, hi)


# Declared types


def matched(value: Value, kind: str) -> Value:
    """A message's value as one of the declared type; None where it is none (CDL-05, CDL-06)."""
    return _typed(value, kind, cut=False)


def computed(value: Value, kind: str) -> Value:
    """A computed value as one of the declared type: `int` cuts the fraction off, another kind becomes null."""
    return _typed(value, kind, cut=True)


def _typed(value: Value, kind: str, cut: bool) -> Value:
    if isinstance(value, ValueSet):
        members = [_single(member, kind, cut) for member in value.members]
        return None if None in members else set_of(list(members))
    if isinstance(value, ValueRange):
        bounds = [None if bound is None else _single(bound, kind, cut) for bound in (value.lo, value.hi)]
        lost = any(new is None and old is not None for new, old in zip(bounds, (value.lo, value.hi), strict=True))
        return None if lost else range_of(*bounds)
    return None if value is None or isinstance(value, ValueList) else _single(value, kind, cut)


def _single(value: Single, kind: str, cut: bool) -> Single | None:
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "time_t" and isinstance(value, str):
        return _instant(value)
    if not is_number(value):
        return None
    if kind == "int" and type(value) is float and not value.is_integer():
        return float(math.trunc(value)) if cut else None
    return value


def _instant(text: str) -> float | None:
    try:
        return parse_instant(text) / MILLISECOND
    except (ValueError, OverflowError):
        return None


def canonical(value: Value) -> Any:
    """A form in which equal content is equal: sets in any order, true apart from 1; made of tuples and plain values."""
    if isinstance(value, ValueSet):
        return ("set", *sorted(canonical(member) for member in value.members))
    if isinstance(value, ValueRange):
        return "range", canonical(value.lo), canonical(value.hi)
    return None if value is None else (type(value).__name__, value)
