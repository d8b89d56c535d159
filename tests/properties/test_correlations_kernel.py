"""Descriptions in the join tier: the interpreter's answer and order, however the input is cut, wherever the tiers change over."""

from __future__ import annotations

import random
from math import inf
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coincide.detection.base import Clock
from coincide.detection.correlation.kernel import join, kernel
from coincide.detection.correlation.kernel import state as waiting_messages
from coincide.detection.correlation.kernel.kernel import Kernel
from coincide.engines.graph import Graph
from coincide.model.batch import EventBatch
from coincide.model.compound import compound_of
from coincide.model.event import Event, Value, primitive, record
from coincide.model.space import Space
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.check import check_detector, detections

quick = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ATTRIBUTES = [
    '<attribute name="k" type="int"/>',
    '<attribute name="v" type="double" optional="true"/>',
    '<attribute name="w" type="string" optional="true"/>',
    '<attribute name="t" type="time_t" optional="true"/>',
]
FILTERS = ["", "", "", '<filter operators="greater">0</filter>', "<filter>k + 1 = 2 or v is null</filter>"]
JOINS = [
    "",
    "",
    '<filter operators="equal">A.k</filter>',
    '<filter operators="lessequal">A.v</filter>',
    "<filter>k != A.k</filter>",
]
PREDICATES = [
    '<predicate name="equal" anchor="EK">A.k, B.k</predicate>',
    '<predicate name="equal" anchor="EC">B.k, C.k</predicate>',
    '<predicate name="equal" anchor="EW">A.w, C.w</predicate>',
    '<predicate name="equal" anchor="EX">A.t, C.v</predicate>',
    '<predicate name="less" anchor="LV">A.v, B.v</predicate>',
    '<predicate name="before" anchor="BE">A, B</predicate>',
    '<predicate name="concurrent" anchor="CO">B, C</predicate>',
    '<predicate anchor="DI">apart &gt; 0</predicate>',
    '<predicate anchor="NE">distance(A, C) &lt; 2</predicate>',
    '<predicate anchor="LA">A.time &lt; C.time</predicate>',
    '<predicate name="any" anchor="AV">B.v</predicate>',
    '<predicate name="none" anchor="NV">A.v</predicate>',
    '<predicate name="any" anchor="SC">C</predicate>',
    '<predicate anchor="SU">sum2 &gt; 1 or A.w is null</predicate>',
    '<predicate anchor="TT">A.t &lt;= B.t</predicate>',
    '<predicate name="in" anchor="AM">B.k, A.v, 1</predicate>',
    '<predicate name="true" anchor="TR"/>',
    '<predicate name="between" anchor="BT">apart, 0, 2</predicate>',
    '<predicate anchor="LC">(C.time - B.time) / 2 &lt;= 1 and C.time &gt;= 1 + B.time</predicate>',
]
COMPUTATIONS = (
    '<computation type="double" anchor="apart">B.time - A.time</computation>'
    '<computation type="int" anchor="sum2">A.v + C.k / 2</computation>'
    '<computation type="string" anchor="label">concat(A.w, B.k, half)</computation>'
    '<computation type="double" anchor="half">A.k / 2</computation>'
)
NAMES = ["EK", "EC", "EW", "EX", "LV", "BE", "CO", "DI", "NE", "LA", "AV", "NV", "SC", "SU", "TT", "AM", "TR", "BT", "LC"]
VALUES = (
    '<attribute name="label" type="string">label</attribute><attribute name="w" type="string">C.w</attribute>'
    '<attribute name="n" type="int">coalesce(apart, sum2, A.v)</attribute>'
    '<attribute name="b" type="boolean">if(C is null, A.k &gt; 0, before(A, C))</attribute>'
)


@st.composite
def descriptions(draw: st.DrawFn, name: str = "c", classes: str = "abc", equal: tuple[str, ...] = ("",)) -> str:
    """`equal`: what every term may demand."""
    sources = []
    for anchor in "ABC":
        join = draw(st.sampled_from(FILTERS if anchor == "A" else FILTERS + JOINS))
        within = draw(st.sampled_from(["", "", ' within="3"', ' within="6"']))
        access = draw(st.sampled_from(["", "", "", ' access="external"', ' access="east"']))
        attributes = [ATTRIBUTES[0].replace("/>", f">{join}</attribute>"), *ATTRIBUTES[1:]]
        kind = draw(st.sampled_from([*classes, "*"]))
        sources.append(f'<source class="{kind}" anchor="{anchor}"{within}{access}>{"".join(attributes)}</source>')
    expressions, events = "", ""
    for number in range(draw(st.integers(1, 2))):
        negated = st.tuples(st.sampled_from(["", "", "not "]), st.sampled_from(NAMES)).map("".join)
        literal = negated.filter(lambda text: text not in ("not SC", "not AV"))  # absence is the interpreter's
        terms = draw(st.lists(st.lists(literal, min_size=1, max_size=4).map(" and ".join), min_size=1, max_size=2))
        logic = " or ".join(f"({term})" for term in terms)
        expressions += f'<expression anchor="X{number}">TRUE{number} and {draw(st.sampled_from(equal))}({logic})</expression>'
        for access in draw(st.sampled_from([["public"], ["public", "west"]])):
            events += f'<event class="{name}{number}" trigger="X{number}" access="{access}">{VALUES}</event>'
    anchored = "".join(f'<predicate anchor="TRUE{n}">A.k &gt;= 0</predicate>' for n in range(2))
    given = draw(st.sampled_from(["", ' within="5"']))
    return (
        f'<cd id="{name}"{given}><sources>{"".join(sources)}</sources><computations>{COMPUTATIONS}</computations>'
        f"<predicates>{anchored}{''.join(PREDICATES)}</predicates><expressions>{expressions}</expressions><events>{events}</events></cd>"
    )


@st.composite
def streams(draw: st.DrawFn, compounds: bool = False) -> list[Event]:
    numbers: st.SearchStrategy[Value] = st.sampled_from([0.0, 1.0, 2.0, 1.5, 2.0**53, 2**53 + 1])
    if compounds:
        raw: list[Any] = [[1], [0, 2], {"lo": 1}, {"lo": 1, "hi": 1}]
        numbers = st.one_of(numbers, st.sampled_from([compound_of(r) for r in raw]))
    events = []
    for number in range(draw(st.integers(0, 9))):
        hi = draw(st.integers(0, 9)) * 1000
        lo = draw(st.sampled_from([hi, hi, max(0, hi - 2000)]))
        keys: list[Value] = [0.0, 1.0, 1.0, 0.5, "x"]
        attributes = {"k": draw(st.sampled_from(keys))}
        texts = st.sampled_from(["p", "q", "1970-01-01T00:00:00.002Z"])
        for name, values in (("v", numbers), ("w", texts), ("t", st.one_of(numbers, texts))):
            if draw(st.booleans()):
                attributes[name] = draw(values)
        source = draw(st.sampled_from(["east", "west", None]))
        space = draw(st.sampled_from([None, Space(x=0.0, y=0.0), Space(x=3.0, y=0.0)]))
        events.append(primitive(draw(st.sampled_from("aabc")), lo, hi, f"e{number}", attributes, source, space))
    return events


def rules(text: str) -> Rulebook:
    return load(SourceText("rules.cdl.xml", text))


@quick
@given(descriptions(), streams(), st.lists(st.integers(1, 9), max_size=2))
def test_the_join_is_the_interpreter(text: str, events: list[Event], cuts: list[int]) -> None:
    book = rules(text)
    assert not any(plan.tier_reasons() for plan in book.plans())
    check_detector(book, events, cuts)


KEYED = descriptions(equal=("EK and ", "EK and EC and ", "EX and EK and EC and "))


@quick
@given(KEYED, streams(), st.lists(st.integers(1, 9), max_size=2), st.sampled_from([0, 2]))
def test_only_what_has_the_keys_is_looked_at(text: str, events: list[Event], cuts: list[int], least: int) -> None:
    with patch.object(kernel, "SHARE", 0), patch.object(waiting_messages, "LEAST", least):
        check_detector(rules(text), events, cuts)


VISITS = """<cd id="c" within="40"><sources>
  <source class="a" anchor="A"><attribute name="k" type="int"/></source>
  <source class="b" anchor="B" within="20"><attribute name="v" type="double"/><attribute name="w" type="string"/></source>
  <source class="c" anchor="C"><attribute name="k" type="int" optional="true"/><attribute name="w" type="string"/></source>
</sources><predicates>
  <predicate name="equal" anchor="AB">A.k, B.v</predicate><predicate name="equal" anchor="BC">B.v, C.k</predicate>
  <predicate anchor="W">B.w &gt;= C.w</predicate><predicate name="before" anchor="L">A, B</predicate>
</predicates><expressions>
  <expression anchor="X">AB and BC and W</expression><expression anchor="Y">AB and L</expression>
</expressions><events><event class="x" trigger="X"/><event class="y" trigger="Y"/></events></cd>"""


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("changes", [False, True])
def test_partners_by_attributes_of_other_names(seed: int, changes: bool) -> None:
    """Those before a batch are found however many chunks they are in; each source is looked for by an attribute of its own."""
    rng, book = random.Random(seed), rules(VISITS)
    events = [
        primitive(rng.choice("abc"), at, at, f"e{n:03}", {"k": float(key), "v": float(key), "w": rng.choice("pq")})
        for n, at, key in ((n, 1000 * (n // 2), rng.randrange(9)) for n in range(150))
    ]
    cuts = sorted(rng.sample(range(1, 150), 40))
    with patch.object(kernel, "SHARE", 0), patch.object(waiting_messages, "LEAST", 4):
        found = detections(book, events, tier="kernel", cuts=cuts, changes=changes)
    assert found == detections(book, events)
    assert len({record["type"] for record in found}) == 2


@quick
@given(descriptions(), streams(), st.integers(1, 5))
def test_in_parts_and_with_all_conditions_at_the_end(text: str, events: list[Event], most: int) -> None:
    plan: Any = rules(text).plans("kernel")[0]
    batch = EventBatch([e.placed(n) for n, e in enumerate(sorted(events, key=lambda e: e.origin))])
    ways = [Kernel(plan.program, 0), Kernel(plan.program, 0, early=False)]
    expected, late = (way.step(way.fresh(), batch, Clock(0))[1].records() for way in ways)
    assert late == expected
    with patch.object(join, "MOST", most):
        assert ways[0].step(ways[0].fresh(), batch, Clock(0))[1].records() == expected


@quick
@given(descriptions(), streams(compounds=True), st.lists(st.integers(1, 9), max_size=3))
def test_sets_and_ranges_go_through_the_interpreter(text: str, events: list[Event], cuts: list[int]) -> None:
    check_detector(rules(text), events, cuts)


@quick
@given(descriptions(), descriptions("d", "abcc"), streams(), st.lists(st.integers(1, 9), max_size=1))
def test_descriptions_that_feed_descriptions(first: str, second: str, events: list[Event], cuts: list[int]) -> None:
    fed = second.replace('class="c"', 'class="c0"').replace('name="k" type="int"', 'name="k" type="int" optional="true"')
    book = rules(f"<cds>{first}{fed}</cds>")
    for where in (cuts, range(len(events))):
        assert detections(book, events, tier="kernel", cuts=where) == detections(book, events)


@quick
@given(descriptions(), streams(compounds=True), st.integers(0, 9))
def test_either_tier_goes_on_from_the_other(text: str, events: list[Event], cut: int) -> None:
    """What the join tier writes may lack instances that cannot complete any more, and has no others."""
    book, ordered = rules(text), sorted(events, key=lambda e: e.origin)
    expected = detections(book, events)
    graphs = {tier: Graph(book.plans(tier)) for tier in ("interpreter", "kernel")}
    written = []
    for before, after in (("interpreter", "kernel"), ("kernel", "interpreter")):
        state = graphs[before].initial()
        made = list(graphs[before].advance(state, EventBatch(ordered[:cut])).events)
        written.append(graphs[before].encode(state))
        state = graphs[after].decode(written[-1])
        made += graphs[after].advance(state, EventBatch(ordered[cut:])).events
        assert [record(d) for d in made] == expected
    more, less = (_waiting(graphs["interpreter"].decode(data)) for data in written)
    assert less <= more


def _waiting(state: Any) -> set[Any]:
    """All instances, by group and the places of their messages."""
    (own,) = state.states
    return {(n, *(m and m.place for m in i.messages)) for n, live in enumerate(own.live) for i in live.instances.values()}


# Time events, collections, what must not have been there.

REMEMBERED = [
    '<source class="a" anchor="A"{within}><attribute name="k" type="int"/>'
    '<attribute name="v" type="double" optional="true"/></source>',
    '<source class="b" anchor="B"{access}><attribute name="k" type="int"><filter operators="{join}">A.k</filter></attribute>'
    '<attribute name="v" type="double" optional="true"/></source>',
    '<source class="{absent}" anchor="N"><attribute name="k" type="int"><filter operators="equal">A.k</filter></attribute>'
    '<attribute name="v" type="double" optional="true"/></source>',
    '<collection class="{member}" anchor="G"{reuse}{within}><attribute name="k" type="int">{joined}</attribute>'
    '<attribute name="v" type="double" optional="true"/></collection>',
    '<collection class="b" anchor="H"><attribute name="k" type="int">{filled}</attribute></collection>',
    '<time anchor="T" trigger="A"><relative>{delay}</relative></time>',
    '<time anchor="U" trigger="{trigger}">{due}</time>',
]
ASKED = [
    '<predicate anchor="PA">A.k &gt;= 0</predicate>',
    '<predicate name="less" anchor="PV">A.v, B.v</predicate>',
    '<predicate name="before" anchor="PB">A, B</predicate>',
    '<predicate anchor="PC">A.time + 3 &gt;= B.time</predicate>',
    '<predicate name="any" anchor="PT">T</predicate>',
    '<predicate anchor="PU">U.time &gt;= A.time</predicate>',
    '<predicate name="none" anchor="PN">N</predicate>',
    '<predicate name="none" anchor="PX">N.v</predicate>',
    '<predicate name="none" anchor="NG">G</predicate>',
    '<predicate name="any" anchor="AG">G.v</predicate>',
    '<predicate anchor="PG">count(G) &gt;= {count}</predicate>',
    '<predicate anchor="PS">total &gt;= A.v</predicate>',
    '<predicate name="lessequal" anchor="PM">G.v, 1</predicate>',
    '<predicate anchor="PH">count(H) &lt;= 1</predicate>',
]
TERMS = [
    "PA and PT and PN",
    "PT and PX",
    "PB and PN",
    "PV and PG",
    "PC and PM and PS",
    "PA and PT and NG",
    "PU and PB",
    "PB and AG",
]
TERMS += [
    "PA and PG and PH",
    "PT and PU",
    "PA and (PM and PS or PG or PV)",
    "PA and (PN or PG)",
    "PB and PT and PS",
    "PA and PH and PN",
]
SUMMED = '<computation type="double" anchor="total">sum(G.v * A.k)</computation>'
GIVEN = (
    '<attribute name="n" type="int">count(G)</attribute><attribute name="s" type="double">total</attribute>'
    '<attribute name="m" type="double">max(G.v) - coalesce(B.v, 0)</attribute>'
    '<attribute name="l" type="double">last(G.v)</attribute>'
    '<attribute name="t" type="time_t">T.time</attribute>'
    '<attribute name="h" type="int">count(H)</attribute><attribute name="a" type="double">avg(G.v)</attribute>'
)


@st.composite
def remembering(draw: st.DrawFn) -> str:
    choices = {
        "within": draw(st.sampled_from(["", ' within="4"', ' within="8"'])),
        "access": draw(st.sampled_from(["", "", ' access="external"'])),
        "reuse": draw(st.sampled_from(["", ' reuse="true"'])),
        "join": draw(st.sampled_from(["equal", "greaterequal"])),
        "joined": draw(st.sampled_from(["", '<filter operators="equal">A.k</filter>'])),
        "filled": draw(st.sampled_from(["", '<filter operators="lessequal">count(G)</filter>'])),
        "absent": draw(st.sampled_from("abc")),
        "member": draw(st.sampled_from("abc")),
        "trigger": draw(st.sampled_from("AB")),
        "due": draw(st.sampled_from(["<relative>2</relative>", "<absolute>A.v * 4</absolute>"])),
        "delay": draw(st.sampled_from(["0", "1", "3", "5", "A.v"])),
        "count": draw(st.sampled_from(["0", "1", "2"])),
    }
    if choices["trigger"] == "B":
        choices["due"] = choices["due"].replace("A.v", "B.v")
    triggers = draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=2))
    expressions = "".join(f'<expression anchor="X{n}">{logic}</expression>' for n, logic in enumerate(triggers))
    access = st.sampled_from(["public", "public", "internal", "west"])
    events = "".join(f'<event class="d{n}" trigger="X{n}" access="{draw(access)}">{GIVEN}</event>' for n in range(len(triggers)))
    sources, predicates = ("".join(text.format(**choices) for text in some) for some in (REMEMBERED, ASKED))
    given = draw(st.sampled_from(["", "", ' within="6"']))
    return (
        f'<cd id="c"{given}><sources>{sources}</sources><computations>{SUMMED}</computations>'
        f"<predicates>{predicates}</predicates><expressions>{expressions}</expressions><events>{events}</events></cd>"
    )


@quick
@given(remembering(), streams(), st.lists(st.integers(1, 9), max_size=2), st.sampled_from([None, inf]))
def test_time_events_and_what_was_remembered(text: str, events: list[Event], cuts: list[int], until: float | None) -> None:
    book = rules(text)
    assert not any(plan.tier_reasons() for plan in book.plans())
    check_detector(book, events, cuts, until)


@quick
@given(remembering(), streams(), st.integers(1, 3))
def test_what_was_remembered_in_parts(text: str, events: list[Event], most: int) -> None:
    book = rules(text)
    expected = detections(book, events)
    with patch.object(join, "MOST", most):
        assert detections(book, events, tier="kernel") == expected


@quick
@given(remembering(), streams(compounds=True), st.integers(0, 9))
def test_with_time_events_either_tier_goes_on_from_the_other(text: str, events: list[Event], cut: int) -> None:
    book, ordered = rules(text), sorted(events, key=lambda e: e.origin)
    graphs = {tier: Graph(book.plans(tier)) for tier in ("interpreter", "kernel")}
    for before, after in (("interpreter", "kernel"), ("kernel", "interpreter")):
        state = graphs[before].initial()
        made = list(graphs[before].advance(state, EventBatch(ordered[:cut])).events)
        state = graphs[after].decode(graphs[before].encode(state))
        made += graphs[after].advance(state, EventBatch(ordered[cut:])).events
        made += graphs[after].finish(state, inf, True).events
        assert [record(d) for d in made] == detections(book, events, until=inf)


@quick
@given(remembering(), descriptions("e", "abcc"), streams(), st.lists(st.integers(1, 9), max_size=1))
def test_time_events_that_feed_descriptions(first: str, second: str, events: list[Event], cuts: list[int]) -> None:
    fed = second.replace('class="c"', 'class="d0"').replace('name="k" type="int"', 'name="k" type="int" optional="true"')
    book = rules(f"<cds>{first}{fed}</cds>")
    for where in (cuts, range(len(events))):
        assert detections(book, events, tier="kernel", cuts=where, until=inf) == detections(book, events, until=inf)


SIMPLE = (
    '<cd id="c"{given}><sources><source class="a" anchor="A"{source}/><source class="b" anchor="B"/>{sources}</sources>'
    '<predicates><predicate anchor="P">{condition}</predicate><predicate name="any" anchor="Q">B</predicate></predicates>'
    '<expressions><expression anchor="X">P and Q</expression></expressions>'
    '<events><event class="d" access="{access}"/></events></cd>'
)
DEFAULTS = {
    "given": "", "source": "", "sources": "", "condition": "A.time &lt; B.time", "access": "public"
}  # fmt: skip
TIMER = '<time anchor="T" trigger="A"><relative>1</relative></time>'


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"given": ' disjoint="true"'}, "disjoint messages"),
        ({"source": ' duplicates="replay"'}, "suppression of duplicates"),
        (
            {"sources": '<collection class="c" anchor="G" reuse="false"/>', "condition": "count(G) &gt; 1"},
            "collections that are used up",
        ),
        ({"sources": TIMER + TIMER.replace('"T"', '"U"').replace('"A"', '"T"')}, "time events that time events set"),
        ({"condition": "A.time in range(1, 2)"}, "sets and ranges"),
    ],
)
def test_what_it_cannot_do_it_says(changed: dict[str, str], reason: str) -> None:
    assert rules(SIMPLE.format(**DEFAULTS)).plans()[0].tier_reasons() == ()
    assert rules(SIMPLE.format(**(DEFAULTS | changed))).plans()[0].tier_reasons() == (f"description 'c' uses {reason}",)
