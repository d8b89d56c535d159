"""Random ECCO expressions: the interpreter against the denotation, however the input is cut; policies; printing."""

from __future__ import annotations

from math import inf
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coincide.detection.algebra.construction.build import Builder
from coincide.detection.algebra.nodes.chain import Step, StepState
from coincide.detection.algebra.nodes.negation import Negation
from coincide.detection.base import Clock
from coincide.expr.tree import Reference
from coincide.lang.ecco.definition import Definition, Expression, File, Item, Policy, Ref, With, core
from coincide.lang.ecco.parse import parse
from coincide.lang.ecco.print import print_file
from coincide.model.batch import EventBatch
from coincide.model.event import Event, primitive
from coincide.model.stamp import MILLISECOND
from coincide.rulebook import Rulebook, load, loads
from coincide.source import SourceText
from coincide.testing.check import check_detector, detections
from coincide.testing.ecco import OPTIONS, all_expressions, denotation, event_lists, expressions, references

slow = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
POLICIES = ("unrestricted", "recent", "chronicle", "continuous", "cumulative", "subset")


def written(*definitions: Definition) -> str:
    return print_file(File(definitions=definitions))


def loaded(*definitions: Definition) -> Rulebook:
    return load(SourceText("d.ecco", written(*definitions)))


def detector(expression: Expression) -> Definition:
    return Definition("d", False, (), expression)


@slow
@given(expressions())
def test_print_parses_back(expression: Expression) -> None:
    file = parse(SourceText("d.ecco", written(detector(expression))))
    assert file.definitions[0].body == expression


@slow
@given(expressions(), event_lists())
def test_interpreter_makes_what_the_expression_denotes(expression: Expression, events: list[Event]) -> None:
    book = loaded(Definition("d", False, (), expression, (Item("s", Reference("source")),)))
    expected = denotation(expression, events)
    made = detections(book, events, cuts=range(len(events)), until=inf)
    found = [_plain(d, events) for d in made]
    assert set(found) == expected.keys()
    assert len(found) == len(set(found))
    assert all(d.get("s") in expected[stamped] for d, stamped in zip(made, found, strict=True))


def _plain(record: dict[str, object], events: list[Event]) -> tuple[int, int, frozenset[int]]:
    time, ids = record["time"], record["from"]
    lo, hi = time if isinstance(time, list) else (time, time)
    numbers = {event.id: n for n, event in enumerate(events)}
    assert isinstance(ids, list)
    return lo, hi, frozenset(numbers[i] for i in ids)


@slow
@given(expressions(), event_lists())
def test_a_name_does_not_change_the_meaning(expression: Expression, events: list[Event]) -> None:
    """What `let p = E` makes, `detect d = p` makes."""
    named = loaded(Definition("p", True, (), expression), detector(Ref("p")))
    assert detections(named, events, until=inf) == detections(loaded(detector(expression)), events, until=inf)


@slow
@given(
    st.booleans().flatmap(lambda bare: references() if bare else all_expressions()),
    st.sampled_from((*POLICIES, "recent, subset", "subset")),
    event_lists(),
)
def test_a_default_policy_is_that_of_all_operators(expression: Expression, policy: str, events: list[Event]) -> None:
    """An option closes no expression: it leaves a bare reference as it is."""
    policies = tuple(map(Policy, policy.split(", ")))
    same = expression if isinstance(core(expression), Ref) else With(expression, policies)
    by_option = loads(f"option policy {policy}\n{written(detector(expression))}", "ecco")
    assert detections(by_option, events, until=inf) == detections(loaded(detector(same)), events, until=inf)


@slow
@given(all_expressions(), st.sampled_from(POLICIES), event_lists())
def test_in_point_semantics_only_events_last(expression: Expression, policy: str, events: list[Event]) -> None:
    """Whatever is composed, counted or waited for has only its end."""
    text = "option semantics point\n" + written(detector(With(expression, (Policy(policy),))))
    stamps = {event.id: [event.lo // MILLISECOND, event.hi // MILLISECOND] for event in events}
    for found in detections(loads(text, "ecco"), events, until=inf):
        ids = found["from"]
        assert isinstance(ids, list)
        assert not isinstance(found["time"], list) or [found["time"]] == [stamps[i] for i in ids]


@slow
@given(
    all_expressions(), st.sampled_from(OPTIONS), st.sampled_from(POLICIES), event_lists(), st.lists(st.integers(1, 6), max_size=2)
)
def test_every_option_however_the_input_is_cut(
    expression: Expression, option: str, policy: str, events: list[Event], cuts: list[int]
) -> None:
    text = f"{option}\n{written(detector(With(expression, (Policy(policy),))))}"
    check_detector(loads(text, "ecco"), events, cuts, inf)


@slow
@given(all_expressions(), st.sampled_from(POLICIES), event_lists())
def test_cuts_and_snapshots_change_nothing(expression: Expression, policy: str, events: list[Event]) -> None:
    book = loaded(detector(With(expression, (Policy(policy),))))
    whole = detections(book, events, until=inf)
    assert detections(book, events, cuts=range(len(events)), until=inf) == whole
    assert detections(book, events, cuts=range(len(events)), snapshots=True, until=inf) == whole


@slow
@given(all_expressions(), st.sampled_from(POLICIES), event_lists())
def test_forgetting_changes_nothing(expression: Expression, policy: str, events: list[Event]) -> None:
    """What is dropped early (section 8) would not have been taken."""
    body = With(expression, (Policy(policy),))
    made = detections(loaded(detector(body)), events, until=inf)
    assert detections(_remembering(loaded(detector(body))), events, until=inf) == made


EXACT = (
    "a ; b{duration() = 0}",
    "(a ; c) ; b{duration() = 0}",
    "(a{duration() = 0} ; b{duration() = 0}) within 3",
    "a ; c within 2 ; b{duration() = 0} within 3",
    "a ; NULL ; b{duration() = 0}",
    "a as x ; b{duration() = 0} as y where start(x) = start(x) and end(y) - end(x) = 1",
    "(a | c) as x ; b{duration() = 0} as y where x.type = y.type",
    "a as x ; b{duration() = 0} as y where x.source = y.source",
)


@slow
@given(st.sampled_from(EXACT), st.sampled_from((*POLICIES, "unrestricted, subset", "recent, subset")), event_lists(12))
def test_exact_points_need_one_prefix_only(body: str, policy: str, events: list[Event]) -> None:
    """ECCO-43."""
    rules = SourceText("d.ecco", f"detect d = ({body}) with {policy}")
    sourced = [replace(event, source=f"s{n % 2}") for n, event in enumerate(events)]
    made = detections(load(rules), sourced, until=inf)
    assert detections(_remembering(load(rules)), sourced, until=inf) == made


def test_only_exact_points_need_one_prefix_only() -> None:
    """A later b whose stamp is a range takes an older a, so that one must be there still."""
    events = [primitive("a", t, t, str(t), {}) for t in range(1000, 50_000, 1000)]
    for body, kept in (("a ; b{duration() = 0}", 1), ("a ; b", len(events) - 1)):
        (plan,) = load(SourceText("d.ecco", f"detect d = ({body}) with recent")).compiled.plans
        state, _ = plan.step(plan.initial(), EventBatch(events).numbered(0), Clock(49_000, start=1000))
        (own,) = [s for s in state.copies[0][()].states if isinstance(s, StepState)]
        assert len(own.prefixes) == kept


def _remembering(book: Rulebook) -> Rulebook:
    for plan in book.compiled.plans:
        for program in plan.programs:  # type: ignore[attr-defined]
            for node in program.nodes:
                if isinstance(node, Step):
                    node.punctual, node.best = False, None
                if isinstance(node, Negation):
                    node.reach, node.keeps_one = None, False
    return book


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["a* ; b", "b ; a*", "a*{2,} + b", "(a | c)* ; b", "a* ; c ; b", "(a valid 3)* ; b", "(a ; c)* + b"]),
    st.sampled_from(["unrestricted", "recent", "cumulative", "cumulative, subset", "continuous"]),
    st.integers(0, 6),
    event_lists(12),
)
def test_runs_that_are_of_no_use_make_no_difference(body: str, policy: str, within: int, events: list[Event]) -> None:
    """Those of iterations in a chain that is bounded, which are left out where they would last longer than the chain may."""
    rules = f"detect found = (({body}) within {within}) with {policy}"
    with patch.object(Builder, "_useful", lambda *_: ()):
        all_runs = detections(loads(rules, "ecco"), events)
    assert detections(loads(rules, "ecco"), events) == all_runs
