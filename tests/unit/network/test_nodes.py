"""Nodes as processes, on a broker of their own."""

from __future__ import annotations

import json
import subprocess

from processes import PROGRAM, SERVER, Link, Processes, alive, answers, free_port, listens, ready, until

from coincide.network.natsbroker import AHEAD

TOPOLOGY = {
    "nodes": {"a": {}, "b": {}, "c": {}},
    "links": [{"ends": ["a", "b"], "latency": 2}, {"ends": ["b", "c"], "latency": 20}],
}


def command(processes: Processes, *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        [*PROGRAM, *arguments, "--broker", processes.url], input=given, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands_from_subscription_to_detection(processes: Processes) -> None:
    topology = processes.folder / "topology.json"
    topology.write_text(json.dumps(TOPOLOGY))
    for name in TOPOLOGY["nodes"]:
        processes.start_node(name, "--links", str(topology))
    network = processes.network()
    until(lambda: alive(network, "a", "b", "c"), "the nodes do not join")
    door = network.publisher("door", "a")
    door.announce("badge", "login")
    subscriber = network.subscribe("[badge] ; [login]", "minimum-bandwidth", node="c", name="guard")
    until(lambda: ready(network), "no detector is ready")
    (detector,) = network.status().detectors.values()
    assert detector.node == "a"  # where both are published
    lines = [
        {"type": "badge", "id": "e1", "time": 1},
        {"type": "login", "id": "e2", "time": 2},
        {"type": "login", "id": "e3", "time": 3},
    ]
    command(processes, "publish", "--source", "door", "--node", "a", given="\n".join(map(json.dumps, lines)))
    found: list[object] = []
    until(lambda: found.extend(subscriber.take()) or len(found) == 1, "nothing is detected")
    assert found == [{"type": detector.name, "time": [1, 2], "from": ["e1", "e2"]}]
    shown = command(processes, "network", "status")
    assert all(word in shown for word in (detector.name, "guard", "minimum-bandwidth"))
    command(processes, "network", "migrate", detector.name, "c")
    until(lambda: network.status().detectors[detector.name].node == "c" and ready(network), "it does not move")
    more = [{"type": "badge", "id": "e4", "time": 4}, {"type": "login", "id": "e5", "time": 5}]
    command(processes, "publish", "--source", "door", "--node", "a", given="\n".join(map(json.dumps, more)))
    until(lambda: found.extend(subscriber.take()) or len(found) == 2, "nothing is detected after the move")
    assert found[1] == {"type": detector.name, "time": [4, 5], "from": ["e4", "e5"]}
    subscriber.close()
    until(lambda: not network.status().detectors, "the detector is not destroyed")
    processes.interrupt("c")
    until(lambda: not network.status().members["c"].alive, "the node does not leave")


GRAPH = """<restrictionGraph id="watch" version="1">
  <operators><operator><cd id="A" version="1"><sources><source class="door"/></sources>
    <predicates><predicate name="any" anchor="P">S1</predicate></predicates>
    <expressions><expression anchor="X">P</expression></expressions><events><event class="opened" trigger="X"/></events></cd>
    <restrictionReference ref="room"/></operator></operators>
  <restrictions><restriction id="room" type="memory" min="100000000"/></restrictions>
</restrictionGraph>"""


def test_a_restriction_graph_is_placed_on_processes(processes: Processes) -> None:
    processes.start_node("small")
    processes.start_node("large", "--resource", "ram=200000000")
    graph = processes.folder / "watch.rg.xml"
    graph.write_text(GRAPH)
    network = processes.network()
    until(lambda: alive(network, "small", "large"), "the nodes do not join")
    watching = subprocess.Popen(
        [*PROGRAM, "subscribe", "--rules", str(graph), "--broker", processes.url, "--count", "1", "--timeout", "20"],
        stdout=subprocess.PIPE,
        text=True,
    )
    until(lambda: network.status().detectors and ready(network), "no description is placed")
    assert [detector.node for detector in network.status().detectors.values()] == ["large"]
    network.publisher("gate").publish({"type": "door", "id": "e1", "time": 7})
    shown, _ = watching.communicate(timeout=180)
    assert json.loads(shown) == {"type": "opened", "time": 7, "from": ["e1"]}


def test_a_node_may_have_a_broker_of_its_own(processes: Processes) -> None:
    """A leaf node of the broker: what it does not have itself, it hands on."""
    leaf = free_port()
    configuration = processes.folder / "leaf.conf"
    remote = f"nats-leaf://127.0.0.1:{processes.leaves}"
    configuration.write_text(f'listen: "127.0.0.1:{leaf}"\nleafnodes {{ remotes: [ {{ url: "{remote}" }} ] }}\n')
    processes.start("leaf", [SERVER, "-c", str(configuration)])
    until(lambda: listens(leaf), "the leaf does not listen")
    processes.start_node("near")
    processes.start_node("far", "--domain", "hub", url=f"nats://127.0.0.1:{leaf}")
    network = processes.network()
    until(lambda: alive(network, "near", "far"), "the nodes do not join")
    subscriber = network.subscribe("[A] ; [B]", node="far")
    until(lambda: ready(network), "no detector is ready")
    assert [detector.node for detector in network.status().detectors.values()] == ["far"]
    source = network.publisher("s")
    for number, kind in enumerate("AB", 1):
        source.publish({"type": kind, "id": f"e{number}", "time": number})
    assert answers(subscriber, 1) == ['[[1,2],["e1","e2"]]']


def test_the_way_between_nodes_is_measured(processes: Processes) -> None:
    topology = processes.folder / "topology.json"
    topology.write_text(json.dumps({"nodes": {"a": {}, "far": {}}, "links": [{"ends": ["a", "far"], "latency": 1}]}))
    processes.start_node("a", "--links", str(topology))
    processes.start_node("far", "--links", str(topology), url=Link(processes.port, delay=0.02).url)
    network = processes.network()
    until(lambda: alive(network, "a", "far"), "the nodes do not join")
    until(
        lambda: all(min(m.links.values()) >= 20 for m in network.status().members.values()),
        "1 ms is what was given, not measured",
    )


def test_a_reader_takes_no_more_than_it_can_hold(processes: Processes) -> None:
    network = processes.network()
    subject, text = network.subjects.events("A"), b"x" * 10_000
    for _ in range(3 * AHEAD // len(text)):
        network.broker.make_room()
        network.broker.publish(subject, text)
    until(network.broker.flush, "they do not come through")
    reader = network.broker.open([subject], 0)
    until(lambda: reader.waiting > AHEAD, "nothing comes")
    until(lambda: reader.resting, "it takes more and more")
    numbers: list[int] = []
    until(lambda: numbers.extend(m.number for m in reader.take()) or len(numbers) == 3 * AHEAD // len(text), "not all come")
    assert numbers == list(range(1, len(numbers) + 1))
