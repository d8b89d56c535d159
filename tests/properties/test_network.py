"""Wherever detectors run, however they move, and whatever fails: the answer is the embedded engine's for the same arrivals."""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import event_of
from coincide.distribution.planning import POLICIES
from coincide.engines.policies import PolicyEngine
from coincide.lang.opera.definition import Expression
from coincide.lang.opera.print import core_text
from coincide.model.batch import EventBatch
from coincide.model.event import HEARTBEAT, Event, primitive, record
from coincide.network.directory import types_read
from coincide.network.simulation import Simulation
from coincide.rulebook import loads
from coincide.testing.opera import TYPES, expressions

TIMES = int(os.environ.get("COINCIDE_EXAMPLES_TIMES", "1"))
"""So many times the examples: 25 for a long look."""
NODES = {"a": {"b": 2.0}, "b": {"a": 2.0, "c": 20.0}, "c": {"b": 20.0}}
DETECTIONS = ("best-effort", "guaranteed", "probabilistic 0.6")


def arrivals(simulation: Simulation, since: int) -> list[Event]:
    """What publishers sent after a message, as it came; heartbeats once, though each type's readers get them."""
    found: list[Event] = []
    for message in simulation.broker.messages:
        if message.number > since and simulation.subjects.kind(message.subject) == "event":
            event = event_of(msgspec.json.decode(message.data), DEFAULT, message.number)
            found.append(msgspec.structs.replace(event, arrival=message.time))
    return found


def embedded(text: str, detection: str, events: list[Event], clock: int) -> Counter[str]:
    engine = PolicyEngine(loads(f"sources s, t\ndetect X = {text}", "opera"), detection)
    made = [d for run in (*engine.process(EventBatch(events)), *engine.pass_time(clock)) for d in run.detections]
    return Counter(content(record(d)) for d in made)


def content(detection: dict[str, Any]) -> str:
    return msgspec.json.encode({name: value for name, value in detection.items() if name not in ("type", "source")}).decode()


def publish_some(simulation: Simulation, random: Random, count: int, marks: dict[str, int] | None) -> None:
    """Where detection is guaranteed, a source keeps to the order of its times: who reads which of its types is no matter then."""
    for _ in range(count):
        simulation.broker.now += random.choice((0, 1000, 1000, 3000))
        hi = simulation.broker.now - random.choice((0, 0, 0, 1000, 2000))
        kind, source, number = random.choice(TYPES), random.choice("st"), len(simulation.broker.messages)
        if marks is not None:
            marks[source] = hi = max(hi, marks.get(source, 0))
        simulation.publish(primitive(kind, hi, hi, f"e{number}", {"k": random.choice((1.0, 2.0))}, source))


def disturb(simulation: Simulation, random: Random) -> None:
    """Something that must not change the answer."""
    names = sorted(simulation.nodes)
    detectors = sorted({name for node in simulation.nodes.values() for name in node.directory.state.detectors})
    what = random.random()
    if what < 0.4 and detectors:
        simulation.command("migrate", random.choice(detectors), random.choice(names))
    elif what < 0.5 and len(names) > 2:
        simulation.kill(random.choice(names))
        simulation.pass_time(random.choice((0.5, 4.0)))
    elif what < 0.6:
        simulation.connections[random.choice(names)].cut = True
    elif what < 0.7:
        for connection in simulation.connections.values():
            connection.mend()
    elif what < 0.8 and len(names) < 4:
        simulation.join(f"late{len(simulation.broker.messages)}", {"a": 5.0})
    elif what < 0.9 and detectors:
        simulation.command("set-policy", random.choice(detectors), random.choice(("minimum-latency", "minimum-impact")))
    simulation.some(random.randrange(4))


def end(simulation: Simulation) -> int:
    """Everything is passed by every source, and has come everywhere; the last instant of the clock that all have seen."""
    for connection in simulation.connections.values():
        connection.mend()
    simulation.pass_time(5.0)
    for source in "st":
        time = simulation.broker.now
        simulation.publish(Event(HEARTBEAT, time, time, None, {}, (), source), *TYPES)
    simulation.pass_time(2.0)
    return simulation.broker.now


def check(text: str, policy: str, detection: str, seed: int, before: str = "") -> None:
    random = Random(seed)
    simulation = Simulation(NODES, random)
    for kind in TYPES:
        for source in "st":
            simulation.announce(kind, source, random.choice("abc"), random.randrange(1, 20))
    if before:
        simulation.command("subscribe", "*", policy, "earlier", expr=before, detection=detection, node="a")
    simulation.command("subscribe", "*", policy, "u", expr=text, detection=detection, node=random.choice("abc"))
    simulation.some(random.randrange(5))
    marks: dict[str, int] | None = None if detection == "best-effort" else {}
    for _ in range(8):
        publish_some(simulation, random, random.randrange(5), marks)
        disturb(simulation, random)
    clock = end(simulation)
    since = next(iter(simulation.nodes.values())).directory.state.subscriptions["u"].since
    read = types_read(loads(f"detect X = {text}", "opera")) or frozenset()
    expected = embedded(text, detection, [e for e in arrivals(simulation, since) if e.type in {*read, HEARTBEAT}], clock)
    directory = next(iter(simulation.nodes.values())).directory.state
    found = simulation.detections("u")
    copies = len(directory.subscriptions["u"].detectors)
    told = Counter(content(each) for each in found)
    assert told == Counter({each: count * copies for each, count in expected.items()}), [
        d.expr for d in directory.detectors.values()
    ]


@settings(max_examples=40 * TIMES)
@given(expressions(2), st.sampled_from(list(POLICIES)), st.sampled_from(DETECTIONS), st.integers(0, 1_000_000))
def test_moves_and_failures_change_no_answer(body: Expression, policy: str, detection: str, seed: int) -> None:
    check(core_text(body), policy, detection, seed)


@settings(max_examples=20 * TIMES)
@given(expressions(3), st.sampled_from(DETECTIONS), st.integers(0, 1_000_000))
def test_parts_on_nodes_of_their_own_change_no_answer(body: Expression, detection: str, seed: int) -> None:
    check(core_text(body), "minimum-load", detection, seed)


@pytest.mark.parametrize("detection", ["best-effort", "guaranteed"])
@pytest.mark.parametrize(
    ("before", "text", "policy"),
    [
        ("[A] ; [B]", "([A] ; [B]) | [C]", "minimum-bandwidth"),
        ("[A] ; [B]", "(([A] ; [B]) | [C]) ; [D]", "minimum-impact"),
        ("([A], [T]) T = 2ms", "(([A], [T]) T = 2ms) ; [C]", "minimum-bandwidth"),
        ("[A] ; [B]", "([A] ; [B]) | [C]", "maximum-reliability"),
    ],
)
def test_what_runs_already_is_reused(before: str, text: str, policy: str, detection: str, in_full: bool) -> None:
    for seed in range(4 if in_full else 2):
        check(text, policy, detection, seed, before)


@pytest.mark.parametrize("detection", ["best-effort", "guaranteed"])
@pytest.mark.parametrize(
    "text", ["([A] ; [B]) || [B]", "[A]* [B] || [A]* [B]", "([A] ; [B]) || ([B] | [C])", "(([A] ; [B]) || [C]) ; [D]"]
)
def test_a_side_that_runs_elsewhere_is_taken_with_its_item(text: str, detection: str, in_full: bool) -> None:
    for seed in range(6 if in_full else 2):
        check(text, "minimum-load", detection, seed)
