"""A network in one process: the nodes are the real ones, the broker is in memory, and time is told to pass."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec

from coincide.distribution.brokers import Broker as Offer
from coincide.model.event import Event, record
from coincide.network.broker import Subjects
from coincide.network.memory import Connection, MemoryBroker
from coincide.network.messages import MARK, Announcement, Command, encoded, is_shown, shown
from coincide.network.node import Node, Pace

PACE = Pace(clock=0.25, beat=0.5, keep=1.0, handover=0.5, heartbeat=0.0)


class Simulation:
    """`random` decides which node does something next, and how much: by default all do everything, one after another."""

    def __init__(self, names: Mapping[str, Mapping[str, float]], random: Random | None = None, pace: Pace = PACE) -> None:
        """Nodes by name, with their links and latencies."""
        self.broker = MemoryBroker(now=1_000_000)
        self.subjects = Subjects()
        self.random = random
        self.pace = pace
        self.nodes: dict[str, Node] = {}
        self.connections: dict[str, Connection] = {}
        for name, links in names.items():
            self.join(name, links)
        self.run()

    def join(
        self,
        name: str,
        links: Mapping[str, float] | None = None,
        resources: Mapping[str, Any] | None = None,
        offer: Offer | None = None,
    ) -> Node:
        connection = self.broker.connection()
        if (random := self.random) is not None:
            connection.most = lambda: random.choice((0, 1, 3, 1000))
        node = Node(name, connection, self.subjects, self.pace, links, offer, now=lambda: self.broker.now / 1_000_000)
        node.start()
        node.resources = dict(resources or {})
        self.nodes[name], self.connections[name] = node, connection
        return node

    def kill(self, name: str) -> None:
        """At once, as by kill -9: nothing is said, nothing is kept."""
        del self.nodes[name], self.connections[name]

    def turn(self) -> bool:
        """Every node does what there is to do, in some order."""
        nodes = list(self.nodes.values())
        if self.random is not None:
            self.random.shuffle(nodes)
        done = [node.turn() for node in nodes]
        return any(done)

    def some(self, turns: int) -> None:
        for _ in range(turns):
            self.turn()

    def run(self) -> None:
        """Until there is nothing left to do at this instant."""
        most = {name: connection.most for name, connection in self.connections.items()}
        for connection in self.connections.values():
            connection.most = lambda: 1_000_000
        while self.turn():
            pass
        for name, connection in self.connections.items():
            connection.most = most[name]

    def pass_time(self, seconds: float) -> None:
        """In steps in which nodes speak."""
        end = self.broker.now + round(seconds * 1_000_000)
        while self.broker.now < end:
            self.broker.now = min(end, self.broker.now + 250_000)
            self.run()

    def command(self, command: str, target: str = "*", value: str = "", sender: str = "test", **more: Any) -> None:
        self.broker.take(self.subjects.admin, encoded(Command(command, target, value, sender, **more)), "")

    def announce(self, type: str, source: str, node: str, rate: float = 1.0) -> None:
        self.broker.take(self.subjects.publisher(type), encoded(Announcement(type, source, node, rate)), "")

    def publish(self, event: Event, *types: str) -> None:
        """An event, or a heartbeat to those who read some types."""
        raw = {name: value for name, value in record(event).items() if name != "arrival"}
        for type in types or (event.type,):
            self.broker.take(self.subjects.events(type), msgspec.json.encode(raw), "")

    def detections(self, subscriber: str) -> list[dict[str, Any]]:
        """What a subscriber has been told so far, each once."""
        subscription = next(iter(self.nodes.values())).directory.state.subscriptions[subscriber]
        return [shown(raw) for raw in self.composites(subscription.detectors, subscription.since) if is_shown(raw)]

    def composites(self, names: list[str], since: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        seen: set[tuple[str, int]] = set()
        subjects = {self.subjects.detector(name): name for name in names}
        for message in self.broker.messages:
            if message.subject in subjects:
                raw = msgspec.json.decode(message.data)
                if MARK in raw and raw[MARK][1] > since and (message.subject, raw[MARK][0]) not in seen:
                    seen.add((message.subject, raw[MARK][0]))
                    found.append(raw)
        return found
