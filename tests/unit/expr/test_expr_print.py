from __future__ import annotations

import pytest

from coincide.expr.parse import parse_expression
from coincide.expr.print import expression_text
from coincide.expr.tree import with_aliases

IDENTITIES = [
    "a or b and not c",
    "(a or b) and c",
    "a or (b or c)",
    "a or b or c",
    "not not a",
    "(a = b) = c",
    "not a = b",
    "(not a) = b",
    "a - b - c",
    "a - (b - c)",
    "a + b * -c",
    "-(a + b)",
    "--a",
    "a - -3",
    "a-b - c.d",
    "x in (1, 'it''s', null, true)",
    "x not in (a or b)",
    "x between 1 and 2 + y",
    "x not between -1.5 and 1e+22",
    "s like 'a%'",
    "s not like t",
    "x is null",
    "x + 1 is not null",
    "if(a, b, coalesce(c, 1))",
    "start()",
    "within_box(0, 0, 1, 1)",
]


@pytest.mark.parametrize("text", IDENTITIES)
def test_prints_as_it_was_written(text: str) -> None:
    assert expression_text(parse_expression(text)) == text


@pytest.mark.parametrize(
    ("written", "printed"),
    [("A AND B == 1", "A and B = 1"), ("((a))", "a"), ("5 minutes", "300000"), ('"it\'s"', "'it''s'"), ("a <> 1.0", "a != 1")],
)
def test_one_spelling(written: str, printed: str) -> None:
    assert expression_text(parse_expression(written)) == printed


def test_aliases() -> None:
    tree = with_aliases(parse_expression("distance(A, b-c) < A.x.y"), frozenset({"A", "b-c"}))
    assert expression_text(tree) == "distance(A, b-c) < A.x.y"
