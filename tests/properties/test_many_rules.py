"""Many rules at once find what each finds alone, in the same order in either tier and however the input is cut: also where no
event concerns a rule while its timers are due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import loads
from coincide.detection.situation import plan as situations
from coincide.engines import together
from coincide.engines.embedded import run
from coincide.engines.graph import Graph
from coincide.errors import RuleError
from coincide.lang.opera.definition import Expression
from coincide.lang.opera.print import core_text
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive
from coincide.rulebook import Rulebook
from coincide.testing.check import check_detector
from coincide.testing.opera import events, expressions

TYPES = "abcdef"
SECOND = 1_000_000
Rule = tuple[int, str, str, str, int]
"""A form, two types, a key and a threshold."""

OPERA = (
    "detect {name} = [{a}(k = ?k)] [{b}(k = ?k, v > {least})]",
    'detect {name} = [{a}(k = "{key}")] [{b}(k = "{key}")]',
    "detect {name} = ([{a}(k = ?k)], [T in {{T, {b}(k = ?k)}}]) T = 3s",
)
ECCO = (
    "detect {name} per k = ({a} ; {b}{{v > {least}}}) within 10s with recent",
    "detect {name} per k = ({a} - {b}) within 3s  give k",
    "detect {name} per k = not {a} over 4s  give k",
    "detect {name} per k = {a}^COUNT over 5s  give count, k",
)
ECL = (
    "monitor m{name} by k = repeat {{ push({name}) {{ sequential {{ {a}, {b} and v > {least} }} }} }}",
    'monitor m{name} by k = repeat {{ push({name}) {{ sequential {{ {a} and k = "{key}", {b} }} }} }}',
)
LIFESPAN = (
    '<lifespan name="l{name}"><initiator><eventInitiator event="{a}" correlate="ignore"/></initiator><terminator>'
    '<expirationInterval timeInterval="3 s"/></terminator><keyBy attribute="k"/></lifespan>'
    '<situation name="{name}" lifespan="l{name}"><operator>'
)
END = '</operator><situationAttribute name="k" type="string" expression="{a}.k"/></situation>'
AMIT = (
    LIFESPAN
    + '<sequence repeatMode="once"><operandSequence event="{a}"/>'
    + '<operandSequence event="{b}" threshold="v &gt; {least}"/></sequence>'
    + END,
    LIFESPAN + '<not><operandNot event="{b}" threshold="k = \'{key}\'"/></not></operator></situation>',
)


def _lines(forms: Sequence[str]) -> Callable[[Sequence[tuple[int, Rule]]], str]:
    def text(rules: Sequence[tuple[int, Rule]]) -> str:
        return "\n".join(_one(forms, number, rule) for number, rule in rules)

    return text


def _one(forms: Sequence[str], number: int, rule: Rule) -> str:
    form, a, b, key, least = rule
    return forms[form % len(forms)].format(name=f"x{number}", a=a, b=b, key=key, least=least)


def _amit(rules: Sequence[tuple[int, Rule]]) -> str:
    attributes = '<eventAttribute name="k" type="string"/><eventAttribute name="v" type="number"/>'
    events = [f'<event name="{name}">{attributes}</event>' for name in TYPES]
    return "\n".join(["<amit>", *events, _lines(AMIT)(rules), "</amit>"])


LANGUAGES = {"ce": _lines(OPERA), "ecco": _lines(ECCO), "ecl": _lines(ECL), "amit.xml": _amit}
ONE = st.tuples(st.integers(0, 11), st.sampled_from(TYPES), st.sampled_from(TYPES), st.sampled_from("xyz"), st.integers(0, 3))
SOME_RULES = st.lists(ONE.filter(lambda rule: rule[1] != rule[2]), min_size=4, max_size=8)
SOME_EVENTS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(TYPES[:4]), st.sampled_from("xyz"), st.integers(0, 4)), min_size=1, max_size=25
)


def in_full(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.matrix)


def found(text: str, ending: str, tier: str, events: EventBatch, size: int) -> list[dict[str, Any]]:
    batches = [events.rows(start, start + size) for start in range(0, len(events), size)]
    made = run(loads(text, ending), batches, 60.0 * SECOND, tier)
    return [record for batch in made for record in batch.records()]


@pytest.mark.parametrize("ending", LANGUAGES)
@settings(deadline=None)
@given(rules=SOME_RULES, given_events=SOME_EVENTS, size=st.integers(1, 9))
def test_rules_together_find_what_each_finds_alone(
    ending: str, rules: list[Rule], given_events: list[tuple[int, str, str, int]], size: int
) -> None:
    write, numbered, now, events = LANGUAGES[ending], list(enumerate(rules)), 0, []
    for number, (after, kind, key, value) in enumerate(given_events):
        now += after * SECOND
        events.append(primitive(kind, now, now, str(number), {"k": key, "v": float(value)}))
    batch = EventBatch(events)
    together = found(write(numbered), ending, "interpreter", batch, size)
    for number, rule in numbered:
        alone = found(write([(number, rule)]), ending, "interpreter", batch, len(batch))
        assert [record for record in together if record["type"] == f"x{number}"] == alone
    assert found(write(numbered), ending, "interpreter", batch, len(batch)) == together
    table = EventBatch(table=batch.table)
    for cut in (size, len(batch)):
        assert found(write(numbered), ending, "kernel", table, cut) == together


FORMS = (
    "detect {name} per k = ({a} ; {b}{{v > {least}}}) within 10s with recent",
    "detect {name} per k, v = ({a} + {b}) within 4s with chronicle",
    "detect {name} = ({a} ; {b} ; {c}{{v <= {least}}}) within 6s with continuous",
    "detect {name} per v = (({a} | {c}) ; {b}{{v >= {least}}}) within 5s",
    "detect {name} per k = ({a} as x ; {b} as y) within 8s give first = x.v, second = y.v + {least}, k",
)


@pytest.mark.parametrize(("form", "seeds"), [*((form, 1) for form in FORMS[::4]), *(in_full(form, 3) for form in FORMS)])
def test_definitions_of_one_form_are_stepped_together(form: str, seeds: int) -> None:
    """Wherever it is cut, and whatever is told of each in between."""
    made = []
    for random in map(Random, range(seeds)):
        read = enumerate(random.sample("abc", 3) for _ in range(9))
        texts = [form.format(name=f"x{n}", a=a, b=b, c=c, least=random.choice((1, 2))) for n, (a, b, c) in read]
        book = loads("\n".join(texts), "ecco")
        (plan,) = book.plans("kernel")
        assert [family.numbers for family in plan._kernel.families] == [tuple(range(9))]
        made += check_detector(book, _dense(random), [4, 8], 60.0 * SECOND)
    assert made


OPERA_FORMS = (
    "detect {name} = [{a}(k = ?k)] [{b}(k = ?k, v > {least})]",
    "detect {name} = ([{a}(k = ?k)], [{b}(k = ?k, v > {least})] [{c}(k = ?k)]) T = 3s",
    "detect {name} = [{a} in {{{a}, {b}(v > {least})}}] ; [{c}]",
    "detect {name} restart = [{a} in {{{a}, {b}(v > {least})}}] [{b} in {{{b}, {c}}}]* [{c}]",
    "detect {name} = [{a}(v = ?x) as one] [{b}(v = ?x) as other]* [{c}(v = ?x)] with first = one.k, n = count(other)",
    "set S{name} = {{{a}, {b}(v > {least})}}\ndetect {name} = [S{name}(k = ?k)] | ([{c}(k = ?k)] [{a}(k = ?k)])",
)


@pytest.mark.parametrize(
    ("form", "seeds"), [*((form, 1) for form in OPERA_FORMS[1::4]), *(in_full(form, 3) for form in OPERA_FORMS)]
)
def test_detectors_of_one_form_are_stepped_together(form: str, seeds: int) -> None:
    made = []
    for random in map(Random, range(seeds)):
        read = enumerate(random.sample("abc", 3) for _ in range(9))
        texts = [form.format(name=f"x{n}", a=a, b=b, c=c, least=random.choice((1, 2))) for n, (a, b, c) in read]
        book = loads("\n".join(texts), "ce")
        assert [group.numbers for group in Graph(book.plans("kernel"))._groups.by_first.values()] == [tuple(range(9))]
        made += check_detector(book, _dense(random), [4, 8], 60.0 * SECOND)
    assert made


@settings(deadline=None, max_examples=25)
@given(expressions(parallel=False), events(12), st.lists(st.integers(1, 11), max_size=3), st.sampled_from(["", "restart "]))
def test_any_detectors_of_one_form(body: Expression, some: list[Event], cuts: list[int], options: str) -> None:
    """Whatever they have in common, with other types in each."""
    text = core_text(body)
    renamed = [text, *(text.translate(str.maketrans("ABCD", others)) for others in ("BCDA", "CDAB"))]
    try:
        book = loads("\n".join(f"detect X{n} {options}= {each}" for n, each in enumerate(renamed)), "ce")
    except RuleError:
        return
    with patch.object(together, "SEVERAL", 2):
        check_detector(book, some, cuts, 30_000.0)


AMIT_LIFESPAN = (
    '<lifespan name="l{name}"><initiator><eventInitiator event="{a}" as="go" correlate="add"/></initiator><terminator>'
    '<expirationInterval timeInterval="3 s"/><eventTerminator event="{c}" where="v &gt; 1 + {least}"/></terminator>'
    '<keyBy attribute="k"/></lifespan>'
)
AMIT_TOLD = (
    '<situationAttribute name="k" type="string" expression="go.k"/>'
    '<situationAttribute name="since" type="number" expression="go.v"/>'
)
AMIT_FORMS = tuple(
    f'{AMIT_LIFESPAN}<situation name="{{name}}" lifespan="l{{name}}"><operator>{operator}</operator>{AMIT_TOLD}'
    '<situationAttribute name="name" type="string" expression="type"/></situation>'
    for operator in (
        '<sequence><operandSequence event="{b}" threshold="v &gt;= {least}"/><operandSequence event="{c}"/></sequence>',
        '<all where="o.v = p.v"><operandAll event="{b}" as="o"/>'
        '<operandAll event="{a}" as="p" threshold="v &gt;= {least}"/></all>',
        '<atleast quantity="2"><operandAtleast event="{b}" threshold="v &gt;= {least}"/><keyBy attribute="v"/></atleast>',
        '<not><operandNot event="{b}" threshold="v &gt; {least}"/></not>',
        '<sequence detectionMode="delayed" repeatMode="once"><operandSequence event="{a}" override="v = {least}"/>'
        '<operandSequence event="{b}" retain="v = 1"/></sequence>',
    )
)


def amit_book(random: Random, form: str, count: int = 9) -> Rulebook:
    """Lifespans may come in another order than their situations."""
    read = enumerate(random.sample("abc", 3) for _ in range(count))
    rules = [form.format(name=f"x{n}", a=a, b=b, c=c, least=random.choice((0, 1, 2))) for n, (a, b, c) in read]
    parts = [rule.partition("</lifespan>") for rule in rules]
    lifespans = random.sample([f"{before}{end}" for before, end, _ in parts], count)
    attributes = '<eventAttribute name="k" type="string"/><eventAttribute name="v" type="number"/>'
    events = [f'<event name="{name}">{attributes}</event>' for name in "abc"]
    return loads("\n".join(["<amit>", *events, *lifespans, *(rest for *_, rest in parts), "</amit>"]), "amit.xml")


@pytest.mark.parametrize(
    ("form", "seeds"), [*((form, 1) for form in AMIT_FORMS[::2]), *(in_full(form, 3) for form in AMIT_FORMS)]
)
def test_situations_of_one_form_are_stepped_together(form: str, seeds: int) -> None:
    made = []
    for random in map(Random, range(seeds)):
        with patch.object(situations, "MOST", 4):
            book = amit_book(random, form)
            assert [group.numbers for group in Graph(book.plans("kernel"))._groups.by_first.values()] == [(0, 1, 2)]
            made += check_detector(book, _dense(random), [4, 8], 60.0 * SECOND)
    assert made


def _opera_book(random: Random, form: str) -> Rulebook:
    read = enumerate(random.sample("abc", 3) for _ in range(9))
    return loads("\n".join(form.format(name=f"x{n}", a=a, b=b, c=c, least=1) for n, (a, b, c) in read), "ce")


@pytest.mark.brief(parameters=4)
@pytest.mark.parametrize("form", [*OPERA_FORMS[:4], *AMIT_FORMS])
def test_what_is_told_of_each_changes_nothing(form: str) -> None:
    """They go on together, and each goes on alone from what was told; from changes on, each is stepped by itself."""
    random = Random(5)
    with patch.object(situations, "MOST", 4):
        book = amit_book(random, form) if form in AMIT_FORMS else _opera_book(random, form)
        graph = Graph(book.plans("kernel"))
    events = EventBatch(table=EventBatch(sorted(_dense(random) + _dense(random)[-4:], key=lambda event: event.origin)).table)
    whole, state, again = graph.initial(), graph.initial(), None
    for start in range(0, len(events), 4):
        batch = events.rows(start, start + 4)
        expected = graph.advance(whole, batch).records()
        assert graph.advance(state, batch).records() == expected
        assert again is None or graph.advance(again, batch).records() == expected
        again = graph.decode(graph.encode(state))
        if start == 8:
            graph.changes(state, everything=True)
            assert not state.together
        assert whole.together
        assert graph.due(whole) == graph.due(state) == graph.due(again)


def _dense(random: Random) -> list[Event]:
    now, events = 0, []
    for number, kind in enumerate(random.sample("abc" * 6, 16)):
        now += random.choice((0, SECOND // 2, SECOND))
        attributes = {"k": random.choice("xxxy"), "v": random.choice((1.0, 1.0, 3.0, "x"))}
        if random.random() < 0.1:
            del attributes[random.choice("kv")]
        events.append(primitive(kind, now, now, str(number), attributes))
    return events


@pytest.mark.parametrize("tier", ["interpreter", "kernel"])
@pytest.mark.parametrize("ending", ["ce", "ecco", "amit.xml"])
def test_timers_fire_where_no_event_concerns_their_rule(ending: str, tier: str) -> None:
    """In the very batch in which time passes them."""
    last = {"ce": 2, "ecco": 1, "amit.xml": 1}[ending]
    read = ["ab"] * 16 + ["cd", "de", "ef", "fe"] * 12  # so many situations of Amit go together
    text = LANGUAGES[ending]([(n, (last, a, b, "x", 0)) for n, (a, b) in enumerate(read)])
    kinds = [("a", 0), ("c", 1), ("d", 2), ("c", 5), ("c", 9), ("c", 20)]
    events = [primitive(kind, at * SECOND, at * SECOND, str(n), {"k": "x", "v": 1.0}) for n, (kind, at) in enumerate(kinds)]
    batches = [EventBatch([event]) for event in events]
    given = batches if tier == "interpreter" else [EventBatch(table=batch.table) for batch in batches]
    made = run(loads(text, ending), given, None, tier)
    types = [{record["type"] for record in batch.records()} for batch in made][: len(batches)]
    assert "x0" in types[3]  # a at 0, nothing of b until 3
    assert all("x0" not in some for n, some in enumerate(types) if n != 3)
