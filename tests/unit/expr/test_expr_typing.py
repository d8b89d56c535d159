from __future__ import annotations

import pytest

from coincide.errors import RuleError
from coincide.expr.parse import parse_expression
from coincide.expr.tree import Reference, with_aliases
from coincide.expr.typing import check_condition, infer

TYPES = {"x": "number", "t": "timestamp", "k": "string", "b": "boolean"}


def types(node: Reference) -> str | None:
    return TYPES.get(node.name)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x + t", "number"),
        ("x = t and k like 'a%'", "boolean"),
        ("coalesce(null, k)", "string"),
        ("if(b, x, unknown)", "number"),
        ("unknown", None),
        ("coalesce(null, unknown)", None),
        ("min(k, 'a')", "string"),
        ("concat(x, k)", "string"),
        ("unknown = 1 and unknown = 'a'", "boolean"),
        ("start(A) + distance(A, A)", "number"),
        ("zone()", "string"),
        ("within_box(A, 0, 0, x, x)", "boolean"),
        ("x between 1 and t", "boolean"),
        ("b = true", "boolean"),
    ],
)
def test_types(text: str, kind: str | None) -> None:
    assert infer(with_aliases(parse_expression(text), frozenset("A")), types) == kind


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("A.x = A.k", 5, "cannot compare a number with a string"),
        ("(x) # why\n != (k)", 2, "cannot compare a number with a string"),
        ("x in (1, 'a')", 3, "cannot compare a number with a string"),
        ("k not between 'a' and 2", 3, "cannot compare a string with a number"),
        ("length(x) = 1", 1, "'length' wants a string, not a number"),
        ("1 + abs(k)", 5, "'abs' wants a number, not a string"),
        ("concat(k, b)", 1, "'concat' wants a number or a string, not a boolean"),
        ("coalesce(x, k) = 1", 1, "arguments of 'coalesce' differ in type"),
        ("min(x, k) = 1", 1, "arguments of 'min' differ in type"),
        ("if(b, x, k)", 1, "arguments of 'if' differ in type"),
        ("if(x, 1, 2)", 1, "'if' wants a boolean, not a number"),
        ("x + k", 3, "'+' wants a number, not a string"),
        ("-k", 1, "'-' wants a number, not a string"),
        ("b and b and x", 9, "'and' wants a boolean, not a number"),
        ("k or b", 3, "'or' wants a boolean, not a string"),
        ("not x", 1, "'not' wants a boolean, not a number"),
        ("x like 'a'", 3, "'like' wants a string, not a number"),
        ("start(x) > 1", 1, "'start' wants an alias"),
        ("distance(A, x) > 1", 1, "'distance' wants an alias"),
        ("within_radius(0, k, 1)", 1, "'within_radius' wants a number, not a string"),
        ("x + 1", 1, "a condition must be a boolean, not a number"),
    ],
)
def test_errors(text: str, column: int, message: str) -> None:
    with pytest.raises(RuleError) as error:
        check_condition(with_aliases(parse_expression(text), frozenset("A")), types)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.message == message
    assert diagnostic.span is not None
    assert diagnostic.span.column == column


def test_what_is_unknown_may_be_a_condition() -> None:
    check_condition(parse_expression("unknown"), types)
    check_condition(parse_expression("null"), types)
