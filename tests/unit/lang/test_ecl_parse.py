"""ECL's grammar, names and errors (section 2 of the specification), mentions (5) and digests (11)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from coincide.errors import RuleError
from coincide.expr.parse import parse_expression
from coincide.expr.tree import Expr
from coincide.lang.ecl.definition import (
    Accumulate,
    Correlation,
    DoUnless,
    Fail,
    File,
    Loop,
    Machine,
    Mode,
    Modes,
    Monitor,
    Output,
    Parallel,
    Persist,
    Predicate,
    Push,
    Repeat,
    Select,
    SelectStar,
    Sequential,
    Transition,
)
from coincide.lang.ecl.parse import mentions, outputs, parse
from coincide.rulebook import load, loads
from coincide.source import SourceText

CASES = Path(__file__).parents[2] / "conformance" / "cases"


def read(text: str) -> File:
    return parse(SourceText("rules.ecl", text))


def detector(text: str) -> Monitor | Machine:
    return read(text).detectors[-1]


def body(text: str) -> Correlation:
    monitor = detector(f"monitor m = {text}")
    assert isinstance(monitor, Monitor)
    return monitor.body


def machine(items: str, keys: str = "") -> Machine:
    found = detector(f"machine A {keys} {{ {items} }}")
    assert isinstance(found, Machine)
    return found


def leaf(test: str) -> Predicate:
    return Predicate(parse_expression(test), test, parse_expression(test))


A, B, C = leaf("type = 'a'"), leaf("type = 'b'"), leaf("type = 'c'")


def error(text: str) -> tuple[str, str | None]:
    with pytest.raises(RuleError) as caught:
        read(text)
    [found] = caught.value.diagnostics
    assert found.span is not None
    return f"{found.span.line}:{found.span.column}: {found.message}", found.hint


# Expressions.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("accumulate { a, b, c }", Accumulate((A, B, C))),
        ("accumulate{a}", Accumulate((A,))),
        ("select { a, b }", Select((A, B))),
        ("select* { a, b }", SelectStar((A, B))),
        ("select * { a, b }", SelectStar((A, B))),
        ("sequential { a, b }", Sequential((A, B))),
        ("parallel { a, b }", Parallel((A, B))),
        ("do { a } unless { b }", DoUnless(A, B)),
        ("fail { a }", Fail(A)),
        ("push(x) { a }", Push(Output("x"), A)),
        ("push ( x.y-z ) { a }", Push(Output("x.y-z"), A)),
        ("persist { a }", Persist(A)),
        ("persist(2) { a }", Persist(A, 2)),
        ("repeat { a }", Repeat(A)),
        ("repeat (10) { a }", Repeat(A, 10)),
        ("loop { a }", Loop(A)),
        ("loop(1) { a }", Loop(A, 1)),
        ("in (a) do { b }", Modes((Mode(A, B),))),
        ("in (a) do { b } in (b) do { in (c) do { a } }", Modes((Mode(A, B), Mode(B, Modes((Mode(C, A),)))))),
        ("repeat { accumulate { a, select { b, fail { c } } } }", Repeat(Accumulate((A, Select((B, Fail(C))))))),
        ("v in (1, 2)", leaf("v in (1, 2)")),
        ("(a)", A),
        ("true", leaf("true")),
        ("PUSH", leaf("type = 'PUSH'")),  # words of expressions may be in upper case, those of ECL may not
        ("v > 1 AND NOT w IS NULL", leaf("v > 1 and not w is null")),
        ("initial", leaf("type = 'initial'")),
        ("none", leaf("type = 'none'")),
        ("min", leaf("type = 'min'")),  # a unit of time can be an event type
        ("abs (v) > 1", leaf("abs(v) > 1")),
        ("v > 5 min", leaf("v > 300000")),
    ],
)
def test_expression(text: str, expected: Correlation) -> None:
    assert body(text) == expected


def test_push_attributes() -> None:
    push = body("push(x, n: v * 2, kind: type, hot: a and p, p: p) { a }\np = v > 1")
    assert isinstance(push, Push)
    expected = {"n": "v * 2", "kind": "type", "hot": "type = 'a' and v > 1", "p": "p"}
    assert dict(push.output.attributes) == {name: parse_expression(text) for name, text in expected.items()}


def test_symbol_is_made_of_tokens() -> None:
    def symbol(attributes: str, rest: str = "") -> object:
        push = body(f"push(x, {attributes}) {{ a }} {rest}")
        assert isinstance(push, Push)
        return push.output.symbol

    assert symbol("n: v  *2, m: 1") == symbol("m: 1, n: v * # twice\n 2")
    assert symbol("n: 1") != symbol("n: 1.0")
    assert symbol("n: p and a", "p = v > 1") == symbol("n: (v > 1) and a")
    assert symbol("n: p", "p = v > 1") == symbol("n: p")  # a value position: the attribute


# Definitions.


def test_definitions_with_and_without_semicolons() -> None:
    file = read("p = a; monitor m = p\nq = v > 5 machine A { initial s; }; monitor n by k, source = q;")
    assert [name for name, _ in file.predicates] == ["p", "q"]
    assert [(d.name, d.keys) for d in file.detectors] == [("m", ()), ("A", ()), ("n", ("k", "source"))]


def test_empty_file() -> None:
    assert read("") == read(" # nothing\n") == File((), ())


def test_places() -> None:
    file = read("p = a\nmonitor mine = repeat { push(x) { p } }\n")
    [monitor] = file.detectors
    assert monitor.span is not None
    assert (monitor.span.line, monitor.span.column, monitor.span.text) == (2, 9, "mine")
    assert isinstance(monitor, Monitor)
    assert monitor.body.span is not None
    assert monitor.body.span.text == "repeat { push(x) { p } }"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "type = 'a'"),
        ("a.b-c", "type = 'a.b-c'"),
        ("not a or (b and c)", "not type = 'a' or (type = 'b' and type = 'c')"),
        ("p", "v > 1"),
        ("p and not q", "v > 1 and not (v > 1 or type = 'a')"),
        ("level", "level > 100"),
        ("level > 5", "level > 5"),
        ("p = 1", "p = 1"),
        ("(a) = 1", "a = 1"),
        ("if(a, 1, 2) = 1", "if(a, 1, 2) = 1"),
        ("if(a and p, p, 2) = 1", "if(type = 'a' and v > 1, p, 2) = 1"),
        ("type in (a, 'b')", "type in (a, 'b')"),
        ("a is null", "a is null"),
        ("v between p and q", "v between p and q"),
        ("from = 1", "from = 1"),
    ],
)
def test_bare_names(text: str, expected: str) -> None:
    found = body(f"{text}\np = v > 1\nq = p or a\nlevel = level > 100")
    assert isinstance(found, Predicate)
    assert found.test == parse_expression(expected)


def test_labels() -> None:
    text = "push(x) {  a  and # why\n\t( v>5\n) and s = 'x  # y'  }"
    push = body(text)
    assert isinstance(push, Push)
    assert isinstance(push.body, Predicate)
    assert push.body.label == "a and ( v>5 ) and s = 'x  # y'"
    modes = body("in ( (p) ) do { a }")
    assert isinstance(modes, Modes)
    assert modes.modes[0].guard.label == "(p)"


def test_predicates_belong_to_their_file() -> None:
    tests: list[Expr] = []
    for text in ("p = v > 1 monitor m = p", "monitor n = p"):
        monitor = detector(text)
        assert isinstance(monitor, Monitor)
        assert isinstance(monitor.body, Predicate)
        tests.append(monitor.body.test)
    assert tests == [parse_expression("v > 1"), parse_expression("type = 'p'")]


# Machines.


def test_machine() -> None:
    found = machine(
        "initial q1; t1: q1 -> q2, q3; t2: q2 | q3 & q1 on a and b clear none -> push(x, n: v); t3: q1 on p clear * -> q4;"
        "initial q2, q1; t4: q1 clear q9, q2 -> ; order t1 < t2 < t3; order t1 < t4;",
        "by k",
    )
    assert (found.name, found.keys, found.initial) == ("A", ("k",), ("q1", "q2"))
    assert found.order == (("t1", "t2", "t3"), ("t1", "t4"))
    assert found.transitions == (
        Transition("t1", (("q1",),), None, ("q1",), ("q2", "q3")),
        Transition(
            "t2", (("q2", "q3"), ("q1",)), leaf("type = 'a' and type = 'b'"), (), (), Output("x", (("n", parse_expression("v")),))
        ),
        Transition("t3", (("q1",),), leaf("type = 'p'"), ("q1", "q2", "q3", "q4", "q9"), ("q4",)),
        Transition("t4", (("q1",),), None, ("q2", "q9"), ()),
    )


def test_clear_defaults_to_the_enabling_states() -> None:
    assert machine("initial q; t: q | r & s on a -> q;").transitions[0].clear == ("q", "r", "s")


def test_words_of_machines_are_names_elsewhere() -> None:
    found = machine("initial initial, on; initial: on on on clear none -> clear; order: clear clear q, none -> order, none;")
    assert found.initial == ("initial", "on")
    assert found.transitions == (
        Transition("initial", (("on",),), leaf("type = 'on'"), (), ("clear",)),
        Transition("order", (("clear",),), None, ("none", "q"), ("order", "none")),
    )


# Errors.

NO_KEYS = ("type", "id", "time", "from", "space", "a.b", "k")
NO_ATTRIBUTES = ("type", "id", "source", "time", "space", "from", "k", "n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("monitor m = a ? b", "1:15: unexpected character '?'"),
        ("monitor m = \0", "1:13: unexpected character '\\x00'"),
        ("p = a\n  \x80\x81", "2:3: unexpected character '\\x80'"),
        ("monitor m = s = 'abc", "1:17: text is not closed"),
        ("monitor m = s = 'abc''\n'", "1:17: text is not closed"),
        ("monitor m accumulate", "1:11: expected '=' after 'm', found 'accumulate'"),
        ("monitor push = a", "1:9: expected a name after 'monitor', found 'push'"),
        ("monitor NOT = a", "1:9: expected a name after 'monitor', found 'NOT'"),
        ("monitor m by = a", "1:14: expected a name after 'by', found '='"),
        ("monitor m by k a", "1:16: expected '=' after the keys, found 'a'"),
        ("monitor m = repeat { a", "1:23: expected '}' after the expression, found end of file"),
        ("monitor m = repeat { a\n", "2:1: expected '}' after the expression, found end of file"),
        ("monitor m = accumulate { a b }", "1:28: expected '}' after the expression, found 'b'"),
        ("monitor m = do { a } until { b }", "1:22: expected 'unless' after the block of 'do', found 'until'"),
        ("monitor m = repeat(3) a", "1:23: expected '{' after 'repeat(…)', found 'a'"),
        ("monitor m = repeat(3 { a }", "1:22: expected ')' after the maximum of 'repeat', found '{'"),
        ("monitor m = push(x a) { b }", "1:20: expected ')' after 'x', found 'a'"),
        ("monitor m = push(x, a 1) { b }", "1:23: expected ':' after 'a', found '1'"),
        ("monitor m = in a do { b }", "1:16: expected '(' after 'in', found 'a'"),
        ("monitor m = in (a) { b }", "1:20: expected 'do' after the guard, found '{'"),
        ("monitor m = (a", "1:15: expected ')' after the expression, found end of file"),
        ("monitor m = a }", "1:15: expected a definition after 'a', found '}'"),
        (";", "1:1: expected a definition, found ';'"),
        ("p = a;;", "1:7: expected a definition after ';', found ';'"),
        ("p", "1:2: expected '=' after 'p', found end of file"),
        ("machine A { initial q }", "1:23: expected ';' after the item, found '}'"),
        ("machine A { initial q;", "1:23: expected '}' or an item after ';', found end of file"),
        ("machine A { t: q > r; }", "1:18: expected '->' after 'q', found '>'"),
        ("machine A { order t1; }", "1:21: expected '<' after 't1', found ';'"),
        ("machine A { t: -> q; }", "1:16: expected a name after ':', found '->'"),
        ("monitor m = accumulate { }", "1:26: expected a predicate or a value, found '}'"),
        ("monitor m = accumulate { a, }", "1:29: expected a predicate or a value, found '}'"),
        ("monitor m = a and accumulate { b }", "1:19: expected a predicate or a value, found 'accumulate'"),
        ("monitor m =", "1:12: expected a predicate or a value, found end of file"),
        ("monitor m = by", "1:13: expected a predicate or a value, found 'by'"),
        ("p = a\np = b", "2:1: predicate 'p' is already defined"),
        ("monitor m = a\nmonitor m = b", "2:9: monitor 'm' is already defined"),
        ("machine m { initial q; }\nmonitor m = b", "2:9: monitor 'm' is already defined"),
        ("min = a", "1:1: 'min' is a unit of time and cannot name a predicate"),
        ("p = a or p", "1:10: predicate 'p' is defined by itself"),
        ("p = a or q\nq = r and r\nr = not p", "3:9: predicate 'p' is defined by itself"),
        ("a = q\nq = b or q", "2:10: predicate 'q' is defined by itself"),
        *(
            (f"monitor m = a or {name}", f"1:18: '{name}' is a field of every event, not an event type or a predicate")
            for name in ("type", "id", "source", "time", "from", "space")
        ),
        ("p = v > 1\nmonitor m = a.b > 1", "2:13: 'a.b': a predicate sees one event only, so a reference has no alias"),
        ("monitor m = push(x, v: a.b) { a }", "1:24: 'a.b': a predicate sees one event only, so a reference has no alias"),
        ("monitor m = speed(v) > 1", "1:13: unknown function 'speed'"),
        ("monitor m = distance(a, b) > 1", "1:13: unknown function 'distance'"),
        ("monitor m = abs(v, 1) > 1", "1:13: wrong number of arguments of 'abs'"),
        ("monitor m = start(e) > 1", "1:13: wrong number of arguments of 'start'"),
        ("monitor m = within_box(e, 1, 2, 3, 4)", "1:13: wrong number of arguments of 'within_box'"),
        ("monitor m = 1 < v < 3", "1:19: comparisons do not chain: use 'and'"),
        ("monitor m = repeat { a, b }", "1:23: 'repeat' takes one expression"),
        ("monitor m = do { a, b } unless { c }", "1:19: 'do' takes one expression"),
        ("monitor m = do { a } unless { b, c }", "1:32: 'unless' takes one expression"),
        ("monitor m = in (p) do { a, b }", "1:26: 'do' takes one expression"),
        ("monitor m = fail { a, b }", "1:21: 'fail' takes one expression"),
        ("monitor m = push(x) { a, b }", "1:24: 'push(…)' takes one expression"),
        ("monitor m = persist { a, b }", "1:24: 'persist' takes one expression"),
        ("monitor m = loop(2) { a, b }", "1:24: 'loop' takes one expression"),
        ("monitor m = loop(0) { a }", "1:18: the maximum of 'loop' must be a whole number from 1, found '0'"),
        ("monitor m = repeat(1.5) { a }", "1:20: the maximum of 'repeat' must be a whole number from 1, found '1.5'"),
        ("monitor m = persist(-1) { a }", "1:21: the maximum of 'persist' must be a whole number from 1, found '-'"),
        ("monitor m = loop() { a }", "1:18: the maximum of 'loop' must be a whole number from 1, found ')'"),
        *((f"monitor m by k, {key} = a", f"1:17: '{key}' cannot be a key of 'm'") for key in NO_KEYS),
        *(
            (f"monitor m by k = push(x, n: 1, {name}: 1) {{ a }}", f"1:32: '{name}' cannot be an attribute of 'x'")
            for name in NO_ATTRIBUTES
        ),
        ("machine A { initial q; t: q -> ; t: q -> r; }", "1:34: transition 't' is already defined"),
        ("machine A { initial q; t: q -> ; order t < u; }", "1:44: unknown transition 'u'"),
        ("machine A { initial q; t: q on a -> ; order t < t; }", "1:9: the order of machine 'A' has a cycle"),
        (
            "machine A { initial q; t: q -> ; u: q -> ; v: q -> ; order t < u < v; order v < t; }",
            "1:9: the order of machine 'A' has a cycle",
        ),
        ("machine A { t: q -> r; }", "1:9: machine 'A' has no initial state"),
        ("machine A by type { initial q; }", "1:14: 'type' cannot be a key of 'A'"),
        ("machine A by k { initial q; t: q on a -> push(x, k: 1); }", "1:50: 'k' cannot be an attribute of 'x'"),
        (
            "machine A { initial q; t: q on time -> ; }",
            "1:32: 'time' is a field of every event, not an event type or a predicate",
        ),
    ],
)
def test_error(text: str, expected: str) -> None:
    assert error(text)[0] == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("monitor m = time\np = a or p\nmonitor n = repeat { ", "3:22"),  # syntax of the whole file first
        ("monitor m by type = a\np = a or id", "2:10"),  # then predicates
        ("p = a and time\np = b", "2:1"),  # of these first their names
        ("monitor m by type = a\nmonitor m = b", "1:14"),  # then monitors, in order
        ("monitor m = a\nmonitor m by type = b", "2:9"),
        ("monitor m by id = push(x, id: 1) { time }", "1:14"),
        ("monitor m = push(x, v: a.b, id: 1) { time }", "1:24"),
    ],
)
def test_order_of_checks(text: str, place: str) -> None:
    assert error(text)[0].startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("moniter m = a", "did you mean 'monitor'?"),
        ("monitor m = acumulate { a, b }", "did you mean 'accumulate'?"),
        ("monitor m = repeat { sequental { a, b } }", "did you mean 'sequential'?"),
        ("monitor m = rounds(v) > 1", "did you mean 'round'?"),
        ("monitor by = a", "'by' is a word of the language and cannot be a name"),
        ("machine A { initial q; first: q -> ; order frist < first; }", "did you mean 'first'?"),
        ("p = a\np = b", "it is defined on line 1"),
        ("p = a or q\nq = p", "through 'q'"),
        ("monitor m = e.v > 3", "write 'v', or `e.v` for a nested attribute"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    assert error(text)[1] == hint


@pytest.mark.parametrize("case", sorted(p.name for p in (CASES / "ecl-errors").iterdir()))
def test_error_case(case: str) -> None:
    folder = CASES / "ecl-errors" / case
    expected = (folder / "expected-error").read_text().strip()
    with pytest.raises(RuleError) as caught:
        _load(sorted(folder.glob("rules*.ecl")))
    [found] = caught.value.diagnostics
    assert found.span is not None
    place = f"{found.span.line}:{found.span.column}: {found.message}"
    assert expected in (place, f"{found.span.file}:{place}")


def _load(paths: list[Path]) -> None:
    load(*(SourceText(path.name, path.read_text()) for path in paths))


def test_names_defined_before() -> None:
    with pytest.raises(RuleError, match="monitor 'm' is already defined"):
        parse(SourceText("2.ecl", "monitor m = a\nmonitor n by type = a"), defined={"m"})


# Hostile files.


@pytest.mark.parametrize(
    "text",
    [
        "monitor m = " + "repeat { " * 100_000,
        "monitor m = " + "(" * 100_000,
        "monitor m = " + "not " * 100_000,
        "monitor m = " + "in (a) do { " * 100_000,
        "monitor m = push(x, v: " + "-" * 100_000,
        "monitor m = " + "repeat { " * 90 + "(" * 100_000,
    ],
)
def test_deep_nesting(text: str) -> None:
    start = time.process_time()
    assert "nested more than 100 deep" in error(text)[0]
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"p{i} = p{i + 1} or p{i + 1}\n" for i in range(60)),
        "".join(f"p{i + 1} = p{i} or p{i}\n" for i in range(60)),
        "".join(f"p{i} = not p{i + 1}\n" for i in range(5000)),
        "".join(f"p{i + 1} = not p{i}\n" for i in range(5000)),
        "".join(f"p{i} = p{i + 1}\n" for i in range(5000)),
    ],
)
def test_names_that_grow_without_measure(text: str) -> None:
    start = time.process_time()
    assert "replaced by its definition" in error(text)[0]
    assert time.process_time() - start < 5


def test_long_lists_are_no_problem() -> None:
    file = read(f"p = {' or '.join(['a'] * 20_000)}\nmonitor m = v in ({', '.join(['1'] * 20_000)})")
    assert len(file.detectors) == 1


# Mentions, outputs, digests.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "a"),
        ("not a", "a"),
        ("true", ""),
        ("p", "b"),
        ("type = 'a' or 'c' != type", "a c"),
        ("type <> 'a' and type == 'b'", "a b"),
        ("type in ('a', 'b', v)", "a b"),
        ("type not in ('a')", "a"),
        ("type like 'a%' or matches(type, 'a') or type > 'a' or type = s or v = 'a'", ""),
        ("push(x, v: a and p) { c }", "c"),
        ("in (a) do { b } in (c) do { d }", "a b c d"),
        ("if(a or v > 1, 1, 2) = 1", "a"),
    ],
)
def test_mentions(text: str, expected: str) -> None:
    assert mentions(detector(f"p = b and v > 1 monitor m = {text}")) == set(expected.split())


def test_mentions_and_outputs_of_a_machine() -> None:
    found = machine("initial q; t1: q on a -> q push(y, v: b and c); t2: q -> q push(x); t3: q on d -> push(y);")
    assert mentions(found) == {"a", "d"}
    assert outputs(found) == ("y", "x")


def test_outputs() -> None:
    assert outputs(detector("monitor m = push(out) { sequential { push(x) { a }, push(y) { b }, push(x) { c } } }")) == (
        "out",
        "x",
        "y",
    )


def digests(text: str) -> dict[str, str]:
    return {d.name: d.digest for d in loads(text).detectors}


def test_digest_disregards_space_comments_and_place() -> None:
    one = digests("p = v > 5\nmonitor m = repeat { push(x) { p } }\nmachine A { initial q; t: q on p -> ; }")
    two = digests("machine A{initial q;t:q on p->;};monitor m =repeat{push(x)\n{p}}# the end\np=v>5")
    assert one == two


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("monitor m = p  p = v > 5", "monitor m = (v > 5)", True),
        ("monitor m = p  p = v > 5", "monitor m = q  q = v > 5", True),
        ("monitor m = p  p = not q  q = v > 5", "monitor m = (not (v > 5))", True),
        ("monitor m = p  p = v > 5", "monitor m = p  p = v > 6", False),
        ("monitor m = p  p = v > 5", "monitor m = p", False),
        ("monitor m = p > 1  p = v > 5", "monitor m = p > 1", True),  # a value position
        ("monitor m = push(x, n: p) { a }  p = v > 5", "monitor m = push(x, n: p) { a }", True),
        ("monitor m = push(x, n: p or b) { a }  p = v > 5", "monitor m = push(x, n: p or b) { a }", False),
        ("monitor m = a", "monitor m by k = a", False),
        ("monitor m = a", "monitor m = (a)", True),
        ("monitor m = 'a b' = s", "monitor m = 'a  b' = s", False),
        ("monitor m = accumulate { a, b }", "monitor m = accumulate { a-b }", False),
    ],
)
def test_digest(one: str, two: str, same: bool) -> None:
    assert (digests(one)["m"] == digests(two)["m"]) is same


def test_unchanged_case() -> None:
    folder = CASES / "ecl-analysis" / "unchanged"
    old, new = (digests((folder / name).read_text()) for name in ("rules.ecl", "other.ecl"))
    assert sorted(name for name in old if new.get(name) == old[name]) == ["a1", "a3"]


def test_a_number_beyond_doubles_is_refused() -> None:
    with pytest.raises(RuleError, match="the number '1e999' is too large"):
        parse(SourceText("rules.ecl", "monitor m = v > 1e999"))
