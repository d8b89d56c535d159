"""What all nodes agree on: plans, control, destruction, detectors of any language. Nodes are the real ones, the broker is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.distribution.brokers import Broker
from coincide.engines.policies import PolicyEngine
from coincide.model.batch import EventBatch
from coincide.model.event import primitive, record
from coincide.network.directory import State
from coincide.network.messages import Command
from coincide.network.simulation import Simulation
from coincide.rulebook import loads

LINE = {"a": {"b": 2.0}, "b": {"a": 2.0, "c": 20.0}, "c": {"b": 20.0}}


def state(simulation: Simulation) -> State:
    states = [node.directory.state for node in simulation.nodes.values()]
    assert all(msgspec.json.encode(each) == msgspec.json.encode(states[0]) for each in states), "nodes disagree"
    return states[0]


def told(simulation: Simulation, command: str) -> list[Command]:
    messages = [m.data for m in simulation.broker.messages if m.subject == simulation.subjects.admin]
    return [found for data in messages if (found := msgspec.json.decode(data, type=Command)).command == command]


def publish(simulation: Simulation, types: Sequence[str], **attributes: Any) -> None:
    for kind in types:
        simulation.broker.now += 1000
        number = len(simulation.broker.messages)
        simulation.publish(primitive(kind, simulation.broker.now, simulation.broker.now, f"e{number}", attributes, "s"))


RULES = {
    "ecl": "monitor m = repeat { push(X) { sequential { A, B } } }",
    "opera": "detect P = [A] ; [B]\ndetect X = [P] ; [C]",
    "ecco": "detect X = A ; B within 10s",
    "cdl": """<cd id="c" within="1 hour"><sources><source class="A"/><source class="B"/></sources>
        <predicates><predicate name="any" anchor="P">S1</predicate><predicate name="any" anchor="Q">S2</predicate></predicates>
        <expressions><expression anchor="X">P and Q</expression></expressions>
        <events><event class="X" trigger="X"/></events></cd>""",
    "pretty": "Report X when A followed by B.",
    "eql": "sequence [A where true] [B where true]",
}


@pytest.mark.parametrize("language", RULES)
def test_rules_of_any_language_are_carried_and_move(language: str) -> None:
    simulation = Simulation(LINE)
    simulation.announce("A", "s", "a", 5)
    simulation.command("subscribe", "*", "minimum-bandwidth", "u", rules=RULES[language], ending=language, node="c")
    simulation.run()
    (detector,) = state(simulation).detectors.values()
    assert detector.ready
    publish(simulation, "ABCAB")
    simulation.run()
    simulation.command("migrate", detector.name, "b" if detector.node != "b" else "c")
    publish(simulation, "CBACABBC")
    simulation.pass_time(1.0)
    since = state(simulation).subscriptions["u"].since
    events = [
        msgspec.structs.replace(event_of(msgspec.json.decode(m.data), DEFAULT, m.number), arrival=m.time)
        for m in simulation.broker.messages
        if m.number > since and ".event." in m.subject
    ]
    engine = PolicyEngine(loads(RULES[language], language), "best-effort")
    expected = [record(d) for run in engine.process(EventBatch(events)) for d in run.detections]
    assert expected
    assert simulation.detections("u") == expected


def test_composites_of_rules_feed_other_detectors() -> None:
    simulation = Simulation(LINE)
    simulation.command("subscribe", "*", "minimum-latency", "u", rules=RULES["ecl"], ending="ecl", node="c")
    simulation.command("subscribe", "*", "minimum-latency", "v", expr="[X] ; [C]", node="a")
    simulation.run()
    publish(simulation, "ABCC")
    simulation.pass_time(1.0)
    (found,) = simulation.detections("v")
    assert len(found["from"]) == 2  # what ended X, and C
    assert {d.node for d in state(simulation).detectors.values()} == {"a", "c"}


def test_detectors_move_to_where_measured_rates_want_them() -> None:
    simulation = Simulation(LINE)
    simulation.announce("A", "s", "a", 10.0)
    simulation.announce("B", "t", "c", 1.0)
    simulation.command("subscribe", "*", "minimum-bandwidth", "u", expr="[A] ; [B]", node="b")
    simulation.command("set", "*", "control-interval=2s")
    simulation.run()
    (detector,) = state(simulation).detectors.values()
    assert detector.node == "a"
    publish(simulation, "A")
    simulation.announce("A", "s", "a", 1.0)  # what the publisher has measured since
    simulation.announce("B", "t", "c", 30.0)
    simulation.pass_time(3.0)
    (detector,) = state(simulation).detectors.values()
    assert (detector.node, detector.before, detector.ready) == ("c", "a", True)
    assert [command.value for command in told(simulation, "moved")] == ["c"]
    publish(simulation, "B")
    simulation.pass_time(1.0)
    assert len(simulation.detections("u")) == 1  # it began on a, and ended on c


def test_what_is_too_large_for_small_nodes_goes_to_the_cluster() -> None:
    simulation = Simulation({})
    for name in "ab":
        simulation.join(name, offer=Broker(rate=100.0, state=20_000.0))
    simulation.join("cluster", offer=Broker(engine="spark"))
    simulation.announce("A", "s", "a", 60.0)
    simulation.announce("B", "t", "b", 30.0)
    simulation.announce("C", "t", "b", 30.0)
    simulation.command("subscribe", "*", "minimum-load", "u", expr="([A] ; [B]) ; [C]", node="a")
    simulation.run()
    assert {detector.node for detector in state(simulation).detectors.values()} == {"a", "b"}  # in parts, it fits
    simulation.command("subscribe", "*", "minimum-latency", "x", expr="([A] ; [B]) ; [C]", node="a")
    simulation.command("set", "*", "control-interval=1s")
    simulation.run()
    assert [d.node for d in state(simulation).detectors.values() if d.policy == "minimum-latency"] == ["cluster"]
    simulation.announce("C", "t", "b", 5.0)
    simulation.pass_time(2.0)
    assert [d.node for d in state(simulation).detectors.values() if d.policy == "minimum-latency"] == ["a"]


def test_a_state_that_grows_too_large_goes_to_the_cluster() -> None:
    simulation = Simulation({})
    simulation.join("a", offer=Broker(state=20_000.0))
    simulation.join("cluster", offer=Broker(engine="spark"))
    rules = "detect Z = A ; B within 10min"
    simulation.command("subscribe", "*", "minimum-latency", "u", rules=rules, ending="ecco", node="a")
    simulation.run()
    (detector,) = state(simulation).detectors.values()
    assert detector.node == "a"
    publish(simulation, "A" * 400)
    simulation.pass_time(8.0)
    (detector,) = state(simulation).detectors.values()
    assert detector.node == "cluster"
    publish(simulation, "B")
    simulation.pass_time(1.0)
    assert len(simulation.detections("u")) == 400


def test_a_detector_that_is_sent_away_and_back_at_once_is_ready() -> None:
    simulation = Simulation(LINE)
    simulation.command("subscribe", "*", "minimum-latency", "u", expr="[A] ; [B]", node="a")
    simulation.run()
    (name,) = state(simulation).detectors
    publish(simulation, "A")
    simulation.command("migrate", name, "c")
    simulation.command("migrate", name, "a")
    publish(simulation, "B")
    simulation.pass_time(1.0)
    assert (state(simulation).detectors[name].node, state(simulation).detectors[name].ready) == ("a", True)
    assert len(simulation.detections("u")) == 1


def test_detectors_stay_where_an_operator_has_put_them() -> None:
    simulation = Simulation(LINE)
    simulation.command("subscribe", "*", "minimum-latency", "u", expr="[A] ; [B]", node="a")
    simulation.run()
    (name,) = state(simulation).detectors
    simulation.command("migrate", name, "c")
    simulation.pass_time(70.0)
    assert state(simulation).detectors[name].node == "c"
    simulation.command("set-policy", name, "minimum-latency")
    simulation.pass_time(1.0)
    assert state(simulation).detectors[name].node == "a"


def test_a_little_better_is_no_reason_to_move() -> None:
    simulation = Simulation(LINE)
    simulation.announce("A", "s", "a", 10.0)
    simulation.announce("B", "t", "c", 9.0)
    simulation.command("set", "*", "control-interval=1s")
    simulation.command("subscribe", "*", "minimum-bandwidth", "u", expr="[A] ; [B]", node="b")
    simulation.run()
    (before,) = (detector.node for detector in state(simulation).detectors.values())
    simulation.announce("B", "t", "c", 11.0)
    simulation.pass_time(3.0)
    assert [detector.node for detector in state(simulation).detectors.values()] == [before]


def test_what_nobody_uses_is_destroyed() -> None:
    simulation = Simulation(LINE)
    simulation.command("subscribe", "*", "minimum-load", "u", expr="([A] ; [B] | [C]) ; [D]", node="a")
    simulation.command("subscribe", "*", "minimum-load", "v", expr="[A] ; [B]", node="a")
    simulation.run()
    assert len(state(simulation).detectors) == 3
    simulation.command("unsubscribe", sender="u")
    simulation.pass_time(0.5)
    (left,) = state(simulation).detectors.values()
    assert left.expr == "[A] ; [B]"
    assert len(told(simulation, "destroyed")) == 2
    simulation.command("destroy", left.name)
    simulation.pass_time(0.5)
    assert not state(simulation).detectors
    assert not any(node.carried for node in simulation.nodes.values())


def test_the_status_is_told_on_the_topic() -> None:
    simulation = Simulation(LINE)
    simulation.command("status", sender="operator")
    simulation.run()
    (asked, answer) = told(simulation, "status")
    assert asked.sender == answer.target == "operator"
    assert set(msgspec.json.decode(answer.value, type=State).members) == {"a", "b", "c"}


def test_a_directory_is_gone_on_with() -> None:
    simulation = Simulation(LINE)
    simulation.command("subscribe", "*", "minimum-load", "u", expr="[A] ; [B]", node="a")
    simulation.run()
    simulation.pass_time(61.0)
    late = simulation.join("d", {"a": 1.0})
    assert late.directory.state.number > 0  # it need not read all that has happened
    simulation.run()
    assert set(state(simulation).members) == {"a", "b", "c", "d"}


WATCH = """<restrictionGraph id="watch" version="1">
  <operators>
    <operator><cd id="A"><sources><source class="door"/></sources>
        <predicates><predicate name="any" anchor="P">S1</predicate></predicates>
        <expressions><expression anchor="X">P</expression></expressions>
        <events><event class="opened" trigger="X" access="internal"/></events></cd>
      <restrictionReference ref="room"/><restrictionReference ref="close"/></operator>
    <operator><cd id="B"><sources><source class="opened"/><source class="alarm"/></sources>
        <predicates><predicate name="any" anchor="P">S1</predicate><predicate name="any" anchor="Q">S2</predicate></predicates>
        <expressions><expression anchor="X">P and Q</expression></expressions>
        <events><event class="noted" trigger="X"/></events></cd>
      <restrictionReference ref="close"/></operator>
  </operators>
  <restrictions>
    <restriction id="room" type="memory" min="100"/><restriction id="close" type="maxDistance" max="5"/>
  </restrictions>
</restrictionGraph>"""


def watched() -> Simulation:
    simulation = Simulation({})
    for name, ram in (("a", 400), ("b", 200), ("c", 50)):
        simulation.join(name, {other: 2.0 for other in "abc" if other != name}, {"ram": ram})
    simulation.pass_time(1.0)
    simulation.command("place", rules=WATCH, sender="office")
    simulation.pass_time(1.0)
    return simulation


def places(simulation: Simulation) -> dict[str, str]:
    current = state(simulation)
    return {cd: current.detectors[name].node for cd, name in current.graphs["office"].detectors.items()}


def test_descriptions_are_placed_and_their_restrictions_watched() -> None:
    simulation = watched()
    assert places(simulation)["A"] == "a"  # which has most
    publish(simulation, ["door", "alarm"])
    simulation.pass_time(1.0)
    assert [found["type"] for found in simulation.detections("office")] == ["noted"]
    simulation.nodes["a"].resources = {"ram": 60}  # less than A needs
    simulation.pass_time(2.0)
    assert places(simulation)["A"] == "b"
    publish(simulation, ["alarm", "door"])
    simulation.pass_time(1.0)
    assert len(simulation.detections("office")) == 4  # two doors, two alarms: both moved with what they had seen
    simulation.nodes["b"].resources = {"ram": 70}
    simulation.pass_time(2.0)
    (name,) = (d.name for d in state(simulation).detectors.values() if "opened" in d.outputs)
    assert places(simulation)["A"] == "b"  # nobody could carry it: it stays, and that is told
    assert state(simulation).members["b"].violated == {name: ["room"]}


def test_a_graph_that_is_given_twice_changes_nothing() -> None:
    simulation = watched()
    before = places(simulation)
    simulation.command("place", rules=WATCH, sender="another")
    simulation.pass_time(1.0)
    assert places(simulation) == before
    assert len(state(simulation).detectors) == 2
    simulation.command("unsubscribe", sender="office")
    simulation.pass_time(1.0)
    assert len(state(simulation).detectors) == 2  # the other still wants them


def test_descriptions_of_a_failed_node_are_placed_again() -> None:
    simulation = watched()
    publish(simulation, ["door"])
    simulation.pass_time(1.0)
    simulation.kill("a")
    simulation.pass_time(5.0)
    assert places(simulation)["A"] == "b"
    publish(simulation, ["alarm"])
    simulation.pass_time(1.0)
    assert len(simulation.detections("office")) == 1


def test_a_graph_that_cannot_be_placed_is_refused() -> None:
    simulation = Simulation({"a": {}})
    simulation.command("place", rules=WATCH, sender="office")
    simulation.run()
    assert [error.value for error in told(simulation, "error")] == ["no node bids for 'A'"]
    simulation.command("place", rules="<restrictionGraph/>", sender="office")
    simulation.run()
    assert "no <operator>" in told(simulation, "error")[-1].value


def test_what_a_node_loses_is_placed_again() -> None:
    """The node is there, but does not carry what it should."""
    simulation = Simulation(LINE)
    simulation.command("subscribe", "*", "minimum-latency", "u", expr="[A] ; [B]", node="a")
    simulation.run()
    simulation.nodes["a"]._reconcile = lambda: None  # type: ignore[method-assign]
    (name,) = simulation.nodes["a"].carried
    simulation.nodes["a"].carried.clear()
    publish(simulation, "A")
    simulation.pass_time(20.0)
    assert state(simulation).detectors[name].node == "b"
    publish(simulation, "B")
    simulation.pass_time(1.0)
    assert len(simulation.detections("u")) == 1


def test_resources_are_told_from_node_to_node() -> None:
    simulation = Simulation({})
    for name, links in (("a", "b"), ("b", "ac"), ("c", "bd"), ("d", "c")):
        simulation.join(name, dict.fromkeys(links, 1.0), {"ram": 400})
    simulation.pass_time(12.0)
    assert simulation.nodes["a"].gossip.known == {"a", "b", "c", "d"}  # equal ones are all of use, so they travel far
    told_to_a = [m for m in simulation.broker.messages if m.subject == simulation.subjects.gossip("a")]
    assert {msgspec.json.decode(m.data)["via"] for m in told_to_a} == {"b"}
