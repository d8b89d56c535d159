"""ECCO from text: structure, key words and names, errors with their places and hints."""

from __future__ import annotations

import pytest

from coincide.errors import RuleError
from coincide.expr.tree import Arithmetic, Compare, Literal, Reference
from coincide.lang.ecco.definition import Alt, As, Chain, Delay, Expression, Filter, Iter, Neg, Not, Ref, Sel, Valid, With, Within
from coincide.lang.ecco.parse import parse
from coincide.lang.ecco.print import print_file
from coincide.rulebook import load
from coincide.source import SourceText

A, B, C = Ref("a"), Ref("b"), Ref("c")


def body(text: str) -> Expression:
    return parse(SourceText("r.ecco", f"detect d = {text}")).definitions[0].body


def refusal(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        load(SourceText("r.ecco", text))
    found = caught.value.diagnostics[0]
    assert found.span is not None
    return f"{found.span.line}:{found.span.column}: {found.message}"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a ; b ; c", Chain(";", (A, B, C))),
        ("(a ; b) ; c", Chain(";", (Chain(";", (A, B)), C))),
        ("a ; b within 5s", Chain(";", (A, Within(B, 5000.0)))),
        ("(a ; b) within 5s", Within(Chain(";", (A, B)), 5000.0)),
        ("a | b + c", Alt((A, Chain("+", (B, C))))),
        ("a + b || c", Chain("+", (A, Chain("||", (B, C))))),
        ("a + 5s + b", Chain("+", (Delay(A, 5000.0), B))),
        ("a + b + 5", Delay(Chain("+", (A, B)), 5.0)),
        ("a b c", Chain(" ", (Chain(" ", (A, B)), C))),
        ("a b - c", Neg(Chain(" ", (A, B)), C)),
        ("a ; b - c", Chain(";", (A, Neg(B, C)))),
        ("a-b", Ref("a-b")),
        ("a -b", Neg(A, B)),
        ("(a)-b", Neg(A, B)),
        ("a before b", Chain("before", (A, B))),
        ("A BEFORE B", Chain("before", (Ref("A"), Ref("B")))),
        ("`before` ; `over`", Chain(";", (Ref("before"), Ref("over")))),
        ("¬ a over 1h", Not(A, 3_600_000.0)),
        ("a*{2,}", Iter(A, 2, None)),
        ("a*{2, by k}", Iter(A, 2, None, Reference("k"))),
        ("a*{2, 3 by k + 1}", Iter(A, 2, 3, Arithmetic("+", Reference("k"), Literal(1.0)))),
        ("a*{by = 2}", Filter(Iter(A), Compare("=", Reference("by"), Literal(2.0)))),
        ("a^ONCE over 1s", Sel(A, "ONCE", over=1000.0)),
        ("a^ONCE over 1s until b ; c", Chain(";", (Sel(A, "ONCE", over=1000.0, until=B), C))),
        ("a^ONCE until (b | c)", Sel(A, "ONCE", until=Alt((B, C)))),
        ("a^DISTINCT(k) over 1s", Sel(A, "DISTINCT", Reference("k"), over=1000.0)),
        ("1 of (a, b)", Alt((A, B))),
        ("2 of (a, b) within 1s", Within(Chain("+", (A, B)), 1000.0)),
        ("2 of (a, b, c)", Alt((Chain("+", (A, B)), Chain("+", (A, C)), Chain("+", (B, C))))),
        ("a*{,2}", Iter(A, None, 2)),
        ("a*{2} as x", As(Iter(A, 2, 2), "x")),
        ("a valid 1min ; b", Chain(";", (Valid(A, 60_000.0), B))),
        ("a^2 over 1s every 500ms", Sel(A, "NTH", number=2.0, over=1000.0, every=500.0)),
        ("a^LESS -3 over 1s", Sel(A, "LESS", number=-3.0, over=1000.0)),
    ],
)
def test_structure(text: str, tree: Expression) -> None:
    assert body(text) == tree


def test_braces_after_a_star_are_bounds_or_a_filter() -> None:
    assert isinstance(body("a*{3}"), Iter)
    assert isinstance(body("a*{count > 3}"), Filter)


def test_with_governs_the_whole_expression() -> None:
    tree = body("a ; b where x = 1 with recent, subset")
    assert isinstance(tree, With)
    assert isinstance(tree.operand, Filter)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("detect = a", "1:8: expected a name, found '='"),
        ("detekt d = a", "1:1: expected 'detect', 'let' or another statement, found 'detekt'"),
        ("detect d = a )", "1:14: expected an operator or a new statement, found ')'"),
        ("detect d = a ; ; b", "1:16: expected an event expression, found ';'"),
        ("detect d = NULL ; b", "1:12: NULL must stand between two operands of ';'"),
        ("detect d = a - NULL", "1:16: NULL must stand between two operands of ';'"),
        ("detect d = not a ; b", "1:12: 'not' needs 'over T' here"),
        ("detect d = a ; not b over 5 ; x* ; c ; not e", "1:40: 'not' needs 'over T' here"),
        ("detect d = a ; x* ; not c over 5", "1:21: only one of NULL, not and * may stand between two operands"),
        ("detect d = a^0", "1:14: must be positive"),
        ("detect d = a^ONCE", "1:18: expected 'over' or 'until', found end of file"),
        ("detect d = 3 of (a, b)", "1:12: there are only 2 to take 3 of"),
        ("detect d = 0 of (a, b)", "1:12: must be positive"),
        ("detect d = 4 of (a, b, c, d, e, f, g, h, i, j)", "1:12: there are more than 200 ways to take 4 of 10"),
        ("detect d = a valid 0", "1:20: must be positive"),
        ("detect d = (a ; b) within -5", "1:27: must be positive"),
        ("detect d = (a ; b) within 1hh", "1:28: unknown unit of time 'hh'"),
        ("detect d = a*{0}", "1:14: empty bounds"),
        ("detect d = a with sometimes", "1:19: expected a policy, found 'sometimes'"),
        ("detect d = (a as x)* ; b where x.v = 1", "1:32: unknown alias 'x'"),
        ("detect d = a ; b where start(z) > 3", "1:30: unknown alias 'z'"),
        ("detect d = a ; (b - c) where a.k = c.k", "1:36: unknown alias 'c'"),
        ("detect d = a give x.v", "1:19: unknown alias 'x'"),
        ("detect d = a give a.time", "1:19: 'time' is not an attribute"),
        ("detect d = d ; a", "1:1: definitions refer to each other in a circle: d, d"),
        ("space s = t\ndetect d = a", "1:11: unknown space 't'"),
        ("detect d = a @ box(1, 2, 3)", "1:16: expected 4 or 6 numbers, found '3'"),
        ("detect d = " + "(" * 200 + "a" + ")" * 200, "1:112: the expression is nested more than 100 deep"),
        ("detect d = a" + " - b" * 200, "1:412: the expression is nested more than 100 deep"),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert refusal(text) == message


def test_hints() -> None:
    with pytest.raises(RuleError) as caught:
        load(SourceText("r.ecco", "space lab = circle(0, 0, 1)\ndetect d = a @ lap"))
    assert caught.value.diagnostics[0].hint == "did you mean 'lab'?"


def test_print_keeps_the_statements() -> None:
    text = """
        option skew 100 ppm
        option maybe keep
        option semantics point
        option policy recent, subset, precision(data, 33.5%)
        option offset 3
        stamp reading, any hops path max 2s drift 20ppm error 3 delay 2
        duplicates last pos by tag, `where` within 1h
        space lab = box(0, 0, -1, 10, 10, 6.5)
        space here = lab
        let p per k, `over` = (a as x ; `null` as y where x.k = y.not and y.s = 'it''s') @ zone('z1', 'z2') with recent
        detect d = (p d ; NULL{v > 1} ; e within 2 d valid 3) - (c valid 1h) @ here give x = p.k, p.k
    """
    file = parse(SourceText("r.ecco", text))
    printed = print_file(file)
    assert parse(SourceText("r.ecco", printed)) == file
    assert len(printed.splitlines()) == 13


def test_a_misspelt_key_word_is_read_as_an_event() -> None:
    with pytest.raises(RuleError) as raised:
        parse(SourceText("r.ecco", "detect x = (a ; b) witin 5s"))
    assert "'witin' was read as an event: did you mean 'within'?" in str(raised.value)


def test_runs_by_different_values_want_a_bound() -> None:
    warnings = load(SourceText("r.ecco", "detect d = a*{3 by k}\ndetect e = a*{3 by k} within 1h\n")).warnings
    assert [(w.span.line, w.message) for w in warnings if w.span] == [
        (1, "the elements of the iteration are kept for ever; add 'within T'")
    ]


def test_keys_at_the_end_are_sent_to_their_place() -> None:
    with pytest.raises(RuleError) as raised:
        parse(SourceText("rules.ecco", "detect x = (a ; b) within 1h per k"))
    assert "keys stand before the '='" in str(raised.value)
