"""Functions of SQL expressions: those of all languages, and SQL's own."""

from __future__ import annotations

import re

from coincide.expr.functions import ANY, BOOLEAN, FUNCTIONS, NUMBER, TEXT, Function, number_text
from coincide.expr.tree import Arithmetic, Call, Compare, Expr, Literal, transform
from coincide.lang.matchrecognize.definition import Case, Cast
from coincide.model.event import Value
from coincide.model.numbers import is_number, number_of, number_of_text

NAVIGATIONS = ("FIRST", "LAST", "PREV", "NEXT")
FACTS = ("MATCH_NUMBER", "MATCH_ROWTIME", "TIMED_OUT")
AGGREGATES = {
    **dict.fromkeys(("sum", "avg", "min", "max", "array_agg", "bool_and", "bool_or"), (1, 1)),
    "count": (0, 1),
    "min_by": (2, 2),
    "max_by": (2, 2),
}
"""With the least and the greatest number of arguments."""

INTEGERS = ("int", "integer", "bigint", "smallint", "tinyint", "long")
DOUBLES = ("double", "float", "real", "decimal")
TEXTS = ("string", "varchar", "char", "text")
CASTS = {
    **dict.fromkeys(INTEGERS, "cast_integer"),
    **dict.fromkeys(DOUBLES, "cast_number"),
    **dict.fromkeys(TEXTS, "cast_text"),
    "boolean": "cast_boolean",
}

_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*", re.ASCII)


def spelling(value: Value) -> str:
    """A value as text: numbers and booleans by their JSON spelling."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value) if is_number(value) else str(value)


def cast_number(value: Value) -> float | None:
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        number = number_of_text(found[1]) if found else None
        return number if number is not None and number - number == 0 else None
    return value if is_number(value) else None


def cast_integer(value: Value) -> float | None:
    number = cast_number(value)
    return None if number is None else number_of(int(number))


def cast_boolean(value: Value) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def joined(left: Value, right: Value) -> str:
    return spelling(left) + spelling(right)


OWN: dict[str, Function] = {
    function.name: function
    for function in (
        Function("nullif", 2, 2, (ANY,), ANY, None),
        Function("least", 1, None, ("number or string, the same",), "the same", FUNCTIONS["min"].scalar),
        Function("greatest", 1, None, ("number or string, the same",), "the same", FUNCTIONS["max"].scalar),
        Function("||", 2, 2, (ANY,), TEXT, joined),
        Function("cast_number", 1, 1, (ANY,), NUMBER, cast_number),
        Function("cast_integer", 1, 1, (ANY,), NUMBER, cast_integer),
        Function("cast_text", 1, 1, (ANY,), TEXT, spelling),
        Function("cast_boolean", 1, 1, (ANY,), BOOLEAN, cast_boolean),
    )
}

SQL_FUNCTIONS: dict[str, Function] = {
    **{name: function for name, function in FUNCTIONS.items() if not function.aliases and name not in AGGREGATES},
    **OWN,
}
"""All that a lowered expression may call."""

CALLABLE = {name: f for name, f in SQL_FUNCTIONS.items() if name != "||" and not name.startswith("cast_")}
"""Those that are written as calls."""


def lowered(tree: Expr) -> Expr:
    """The tree without what only SQL writes: CASE, CAST, NULLIF and `||` as functions."""
    return transform(tree, _lowered)


def _lowered(node: Expr) -> Expr:
    match node:
        case Arithmetic("||", left, right):
            return Call("||", (left, right), span=node.span)
        case Cast(operand, kind):
            return Call(CASTS[kind], (operand,), span=node.span)
        case Call("nullif", (value, other)):
            return Call("if", (Compare("=", value, other), Literal(None), value), span=node.span)
        case Case(subject, tests, values, otherwise):
            result: Expr = Literal(None) if otherwise is None else otherwise
            for test, value in zip(reversed(tests), reversed(values), strict=True):
                holds = test if subject is None else Compare("=", subject, test)
                result = Call("if", (holds, value, result), span=node.span)
            return result
    return node
