"""What fails, is cut off, comes late or lies: answers are the embedded engine's, nothing is lost or doubled."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from processes import Feed, Link, Processes, alive, answers, ready, until

from coincide.errors import InputError
from coincide.network.client import Network
from coincide.network.messages import LARGEST, Command

EXPR = "([A] ; [B]) | [C]"
CUT = float(os.environ.get("COINCIDE_CUT", "3"))
"""Seconds for which a link is cut; `make faults` says 10."""

SKEWED = """
import time
real, real_ns = time.time, time.time_ns
time.time, time.time_ns = lambda: real() + 2, lambda: real_ns() + 2_000_000_000
from coincide.cli.main import entry
entry()
"""


def begun(processes: Processes, *names: str) -> Network:
    for name in names:
        processes.start_node(name)
    network = processes.network()
    until(lambda: alive(network, *names), "the nodes do not join")
    network.command("set", "*", "patience=1s")
    return network


def hosts(network: Network) -> dict[str, str]:
    return {name: detector.node for name, detector in network.status().detectors.items()}


def moved(network: Network, node: str) -> bool:
    """All detectors are to be there. On a busy machine a node may be silent for too long, and they are taken from it again."""
    away = [name for name, host in hosts(network).items() if host != node]
    with suppress(InputError):
        for name in away:
            network.command("migrate", name, node)
    return not away


@pytest.mark.parametrize("detection", [pytest.param("best-effort", marks=pytest.mark.matrix), "guaranteed"])
def test_a_node_is_killed_and_another_comes_late(processes: Processes, detection: str) -> None:
    network = begun(processes, "a", "b", "c")
    feed = Feed(network, EXPR)
    subscriber = network.subscribe(EXPR, "minimum-load", detection=detection, node="a")
    assert len(hosts(network)) == 2  # a part of its own
    feed.publish(100)
    (part, whole) = hosts(network).values()
    processes.kill(part)
    feed.publish(100)
    until(lambda: part not in hosts(network).values(), "nobody goes on with its detectors")
    processes.start_node("late")
    until(lambda: alive(network, "late"), "the late node does not join")
    for name in hosts(network):
        network.command("migrate", name, "late")
    feed.publish(100)
    processes.kill(whole if whole != part else "late")
    feed.publish(100)
    feed.end()
    expected = feed.expected(subscriber.subscription.since, detection)
    assert answers(subscriber, len(expected)) == expected


def test_of_two_copies_one_goes_on_without_a_gap(processes: Processes) -> None:
    network = begun(processes, "a", "b", "c")
    feed = Feed(network, EXPR)
    subscriber = network.subscribe(EXPR, "maximum-reliability", node="a")
    until(lambda: ready(network), "no detector is ready")
    network.command("set", "*", "patience=1h")  # nobody is told that a node has failed
    feed.publish(100)
    processes.kill(next(iter(hosts(network).values())))
    feed.publish(100)
    expected = feed.expected(subscriber.subscription.since, "best-effort")
    assert answers(subscriber, len(expected), seconds=5.0) == expected


def test_the_broker_is_killed(processes: Processes) -> None:
    network = begun(processes, "a", "b", "c")
    feed = Feed(network, EXPR)
    subscriber = network.subscribe(EXPR, "minimum-load", detection="guaranteed", node="a")
    feed.publish(200)
    processes.kill("broker")
    feed.publish(50)
    time.sleep(1.0)
    processes.start_broker()
    feed.publish(200)
    feed.end()
    expected = feed.expected(subscriber.subscription.since, "guaranteed")
    assert answers(subscriber, len(expected)) == expected
    until(lambda: alive(network, "a", "b", "c"), "the nodes do not come back")


def test_a_link_is_cut_and_mended(processes: Processes) -> None:
    link = Link(processes.port)
    processes.start_node("cut", url=link.url)
    network = begun(processes, "a", "b")
    until(lambda: alive(network, "cut"), "the node does not join")
    feed = Feed(network, EXPR)
    subscriber = network.subscribe(EXPR, "minimum-load", node="a")
    until(lambda: moved(network, "cut") and ready(network), "they do not move")
    feed.publish(100)
    link.cut()
    end = time.monotonic() + CUT
    while time.monotonic() < end:
        feed.publish(10, 0.01)
    until(lambda: "cut" not in hosts(network).values(), "nobody goes on with its detectors")
    link.mend()
    feed.publish(100)
    until(lambda: alive(network, "cut"), "the node does not come back")
    for name in hosts(network):
        network.command("migrate", name, "cut")
    feed.publish(100)
    expected = feed.expected(subscriber.subscription.since, "best-effort")
    assert answers(subscriber, len(expected)) == expected


@pytest.mark.parametrize("detection", ["best-effort", pytest.param("guaranteed", marks=pytest.mark.matrix)])
def test_a_clock_that_is_wrong_does_not_matter(processes: Processes, detection: str) -> None:
    processes.start_node("skewed", program=[sys.executable, "-c", SKEWED])
    network = begun(processes, "a")
    until(lambda: alive(network, "skewed"), "the node does not join")
    expr = "(([A], [T]) T = 50ms) ; [B]"
    feed = Feed(network, expr)
    subscriber = network.subscribe(expr, "minimum-load", detection=detection, node="a")
    for name in hosts(network):
        network.command("migrate", name, "skewed")
    feed.publish(150)
    for name in hosts(network):
        network.command("migrate", name, "a")
    feed.publish(150)
    feed.end()
    expected = feed.expected(subscriber.subscription.since, detection)
    assert expected
    assert answers(subscriber, len(expected)) == expected


def test_hostile_commands_are_answered_and_change_nothing(processes: Processes) -> None:
    network = begun(processes, "a", "b", "c")
    feed = Feed(network, EXPR)
    subscriber = network.subscribe(EXPR, "minimum-load", node="a")
    until(lambda: ready(network), "no detector is ready")
    name, node = next(iter(hosts(network).items()))
    before = hosts(network)
    reader = network.broker.open([network.subjects.admin], network.broker.end())
    told = {
        b'{"type":"admin","command":"explode","from":"x"}': "there is no command 'explode'",
        b"\xff\x00 not JSON": "not a command",
        b'{"type":"admin","command":"subscribe","from":"x","expr":"[A] ;;"}': "the expression",
        b'{"type":"admin","command":"created","from":"x","target":"%s","value":"nowhere"}'
        % name.encode(): f"belongs on node '{node}'",
        b'{"type":"admin","command":"migrate","from":"x","target":"%s","value":"nowhere"}'
        % name.encode(): "carries no detectors",
        b'{"type":"admin","command":"destroy","from":"x","target":"nothing"}': "there is no detector 'nothing'",
        b'{"type":"admin","command":"set","from":"x","value":"near=far"}': "near=far",
        b'{"type":"admin","command":"set-policy","from":"x","value":"cheap"}': "there is no policy 'cheap'",
        b'{"type":"admin","command":"subscribe","from":"x","expr":"' + b"[A] ; " * LARGEST + b'"}': f"may have {LARGEST} bytes",
    }
    for data in told:
        network.broker.publish(network.subjects.admin, data)
    network.broker.publish(network.subjects.node("x"), b"not a report")
    network.broker.publish(network.subjects.detector(name), b'{"type":"heartbeat"}')
    network.broker.publish(network.subjects.progress(name), b'{"type":"heartbeat"}')
    network.broker.publish(network.subjects.events("A"), b'{"type":"A","time":"never"}')
    errors: list[str] = []

    def heard() -> bool:
        for message in reader.take():
            if b'"error"' in message.data:
                errors.append(msgspec.json.decode(message.data, type=Command).value)
        return len(errors) == len(told)

    until(heard, f"not all are answered: {errors}")
    assert all(any(text in error for error in errors) for text in told.values()), errors
    assert hosts(network) == before
    for name, node in before.items():
        network.command("migrate", name, "b" if node != "b" else "c")  # whoever takes it up reads what was forged
    feed.publish(100)
    time.sleep(0.5)
    found = answers(subscriber, 1)
    assert len(found) > 1


CONFIGURATION = Path(__file__).parents[3] / "deploy" / "nats-network.conf"


def test_accounts_protect_the_administration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"COINCIDE_NODE": "one", "COINCIDE_APPLICATION": "two", "COINCIDE_SENSOR": "three"}
    processes = Processes(tmp_path, "-c", str(CONFIGURATION), NATS_USER="node", NATS_PASSWORD="one", **secrets)

    def connected(user: str, password: str) -> Network:
        monkeypatch.setenv("NATS_USER", user)
        monkeypatch.setenv("NATS_PASSWORD", password)
        return processes.network()

    try:
        processes.start_node("a")
        node = connected("node", "one")  # nodes make the streams
        until(lambda: alive(node, "a"), "the node does not join")
        network = connected("application", "two")
        subscriber = network.subscribe("[A] ; [B]", node="a")
        until(lambda: ready(network), "no detector is ready")
        sensor = connected("sensor", "three")
        source = sensor.publisher("door", "a")
        source.publish({"type": "A", "id": "e1", "time": 1})
        source.publish({"type": "B", "id": "e2", "time": 2})
        assert answers(subscriber, 1) == ['[[1,2],["e1","e2"]]']
        end = network.broker.end()
        forged = b'{"type":"admin","command":"destroy","from":"door"}'
        sensor.broker.publish(sensor.subjects.admin, forged)
        sensor.broker.publish(sensor.subjects.detector("ce-1"), b"{}")
        assert not sensor.broker.flush(1.0)
        reader = network.broker.open([network.subjects.admin, network.subjects.detector("ce-1")], end)
        until(lambda: reader.caught_up)
        assert not reader.take()
        assert hosts(network)
    finally:
        processes.stop()
