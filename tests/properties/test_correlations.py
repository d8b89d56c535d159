"""Random descriptions on random events: against a search over all combinations, and however the input is split."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coincide.detection.correlation.live import TRIGGER, Rivals
from coincide.detection.correlation.program import Program
from coincide.lang.cdl.parse import parse
from coincide.lang.cdl.print import print_file
from coincide.model.compound import compound_of
from coincide.model.event import Event, Value, primitive
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.testing.check import check_detector, detections
from coincide.testing.compare import unmatched

quick = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])

COMPARISONS = {"=": "equal", "<": "less", "<=": "lessequal", ">": "greater", "!=": "notequal"}


def rules(text: str) -> Rulebook:
    return load(SourceText("rules.cdl.xml", text))


def document(
    sources: list[str], predicates: list[str], expressions: dict[str, str], events: str, rest: str = "", **given: str
) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in given.items())
    listed = "".join(f'<expression anchor="{name}">{logic}</expression>' for name, logic in expressions.items())
    return (
        f'<cd id="c"{attributes}><sources>{"".join(sources)}</sources><predicates>{"".join(predicates)}</predicates>'
        f"<expressions>{listed}</expressions><events>{events}</events>{rest}</cd>"
    )


@st.composite
def streams(draw: st.DrawFn, compounds: bool = False) -> list[Event]:
    numbers: st.SearchStrategy[Value] = st.sampled_from([0.0, 1.0, 2.0])
    if compounds:
        raw: list[Any] = [[1], [0, 2], [], {"lo": 1}, {"lo": 1, "hi": 1}, {"lo": 2, "hi": 0}]
        numbers = st.one_of(numbers, numbers, st.sampled_from([compound_of(r) for r in raw]))
    events = []
    for number in range(draw(st.integers(0, 9))):
        hi = draw(st.integers(0, 12)) * 1000
        lo = draw(st.sampled_from([hi, hi, max(0, hi - 2000)]))
        attributes: dict[str, Value] = {"k": draw(st.sampled_from([0.0, 1.0])), "v": draw(numbers)}
        source = draw(st.sampled_from(["east", "west", None]))
        events.append(primitive(draw(st.sampled_from("abc")), lo, hi, f"e{number}", attributes, source))
    return events


# Conjunctions without preferences: every combination that satisfies all literals, once.

READ = {"time": lambda e: e.hi / 1000, "k": lambda e: e.attributes["k"], "v": lambda e: e.attributes["v"]}
TEST = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "!=": lambda a, b: a != b,
}


@st.composite
def conjunctions(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, tuple[int, str], tuple[int, str], bool]]]:
    classes = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
    side = st.tuples(st.integers(0, len(classes) - 1), st.sampled_from(["time", "k", "v"]))
    literal = st.tuples(st.sampled_from(list(COMPARISONS)), side, side, st.booleans())
    return classes, draw(st.lists(literal, min_size=1, max_size=4))


@quick
@given(conjunctions(), streams())
def test_all_combinations_are_found(drawn: Any, events: list[Event]) -> None:
    classes, literals = drawn
    declared = '<attribute name="k" type="int"/><attribute name="v" type="double"/>'
    sources = [f'<source class="{c}">{declared}</source>' for c in classes]
    predicates = [
        f'<predicate name="{COMPARISONS[op]}" anchor="P{n}">S{a + 1}.{x}, S{b + 1}.{y}</predicate>'
        for n, (op, (a, x), (b, y), _) in enumerate(literals)
    ]
    logic = " and ".join(f"{'not ' if negated else ''}P{n}" for n, (*_, negated) in enumerate(literals))
    book = rules(document(sources, predicates, {"X": logic}, '<event class="found"/>'))
    made = Counter(tuple(d["from"]) for d in detections(book, events))  # type: ignore[arg-type]
    used = sorted({source for _, (a, _), (b, _), _ in literals for source in (a, b)})
    expected: Counter[tuple[str, ...]] = Counter()
    for chosen in product(*([e for e in events if e.type == classes[s]] for s in used)):
        mapping = dict(zip(used, chosen, strict=True))
        if len({e.id for e in chosen}) == len(chosen) and all(
            TEST[op](READ[x](mapping[a]), READ[y](mapping[b])) is not negated for op, (a, x), (b, y), negated in literals
        ):
            expected[tuple(e.id for e in sorted(chosen, key=lambda e: e.origin) if e.id)] += 1
    assert made == expected


# Everything together: splits and snapshots change nothing.

SOURCES = [
    '<source class="a" anchor="A"{within}><attribute name="k" type="int"/>'
    '<attribute name="v" type="double" optional="true"/></source>',
    '<source class="b" anchor="B"{duplicates}><attribute name="k" type="int"><filter operators="{join}">A.k</filter></attribute>'
    '<attribute name="v" type="double"/></source>',
    '<source class="c" anchor="N"><attribute name="k" type="int"><filter operators="equal">A.k</filter></attribute></source>',
    '<collection class="c" anchor="G"{reuse}{within}><attribute name="v" type="double"/></collection>',
    '<time anchor="T" trigger="A"><relative>{delay}</relative></time>',
]
PREDICATES = [
    '<predicate anchor="PA">A.k &gt;= 0</predicate>',
    '<predicate name="less" anchor="PV">A.v, B.v</predicate>',
    '<predicate name="before" anchor="PB">A, B</predicate>',
    '<predicate anchor="PC">A.time + 3 &gt;= B.time</predicate>',
    '<predicate name="any" anchor="PT">T</predicate>',
    '<predicate name="none" anchor="PN">N</predicate>',
    '<predicate anchor="PG">count(G) &gt;= {count}</predicate>',
    '<predicate name="lessequal" anchor="PM">G.v, 1</predicate>',
    '<predicate name="equivalent" anchor="QE"/><predicate name="complete" anchor="QC"/><predicate name="shares" anchor="QS"/>',
    '<predicate name="complete" of="other" anchor="QO"/><predicate name="true" anchor="QT"/>',
    '<predicate name="preferGreater" anchor="QP">A.time, other.A.time</predicate>',
]
LOGIC = ["PA and PV", "PB or PV", "PA and PT and PN", "PA and PG", "PG and PM", "PV and (PT or PG)", "not PV and PA", "PB and PN"]
LOGIC += ["PC and PB", "PC and PV and (PT or PB)", "PC and PG"]
PREFERENCES = [
    "",
    "<preference><other>E</other><better>P</better></preference>",
    "<preference><self>C</self><previous>Y</previous></preference>",
    "<preference><self>C</self><other>SO</other><better>Y</better></preference><preference><other>SC</other><better>F</better></preference>",
]
EXTRA = {"E": "QE", "P": "QP", "C": "QC", "Y": "QT", "SO": "QS and not QO", "SC": "QS and QO", "F": "not QT"}


@st.composite
def descriptions(draw: st.DrawFn) -> str:
    choices = {
        "within": draw(st.sampled_from(["", ' within="4"', ' within="8"'])),
        "duplicates": draw(st.sampled_from(["", ' duplicates="unchanged"', ' duplicates="replay"'])),
        "reuse": draw(st.sampled_from(["", ' reuse="true"', ' reuse="false"'])),
        "join": draw(st.sampled_from(["equal", "greaterequal"])),
        "delay": str(draw(st.integers(0, 5))),
        "count": str(draw(st.integers(0, 2))),
    }
    triggers = draw(st.lists(st.sampled_from(LOGIC), min_size=1, max_size=2))
    expressions = {f"X{n}": logic for n, logic in enumerate(triggers)} | EXTRA
    values = '<attribute name="v" type="double">B.v</attribute><attribute name="all" type="double">set(G.v)</attribute>'
    values += '<attribute name="n" type="int">count(G)</attribute>'
    events = "".join(f'<event class="d{n}" trigger="X{n}">{values}</event>' for n in range(len(triggers)))
    preferences = f"<preferences>{draw(st.sampled_from(PREFERENCES))}</preferences>"
    sources, predicates = ([text.format(**choices) for text in some] for some in (SOURCES, PREDICATES))
    return document(sources, predicates, expressions, events, preferences, disjoint=draw(st.sampled_from(["true", "false"])))


@quick
@given(descriptions(), streams(compounds=True), st.lists(st.integers(1, 9), max_size=2), st.sampled_from([None, inf]))
def test_splits_and_snapshots(text: str, events: list[Event], cuts: list[int], until: float | None) -> None:
    check_detector(rules(text), events, cuts, until)


@quick
@given(descriptions(), streams())
def test_what_no_literal_refers_to_is_undefined(text: str, events: list[Event]) -> None:
    """Aggregates over a collection are null where the trigger says nothing of it (4.3)."""
    logic = dict(re.findall(r'<expression anchor="(X\d)">([^<]*)<', text))
    for found in detections(rules(text), events, until=inf):
        trigger = logic[f"X{str(found['type'])[1:]}"]
        if "PG" not in trigger and "PM" not in trigger:
            assert not {"all", "n"} & found.keys()
        elif "or" not in trigger:
            assert {"all", "n"} <= found.keys()


def without_index(book: Rulebook) -> Rulebook:
    """The same rules, where every live instance is offered every message and compared with every other."""
    for plan in book.plans():
        program: Program = plan.program  # type: ignore[attr-defined]
        times = {s: tuple(link for link in links if link[0] == TRIGGER) for g in program.groups for s, links in g.links.items()}
        groups = tuple(replace(g, links={s: times[s] for s in g.links if times[s]}, apart={}) for g in program.groups)
        preferences = tuple(replace(p, rivals=Rivals()) for p in program.preferences)
        sources = tuple(replace(s, join_key=None) for s in program.sources)
        plan.__dict__["program"] = replace(program, groups=groups, preferences=preferences, sources=sources)
    return book


@quick
@given(descriptions(), streams(compounds=True))
def test_the_index_changes_nothing(text: str, events: list[Event]) -> None:
    assert detections(rules(text), events, until=inf) == detections(without_index(rules(text)), events, until=inf)


@quick
@given(descriptions(), streams())
def test_keys_divide(text: str, events: list[Event]) -> None:
    """Where there is a partition, each key alone gives what all give together, if it learns how far time has come."""
    book = rules(text.replace('"greaterequal">A.k', '"equal">A.k'))
    if book.detectors[0].partition == ("k",):
        end = max((e.hi for e in events), default=0)
        alone = [d for k in (0.0, 1.0) for d in detections(book, [e for e in events if e.attributes["k"] == k], until=end)]
        assert unmatched(alone, detections(book, events)) == ([], [])


@quick
@given(descriptions())
def test_what_is_printed_reads_back(text: str) -> None:
    file = parse(SourceText("rules.cdl.xml", text))
    assert parse(SourceText("rules.cdl.xml", print_file(file))) == file
