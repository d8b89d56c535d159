"""Partners that are found by an equality are those that a search through everything finds."""

from __future__ import annotations

from math import inf

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coincide.detection.algebra.nodes import equality
from coincide.detection.algebra.nodes.chain import Step, StepState
from coincide.detection.algebra.nodes.negation import Negation
from coincide.detection.base import Clock
from coincide.model.batch import EventBatch
from coincide.model.event import Event, Value
from coincide.model.stamp import MILLISECOND, order_key
from coincide.rulebook import Rulebook, loads
from coincide.testing.check import detections

BODIES = (
    "(a as x ; b as y where x.k = y.k) within 6",
    "a as x ; b as y ; a as z where x.k = y.k and z.k = x.k",
    "((a as x ; b as y where y.k = x.k) within 6) - c as n where x.k = n.k",
    "(a - c) within 4 where a.k = c.k",
    "a as x ; not c ; b as y where x.k = y.k and c.k = x.k",
    "a as x ; c* as g ; b as y where x.k = y.k",
    "(a as x | c as x2) ; b as y where x.k = y.k",
    "(a - (c valid 3)) ; b where a.k = c.k and a.k = b.k",
)
POLICIES = ("unrestricted", "recent", "chronicle", "continuous", "cumulative", "recent, subset")
KEYS = st.sampled_from([None, 1.0, 2.0, True, "1", -0.0, 0.0])


def event(kind: str, time: int, number: int, key: Value) -> Event:
    stamp = time * MILLISECOND
    attributes: dict[str, Value] = {} if key is None else {"k": key}
    return Event(kind, stamp, stamp, str(number), attributes, (order_key(stamp, stamp, str(number)),))


@st.composite
def keyed_events(draw: st.DrawFn) -> list[Event]:
    events, time = [], 0
    for number in range(draw(st.integers(0, 12))):
        time += draw(st.integers(0, 2))
        events.append(event(draw(st.sampled_from("aabbc")), time, number, draw(KEYS)))
    return events


def searching(book: Rulebook) -> Rulebook:
    for plan in book.compiled.plans:
        for program in plan.programs:  # type: ignore[attr-defined]
            for node in program.nodes:
                if isinstance(node, (Step, Negation)):
                    assert node.equality is None or isinstance(node.equality, equality.Equality)
                    node.equality = None
    return book


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(BODIES), st.sampled_from(POLICIES), keyed_events())
def test_an_index_changes_nothing(body: str, policy: str, events: list[Event]) -> None:
    rules = f"detect d = ({body}) with {policy}"
    expected = detections(searching(loads(rules, "ecco")), events, until=inf)
    assert detections(loads(rules, "ecco"), events, until=inf) == expected
    assert detections(loads(rules, "ecco"), events, cuts=range(len(events)), snapshots=True, until=inf) == expected


def test_what_is_too_old_goes_when_there_is_much_of_it() -> None:
    (plan,) = loads("detect d = (a as x ; b as y where x.k = y.k) within 6", "ecco").compiled.plans
    events = [event("a", time, time, float(time)) for time in range(1000)]
    state, _ = plan.step(plan.initial(), EventBatch(events).numbered(0), Clock(1000 * MILLISECOND, start=0))
    steps = [own for own in state.copies[0][()].states if isinstance(own, StepState)]
    assert 0 < len(steps[0].prefixes) < 3 * equality.SPARE
