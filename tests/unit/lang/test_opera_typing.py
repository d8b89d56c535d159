"""What declarations tell of `with` expressions, and ids that no rule may read."""

from __future__ import annotations

import pytest

from coincide.errors import RuleError
from coincide.rulebook import load, loads
from coincide.source import SourceText

DECLARED = """event Temp(location string, temp number, alarm boolean, since timestamp)
event Door(door number)
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("[Temp as t] with v = t.location + 1", "'+' wants a number, not a string"),
        ("[Temp as t] with v = t.temp > 'high'", "cannot compare a number with a string"),
        ("[Temp as t] with v = t.tmp", "event type 'Temp' has no attribute 'tmp'"),
        ("[Temp as t] with v = upper(first(t.temp))", "'upper' wants a string, not a number"),
        ("[Temp as t] with v = sum(t.location)", "'sum' wants a number, not a string"),
        ("[Temp as t] with v = sum(t.temp) = join(t.location)", "cannot compare a number with a string"),
        ("[Temp as t] with v = count(t) and true", "'and' wants a boolean, not a number"),
        ("[Temp(location = ?x)] with v = x * 2", "'*' wants a number, not a string"),
        ("[Temp, Door as d] with v = lower(d.door)", "'lower' wants a string, not a number"),
        ("[Temp as t] with v = t.source - 1", "'-' wants a number, not a string"),
    ],
)
def test_clashes_stand_at_the_name_of_the_attribute(body: str, message: str) -> None:
    with pytest.raises(RuleError) as refused:
        loads(f"{DECLARED}detect X = {body}", "ce")
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.message == message
    assert diagnostic.span is not None
    assert diagnostic.span.text == "v"


@pytest.mark.parametrize(
    "body",
    [
        "[Temp as t] with v = t.temp + t.since, w = t.alarm or true",
        "[Temp as t] with v = t.time - start(t), w = concat(t.location, t.temp)",
        "[Temp as a, Door as a] with v = a.door + 1",  # null of a Temp
        "[Temp as a, Other as a] with v = a.anything + 1, w = lower(a.anything)",
        "[all as a] with v = a.temp + 1, w = lower(a.temp)",
        "[X1 as a] with v = upper(a.who)",
        "[Other(k = ?x)] with v = x + 1, w = upper(x)",
    ],
)
def test_what_is_not_declared_goes_with_everything(body: str) -> None:
    loads(f"{DECLARED}detect X1 = [Temp]\ndetect X = {body}", "ce")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("detect X = [P(id = 'P#1')]", "P(id = 'P#1')"),
        ("set S = {A, P}\ndetect X = [S(id = 'P#1')]", "S(id = 'P#1')"),
        ("detect X = [A] [P as p] with v = p.id", "v"),
        ("detect X = [P as p] with v = first(p.id)", "v"),
    ],
)
@pytest.mark.parametrize(
    "maker",
    [("maker.ce", "detect P = [A]"), ("maker.ecl", "monitor m = repeat { push(P) { A } }"), ("maker.say", "Report P when A.")],
)
def test_generated_ids_of_other_files(text: str, place: str, maker: tuple[str, str]) -> None:
    rules = SourceText("rules.ce", text)
    for order in ([SourceText(*maker), rules], [rules, SourceText(*maker)]):
        with pytest.raises(RuleError, match="ids of composite type 'P' are generated and cannot be used") as refused:
            load(*order)
        span = refused.value.diagnostics[0].span
        assert span is not None
        assert (span.file, span.text) == ("rules.ce", place)
    load(rules)
