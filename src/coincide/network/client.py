"""Applications in a network: they publish, subscribe and look, through the broker and nothing else."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from coincide.errors import CoincideError, InputError
from coincide.model.event import HEARTBEAT
from coincide.network.broker import Subjects
from coincide.network.directory import Directory, State, Subscription
from coincide.network.hosted import Copies
from coincide.network.messages import MARK, Announcement, Command, encoded, is_shown, shown
from coincide.network.natsbroker import NatsBroker, NatsReader
from coincide.network.node import DIRECTORY

GRAPH = ".rg.xml"
"""The ending of restriction graphs."""
PATIENCE = 10.0
"""Seconds in which a network has to answer."""
RATED = 5.0
"""Seconds between two measurements of a publisher's rates."""


class Network:
    """A connection to the network of this name at a broker (`nats://HOST:PORT`)."""

    def __init__(self, broker: str, network: str = "coincide", domain: str | None = None) -> None:
        self.subjects = Subjects(network)
        self.broker = NatsBroker(broker, network, domain=domain)
        self._directory: Directory | None = None
        self._control: NatsReader | None = None

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def close(self) -> None:
        self.broker.close()

    def publisher(self, source: str, node: str = "") -> Publisher:
        """Publishes events under this name, at a node."""
        return Publisher(self, source, node)

    def subscribe(
        self,
        expr: str = "",
        policy: str = "minimum-latency",
        *,
        detection: str = "best-effort",
        restart: bool = False,
        keep: Iterable[str] = (),
        node: str = "",
        name: str = "",
        rules: str = "",
        ending: str = "",
        type: str = "",
    ) -> Subscriber:
        """A composite event expression of Opera, or `rules` of the language with that `ending`. `policy` says where it is
        detected, `detection` when events may be consumed, `node` where the subscriber is. Under the same `name` a subscription is
        gone on with. Raises CoincideError if it is refused."""
        sender = name or f"subscriber-{secrets.token_hex(4)}"
        command = Command(
            *(
                "place" if ending == GRAPH else "subscribe",
                "*",
                policy,
                sender,
                expr,
                rules,
                ending,
                detection,
                restart,
                tuple(keep),
                type,
                node,
            ),
        )
        found = self._request(command)
        assert isinstance(found, Subscription)
        return Subscriber(self, sender, found)

    def command(self, command: str, target: str = "*", value: str = "") -> None:
        """A command to the administration. Raises CoincideError if it is refused."""
        self._request(Command(command, target, value, f"operator-{secrets.token_hex(4)}"))

    def status(self) -> State:
        """Nodes, detectors, publishers and subscriptions."""
        self._follow(self.broker.end())
        return self._known.state

    def drawing(self) -> str:
        """The network as SVG: what runs where, and what flows."""
        from coincide.distribution.drawing import network_drawings
        from coincide.draw.svg import svg

        self.status()
        return svg(network_drawings(self._known.brokers(), f"the network '{self.subjects.network}'"))

    def _request(self, command: Command) -> Subscription | None:
        """Published, and heeded: what follows from it is computed here as every node does."""
        self._follow(self.broker.end())
        mark = secrets.token_hex(8)
        self.broker.publish(self.subjects.admin, encoded(command), mark)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for number, data in self._read(0.1):
                if data == encoded(command):
                    refusal = next((a for a in self._known.answers if a.number == number and a.command.command == "error"), None)
                    self._known.answers.clear()
                    if refusal is not None:
                        raise InputError(refusal.command.value)
                    return self._known.state.subscriptions.get(command.sender)
        raise CoincideError("the broker does not answer")

    @property
    def _known(self) -> Directory:
        if self._directory is None:
            self._directory = Directory(self.subjects)
            if (stored := self.broker.load(DIRECTORY)) is not None:
                self._directory.restore(stored)
            self._control = self.broker.open(self.subjects.control, self._directory.state.number)
        return self._directory

    def _read(self, seconds: float) -> list[tuple[int, bytes]]:
        """Control messages that have come; the directory has heeded them."""
        known = self._known
        assert self._control is not None
        messages = self._control.take()
        if not messages:
            self.broker.wait(seconds)
            messages = self._control.take()
        for message in messages:
            known.apply(message)
        return [(message.number, message.data) for message in messages]

    def _follow(self, number: int) -> None:
        """Until the directory is that of this message."""
        end = time.monotonic() + PATIENCE
        while self._known.state.number < number and not (self._control is not None and self._control.caught_up):
            self._read(0.05)
            if time.monotonic() > end:
                raise CoincideError("the broker does not answer")
        self._read(0.0)


class Publisher:
    """Says what it publishes, and how much, as measured."""

    def __init__(self, network: Network, source: str, node: str) -> None:
        self._network = network
        self._source, self._node = source, node
        self._counts: dict[str, tuple[int, int]] = {}  # events and bytes by type
        self._since = time.monotonic()
        self._number = 0
        self._begun = secrets.token_hex(4)

    def announce(self, *types: str) -> None:
        """Before the first event: guaranteed detection then waits for this source."""
        for type in types:
            if type not in self._counts:
                self._counts[type] = (0, 0)
                self._report_rate(type, 0.0, 100.0)

    def publish(self, record: Mapping[str, Any]) -> None:
        """An event as a record; its source is this one, if it names none."""
        type = str(record.get("type", ""))
        if not type:
            raise InputError("an event has no type")
        data = msgspec.json.encode({"source": self._source, **record})
        self.announce(type)
        events, size = self._counts[type]
        self._counts[type] = (events + 1, size + len(data))
        self._number += 1
        self._network.broker.make_room()
        self._network.broker.publish(self._network.subjects.events(type), data, f"{self._source}-{self._begun}-{self._number}")
        self._measure()

    def heartbeat(self, milliseconds: float) -> None:
        """Nothing that comes later from this source has an earlier time."""
        data = msgspec.json.encode({"type": HEARTBEAT, "source": self._source, "time": milliseconds})
        for type in self._counts:
            self._network.broker.publish(self._network.subjects.events(type), data)

    def leave(self) -> None:
        """Nothing more comes from this source: nobody has to wait for it."""
        for type in self._counts:
            gone = Announcement(type, self._source, self._node, gone=True)
            self._network.broker.publish(self._network.subjects.publisher(type), encoded(gone))

    def flush(self) -> bool:
        return self._network.broker.flush()

    def _measure(self) -> None:
        seconds = time.monotonic() - self._since
        if seconds >= RATED:
            for type, (events, size) in self._counts.items():
                self._report_rate(type, events / seconds, size / events if events else 100.0)
                self._counts[type] = (0, 0)
            self._since = time.monotonic()

    def _report_rate(self, type: str, rate: float, size: float) -> None:
        announcement = Announcement(type, self._source, self._node, round(rate, 3), round(size, 1))
        self._network.broker.publish(self._network.subjects.publisher(type), encoded(announcement))


class Subscriber:
    """Detections as they are made, each once: of two equal ones of copies, the first."""

    def __init__(self, network: Network, name: str, subscription: Subscription) -> None:
        self.name = name
        self.subscription = subscription
        self._network = network
        self._names = {network.subjects.detector(each): each for each in subscription.detectors}
        self._numbers = dict.fromkeys(subscription.detectors, 0)
        self._early: dict[str, dict[int, dict[str, Any]]] = {each: {} for each in subscription.detectors}
        self._copies, self._are_copies = Copies(), subscription.request.policy == "maximum-reliability"
        self._reader = network.broker.open([*self._names, network.subjects.clock], subscription.since)

    def detections(self, seconds: float | None = None) -> Iterator[dict[str, Any]]:
        """Until so many seconds have passed without one; None: for ever."""
        last = time.monotonic()
        while seconds is None or time.monotonic() - last < seconds:
            for found in self.take():
                last = time.monotonic()
                yield found
            self._network.broker.wait(0.1)

    def take(self) -> list[dict[str, Any]]:
        """What has come since the last call."""
        found: list[dict[str, Any]] = []
        for message in self._reader.take():
            name = self._names.get(message.subject)
            raw = msgspec.json.decode(message.data)
            if name is not None and MARK in raw:
                found += self._in_turn(name, raw)
        return found

    def _in_turn(self, name: str, raw: dict[str, Any]) -> Iterator[dict[str, Any]]:
        number, turn = raw[MARK][0], raw[MARK][1]
        if turn <= self.subscription.since or number <= self._numbers[name]:
            return
        if not self._numbers[name]:
            self._numbers[name] = number - 1
        self._early[name][number] = raw
        while (made := self._early[name].pop(self._numbers[name] + 1, None)) is not None:
            self._numbers[name] += 1
            if not is_shown(made):
                continue
            record = shown(made)
            content = msgspec.json.encode({key: value for key, value in record.items() if key != "type"}).decode()
            if not self._are_copies or self._copies.is_new(name, self.subscription.detectors, content):
                yield record

    def close(self) -> None:
        """The subscription is over."""
        self._reader.close()
        self._network.command("unsubscribe", self.name)
