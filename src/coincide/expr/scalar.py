"""Expressions on objects: closures over plain values. The reference that the other back ends are held equal to."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from coincide.expr.functions import FUNCTIONS, NUMBER, Function, finite
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
from coincide.model.compound import single
from coincide.model.event import Event, Value
from coincide.model.numbers import is_number, same_kind
from coincide.model.space import separation, within_box, within_radius
from coincide.model.stamp import MILLISECOND

Evaluate = Callable[[Any], Value]
"""From an environment (an event, or what the scope says) to a value."""


class Scope(Protocol):
    """How references are read in some environment."""

    def reference(self, node: Reference) -> Evaluate: ...
    def event(self, alias: str | None) -> Callable[[Any], Event | None]: ...


def compile_scalar(tree: Expr, scope: Scope, functions: Mapping[str, Function] = FUNCTIONS) -> Evaluate:
    """The expression as a function of the scope's environment."""
    return ScalarCompiler(scope, functions).compile(tree)


def condition(tree: Expr, scope: Scope, functions: Mapping[str, Function] = FUNCTIONS) -> Callable[[Any], bool]:
    """Holds only when the expression is true, not when it is null."""
    evaluate = compile_scalar(tree, scope, functions)
    return lambda environment: evaluate(environment) is True


class EventScope:
    """The environment is the event under test; envelope names win over attributes."""

    def reference(self, node: Reference) -> Evaluate:
        return event_field(node.name)

    def event(self, alias: str | None) -> Callable[[Any], Event | None]:
        return lambda event: event


class AliasScope:
    """The environment maps aliases to events (or has none for them)."""

    def reference(self, node: Reference) -> Evaluate:
        read, alias = event_field(node.name), node.alias

        def evaluate(environment: Mapping[str | None, Event]) -> Value:
            event = environment.get(alias)
            return None if event is None else read(event)

        return evaluate

    def event(self, alias: str | None) -> Callable[[Any], Event | None]:
        return lambda environment: environment.get(alias)


def event_field(name: str) -> Callable[[Event], Value]:
    """How a name is read from an event."""
    special = ENVELOPE_FIELDS.get(name)
    return special if special is not None else lambda event: single(event.attributes.get(name))


ENVELOPE_FIELDS: dict[str, Callable[[Event], Value]] = {
    "type": lambda event: event.type,
    "id": lambda event: event.id,
    "source": lambda event: event.source,
    "time": lambda event: event.hi / MILLISECOND,
}

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(op: Callable[[Any, Any], bool], a: Value, b: Value) -> bool | None:
    """Null where an operand is null or the types differ."""
    if type(a) is type(b):
        return op(a, b) if a is not None else None
    return op(a, b) if is_number(a) and is_number(b) else None


def divide(a: float, b: float) -> float | None:
    return a / b if b else None


def remainder(a: float, b: float) -> float | None:
    """With the sign of the dividend."""
    return math.fmod(a, b) if b else None


ARITHMETIC: dict[str, Callable[[float, float], float | None]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "%": remainder,
}


def arithmetic(op: Callable[[float, float], float | None], a: Value, b: Value) -> float | None:
    """In doubles."""
    if type(a) is not float or type(b) is not float:
        if not is_number(a) or not is_number(b):
            return None
        a, b = float(a), float(b)
    result = op(a, b)
    return None if result is None else finite(result)


def negation(value: Value) -> bool | None:
    return not value if type(value) is bool else None


class ScalarCompiler:
    """One method a node. A language whose values or functions go further overrides what it must."""

    def __init__(self, scope: Scope, functions: Mapping[str, Function]) -> None:
        self.scope = scope
        self.functions = functions

    def compile(self, tree: Expr) -> Evaluate:
        method: Callable[[Any], Evaluate] = getattr(self, "_" + type(tree).__name__.lower())
        return method(tree)

    def _literal(self, node: Literal) -> Evaluate:
        value = node.value
        return lambda _: value

    def _reference(self, node: Reference) -> Evaluate:
        return self.scope.reference(node)

    def _and(self, node: And) -> Evaluate:
        return self._connective(node.operands, False)

    def _or(self, node: Or) -> Evaluate:
        return self._connective(node.operands, True)

    def _connective(self, operands: tuple[Expr, ...], decisive: bool) -> Evaluate:
        """One operand that is `decisive` decides; otherwise a null (or no boolean) makes it null."""
        parts = [self.compile(o) for o in operands]

        def evaluate(environment: Any) -> bool | None:
            result: bool | None = not decisive
            for part in parts:
                value = part(environment)
                if value is decisive:
                    return decisive
                if value is not (not decisive):
                    result = None
            return result

        return evaluate

    def _not(self, node: Not) -> Evaluate:
        operand = self.compile(node.operand)
        return lambda environment: negation(operand(environment))

    def _compare(self, node: Compare) -> Evaluate:
        op, left, right = COMPARE[node.op], self.compile(node.left), self.compile(node.right)
        return lambda environment: compare(op, left(environment), right(environment))

    def _in(self, node: In) -> Evaluate:
        """`x in (a, b)` is `x = a or x = b`."""
        tests: Expr = Or(tuple(Compare("=", node.operand, o) for o in node.options))
        return self.compile(Not(tests) if node.negated else tests)

    def _between(self, node: Between) -> Evaluate:
        both: Expr = And((Compare(">=", node.operand, node.low), Compare("<=", node.operand, node.high)))
        return self.compile(Not(both) if node.negated else both)

    def _like(self, node: Like) -> Evaluate:
        operand, pattern, negated = self.compile(node.operand), self.compile(node.pattern), node.negated

        def evaluate(environment: Any) -> bool | None:
            text, form = operand(environment), pattern(environment)
            if type(text) is not str or type(form) is not str:
                return None
            return like(text, form) is not negated

        return evaluate

    def _isnull(self, node: IsNull) -> Evaluate:
        operand, negated = self.compile(node.operand), node.negated
        return lambda environment: (operand(environment) is None) is not negated

    def _arithmetic(self, node: Arithmetic) -> Evaluate:
        op, left, right = ARITHMETIC[node.op], self.compile(node.left), self.compile(node.right)
        return lambda environment: arithmetic(op, left(environment), right(environment))

    def _negate(self, node: Negate) -> Evaluate:
        operand = self.compile(node.operand)

        def evaluate(environment: Any) -> float | None:
            value = operand(environment)
            return -float(value) if is_number(value) else None

        return evaluate

    def _call(self, node: Call) -> Evaluate:
        function = self.functions[node.name]
        if function.aliases:
            return self._event_call(node, function)
        arguments = [self.compile(a) for a in node.arguments]
        if node.name == "coalesce":
            return lambda environment: next((v for a in arguments if (v := a(environment)) is not None), None)
        if node.name == "if":
            test, yes, no = arguments
            return lambda environment: yes(environment) if test(environment) is True else no(environment)
        return _plain_call(function, arguments)

    def _event_call(self, node: Call, function: Function) -> Evaluate:
        """Functions of events: an alias that is left out is the event under test."""
        given = [a for a in node.arguments if isinstance(a, Alias)]
        rest = [self.compile(a) for a in node.arguments if not isinstance(a, Alias)]
        events = [self.scope.event(a.name) for a in given or [Alias()]]
        meaning = EVENT_FUNCTIONS[node.name]

        def evaluate(environment: Any) -> Value:
            found = [e(environment) for e in events]
            values = [r(environment) for r in rest]
            if any(f is None for f in found) or not all(map(is_number, values)):
                return None
            return meaning(*found, *map(float, values))  # type: ignore[arg-type]

        return evaluate


EVENT_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "start": lambda event: event.lo / MILLISECOND,
    "end": lambda event: event.hi / MILLISECOND,
    "duration": lambda event: (event.hi - event.lo) / MILLISECOND,
    "distance": lambda a, b: separation(a.space, b.space),
    "zone": lambda event: event.space.zone if event.space else None,
    "within_box": lambda event, *box: within_box(event.space, *box),
    "within_radius": lambda event, *circle: within_radius(event.space, *circle),
}

TYPES: dict[str, tuple[type, ...]] = {
    "number": (float, int),
    "string": (str,),
    "boolean": (bool,),
    "number or string": (float, int, str),
    "number or string, the same": (float, int, str),
    "any": (float, int, str, bool),
}


def _plain_call(function: Function, arguments: list[Evaluate]) -> Evaluate:
    wanted = [TYPES[function.argument(i)] for i in range(len(arguments))]
    same = function.argument(0).endswith("the same")
    computes = function.argument(0) == NUMBER  # in doubles; others only compare or spell
    scalar = function.scalar
    assert scalar is not None

    def evaluate(environment: Any) -> Value:
        values = [a(environment) for a in arguments]
        if any(type(v) not in w for v, w in zip(values, wanted, strict=True)):
            return None
        if same and not all(same_kind(values[0], v) for v in values):
            return None
        if computes:
            return scalar(*map(float, values))  # type: ignore[arg-type]
        return scalar(*values)

    return evaluate
