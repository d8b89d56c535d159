"""The service interface: who may publish what, who is told of what, and which detectors are there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coincide.errors import CoincideError, InputError, RuleError
from coincide.opera import Param, detect, event
from coincide.service import CompositeEventService, NotRegistered, QualityOfService, UnknownType

GUARANTEED = QualityOfService("guaranteed")


@pytest.fixture
def service() -> CompositeEventService:
    made = CompositeEventService(clock=lambda: 1000.0)
    for name in ("Enter", "Leave"):
        made.create_ce_type(name)
    made.create_ce_type("Visit", "[Enter(who = 'Brian')] ; [Enter(who = 'Peter')]")
    made.register_ce_type("Enter", "door")
    return made


def enter(service: CompositeEventService, who: str, time: float, publisher: str = "door", **more: Any) -> None:
    service.publish(service.create_ce("Enter", who=who, time=time, **more), publisher)


def test_a_detection_is_handed_to_its_subscribers(service: CompositeEventService) -> None:
    one: list[Any] = []
    two: list[Any] = []
    service.subscribe("Visit", "reception", None, one.append)
    service.subscribe("Visit", "porter", QualityOfService("best-effort"), two.append)
    enter(service, "Brian", 1, id="b")
    enter(service, "Peter", 2, id="p")
    assert one == two == [{"type": "Visit", "time": [1, 2], "from": ["b", "p"]}]


def test_a_primitive_event_is_handed_on_as_it_is(service: CompositeEventService) -> None:
    seen: list[Any] = []
    service.subscribe("Enter", "log", None, seen.append)
    service.publish(service.create_ce("Enter", who="Jean"), "door")
    assert seen == [{"type": "Enter", "id": "Enter-1", "time": 1000, "source": "door", "who": "Jean"}]
    assert service.detectors == {}


def test_detectors_are_there_while_somebody_needs_them(service: CompositeEventService) -> None:
    service.create_ce_type("Twice", event("Visit").repeated(2))
    assert service.detectors == {}
    service.subscribe("Twice", "a", None, print)
    service.subscribe("Visit", "b", GUARANTEED, print)
    assert service.detectors == {"best-effort": ["Twice", "Visit"], "guaranteed": ["Visit"]}
    service.unsubscribe("Twice", "a")
    assert service.detectors == {"guaranteed": ["Visit"]}
    service.unsubscribe("Visit", "b")
    assert service.detectors == {}


def test_each_policy_has_its_own_instances(service: CompositeEventService) -> None:
    """Peter's event arrives first: best effort misses the visit, guaranteed detection puts it right."""
    quick: list[Any] = []
    sure: list[Any] = []
    service.register_ce_type("Enter", "gate")
    service.subscribe("Visit", "quick", None, quick.append)
    service.subscribe("Visit", "sure", GUARANTEED, sure.append)
    enter(service, "Peter", 20, "gate")
    enter(service, "Brian", 10)
    assert (quick, sure) == ([], [])
    for publisher in ("door", "gate"):
        service.heartbeat(publisher, 30)
    assert (len(quick), len(sure)) == (0, 1)
    enter(service, "Brian", 25)
    assert service.late() == {"best-effort": 0, "guaranteed": 1}


def test_a_registered_publisher_is_waited_for_until_it_is_gone(service: CompositeEventService) -> None:
    sure: list[Any] = []
    service.register_ce_type("Leave", "gate")
    service.subscribe("Visit", "sure", GUARANTEED, sure.append)
    enter(service, "Brian", 10)
    enter(service, "Peter", 20)
    service.heartbeat("door", 30)
    assert sure == []
    service.unregister_ce_type("Leave", "gate")
    service.heartbeat("door", 31)
    assert len(sure) == 1


def test_other_subscriptions_leave_state_alone(service: CompositeEventService) -> None:
    seen: list[Any] = []
    service.subscribe("Visit", "a", None, seen.append)
    enter(service, "Brian", 1)
    service.create_ce_type("Left", "[Leave]")
    service.subscribe("Left", "b", None, seen.append)
    service.subscribe("Visit", "a", None, seen.append)
    enter(service, "Peter", 2)
    service.unsubscribe("Left", "b")
    enter(service, "Brian", 3)
    service.unsubscribe("Visit", "a")
    service.subscribe("Visit", "a", None, seen.append)
    enter(service, "Peter", 4)
    assert [d["time"] for d in seen] == [[1, 2]]


def test_callbacks_may_publish_and_unsubscribe(service: CompositeEventService) -> None:
    seen: list[Any] = []
    service.create_ce_type("Alarm")
    service.register_ce_type("Alarm", "reception")
    service.subscribe("Alarm", "guard", None, seen.append)

    def alarm(visit: dict[str, Any]) -> None:
        service.publish(service.create_ce("Alarm", time=visit["time"][1]), "reception")
        service.unsubscribe("Visit", "reception")

    service.subscribe("Visit", "reception", None, alarm)
    for time, who in enumerate(["Brian", "Peter", "Brian", "Peter"], 1):
        enter(service, who, time)
    assert [d["time"] for d in seen] == [2]


def test_statements_bring_their_policy_and_attributes() -> None:
    service = CompositeEventService()
    service.create_ce_type("A")
    service.register_ce_type("A", "s")
    pattern = event("A", k=Param("x")).named("a").then(event("A", k=Param("x")))
    service.create_ce_type("Pair", detect("Pair", pattern, policy="guaranteed", v="a.v"))
    service.subscribe("Pair", "me", None, (seen := []).append)
    assert service.detectors == {"guaranteed": ["Pair"]}
    for time in (1, 2):
        service.publish({"type": "A", "time": time, "k": 7, "v": time}, "s")
    service.heartbeat("s", 9)
    assert seen == [{"type": "Pair", "time": [1, 2], "from": ["1", "2"], "x": 7, "v": 1}]


def test_a_bare_name_is_the_expression_of_that_type(service: CompositeEventService) -> None:
    service.create_ce_type("Company", "Visit | [Meeting]")
    service.subscribe("Company", "me", None, (seen := []).append)
    assert service.detectors == {"best-effort": ["Company"]}
    enter(service, "Brian", 1)
    enter(service, "Peter", 2)
    assert len(seen) == 1


def test_what_is_refused(service: CompositeEventService) -> None:
    with pytest.raises(NotRegistered, match="'window' has not registered 'Enter'"):
        enter(service, "Eve", 1, "window")
    with pytest.raises(NotRegistered):
        service.unregister_ce_type("Leave", "door")
    with pytest.raises(UnknownType, match="unknown event type 'Meeting'"):
        service.subscribe("Meeting", "me", None, print)
    with pytest.raises(CoincideError, match="'me' has not subscribed"):
        service.unsubscribe("Visit", "me")
    with pytest.raises(CoincideError, match="'Visit' is already defined"):
        service.create_ce_type("Visit")
    with pytest.raises(CoincideError, match="must be one expression"):
        service.create_ce_type("Two", "[A]\ndetect Three = [B]")
    with pytest.raises(CoincideError, match="detects 'A', not 'B'"):
        service.create_ce_type("B", detect("A", event("E")))
    with pytest.raises(CoincideError, match="unknown policy"):
        service.subscribe("Visit", "me", QualityOfService("sometimes"), print)
    with pytest.raises(RuleError, match="expected"):
        service.create_ce_type("Bad", "[A")
    service.unregister_ce_type("Enter", "door")
    with pytest.raises(NotRegistered):
        enter(service, "Brian", 1)


def test_times_of_every_form(service: CompositeEventService) -> None:
    seen: list[Any] = []
    service.subscribe("Visit", "me", GUARANTEED, seen.append)
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    service.publish(service.create_ce("Enter", who="Brian", time=moment, id="b"), "door")
    service.publish({"type": "Enter", "who": "Peter", "time": "2026-03-01T12:00:01Z", "id": "p"}, "door")
    service.heartbeat("door", "2026-03-01T12:00:02Z")
    service.heartbeat("door", moment + timedelta(seconds=3))
    assert seen == [{"type": "Visit", "time": [1_772_366_400_000, 1_772_366_401_000], "from": ["b", "p"]}]


@pytest.mark.parametrize("event", [{}, {"type": "Enter"}, {"type": "Enter", "time": "noon"}])
def test_a_bad_record_is_an_input_error(service: CompositeEventService, event: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="record 1: "):
        service.publish(event, "door")
