"""Expressions over parts: the one lowering that all back ends but the scalar one share.

A value may be a number, a text or a boolean, and which one may differ from row to row. A back end keeps a value as up to
three *parts* (as model/column.py does), at most one of them with something in a row; a part that is never there is None.
What mixed types and nulls mean is said here, once. A back end supplies an `Algebra`: the primitives on numbers, texts and
conditions.

A boolean is a pair of *conditions*: where it is true and where it is false; where neither holds it is null. So three-valued
logic needs only `both` and `either`, `not` costs nothing, and a back end that only asks where a tree is true can leave the
other half alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from coincide.expr.functions import FUNCTIONS, TEXT, Function, number_text
from coincide.expr.patterns import like
from coincide.expr.tree import (
    Alias,
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Reference,
)
from coincide.model.numbers import is_number

N = TypeVar("N")
T = TypeVar("T")
C = TypeVar("C")
X = TypeVar("X")

INVERSE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
LIKE = Function("like", 2, 2, (TEXT, TEXT), "boolean", like)


class Unsupported(Exception):
    """A back end cannot do this; the reason is for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Flag(Generic[C]):
    """A three-valued boolean: conditions that never hold together."""

    true: C
    false: C

    def __invert__(self) -> Flag[C]:
        return Flag(self.false, self.true)


@dataclass(frozen=True)
class Parts(Generic[N, T, C]):
    """A value by its types; no part at all is null."""

    number: N | None = None
    text: T | None = None
    flag: Flag[C] | None = None


class Algebra(Protocol[N, T, C]):
    """Primitives over numbers `N` and texts `T`, which may be null, and two-valued conditions `C`."""

    def number(self, value: float | None) -> N: ...
    def text(self, value: str | None) -> T: ...
    def always(self, value: bool) -> C: ...
    def reference(self, node: Reference) -> Parts[N, T, C]: ...

    def both(self, a: C, b: C) -> C: ...
    def either(self, a: C, b: C) -> C: ...
    def negate(self, a: C) -> C: ...
    def choose(self, test: C, yes: C, no: C) -> C: ...

    def has_number(self, a: N) -> C: ...
    def compare_numbers(self, op: str, a: N, b: N) -> C:
        """Holds where both are there and compare so."""

    def number_in(self, a: N, values: Sequence[float]) -> C: ...
    def choose_number(self, test: C, yes: N, no: N) -> N: ...
    def unary(self, name: str, a: N) -> N:
        """One of - abs round floor ceil sqrt."""

    def binary(self, name: str, a: N, b: N) -> N:
        """One of + - * / % power min max round (to digits); null where an operand is or the result is not finite."""

    def has_text(self, a: T) -> C: ...
    def compare_texts(self, op: str, a: T, b: T) -> C: ...
    def text_in(self, a: T, values: Sequence[str]) -> C: ...
    def choose_text(self, test: C, yes: T, no: T) -> T: ...
    def extreme_text(self, name: str, a: T, b: T) -> T:
        """min or max; null where an operand is."""

    def spell(self, a: N) -> T:
        """Numbers as JSON spells them."""

    def call(self, function: Function, texts: Sequence[T]) -> Parts[N, T, C]:
        """A function of texts; null where an argument is."""

    def event(self, name: str, aliases: Sequence[str | None], numbers: Sequence[N]) -> Parts[N, T, C]:
        """A function of events, such as start, distance, within_box."""


def lower(tree: Expr, algebra: Algebra[N, T, C]) -> Parts[N, T, C]:
    return Lowering(algebra).lower(tree)


def truth(tree: Expr, algebra: Algebra[N, T, C]) -> C:
    """Where the tree holds: is true, neither false nor null nor of another type."""
    flag = lower(tree, algebra).flag
    return algebra.always(False) if flag is None else flag.true


class Lowering(Generic[N, T, C]):
    """One method a node. Equal subtrees are lowered once."""

    def __init__(self, algebra: Algebra[N, T, C]) -> None:
        self.algebra = algebra
        self._done: dict[Expr, Parts[N, T, C]] = {}

    def lower(self, tree: Expr) -> Parts[N, T, C]:
        if tree not in self._done:
            method: Callable[[Any], Parts[N, T, C]] = getattr(self, "_" + type(tree).__name__.lower())
            self._done[tree] = method(tree)
        return self._done[tree]

    def _literal(self, node: Literal) -> Parts[N, T, C]:
        value, algebra = node.value, self.algebra
        if isinstance(value, bool):
            return Parts(flag=Flag(algebra.always(value), algebra.always(not value)))
        if isinstance(value, str):
            return Parts(text=algebra.text(value))
        return Parts() if value is None else Parts(number=algebra.number(value))

    def _reference(self, node: Reference) -> Parts[N, T, C]:
        return self.algebra.reference(node)

    # Logic.

    def _and(self, node: And) -> Parts[N, T, C]:
        return Parts(flag=self._conjunction([self._flag(o) for o in node.operands]))

    def _or(self, node: Or) -> Parts[N, T, C]:
        return Parts(flag=~self._conjunction([~self._flag(o) for o in node.operands]))

    def _conjunction(self, flags: list[Flag[C]]) -> Flag[C]:
        true = balanced(self.algebra.both, [f.true for f in flags])
        return Flag(true, balanced(self.algebra.either, [f.false for f in flags]))

    def _flag(self, tree: Expr) -> Flag[C]:
        """What is not a boolean counts as null."""
        return self.lower(tree).flag or Flag(self.algebra.always(False), self.algebra.always(False))

    def _not(self, node: Not) -> Parts[N, T, C]:
        flag = self.lower(node.operand).flag
        return Parts(flag=None if flag is None else ~flag)

    def _isnull(self, node: IsNull) -> Parts[N, T, C]:
        there = self._present(self.lower(node.operand))
        flag = Flag(self.algebra.negate(there), there)
        return Parts(flag=~flag if node.negated else flag)

    def _present(self, value: Parts[N, T, C]) -> C:
        algebra, conditions = self.algebra, []
        if value.number is not None:
            conditions.append(algebra.has_number(value.number))
        if value.text is not None:
            conditions.append(algebra.has_text(value.text))
        if value.flag is not None:
            conditions.append(algebra.either(value.flag.true, value.flag.false))
        return balanced(algebra.either, conditions) if conditions else algebra.always(False)

    # Comparisons: null where an operand is null or the types differ, so parts only meet their like.

    def _compare(self, node: Compare) -> Parts[N, T, C]:
        left, right = self.lower(node.left), self.lower(node.right)
        true = self._comparison(node.op, left, right)
        false = self._comparison(INVERSE[node.op], left, right)
        return Parts(flag=None if true is None or false is None else Flag(true, false))

    def _comparison(self, op: str, a: Parts[N, T, C], b: Parts[N, T, C]) -> C | None:
        algebra, conditions = self.algebra, []
        if a.number is not None and b.number is not None:
            conditions.append(algebra.compare_numbers(op, a.number, b.number))
        if a.text is not None and b.text is not None:
            conditions.append(algebra.compare_texts(op, a.text, b.text))
        if a.flag is not None and b.flag is not None:
            conditions.append(self._compare_flags(op, a.flag, b.flag))
        return balanced(algebra.either, conditions) if conditions else None

    def _compare_flags(self, op: str, a: Flag[C], b: Flag[C]) -> C:
        """False is less than true."""
        both, either = self.algebra.both, self.algebra.either
        cases = {
            "<": lambda: both(a.false, b.true),
            ">": lambda: both(a.true, b.false),
            "=": lambda: either(both(a.true, b.true), both(a.false, b.false)),
        }
        return balanced(either, [cases[c]() for c in ("<>" if op == "!=" else op)])

    def _in(self, node: In) -> Parts[N, T, C]:
        """`x in (a, b)` is `x = a or x = b`; many constants are looked up at once."""
        values = [o.value for o in node.options if isinstance(o, Literal) and (isinstance(o.value, str) or is_number(o.value))]
        if len(values) == len(node.options) > 2:
            tests = self._membership(self.lower(node.operand), values)
        else:
            tests = self._flag(Or(tuple(Compare("=", node.operand, o) for o in node.options)))
        return Parts(flag=~tests if node.negated else tests)

    def _membership(self, value: Parts[N, T, C], options: Sequence[str | float]) -> Flag[C]:
        numbers = [o for o in options if is_number(o)]
        texts = [o for o in options if isinstance(o, str)]
        algebra, nowhere = self.algebra, self.algebra.always(False)
        found, missed = [nowhere], [nowhere]
        if value.number is not None and numbers:
            found.append(algebra.number_in(value.number, numbers))
            if not texts:  # an option of another type compares to null, so the whole is never false
                missed.append(algebra.both(algebra.has_number(value.number), algebra.negate(found[-1])))
        if value.text is not None and texts:
            found.append(algebra.text_in(value.text, texts))
            if not numbers:
                missed.append(algebra.both(algebra.has_text(value.text), algebra.negate(found[-1])))
        return Flag(balanced(algebra.either, found[1:] or found), balanced(algebra.either, missed[1:] or missed))

    def _between(self, node: Between) -> Parts[N, T, C]:
        both: Expr = And((Compare(">=", node.operand, node.low), Compare("<=", node.operand, node.high)))
        return self.lower(Not(both) if node.negated else both)

    def _like(self, node: Like) -> Parts[N, T, C]:
        texts = _all([self.lower(node.operand).text, self.lower(node.pattern).text])
        flag = None if texts is None else self.algebra.call(LIKE, texts).flag
        return Parts(flag=~flag if node.negated and flag is not None else flag)

    # Numbers.

    def _arithmetic(self, node: Arithmetic) -> Parts[N, T, C]:
        return self._binary(node.op, [self.lower(node.left), self.lower(node.right)])

    def _binary(self, name: str, operands: list[Parts[N, T, C]]) -> Parts[N, T, C]:
        numbers = _all([o.number for o in operands])
        return Parts(number=None if numbers is None else _folded(lambda a, b: self.algebra.binary(name, a, b), numbers))

    def _negate(self, node: Negate) -> Parts[N, T, C]:
        return self._unary("-", self.lower(node.operand))

    def _unary(self, name: str, operand: Parts[N, T, C]) -> Parts[N, T, C]:
        return Parts(number=None if operand.number is None else self.algebra.unary(name, operand.number))

    # Functions.

    def _call(self, node: Call) -> Parts[N, T, C]:
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise Unsupported(f"function '{node.name}'")
        if function.aliases:
            return self._event_call(node)
        arguments = [self.lower(a) for a in node.arguments]
        if node.name == "coalesce":
            return _right(lambda a, rest: self._choice(self._present(a), a, rest), arguments)
        if node.name == "if":
            return self._choice(self._flag(node.arguments[0]).true, arguments[1], arguments[2])
        if node.name in ("min", "max"):
            return self._extreme(node.name, arguments)
        if node.name == "power" or (node.name == "round" and len(arguments) > 1):
            return self._binary(node.name, arguments)
        if function.argument(0) == "number":
            return self._unary(node.name, arguments[0])
        texts = _all([self._spelled(a) for a in node.arguments] if node.name == "concat" else [a.text for a in arguments])
        return Parts() if texts is None else self.algebra.call(function, texts)

    def _choice(self, test: C, yes: Parts[N, T, C], no: Parts[N, T, C]) -> Parts[N, T, C]:
        algebra = self.algebra

        def pick(choose: Callable[[C, X, X], X], null: Callable[[], X], a: X | None, b: X | None) -> X | None:
            if a is None and b is None:
                return None
            return choose(test, null() if a is None else a, null() if b is None else b)

        return Parts(
            pick(algebra.choose_number, lambda: algebra.number(None), yes.number, no.number),
            pick(algebra.choose_text, lambda: algebra.text(None), yes.text, no.text),
            pick(self._choose_flag, lambda: Flag(algebra.always(False), algebra.always(False)), yes.flag, no.flag),
        )

    def _choose_flag(self, test: C, yes: Flag[C], no: Flag[C]) -> Flag[C]:
        choose = self.algebra.choose
        return Flag(choose(test, yes.true, no.true), choose(test, yes.false, no.false))

    def _extreme(self, name: str, arguments: list[Parts[N, T, C]]) -> Parts[N, T, C]:
        texts = _all([a.text for a in arguments])
        text = None if texts is None else _folded(lambda a, b: self.algebra.extreme_text(name, a, b), texts)
        return Parts(self._binary(name, arguments).number, text)

    def _spelled(self, tree: Expr) -> T | None:
        """An argument of `concat` as text."""
        if isinstance(tree, Literal) and is_number(tree.value):
            return self.algebra.text(number_text(tree.value))
        value = self.lower(tree)
        if value.number is None:
            return value.text
        spelled = self.algebra.spell(value.number)
        return spelled if value.text is None else self.algebra.choose_text(self.algebra.has_text(value.text), value.text, spelled)

    def _event_call(self, node: Call) -> Parts[N, T, C]:
        """An alias that is left out is the event under test."""
        aliases = [a.name for a in node.arguments if isinstance(a, Alias)]
        numbers = _all([self.lower(a).number for a in node.arguments if not isinstance(a, Alias)])
        return Parts() if numbers is None else self.algebra.event(node.name, aliases or [None], numbers)


def balanced(join: Callable[[X, X], X], items: Sequence[X]) -> X:
    """Joined as a tree of small depth, so that a condition of thousands of terms needs no deep recursion."""
    if len(items) == 1:
        return items[0]
    middle = len(items) // 2
    return join(balanced(join, items[:middle]), balanced(join, items[middle:]))


def _folded(join: Callable[[X, X], X], items: Sequence[X]) -> X:
    result = items[0]
    for item in items[1:]:
        result = join(result, item)
    return result


def _right(join: Callable[[X, X], X], items: Sequence[X]) -> X:
    result = items[-1]
    for item in reversed(items[:-1]):
        result = join(item, result)
    return result


def _all(items: Sequence[X | None]) -> list[X] | None:
    """All of them, or None if one is missing: then the result is always null."""
    found = [i for i in items if i is not None]
    return found if len(found) == len(items) else None
