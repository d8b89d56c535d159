"""Expressions over columns: NumPy on whole batches.

    evaluate(tree, rows) -> Column          the values, one a row
    holds(tree, rows) -> mask               where the tree is true
    evaluate_joined(tree, {alias: rows})    rows side by side, one set an alias: attributes of detections

`rows` is anything with the members of `Rows`; `Table` is the plain one. Functions of texts run over a column's dictionary (or
the combinations of dictionary entries that occur), never over its rows."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from coincide.expr.functions import Function, number_text, rounded_to
from coincide.expr.parts import Flag, Parts, balanced, lower, truth
from coincide.expr.tree import Expr, Reference
from coincide.model.column import Codes, Column, Numbers, Rests, column_of
from coincide.model.event import Value
from coincide.model.numbers import rest_of
from coincide.model.sorting import without_gaps
from coincide.model.space import EARTH_RADIUS, Space, separation, within_radius
from coincide.model.stamp import MILLISECOND

_Any = TypeVar("_Any", bound=np.generic)
Mask = npt.NDArray[np.bool_]
Microseconds = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spaces:
    """Spacestamps as columns; nan (or no text) where a stamp lacks the field."""

    x: Numbers
    y: Numbers
    lat: Numbers
    lon: Numbers
    zone: Column

    def take(self, rows: npt.NDArray[np.int64]) -> Spaces:
        return Spaces(self.x[rows], self.y[rows], self.lat[rows], self.lon[rows], self.zone.take(rows))

    def space(self, row: int) -> Space:
        x, y, lat, lon = (None if np.isnan(c[row]) else float(c[row]) for c in (self.x, self.y, self.lat, self.lon))
        zone = self.zone.value(row)
        return Space(x, y, lat, lon, zone=zone if isinstance(zone, str) else None)

    @cached_property
    def point(self) -> tuple[Numbers, Numbers]:
        """As `Space.point`: planar if it can be."""
        planar = ~(np.isnan(self.x) | np.isnan(self.y))
        geographic = ~(np.isnan(self.lat) | np.isnan(self.lon))
        first = np.where(planar, self.x, np.where(geographic, self.lat, np.nan))
        return first, np.where(planar, self.y, np.where(geographic, self.lon, np.nan))

    @cached_property
    def geographic(self) -> Mask:
        return np.asarray(np.isnan(self.x) & ~np.isnan(self.lat))


class Rows(Protocol):
    """Events as columns. `column` knows the envelope's `type`, `id`, `source` and `time` (milliseconds of hi) too; None means
    that no row has such an attribute."""

    @property
    def length(self) -> int: ...
    @property
    def lo(self) -> Microseconds: ...
    @property
    def hi(self) -> Microseconds: ...
    @property
    def space(self) -> Spaces | None: ...
    def column(self, name: str) -> Column | None: ...


@dataclass(frozen=True, eq=False)
class Table:
    """Rows from columns at hand."""

    length: int
    columns: Mapping[str, Column] = field(default_factory=dict)
    lo: Microseconds = field(default_factory=lambda: np.zeros(0, np.int64))
    hi: Microseconds = field(default_factory=lambda: np.zeros(0, np.int64))
    space: Spaces | None = None

    def column(self, name: str) -> Column | None:
        return self.columns.get(name)


@dataclass(frozen=True, eq=False)
class Picked:
    """Some of other rows."""

    rows: Rows
    index: npt.NDArray[np.int64]
    _columns: dict[str, Column | None] = field(default_factory=dict)

    @property
    def length(self) -> int:
        return len(self.index)

    @property
    def lo(self) -> Microseconds:
        return self.rows.lo[self.index]

    @property
    def hi(self) -> Microseconds:
        return self.rows.hi[self.index]

    @property
    def space(self) -> Spaces | None:
        return None if (spaces := self.rows.space) is None else spaces.take(self.index)

    def column(self, name: str) -> Column | None:
        if name not in self._columns:
            whole = self.rows.column(name)
            self._columns[name] = None if whole is None else whole.take(self.index).compact()
        return self._columns[name]


def evaluate(tree: Expr, rows: Rows) -> Column:
    """The values of a tree about one event; an alias in it is that event."""
    return _column(lower(tree, _Vector(lambda _: rows)), rows.length)


def holds(tree: Expr, rows: Rows) -> Mask:
    return _mask(truth(tree, _Vector(lambda _: rows)), rows.length)


def evaluate_joined(tree: Expr, rows: Mapping[str | None, Rows], length: int) -> Column:
    """The values of a tree about several events; row i of each alias belongs together. An alias without rows is null."""
    return _column(lower(tree, _Vector(rows.get)), length)


def holds_joined(tree: Expr, rows: Mapping[str | None, Rows], length: int) -> Mask:
    return _mask(truth(tree, _Vector(rows.get)), length)


def milliseconds_of(instants: Microseconds) -> Numbers:
    """The same doubles as Python's exact division gives."""
    out = np.asarray(instants / MILLISECOND, np.float64)
    inexact = np.flatnonzero(np.abs(instants) > 2**53)  # after the year 2255
    if len(inexact):
        out[inexact] = [int(i) / MILLISECOND for i in instants[inexact]]
    return out


def spaces_of(stamps: Sequence[Space | None]) -> Spaces:
    def numbers(name: str) -> Numbers:
        values = (None if s is None else getattr(s, name) for s in stamps)
        return np.array([np.nan if v is None else v for v in values], np.float64)

    zones = column_of([s.zone if s else None for s in stamps])
    return Spaces(numbers("x"), numbers("y"), numbers("lat"), numbers("lon"), zones)


# Values while they are computed. A constant is an array without dimensions, which NumPy stretches as needed.


@dataclass(eq=False)
class _Condition:
    """Computed when asked for: of a comparison in a filter only the true half ever is."""

    make: Callable[[], Mask]

    @cached_property
    def mask(self) -> Mask:
        return self.make()


@dataclass(frozen=True, eq=False)
class _Text:
    codes: Codes
    texts: tuple[str, ...]

    @property
    def constant(self) -> str | None:
        return self.texts[int(self.codes)] if self.codes.ndim == 0 and self.codes >= 0 else None


@dataclass(frozen=True, eq=False)
class _Number:
    """Doubles, nan for null, and what whole numbers are more than theirs; None: nothing."""

    values: Numbers
    rests: Rests | None = None


_Parts = Parts[_Number, _Text, _Condition]

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": lambda a, b: (a < b) | (a > b),  # false for nan, unlike !=
}


class _Vector:
    """The algebra of columns."""

    def __init__(self, rows: Callable[[str | None], Rows | None]) -> None:
        self.rows = rows

    def number(self, value: float | None) -> _Number:
        rest = 0 if value is None else rest_of(value)
        return _Number(np.array(np.nan if value is None else value, np.float64), np.array(rest, np.int16) if rest else None)

    def text(self, value: str | None) -> _Text:
        return _Text(np.array(-1, np.int32), ()) if value is None else _Text(np.array(0, np.int32), (value,))

    def always(self, value: bool) -> _Condition:
        return _Condition(lambda: np.array(value))

    def reference(self, node: Reference) -> _Parts:
        rows = self.rows(node.alias)
        column = None if rows is None else rows.column(node.name)
        return Parts() if column is None else _parts(column)

    # Conditions.

    def both(self, a: _Condition, b: _Condition) -> _Condition:
        return _Condition(lambda: a.mask & b.mask if a.mask.any() else a.mask)

    def either(self, a: _Condition, b: _Condition) -> _Condition:
        return _Condition(lambda: a.mask | b.mask)

    def negate(self, a: _Condition) -> _Condition:
        return _Condition(lambda: ~a.mask)

    def choose(self, test: _Condition, yes: _Condition, no: _Condition) -> _Condition:
        return _Condition(lambda: np.where(test.mask, yes.mask, no.mask))

    # Numbers.

    def has_number(self, a: _Number) -> _Condition:
        return _Condition(lambda: ~np.isnan(a.values))

    def compare_numbers(self, op: str, a: _Number, b: _Number) -> _Condition:
        if a.rests is None and b.rests is None:
            return _Condition(lambda: np.asarray(COMPARE[op](a.values, b.values)))
        return _Condition(lambda: _compared_exactly(op, a, b))

    def number_in(self, a: _Number, values: Sequence[float]) -> _Condition:
        wholes = [value for value in values if type(value) is int]
        doubles = [value for value in values if type(value) is float]
        if a.rests is None:  # no double is equal to the others
            return _Condition(lambda: np.isin(a.values, doubles))
        found = [_Condition(lambda: np.isin(a.values, doubles) & (_rests(a) == 0))]
        return balanced(self.either, found + [self.compare_numbers("=", a, self.number(whole)) for whole in wholes])

    def choose_number(self, test: _Condition, yes: _Number, no: _Number) -> _Number:
        return _chosen(test.mask, yes, no)

    def unary(self, name: str, a: _Number) -> _Number:
        with np.errstate(all="ignore"):
            return _Number(np.asarray(UNARY[name](a.values)))

    def binary(self, name: str, a: _Number, b: _Number) -> _Number:
        if name in ("min", "max") and (a.rests is not None or b.rests is not None):
            return _extreme(name, a, b)
        with np.errstate(all="ignore"):
            result = np.asarray(BINARY[name](a.values, b.values))
        infinite = np.isinf(result)
        return _Number(np.where(infinite, np.nan, result) if infinite.any() else result)

    # Texts.

    def has_text(self, a: _Text) -> _Condition:
        return _Condition(lambda: a.codes >= 0)

    def compare_texts(self, op: str, a: _Text, b: _Text) -> _Condition:
        return _Condition(lambda: _compared(op, a, b))

    def text_in(self, a: _Text, values: Sequence[str]) -> _Condition:
        wanted = frozenset(values)
        return _Condition(lambda: _looked_up(a.codes, (t in wanted for t in a.texts)))

    def choose_text(self, test: _Condition, yes: _Text, no: _Text) -> _Text:
        first, second, texts = _united(yes, no)
        return _Text(np.where(test.mask, first, second), texts)

    def extreme_text(self, name: str, a: _Text, b: _Text) -> _Text:
        first, second, texts = _united(a, b, ordered=True)
        extreme = np.minimum(first, second) if name == "min" else np.maximum(first, second)
        return _Text(np.where((first < 0) | (second < 0), np.int32(-1), extreme), texts)

    def spell(self, a: _Number) -> _Text:
        if a.rests is not None:
            return _spelled_exactly(a)
        distinct, inverse = np.unique(a.values, return_inverse=True)  # nan is one of them, the last
        codes = np.where(np.isnan(a.values), -1, inverse.reshape(a.values.shape))
        return _Text(codes.astype(np.int32), tuple(number_text(float(d)) for d in distinct[~np.isnan(distinct)]))

    def call(self, function: Function, texts: Sequence[_Text]) -> _Parts:
        scalar = function.scalar
        assert scalar is not None
        index, combinations = _combinations(texts)
        return _gathered(function.result, [scalar(*c) for c in combinations], index)

    # Events.

    def event(self, name: str, aliases: Sequence[str | None], numbers: Sequence[_Number]) -> _Parts:
        found = [self.rows(a) for a in aliases]
        rows = [r for r in found if r is not None]
        return Parts() if len(rows) < len(found) else EVENT[name](*rows, *(n.values for n in numbers))


# Numbers.


def _rests(a: _Number) -> Rests:
    return np.zeros(a.values.shape, np.int16) if a.rests is None else a.rests


def _compared_exactly(op: str, a: _Number, b: _Number) -> Mask:
    """By doubles, and where these are equal, by rests."""
    tied = a.values == b.values
    if op in ("=", "<=", ">="):
        decided = np.zeros(tied.shape, np.bool_) if op == "=" else COMPARE[op[0]](a.values, b.values)
    else:
        decided = COMPARE[op](a.values, b.values)
    return np.asarray(decided | (tied & COMPARE[op](_rests(a), _rests(b))))


def _chosen(test: Mask, yes: _Number, no: _Number) -> _Number:
    rests = None if yes.rests is None and no.rests is None else np.where(test, _rests(yes), _rests(no))
    return _Number(np.where(test, yes.values, no.values), rests)


def _extreme(name: str, a: _Number, b: _Number) -> _Number:
    """Null where an operand is."""
    first = _compared_exactly("<=" if name == "min" else ">=", a, b)
    chosen = _chosen(first | np.isnan(a.values), a, b)
    return _chosen(np.isnan(b.values), b, chosen)


def _spelled_exactly(a: _Number) -> _Text:
    values, rests = np.broadcast_arrays(a.values, _rests(a))
    numbers = Column(values.size, numbers=values.ravel(), rests=rests.ravel())
    spelt = [None if (number := numbers.value(row)) is None else number_text(number) for row in range(values.size)]  # type: ignore[arg-type]
    column = column_of(spelt)
    codes = np.full(values.size, -1, np.int32) if column.codes is None else column.codes
    return _Text(codes.reshape(values.shape), column.texts)


def _rounded(x: Numbers) -> Numbers:
    """Halves away from zero; exact also where x + 0.5 would round."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _power(a: Numbers, b: Numbers) -> Numbers:
    """Arrow's power, because it is the C library's, as Python's is; NumPy's own may differ in the last bit."""
    a, b = np.broadcast_arrays(a, b)
    result = pc.power(a.ravel(), b.ravel()).to_numpy(zero_copy_only=False).reshape(a.shape)
    return np.where(np.isnan(a) | np.isnan(b), np.nan, result)  # in C, 1 to the power of nan is 1


def _rounded_to(a: Numbers, digits: Numbers) -> Numbers:
    """By way of decimals, which NumPy has not: value by value."""
    a, digits = np.broadcast_arrays(a, digits)
    pairs = zip(a.ravel().tolist(), digits.ravel().tolist(), strict=True)
    return np.array([_round_one(*pair) for pair in pairs], np.float64).reshape(a.shape)


def _round_one(x: float, digits: float) -> float:
    made = None if math.isnan(x) or math.isnan(digits) else rounded_to(x, digits)
    return math.nan if made is None else made


UNARY: dict[str, Callable[[Numbers], Numbers]] = {
    "-": np.negative,
    "abs": np.abs,
    "round": _rounded,
    "floor": np.floor,
    "ceil": np.ceil,
    "sqrt": np.sqrt,
}
BINARY: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "power": _power,
    "min": np.minimum,
    "max": np.maximum,
    "round": _rounded_to,
}

# Texts.


def _looked_up(codes: Codes, tests: Iterable[bool]) -> Mask:
    """For each row what `tests` says of its text; no text: false."""
    table = np.fromiter((*tests, False), np.bool_)  # code -1 finds the last
    hits = np.flatnonzero(table)
    if len(hits) == 0:
        return np.zeros(codes.shape, np.bool_)
    if len(hits) == 1:
        return np.asarray(codes == hits[0])
    if len(hits) == len(table) - 1:
        return np.asarray(codes >= 0)
    return np.asarray(table[codes])


def _compared(op: str, a: _Text, b: _Text) -> Mask:
    if (constant := b.constant) is not None:
        return _against(op, a, constant)
    if (constant := a.constant) is not None:
        return _against(MIRRORED.get(op, op), b, constant)
    first, second, _ = _united(a, b, ordered=op not in ("=", "!="))
    there = (first >= 0) & (second >= 0)
    return np.asarray(there & (first != second if op == "!=" else COMPARE[op](first, second)))


MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _against(op: str, text: _Text, constant: str) -> Mask:
    if op != "=":
        return _looked_up(text.codes, (bool(COMPARE[op](t, constant)) for t in text.texts))
    code = text.texts.index(constant) if constant in text.texts else -2
    return np.asarray(text.codes == code)


def _united(a: _Text, b: _Text, ordered: bool = False) -> tuple[Codes, Codes, tuple[str, ...]]:
    """Both in codes of one dictionary; an ordered one is sorted, so that codes compare as texts do."""
    if a.texts is b.texts and not ordered:
        return a.codes, b.codes, a.texts
    texts = dict.fromkeys(sorted({*a.texts, *b.texts}) if ordered else (*a.texts, *b.texts))
    index = {text: code for code, text in enumerate(texts)}
    first, second = (np.array([*(index[t] for t in x.texts), -1], np.int32)[x.codes] for x in (a, b))
    return first, second, tuple(texts)


def _combinations(arguments: Sequence[_Text]) -> tuple[Codes, list[tuple[str, ...]]]:
    """The distinct combinations of texts that occur, and for each row which one; -1 where a text is missing."""
    varying = [i for i, a in enumerate(arguments) if a.codes.ndim]
    constants = [a.constant for a in arguments]
    if any(constants[i] is None for i in range(len(arguments)) if i not in varying):
        return np.array(-1, np.int32), []
    if len(varying) == 1:  # the usual case: a column's dictionary as it is
        only = varying[0]
        texts = arguments[only].texts
        return arguments[only].codes, [tuple(t if i == only else c or "" for i, c in enumerate(constants)) for t in texts]
    codes = np.broadcast_arrays(*(a.codes for a in arguments))
    index, rows = _distinct(codes)
    picked = [[a.texts[c] for c in column.ravel()[rows]] for a, column in zip(arguments, codes, strict=True)]
    return index, list(zip(*picked, strict=True))


def _distinct(columns: Sequence[Codes]) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Rows grouped by equal codes: each row's group, and one row of each group. Rows with a -1 are in group -1."""
    there = np.logical_and.reduce([c >= 0 for c in columns])
    complete = np.flatnonzero(there)
    group: npt.NDArray[Any] = np.zeros(len(complete), np.int64)
    groups = 1
    for column in columns:  # two at a time, so that the keys stay small
        codes = column.ravel()[complete]
        size = int(codes.max(initial=0)) + 1
        group, groups = without_gaps(group.astype(np.int64) * size + codes, groups * size)
    member = np.empty(groups, np.int64)
    member[group] = complete
    out = np.full(there.size, -1, np.int32)
    out[complete] = group
    return out.reshape(there.shape), member


def _gathered(kind: str, values: Sequence[Value], index: Codes) -> _Parts:
    """The value that each row's index points at; -1: null."""
    if kind == "boolean":
        return Parts(flag=Flag(_where(values, True, index), _where(values, False, index)))
    column = column_of([*values, None])
    if column.codes is not None:
        return Parts(text=_Text(column.codes[index], column.texts))
    return Parts(number=None if column.numbers is None else _Number(column.numbers[index]))


def _where(values: Sequence[Value], wanted: bool, index: Codes) -> _Condition:
    return _Condition(lambda: _looked_up(index, (v is wanted for v in values)))


# Events.


def _start(rows: Rows) -> _Parts:
    return Parts(number=_Number(milliseconds_of(rows.lo)))


def _end(rows: Rows) -> _Parts:
    return Parts(number=_Number(milliseconds_of(rows.hi)))


def _duration(rows: Rows) -> _Parts:
    return Parts(number=_Number(milliseconds_of(rows.hi - rows.lo)))


def _zone(rows: Rows) -> _Parts:
    return Parts() if rows.space is None else _parts(rows.space.zone)


def _distance(a: Rows, b: Rows) -> _Parts:
    """Row by row: the last bit of NumPy's trigonometry is not the C library's, and distances are values."""
    first, second = a.space, b.space
    if first is None or second is None:
        return Parts()
    found = (separation(first.space(i), second.space(i)) for i in range(a.length))
    return Parts(number=_Number(np.array([np.nan if d is None else d for d in found], np.float64)))


def _within_box(rows: Rows, x0: Numbers, y0: Numbers, x1: Numbers, y1: Numbers) -> _Parts:
    if rows.space is None:
        return Parts()
    x, y = rows.space.point
    known = ~np.logical_or.reduce([np.isnan(c) for c in np.broadcast_arrays(x, y, x0, y0, x1, y1)])
    inside = (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
    return Parts(flag=Flag(_Condition(lambda: known & inside), _Condition(lambda: known & ~inside)))


def _within_radius(rows: Rows, x: Numbers, y: Numbers, radius: Numbers) -> _Parts:
    """NumPy's trigonometry may differ from the C library's in the last bits, so what is that near the border is decided
    as objects are."""
    spaces = rows.space
    if spaces is None:
        return Parts()
    px, py = spaces.point
    x, y, radius = np.broadcast_arrays(x, y, radius, px)[:3]
    with np.errstate(all="ignore"):
        known = ~(np.isnan(px) | np.isnan(x) | np.isnan(y) | np.isnan(radius))
        distance = np.where(spaces.geographic, _great_circle(px, py, x, y), np.hypot(px - x, py - y))
        inside = distance <= radius
        near = known & ~(np.abs(distance - radius) > 1e-6 * (np.abs(radius) + np.abs(distance) + 1))
    for row in map(int, np.flatnonzero(near)):
        inside[row] = within_radius(spaces.space(row), float(x[row]), float(y[row]), float(radius[row])) is True
    return Parts(flag=Flag(_Condition(lambda: known & inside), _Condition(lambda: known & ~inside)))


def _great_circle(lat1: Numbers, lon1: Numbers, lat2: Numbers, lon2: Numbers) -> Numbers:
    p, q = np.radians(lat1), np.radians(lat2)
    h = np.sin((q - p) / 2) ** 2 + np.cos(p) * np.cos(q) * np.sin(np.radians(lon2 - lon1) / 2) ** 2
    return np.asarray(2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, h))))


EVENT: dict[str, Callable[..., _Parts]] = {
    "start": _start,
    "end": _end,
    "duration": _duration,
    "zone": _zone,
    "distance": _distance,
    "within_box": _within_box,
    "within_radius": _within_radius,
}

# To and from columns.


def _parts(column: Column) -> _Parts:
    flags, flag = column.flags, None
    if flags is not None:
        flag = Flag(_Condition(lambda: flags == 1), _Condition(lambda: flags == 0))
    number = None if column.numbers is None else _Number(column.numbers, column.rests)
    return Parts(number, None if column.codes is None else _Text(column.codes, column.texts), flag)


def _column(parts: _Parts, length: int) -> Column:
    numbers = None if parts.number is None else _stretched(parts.number.values, length)
    rests = None if parts.number is None or parts.number.rests is None else _stretched(parts.number.rests, length)
    flags = None if parts.flag is None else _flags(parts.flag, length)
    if parts.text is None:
        return Column(length, numbers, None, (), flags, rests=rests)
    return Column(length, numbers, _stretched(parts.text.codes, length), parts.text.texts, flags, rests=rests)


def _flags(flag: Flag[_Condition], length: int) -> npt.NDArray[np.int8]:
    true, false = (_mask(c, length) for c in (flag.true, flag.false))
    return np.asarray(true.view(np.int8) - (~(true | false)).view(np.int8))


def _mask(condition: _Condition, length: int) -> Mask:
    return _stretched(condition.mask, length)


def _stretched(array: npt.NDArray[_Any], length: int) -> npt.NDArray[_Any]:
    return np.ascontiguousarray(np.broadcast_to(array, length))
