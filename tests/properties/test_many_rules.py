"""Many rules at once find what each finds alone, in the same order in either tier and however the input is cut: also where no
event concerns a rule while its timers are due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import loads
from coincide.engines.embedded import run
from coincide.model.batch import EventBatch
from coincide.model.event import primitive

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
