"""The kernel tier of ECCO against its interpreter: any cut, a snapshot anywhere, tiers that take turns."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from coincide.detection.algebra.sequence import sequences
from coincide.engines.graph import Graph
from coincide.expr.tree import Reference
from coincide.lang.ecco.definition import Definition, Expression, File, Item, Policy, With
from coincide.lang.ecco.print import print_file
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive, record
from coincide.model.stamp import MILLISECOND
from coincide.rulebook import Rulebook, load, loads
from coincide.source import SourceText
from coincide.testing.check import check_detector, detections
from coincide.testing.ecco import KEYS, OPTIONS, all_expressions, bounded_expressions, event_lists, keyed_events

pytestmark = pytest.mark.brief(examples=3)  # each is run in sixteen ways
slow = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
POLICIES = ("unrestricted", "recent", "chronicle", "continuous")
ENDS = st.sampled_from([None, inf, 40.0 * MILLISECOND])
CUTS = st.lists(st.integers(0, 14), max_size=4)


def check(rules: str, events: list[Event], cuts: list[int], until: float | None, covered: bool = True) -> None:
    book = loads(rules, "ecco")
    assert not covered or not any(plan.tier_reasons() for plan in book.compiled.plans), rules
    compare(book, events, cuts, until)


def compare(book: Rulebook, events: list[Event], cuts: list[int], until: float | None) -> None:
    made = check_detector(book, events, cuts, until)
    assert taking_turns(book, events, cuts, until) == made
    with patch.object(sequences, "LITTLE", 0):  # what is needed no more goes at once
        assert detections(book, events, tier="kernel", cuts=range(len(events)), until=until) == made


def taking_turns(book: Rulebook, events: list[Event], cuts: list[int], until: float | None) -> list[dict[str, object]]:
    """One tier after another, each with the state that the other has left."""
    graphs = [Graph(book.plans("kernel")), Graph(book.plans("interpreter"))]
    state = graphs[0].initial()
    made: list[Event] = []
    bounds = [0, *sorted(c for c in cuts if 0 < c < len(events)), len(events)]
    for turn, (start, end) in enumerate(pairwise(bounds)):
        made += graphs[turn % 2].advance(state, EventBatch(events[start:end])).events
        state = graphs[(turn + 1) % 2].decode(graphs[turn % 2].encode(state))
    made += graphs[len(bounds) % 2 - 1].finish(state, until).events
    return [record(event) for event in made]


def policies(consumption: str, subset: bool) -> tuple[Policy, ...]:
    return (Policy(consumption), Policy("subset")) if subset else (Policy(consumption),)


@slow
@given(
    bounded_expressions(), st.sampled_from(POLICIES), st.booleans(), st.sampled_from(KEYS), st.booleans(), keyed_events(), CUTS
)
def test_operators(
    expression: Expression, policy: str, subset: bool, keys: tuple[str, ...], gives: bool, events: list[Event], cuts: list[int]
) -> None:
    body = With(expression, policies(policy, subset))
    given_list = (Item("s", Reference("source")), Item("v", Reference("v"))) if gives else None
    check(print_file(File(definitions=(Definition("found", False, keys, body, given_list),))), events, cuts, None)


@slow
@given(bounded_expressions(), st.sampled_from(OPTIONS), st.sampled_from(KEYS), keyed_events(), CUTS, ENDS)
def test_every_option(
    expression: Expression, option: str, keys: tuple[str, ...], events: list[Event], cuts: list[int], until: float | None
) -> None:
    rules = f"{option}\n{print_file(File(definitions=(Definition('found', False, keys, expression),)))}"
    check(rules, events, cuts, until, covered=False)


EQUALITIES = (
    "(a as x ; b as y where x.k = y.k) within 6  give y.v, at = x.time, took = duration(), k",
    "a as x ; b as y ; a as z where x.k = y.k and z.k = x.k  give x.v, z.v",
    "((a as x ; b as y where y.k = x.m) within 6) - c as n where x.m = n.k",
    "(a{v > 1} as x + c as y where x.k = y.k and x.m = y.m) within 5",
    "((a as x ; b as y where y.k = x.k) ; c where x.k = c.k) within 9",
    "a ; b within 3 ; c within 2",
    "((a | c) ; b) within 4",
    "(a ; b) + d",
    "((a ; b) - c) ; d",
    "a ; b{duration() = 0}",
    "a{duration() = 0} ; b{duration() = 0} ; c{duration() = 0} within 9",
    "a as x ; b{duration() = 0} as y where x.k = y.k",
    "(a - b) within 4  give a.v, took = duration()",
    "(a{duration() = 0} - (b within 2)) within 5",
    "((a as x ; b as y where x.k = y.k) - c as n where x.k = n.k) within 6",
    "((((a ; b) within 5) - c) within 7) ; d",
    "(a as x ; not c as n ; b as y where x.k = y.k and x.k = n.k) within 9  give y.v",
    "(a ; not (b ; c) ; d) within 9",
    "a as x ; b as y ; not c as n over 3 where x.k = y.k and x.k = n.k",
    "a ; not a over 3 ; b",
    "(c ; a ; not b over 2 ; d) within 9",
    "((a + 3) ; b ; c) within 7",
    "((a ; b) | c) within 3",
)


@slow
@given(st.sampled_from(EQUALITIES), st.sampled_from((*POLICIES, "unrestricted, subset")), keyed_events(), CUTS)
def test_equalities_divide_as_keys_do(body: str, policy: str, events: list[Event], cuts: list[int]) -> None:
    expression, _, given_list = body.partition("  give ")
    rules = f"detect found = ({expression}) with {policy}" + (f" give {given_list}" if given_list else "")
    check(rules, events, cuts, None, covered="where" not in body or "subset" not in policy)


COMPARISONS = (
    "(a as x ; b as y where x.v < y.v) within 9  give x.v, w = y.v",
    "a as x ; b as y where x.v <= y.v and x.k = y.k",
    "(a as x + b as y where y.v > 2 * x.v) within 7",
    "a{duration() = 0} as x ; b{duration() = 0} as y ; c{duration() = 0} as z where x.v < z.v and z.v >= y.v",
    "(a as x ; not c ; b as y where y.v - 1 >= -x.v) within 9",
    "((a as x + b as y where x.v >= y.v) ; c as z where z.v > x.v) within 12",
    "((a as x ; b as y where x.v < y.v) within 5) - c",
    "(a as x ; b as y ; not c over 3 where x.v < y.v) within 9",
    "(a as x ; b as y where x.m < y.m) within 9",
    "(a as x ; b as y where x.time + 2 < y.time) within 9",
)


@slow
@given(
    st.sampled_from(COMPARISONS), st.sampled_from(KEYS), st.sampled_from((*POLICIES, "unrestricted, subset")),
    keyed_events(), CUTS, ENDS,
)  # fmt: skip
def test_operands_are_compared(
    body: str, keys: tuple[str, ...], policy: str, events: list[Event], cuts: list[int], until: float | None
) -> None:
    expression, _, given_list = body.partition("  give ")
    per = f"per {', '.join(keys)} " if keys else ""
    rules = f"detect found {per}= ({expression}) with {policy}" + (f" give {given_list}" if given_list else "")
    check(rules, events, cuts, until, covered=".k =" not in body or "subset" not in policy)


PLACES = (
    "(a @ 'z1' ; b @ box(0, 0, 3, 3)) within 9", "(a + b) @ circle(1, 1, 2)", "a @ group('n1', 'n2') - b @ 'z2'",
    "(a @ zone('z1', 'z2'))^COUNT over 4", "((a | b)^AVG(v) over 4) @ box(0, 0, 1, 10, 10, 6)",
    "(a @ sphere(0, 0, 0, 8))^LAST over 3",
    "a{zone() = 'z1'} ; b{within_box(0, 0, 9, 9)}", "a ; (not b over 3) @ 'z1'", "a{within_radius(50, 8, 1000)} | b",
)  # fmt: skip


@slow
@given(st.sampled_from(PLACES), st.sampled_from(["", "per k ", "per source "]), keyed_events(), CUTS)
def test_places(body: str, per: str, events: list[Event], cuts: list[int]) -> None:
    check(f"detect found {per}= {body}", events, cuts, None)


SELECTIONS = (
    "not a over 3", "not (a{v > 0.1} | b) over 2", "not ((a ; b) within 3) over 4", "a^FIRST", "a^FIRST over 4",
    "(a | b)^2 over 5 every 7", "(a ; b)^3", "a^ONCE over 3", "((a ; b) within 5)^ONCE over 4 until c",
    "a^ONCE over 6 until a", "((a | b)^FIRST over 6 ; c) within 8", "a^LAST ; b", "(a^ONCE over 2 + c^FIRST over 3) within 9",
    "(a - b)^ONCE over 3", "((a - b) within 2)^ONCE over 5 ; not c over 2", "(not a over 3) @ 'z1'",
)  # fmt: skip


@slow
@given(
    st.sampled_from(SELECTIONS), st.sampled_from(KEYS), st.sampled_from((*POLICIES, "unrestricted, subset")),
    keyed_events(), CUTS, ENDS,
)  # fmt: skip
def test_selections_and_silences(
    body: str, keys: tuple[str, ...], policy: str, events: list[Event], cuts: list[int], until: float | None
) -> None:
    per = f"per {', '.join(keys)} " if keys else ""
    check(f"detect found {per}= ({body}) with {policy}", events, cuts, until)


WINDOWS = (
    "a^AVG(v) over 4", "a^SUM(v) over 4", "a^SUM over 3 every 2", "a^COUNT over 3", "(a | b)^COUNT(v) over 5 every 2",
    "a{v > 0}^MIN(v) over 4 every 6", "a^MAX(v) over 6 every 2", "a^LAST over 4", "b^LESS 2 over 3", "b^MORE 1 over 4 every 2",
    "(a^SUM(v) over 4)^LESS 1", "(a^COUNT over 4){count >= 2 and k = 1}", "a{v > 0}^COUNT over 2",
    "(b^COUNT over 2 every 5)^LESS 1",
)  # fmt: skip


@slow
@given(
    st.sampled_from(WINDOWS), st.sampled_from(["", "per k ", "per k, m ", "per source, k ", "per type "]),
    st.sampled_from(["", "option offset 1\n"]),
    st.sampled_from(["", "  give k, start = start(), v, count"]), keyed_events(), CUTS, ENDS,
)  # fmt: skip
def test_windows(
    body: str, per: str, option: str, given_list: str, events: list[Event], cuts: list[int], until: float | None
) -> None:
    check(f"{option}detect found {per}= {body}{given_list}", events, cuts, until)


@slow
@given(keyed_events(), CUTS, ENDS)
def test_several_definitions_at_once(events: list[Event], cuts: list[int], until: float | None) -> None:
    rules = """detect pair per k = (a ; b) within 5 with recent
    detect count per k = a^COUNT over 3
    detect mean = (a | b)^AVG(v) over 4
    detect both = (b + c) within 3 with chronicle
    detect sum  = c^SUM(v) over 3"""
    check(rules, events, cuts, until)


# Operands that are detections.

BELOW = (
    "(a ; b) within 5", "(a + b) within 4 with recent", "a{v > 0.1}", "a | b", "a - d", "(a ; b) within 9 with chronicle",
    "a^COUNT over 3", "(a | b)^AVG(v) over 2", "a^LAST over 4 every 2",
    "(a ; b) within 6 give v = b.v, k = a.k, took = duration()",
)  # fmt: skip
ABOVE = (
    "p^COUNT over 5", "p^SUM(v) over 4 every 3", "p^LAST over 6", "p{v > 0}^MAX(v) over 5", "p^LESS 2 over 3",
    "(p ; c) within 9", "(c ; p) within 9", "(p ; q) within 9", "(q + p) within 12", "p + c", "p | q", "p | c", "p - q",
    "(c ; d) | p",
    "((p ; c) within 8) + q", "(p ; a) within 9", "(b ; p) within 9", "(a + p) within 9", "(p ; c ; q) within 12",
    "(p as x ; q as y where x.k = y.k) within 9", "(p as x ; c as y where x.k = y.k) within 9  give x.v, y.k, at = x.time",
    "p{source = 's'} ; c", "(p ; c){source = 's'} ", "p ; c ; c",
)  # fmt: skip
FEW_SOURCES = st.lists(st.sampled_from([None, "s", "s", "t", "u"]), min_size=14, max_size=14)


@slow
@given(
    st.sampled_from(BELOW), st.sampled_from(BELOW), st.sampled_from(ABOVE), st.sampled_from((*POLICIES, "unrestricted, subset")),
    st.sampled_from(["", "per k "]), st.sampled_from(["let", "detect"]), keyed_events(), FEW_SOURCES, CUTS, ENDS,
)  # fmt: skip
def test_operands_that_are_detections(
    p: str, q: str, body: str, policy: str, per: str, word: str,
    events: list[Event], sources: list[str | None], cuts: list[int], until: float | None,
) -> None:  # fmt: skip
    expression, _, given_list = body.partition("  give ")
    rules = f"{word} p {per}= {p}\nlet q {per}= {q}\ndetect found {per}= ({expression}) with {policy}"
    events = [structs.replace(event, source=source) for event, source in zip(events, sources, strict=False)]
    covered = not ("where" in body and "subset" in policy) and "source" not in body.partition(" ; c)")[2]
    check(rules + (f" give {given_list}" if given_list else ""), events, cuts, until, covered=covered)


def test_a_definition_in_two_plans_keeps_its_place() -> None:
    """`found` has no kernel, so it has a plan of its own, with another `p` in it that looks at other instants."""
    rules = """detect p = (a ; b) within 5
    detect found = ((p as x + c as y where x.k = y.k) within 9) with unrestricted, subset"""
    given_events = (("a", 1), ("c", 2), ("b", 2), ("d", 3))
    events = [primitive(type, time, time, str(id), {"k": 1.0}) for id, (type, time) in enumerate(given_events)]
    check(rules, events, [], None, covered=False)


FOREIGN = (
    ("r.ecl", "monitor m = parallel { repeat { push(p, v: v, k: k) { a } }, repeat { push(q, v: v) { sequential { a, b } } } }"),
    ("r.ecl", "monitor m by k = parallel { repeat { push(p, v: v) { a } }, repeat { push(q) { b } }, repeat { push(p) { a } } }"),
    ("r.ce", "detect p = [a] ; [b]\ndetect q = [a] ; [d]"),
    ("r.ce", "detect p = ([a(k = ?k)], [T]) T = 2\ndetect q = [b(k = ?k)]"),
)  # fmt: skip


def test_detections_of_one_event_keep_their_order() -> None:
    """Two that differ in an attribute only: which of them is the last does not depend on snapshots."""
    ecco = SourceText("rules.ecco", "detect found = p^LAST over 6")
    given_events = (("a", 10, 2.0), ("b", 11, 1.0), ("a", 11, None), ("c", 29, 0.0))
    events = [
        primitive(type, time * MILLISECOND, time * MILLISECOND, str(id), {"v": True} if k is None else {"v": True, "k": k})
        for id, (type, time, k) in enumerate(given_events)
    ]
    compare(load(SourceText(*FOREIGN[1]), ecco), events, [], None)


@slow
@given(
    st.sampled_from(FOREIGN), st.sampled_from(ABOVE), st.sampled_from((*POLICIES, "unrestricted, subset")),
    st.sampled_from(["", "per k "]), keyed_events(), CUTS, ENDS,
)  # fmt: skip
def test_operands_of_other_languages(
    first: tuple[str, str], body: str, policy: str, per: str, events: list[Event], cuts: list[int], until: float | None
) -> None:
    expression, _, given_list = body.partition("  give ")
    rules = f"detect found {per}= ({expression}) with {policy}" + (f" give {given_list}" if given_list else "")
    compare(load(SourceText(*first), SourceText("rules.ecco", rules)), events, cuts, until)


@slow
@given(st.sampled_from(BELOW), st.sampled_from(ABOVE), keyed_events(), st.sets(st.integers(0, 13)), CUTS)
def test_events_with_the_name_of_a_definition(p: str, body: str, events: list[Event], renamed: set[int], cuts: list[int]) -> None:
    rules = f"let p = {p}\nlet q = c ; d\ndetect found = {body.replace('  give', ' give')}"
    events = [structs.replace(event, type="p") if number in renamed else event for number, event in enumerate(events)]
    check(rules, events, cuts, None, covered=False)


@slow
@given(all_expressions(), st.sampled_from(POLICIES), event_lists())
def test_what_is_not_covered_is_interpreted(expression: Expression, policy: str, events: list[Event]) -> None:
    book = loads(print_file(File(definitions=(Definition("found", False, (), With(expression, (Policy(policy),))),))), "ecco")
    assert detections(book, events, tier="kernel", cuts=[3], until=inf) == detections(book, events, until=inf)
