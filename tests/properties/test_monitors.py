"""Monitors: the staged graph equals event-by-event processing; tiers, cuts and snapshots make no difference."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.engines.embedded import Engine
from coincide.expr.parse import parse_expression
from coincide.expr.scalar import EventScope, condition, event_field
from coincide.model.event import Event, record
from coincide.rulebook import loads
from coincide.testing.check import check_detector, detections
from coincide.testing.ecl import event_lists, rule_texts, value_comparisons
from coincide.testing.reference import reference_run

cuts = st.lists(st.integers(0, 12), max_size=3)


@given(rule_texts(), event_lists(), cuts)
@settings(deadline=None, max_examples=100)
def test_cuts_snapshots_and_tiers_make_no_difference(text: str, events: list[Event], cuts: list[int]) -> None:
    check_detector(loads(text), events, cuts)


@given(
    value_comparisons(), st.sampled_from(["", " by k", " by source"]), event_lists(), st.sampled_from(["interpreter", "kernel"])
)
@settings(deadline=None, max_examples=100)
def test_monitors_of_one_test_each(tests: list[str], keys: str, events: list[Event], tier: str) -> None:
    """They push at every event that passes their test and has their key."""
    text = "".join(f"monitor m{n}{keys} = repeat {{ push(x{n}) {{ {test} }} }}\n" for n, test in enumerate(tests))
    key = event_field(keys[4:]) if keys else lambda event: ""
    passes = [condition(parse_expression(test), EventScope()) for test in tests]
    ordered = sorted(events, key=lambda e: e.origin)
    expected = [(f"x{n}", e.id) for e in ordered if key(e) is not None for n, test in enumerate(passes) if test(e)]
    found = detections(loads(text), events, tier=tier)
    assert [(d["type"], *d["from"]) for d in found] == expected  # type: ignore[misc]


@given(rule_texts(), event_lists())
@settings(deadline=None, max_examples=100)
def test_the_staged_graph_equals_event_by_event(text: str, events: list[Event]) -> None:
    rules = loads(text)
    assert detections(rules, events) == [record(d) for d in reference_run(rules, events)]


@given(
    rule_texts(detectors=2),
    rule_texts(detectors=1),
    event_lists(),
    st.integers(0, 12),
    st.sampled_from(["interpreter", "kernel"]),
)
@settings(deadline=None, max_examples=40)
def test_unchanged_monitors_keep_their_state_when_rules_change(
    text: str, more: str, events: list[Event], cut: int, tier: str
) -> None:
    """A monitor that stays goes on as if nothing had happened; here all of them stay and others come and go."""
    added = text + more.replace("m1", "other").replace("x1", "other-x").replace("y1", "other-y").replace("p =", "p2 =").replace(
        "q =", "q2 ="
    )
    ordered = sorted(events, key=lambda e: e.origin)
    engine = Engine(loads(text), tier)
    made = [*engine.process(ordered[:cut]).events]
    engine.change_rules(loads(added))
    engine.change_rules(loads(text))
    made += [*engine.process(ordered[cut:]).events, *engine.finish().events]
    assert [record(d) for d in made] == detections(loads(text), events)
