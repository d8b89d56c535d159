"""Plans that are shown the events of their own types only give the same answer as those that see all, together or one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from coincide.adapters.read import open_events
from coincide.engines import routing
from coincide.engines.choice import until_microseconds
from coincide.expr.guards import alternatives
from coincide.expr.tree import And, Compare, HasOne, Literal, Or, Reference
from coincide.model.compound import ValueSet
from coincide.model.event import Value, primitive
from coincide.rulebook import loads
from coincide.testing.cases import Case, find_cases
from coincide.testing.check import detections

CASES = Path(__file__).parents[1] / "conformance" / "cases"
BY_TIME = "ecco/found-stamps-and-keys"  # under new stamps, events count that no definition names


def some_cases() -> list[Case]:
    told = [
        case
        for case in find_cases(CASES)
        if case.path("expected.jsonl") and case.path("events.jsonl") and not case.path("policy")
    ]
    return [case for number, case in enumerate(told) if number % 15 == 0 or case.name == BY_TIME]


@pytest.mark.parametrize("case", some_cases(), ids=lambda case: case.name)
def test_routed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event for batch in open_events(case.folder / "events.jsonl") for event in batch.events]
    rules, until = case.book(), until_microseconds(case.text("until"))
    expected = detections(rules, events, until=until)
    monkeypatch.setattr(routing, "MANY", 1)
    for cuts in ((), range(1, len(events))):
        assert detections(rules, events, until=until, cuts=[*cuts]) == expected


def test_by_one_of_several_attributes() -> None:
    """EQL's categories are in an attribute, which may have several values, or the type."""
    test = Or((Compare("=", Reference("type"), Literal("a")), HasOne("event.category", ("a", "b"))))
    assert alternatives(test) == {"type": {"a"}, "event.category": {"a", "b"}}
    assert alternatives(And((HasOne("n", ("1",), (1.0,)), test))) == alternatives(test)
    assert alternatives(Or((test, HasOne("n", ("1",), (1.0,))))) == {}
    rules = loads("\n".join(f"// @name r{n}\nc{n} where true;" for n in range(8)), "eql")
    categories: list[Value] = ["c1", ValueSet(("c1", "c2")), None]
    events = [
        primitive("c3", n, n, f"e{n}", {} if value is None else {"event.category": value}) for n, value in enumerate(categories)
    ]
    together = detections(rules, events)
    assert [record["type"] for record in together] == ["r1", "r1", "r2", "r3"]
    assert detections(rules, events, cuts=[1, 2]) == together == detections(rules, events, tier="kernel")
