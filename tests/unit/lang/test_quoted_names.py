"""Names in back quotes, and nested attributes, in every language: read, printed, and run in both tiers."""

from __future__ import annotations

from typing import Any

import pytest

import coincide
from coincide.errors import RuleError
from coincide.expr.parse import parse_expression
from coincide.expr.print import expression_text
from coincide.expr.tokens import name_of, name_text
from coincide.expr.tree import Reference, with_aliases
from coincide.languages.registry import language_of
from coincide.rulebook import loads
from coincide.source import SourceText

EVENTS: list[dict[str, Any]] = [
    {"type": "login", "time": 1000, "process": {"name": "sh"}, "my field": 3, "odd`name": "q", "in": 1},
    {"type": "login", "time": 2000, "process": {"name": "vi"}, "my field": 3},
    {"type": 4625, "time": 3000, "process": {"name": "sh"}},
]

ECL = "monitor m by `process.name` = push(hit, `my out`: `my field` + `in`, q: `odd``name`) { login and `in` = 1 }"
ECCO = """
detect hit per process.name = login{`my field` > 2 and login.`odd``name` = 'q'} ; `4625` give `my out` = login.`my field` + 1
"""
OPERA = """
set some = {login(process.name = 'sh', `my field` > 2)}
detect hit = [login(process.name = ?p, `my field` > 2) as first] ; [`4625`(process.name = ?p)]
  with `my out` = first.`my field` + 1
"""
SAY = """
"odd one" means login where `my field` > 2.
Report hit when "odd one" called first followed by `4625` for the same process.name with `my out` = first.`my field` + 1.
"""
AMIT = """<amit>
  <event name="login">
    <eventAttribute name="process.name" type="string"/><eventAttribute name="`my field`" type="number"/>
  </event>
  <event name="`4625`"><eventAttribute name="process.name" type="string"/></event>
  <key name="p">
    <eventKey event="login" attribute="process.name"/><eventKey event="`4625`" attribute="process.name"/>
  </key>
  <lifespan name="l">
    <initiator><startup/></initiator>
    <terminator><noTerminator/></terminator>
  </lifespan>
  <situation name="hit" lifespan="l">
    <all detectionMode="immediate">
      <operandAll event="login" as="first" threshold="`my field` &gt; 2"/><operandAll event="`4625`"/><keyBy name="p"/>
    </all>
    <situationAttribute name="`my out`" type="number" expression="first.`my field` + 1"/>
  </situation>
</amit>"""
CDL = """<cd id="c">
  <sources>
    <source class="login" anchor="S">
      <attribute name="process.name" type="string"/><attribute name="`my field`" type="double"/>
    </source>
    <source class="4625" anchor="T"><attribute name="process.name" type="string"/></source>
  </sources>
  <predicates>
    <predicate anchor="P">S.process.name = T.process.name and S.`my field` &gt; 2</predicate>
  </predicates>
  <expressions><expression anchor="X">P</expression></expressions>
  <events><event class="hit" trigger="X"><attribute name="my out" type="double">S.`my field` + 1</attribute></event></events>
</cd>"""
RULES = {".ecl": ECL, ".ecco": ECCO, ".ce": OPERA, ".say": SAY, ".amit.xml": AMIT, ".cdl.xml": CDL}


@pytest.mark.parametrize("ending", RULES)
@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_run(ending: str, tier: str) -> None:
    found = coincide.detect(loads(RULES[ending], f"rules{ending}"), EVENTS, tier=tier)
    assert [(d["type"], d["my out"]) for d in found] == [("hit", 4)]


@pytest.mark.parametrize("ending", RULES)
def test_print(ending: str) -> None:
    language = language_of(f"rules{ending}")
    file = language.parse(SourceText("x", RULES[ending]))
    assert language.parse(SourceText("x", language.print_file(file))) == file


@pytest.mark.parametrize(
    ("written", "name", "splits"),
    [("`a.b`", "a.b", ()), ("a.`b.c`", "a.b.c", (1,)), ("`x`.y-z", "x.y-z", (1,)), ("`a``b`", "a`b", ()), ("a.b", "a.b", (1,))],
)
def test_names(written: str, name: str, splits: tuple[int, ...]) -> None:
    assert name_of(written) == (name, splits)


def test_an_alias_ends_outside_quotes_only() -> None:
    aliases = frozenset({"a", "a.b"})
    assert with_aliases(parse_expression("a.b.c"), aliases) == Reference("c", "a.b")
    assert with_aliases(parse_expression("a.`b.c`"), aliases) == Reference("b.c", "a")
    assert with_aliases(parse_expression("`a.b`"), aliases) == Reference("a.b")


@pytest.mark.parametrize("text", ["`a.b` > 1", "a.`b.c` > 1", "`and` is null", "`x y`.z = `@timestamp`", "a.b > 1"])
def test_expressions_print_back(text: str) -> None:
    tree = parse_expression(text)
    again = parse_expression(expression_text(tree))
    assert again == tree
    aliases = frozenset({"a", "a.b", "x y"})
    assert with_aliases(again, aliases) == with_aliases(tree, aliases)


def test_names_are_quoted_where_they_must_be() -> None:
    assert [name_text(n) for n in ("a.b-c", "a b", "and", "AND", "x`y", "1")] == [
        "a.b-c", "`a b`", "`and`", "`AND`", "`x``y`", "`1`"]  # fmt: skip


@pytest.mark.parametrize("text", ["`a", "``", "a.`b"])
def test_a_name_that_is_not_closed(text: str) -> None:
    with pytest.raises(RuleError, match=r"name is not closed|unexpected character"):
        parse_expression(text)


def test_hints_at_quotes() -> None:
    with pytest.raises(RuleError, match=r"a nested attribute is written `process.name`"):
        loads("monitor m by process.name = a", "m.ecl")
    with pytest.raises(RuleError, match=r"a nested attribute is written `process.name`"):
        loads("detect d = a{process.name = 'x'}", "m.ecco")


ARRAYS = """
monitor m = repeat { push(seen, t: tags, none: tags is null) { a } }
monitor k by tags = repeat { push(keyed) { a } }
"""
B = {"type": "b", "time": 9, "tags": "x"}
ARRAY_RULES = {
    "ecl": ARRAYS,
    "ecco": "detect d per tags = a give t = a.tags\ndetect e = a ; b",
    "ce": "detect d = [a(tags = ?t)]\ndetect e = [a as x] with t = x.tags",
    "amit": """<amit><event name="a"><eventAttribute name="tags" type="string"/></event>
      <lifespan name="l"><initiator><startup/></initiator><terminator><noTerminator/></terminator></lifespan>
      <situation name="d" lifespan="l"><nth quantity="1" detectionMode="immediate"><operandNth event="a"/><keyBy
        attribute="tags"/>
      </nth><situationAttribute name="t" type="string" expression="a.tags"/></situation></amit>""",
}


@pytest.mark.parametrize("language", ARRAY_RULES)
@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
def test_arrays_are_their_only_value(language: str, tier: str) -> None:
    """[x] is x, and more is null."""
    rules = loads(ARRAY_RULES[language], language)
    arrays = [["x"], ["x", "y"], "x", None]
    plain = ["x", None, "x", None]
    found, wanted = (
        coincide.detect(rules, [{"type": "a", "time": n, "tags": tags} for n, tags in enumerate(some, 1)] + [B], tier=tier)
        for some in (arrays, plain)
    )
    assert found == wanted
    assert found


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("opera", "detect x = [4625]"),
        ("ecco", "detect x = 4625 ; a"),
        ("pretty", "Report x when 4625."),
        ("amit", "<amit><event name='4625'/></amit>"),
    ],
)
def test_a_type_that_is_a_number_without_quotes_is_told_how_to_write_it(language: str, text: str) -> None:
    with pytest.raises(RuleError, match=r"back quotes.*: `4625`"):
        loads(text, language)


def test_a_word_behind_a_number_is_told_the_units() -> None:
    with pytest.raises(RuleError, match="hint: units: us, ms, s, min"):
        parse_expression("b.time - a.time < 5 mn")
