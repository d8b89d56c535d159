"""The directory: who is there, what runs where, for whom. Every node keeps one and changes it by the same messages in the same
order, so all hold the same and decide the same, without asking one another (distribution-opera.md, section 6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import count
from math import log
from typing import Any
from zlib import crc32

import msgspec

from coincide.detection.snapshots import opened, sealed
from coincide.distribution.brokers import NEAR, Broker, Brokers, Link, Publisher, Request, Running
from coincide.distribution.network import Advertisement, Network
from coincide.distribution.placement import Setting, heuristic
from coincide.distribution.planning import POLICIES, Planner, make_plan
from coincide.engines.choice import duration_microseconds
from coincide.errors import CoincideError, InputError, nearest
from coincide.network.broker import Message, Subjects
from coincide.network.descriptions import ENDING, RESTRICTIONS, documents, graph_of, network_of, places_for, values_of
from coincide.network.messages import LARGEST, Announcement, Command, Report
from coincide.rulebook import Rulebook, loads

VERSION = 1
HUB = "the broker"
"""Where nodes that name no links are connected: a node of its own that carries no detectors."""

SECOND = 1_000_000
PATIENCE = 3 * SECOND
"""Microseconds without a word after which a node has failed."""
CONTROL = 60 * SECOND
ADVERTISED = 15 * SECOND
"""Three periods of five seconds: a detector that nobody has said to carry for so long is missing."""
LONGEST_PAUSE = SECOND
"""More silence of everybody counts as this: the broker was away, not the nodes."""
BETTER = 0.8
"""A detector moves where the cost is less than this share of what it is."""
SETTLING = 5 * SECOND
"""So long changes gather before places are looked at again."""
RULES = "rules"
"""In place of a detection policy: detectors of other languages are the same as none of Opera's."""


class Member(msgspec.Struct):
    """A node. `heard` is when its last word came, by the clock that counts silence of all as little."""

    offer: Broker = Broker()
    links: dict[str, float] = {}
    latency: float = 0.0
    busy: float = 0.0
    heard: int = 0
    alive: bool = True
    rates: dict[str, float] = {}
    delays: dict[str, float] = {}
    sizes: dict[str, int] = {}
    resources: dict[str, Any] = {}
    violated: dict[str, list[str]] = {}


class Detector(msgspec.Struct):
    """A detector that runs, or is to. `since` is the message that asked for it: it sees what comes after. `placed` is the one
    that put it on its node, `before` the node that it came from. `inputs` are the detectors of the types that it reads."""

    name: str
    expr: str
    node: str
    policy: str
    detection: str
    since: int
    placed: int
    restart: bool = False
    sides: tuple[str, ...] = ()
    rules: str = ""
    ending: str = ""
    file: str = ""  # some languages name detections by it
    outputs: tuple[str, ...] = ()
    inputs: dict[str, list[str]] = {}  # by type
    sources: list[str] = []  # of what it reads, when it was asked for: later ones it hears of
    before: str = ""
    ready: bool = False
    doubled: bool = False  # was it planned for reliability, so that it reads copies?
    pinned: bool = False  # an operator has put it where it is
    avoids: str = ""  # a node that was to carry it and did not
    graph: str = ""  # whose restriction graph it is of
    heard: int = 0  # when it was advertised last, as nodes' words are counted
    same: str = ""  # what it detects: copies have the same

    @property
    def feeders(self) -> list[str]:
        return list(dict.fromkeys(name for names in self.inputs.values() for name in names))


class Subscription(msgspec.Struct):
    """What a subscriber asked for, and the detectors that serve it."""

    node: str
    request: Request
    detectors: list[str]
    since: int


class Graph(msgspec.Struct):
    """A restriction graph, and the detectors of its descriptions."""

    text: str
    detectors: dict[str, str]


class State(msgspec.Struct):
    """`number` is the last message that was heeded."""

    version: int = VERSION
    number: int = 0
    clock: int = 0
    counted: int = 0
    controlled: int = 0
    stirred: bool = False  # has anything changed since that could want detectors elsewhere?
    near: float = NEAR
    interval: int = CONTROL
    patience: int = PATIENCE
    members: dict[str, Member] = {}
    publishers: dict[str, dict[str, Announcement]] = {}  # by type and source
    detectors: dict[str, Detector] = {}
    subscriptions: dict[str, Subscription] = {}
    graphs: dict[str, Graph] = {}


class Answer(msgspec.Struct, frozen=True):
    """What is to be said on the administration topic, once."""

    command: Command
    number: int


class Directory:
    """`answers` are to be published by whoever keeps a directory."""

    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects
        self.state = State()
        self.answers: list[Answer] = []
        self._commands: dict[str, Callable[[Command], None]] = {
            "subscribe": self._subscribe,
            "unsubscribe": self._unsubscribe,
            "place": self._place_graph,
            "created": self._created,
            "moved": self._created,
            "destroyed": lambda command: None,
            "set-policy": self._set_policy,
            "migrate": self._migrate,
            "destroy": self._destroy,
            "set": self._set,
            "status": self._status,
            "error": lambda command: None,
        }

    def snapshot(self) -> bytes:
        return sealed(msgspec.msgpack.encode(self.state))

    def restore(self, data: bytes) -> None:
        self.state = msgspec.msgpack.decode(opened(data), type=State)

    def apply(self, message: Message) -> None:
        """Heed a message of the control subjects."""
        if message.number <= self.state.number:
            return
        self.state.number = message.number
        kind = self.subjects.kind(message.subject)
        if kind == "clock":
            self._tick(message.time)
        elif kind == "admin":
            self._command(message.data)
        elif kind in ("node", "publisher"):
            self._reported(kind, message.data)

    # Words of nodes and publishers.

    def _reported(self, kind: str, data: bytes) -> None:
        try:
            if kind == "node":
                self._node(msgspec.json.decode(data, type=Report))
            else:
                self._publisher(msgspec.json.decode(data, type=Announcement))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # of nobody who belongs here

    def _node(self, report: Report) -> None:
        known = self.state.members.get(report.name)
        member = known or Member()
        was_there, before = known is not None and known.alive, _standing(member)
        member.offer, member.links, member.latency = report.offer, report.links, report.latency
        member.busy, member.rates, member.delays, member.resources = report.busy, report.rates, report.delays, report.resources
        member.sizes = report.sizes
        member.heard, member.alive, member.violated = self.state.counted, not report.leaving, report.violated
        for name in report.carried:
            if (carried := self.state.detectors.get(name)) is not None and carried.node == report.name:
                carried.heard = self.state.counted
        self.state.members[report.name] = member
        self.state.stirred |= not was_there or _standing(member) != before
        if report.leaving:
            self._evacuate(report.name)
        elif not was_there:
            for detector in self.state.detectors.values():
                detector.avoids = "" if detector.avoids == report.name else detector.avoids
            for detector in self._homeless():
                self._place(detector)

    def _publisher(self, announcement: Announcement) -> None:
        known = self.state.publishers.setdefault(announcement.type, {})
        before = known.pop(announcement.source, None)
        if not announcement.gone:
            known[announcement.source] = announcement
        rates = [0.0 if each is None or each.gone else each.rate for each in (before, announcement)]
        self.state.stirred |= _about(rates[0]) != _about(rates[1])

    def _tick(self, time: int) -> None:
        state = self.state
        if state.clock:
            state.counted += min(max(0, time - state.clock), LONGEST_PAUSE)
        state.clock = max(state.clock, time)
        for name, member in state.members.items():
            if member.alive and state.counted - member.heard > state.patience:
                member.alive, state.stirred = False, True
                self._evacuate(name)
        for detector in state.detectors.values():
            if state.counted - detector.heard > ADVERTISED:  # the node is there, the detector is not
                detector.heard, detector.avoids = state.counted, detector.node
                self._place(detector)
        if state.counted - state.controlled >= (min(state.interval, SETTLING) if state.stirred else state.interval):
            self._control()

    # Places.

    def _evacuate(self, node: str) -> None:
        """Its detectors are planned again."""
        for detector in [d for d in self.state.detectors.values() if d.node == node]:
            self._place(detector)

    def _homeless(self) -> list[Detector]:
        members = self.state.members
        return [d for d in self.state.detectors.values() if d.node not in members or not members[d.node].alive]

    def _place(self, detector: Detector) -> None:
        """By its policy, all else fixed; where it is, if there is no other place."""
        if detector.graph:
            self._place_description(detector)
            return
        try:
            costs = self._costs(detector)
        except CoincideError:
            return
        if costs:
            self._move(detector, min(costs, key=lambda node: (*costs[node], node)))

    def _move(self, detector: Detector, node: str) -> None:
        if node != detector.node:
            detector.before, detector.node, detector.placed, detector.ready = detector.node, node, self.state.number, False
            detector.heard, detector.pinned = self.state.counted, False

    def _control(self) -> None:
        """Each detector moves if its place is worse than another by more than a fifth."""
        self.state.controlled, self.state.stirred = self.state.counted, False
        for detector in [d for d in self.state.detectors.values() if not d.pinned]:
            try:
                costs = self._costs(detector)
            except CoincideError:
                continue
            if not costs:
                continue
            best = min(costs, key=lambda node: (*costs[node], node))
            here = costs.get(detector.node)
            if here is None or costs[best][0] < BETTER * here[0]:
                self._move(detector, best)

    def _costs(self, detector: Detector) -> dict[str, tuple[float, ...]]:
        """Of each host, by the last column of its policy; empty: it stays."""
        found = self._costs_anywhere(detector)
        found.pop(detector.avoids, None)
        return found

    def _costs_anywhere(self, detector: Detector) -> dict[str, tuple[float, ...]]:
        user = next(self._users(detector.name), None)
        if user is None or detector.graph:
            return {}
        request = Request(user, detector.expr, detector.policy, RULES if detector.rules else detector.detection, detector.restart)
        planner = Planner(self.brokers(leaving_out=detector.name), request)
        self._weigh(planner)
        costs, hosts = planner.costs(planner.wanted.body), planner.hosts(planner.wanted.body, self._size(detector))
        if detector.policy == "minimum-latency":
            return {node: (planner.routes.dist(planner.here, node),) for node in hosts}
        if detector.policy == "minimum-bandwidth":
            return {node: (costs.traffic(node), costs.distance(node)) for node in hosts}
        if detector.policy == "minimum-impact":
            return {node: (planner.loads[node], costs.traffic(node)) for node in hosts}
        if detector.policy == "hash":
            return {hosts[crc32(detector.name.encode()) % len(hosts)]: (0.0,)} if hosts else {}
        taken = {d.node for d in self.state.detectors.values() if d.name != detector.name and self._same(d, detector)}
        apart = [node for node in hosts if node not in taken] if detector.policy == "maximum-reliability" else hosts
        return {node: (planner.loads[node],) for node in apart or hosts}

    def _size(self, detector: Detector) -> int:
        """Bytes of its state, as measured."""
        return max((member.sizes.get(detector.name, 0) for member in self.state.members.values()), default=0)

    def _weigh(self, planner: Planner) -> None:
        """The load of a node: what its detectors look for, and, as measured, how busy it is."""
        for name, member in self.state.members.items():
            planner.loads[name] += round(10 * member.busy)

    def _same(self, one: Detector, other: Detector) -> bool:
        return bool(one.same) and (one.same, one.restart, one.detection) == (other.same, other.restart, other.detection)

    def copies(self, detector: Detector) -> dict[str, str]:
        """The detectors that it reads, each with the name that stands for it and its copies."""
        found: dict[str, str] = {}
        for name in detector.feeders:
            own = self.state.detectors.get(name)
            others = [other for other in found.values() if other in self.state.detectors and detector.doubled]
            found[name] = next((o for o in others if own is not None and self._same(self.state.detectors[o], own)), name)
        return found

    def _users(self, name: str) -> Iterator[str]:
        """The subscribers that a detector serves, those of the detectors that it feeds too."""
        for subscriber, subscription in self.state.subscriptions.items():
            if name in self._closure(subscription.detectors):
                yield subscriber

    def _closure(self, names: Collection[str]) -> set[str]:
        """With all that feeds them."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found and name in self.state.detectors:
                found.add(name)
                waiting += self.state.detectors[name].feeders
        return found

    def brokers(self, leaving_out: str = "") -> Brokers:
        """The network as planners see it."""
        state = self.state
        nodes = {name: _offered(member) for name, member in state.members.items()}
        links = [Link((name, end), latency) for name, m in state.members.items() for end, latency in sorted(m.links.items())]
        links = [link for link in links if link.ends[1] in nodes]
        nodes[HUB] = Broker(False)
        links += [Link((name, HUB), max(state.members[name].latency / 2, 0.001)) for name in _ashore(nodes, links)]
        running = [r for d in state.detectors.values() if d.name != leaving_out for r in self._running(d)]
        places = {name: s.node for name, s in state.subscriptions.items()}
        return Brokers(nodes, tuple(links), tuple(self._rates(nodes)), places, tuple(running), state.near)

    def _running(self, detector: Detector) -> list[Running]:
        """Of rules in other languages each type counts as a detector that hears all that they read."""
        node = detector.node if detector.node in self.state.members else HUB
        if not detector.rules:
            return [Running(detector.name, detector.expr, node, detector.restart, detector.detection)]
        return [Running(output, detector.expr, node, False, RULES) for output in detector.outputs]

    def _rates(self, nodes: Mapping[str, Broker]) -> Iterator[Publisher]:
        """As publishers say; of types of which nobody says anything, as detectors have seen."""
        for type, sources in self.state.publishers.items():
            for told in sources.values():
                yield Publisher(type, told.node if told.node in nodes else HUB, told.rate, told.size)
        seen: dict[str, float] = {}
        for member in self.state.members.values():
            for type, rate in member.rates.items():
                seen[type] = max(seen.get(type, 0.0), rate)
        made = {output for d in self.state.detectors.values() for output in d.outputs}
        for type, rate in seen.items():
            if type not in made and not self.state.publishers.get(type):
                yield Publisher(type, HUB, rate)

    # Commands.

    def _command(self, data: bytes) -> None:
        command = Command("")
        try:
            if len(data) > LARGEST:
                raise InputError(f"a command may have {LARGEST} bytes, not {len(data)}")
            try:
                command = msgspec.json.decode(data, type=Command)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(f"not a command: {error}") from error
            act = self._commands.get(command.command)
            if act is None:
                hint = nearest(command.command, self._commands)
                raise InputError(f"there is no command '{command.command[:80]}'{f': {hint}' if hint else ''}")
            act(command)
        except CoincideError as error:
            self._answer(Command("error", command.sender, error.diagnostics[0].message, answers=self.state.number))

    def _answer(self, command: Command) -> None:
        self.answers.append(Answer(command, self.state.number))

    def _subscribe(self, command: Command) -> None:
        subscriber = command.sender
        if not subscriber:
            raise InputError("a subscription names its subscriber as 'from'")
        node = command.node or self._first_alive()
        if node not in self.state.members:
            raise InputError(f"there is no node '{node}': {nearest(node, self.state.members) or 'none has that name'}")
        before = self.state.subscriptions.pop(subscriber, None)
        policy = command.value or "minimum-latency"
        expr, keep, outputs = command.expr, command.keep, tuple[str, ...]()
        if command.rules:
            expr, keep, outputs = _outline(command)
        detection = RULES if command.rules else command.detection
        request = Request(subscriber, expr, policy, detection, command.restart, keep, command.name or None)
        self.state.subscriptions[subscriber] = made = Subscription(node, request, [], self.state.number)
        try:
            made.detectors = self._planned(request, command, outputs)
        except BaseException:
            del self.state.subscriptions[subscriber]
            if before is not None:
                self.state.subscriptions[subscriber] = before
            raise
        self._sweep()

    def _planned(self, request: Request, command: Command, outputs: tuple[str, ...]) -> list[str]:
        """The detectors that it is to be subscribed to; new ones are started."""
        if command.rules:
            there = [
                d.name for d in self.state.detectors.values() if d.rules == command.rules and d.detection == command.detection
            ]
            if there and request.policy != "maximum-reliability":
                return there[:1]
        plan = make_plan(self.brokers(), request, lambda canonical, taken: self._named(command, canonical, taken))
        by_output = {output: d.name for d in self.state.detectors.values() for output in d.outputs}
        for new in plan.new:
            found = Detector(
                *(new.name, new.expr, new.node, request.policy, command.detection, self.state.number, self.state.number),
                *(new.restart, new.sides, command.rules, command.ending, command.name or "rules"),
                outputs if command.rules else (new.name,),
            )
            found.same, found.heard = command.rules or new.canonical, self.state.counted
            found.doubled = request.policy == "maximum-reliability"
            book = rules_of(found)
            found.inputs, found.sources = self._inputs(types_named(book)), self._sources(types_read(book))
            self.state.detectors[new.name] = found
        return [by_output.get(name, name) for name in plan.subscribe]

    def _named(self, command: Command, canonical: str, taken: Collection[str]) -> str:
        """Of a running system: by what it detects. Copies have numbers."""
        return _free(f"ce-{crc32((command.rules or canonical).encode()):08x}", {*taken, *self.state.detectors})

    def _sources(self, read: frozenset[str] | None) -> list[str]:
        """The publishers of what it reads."""
        published = self.state.publishers.items()
        return list(dict.fromkeys(name for type, sources in published if read is None or type in read for name in sources))

    def _inputs(self, read: frozenset[str]) -> dict[str, list[str]]:
        """The detectors that make what it reads."""
        found: dict[str, list[str]] = {}
        for other in self.state.detectors.values():
            for output in other.outputs:
                if output in read:
                    found.setdefault(output, []).append(other.name)
        return found

    # Restriction graphs.

    def values(self) -> Network:
        """The network as placement sees it."""
        members = self.state.members.items()
        return network_of(self.brokers(), {name: values_of(name, m.resources, m.offer.host and m.alive) for name, m in members})

    def assignment(self, graph: Graph) -> dict[str, str]:
        running = self.state.detectors
        return {cd: running[name].node for cd, name in graph.detectors.items() if name in running}

    def _place_graph(self, command: Command) -> None:
        """Descriptions that run already are reused: giving a graph twice changes nothing."""
        if not command.sender:
            raise InputError("a graph names who gives it as 'from'")
        graph, texts = graph_of(command.rules), documents(command.rules)
        there = {d.name: d for d in self.state.detectors.values() if d.policy == RESTRICTIONS}
        running = tuple(Advertisement(d.node, d.rules) for d in there.values())
        placement = heuristic(graph, Setting(self.values(), advertisements=running))
        if placement.assignment is None:
            raise InputError(placement.reason or "no assignment satisfies all restrictions")
        places = {**placement.assignment, **placement.reused}
        found: dict[str, str] = {}
        for cd in graph.names:
            name = f"cd-{crc32(_undated(command.rules, cd).encode()):08x}"
            if cd not in placement.reused or name not in there:
                name = _free(name, self.state.detectors)
                self._start_description(name, places[cd], texts[cd], command)
            found[cd] = name
        for name in found.values():
            self.state.detectors[name].inputs = self._inputs(types_named(rules_of(self.state.detectors[name])))
        self.state.graphs[command.sender] = Graph(command.rules, found)
        request = Request(command.sender, "[anything]", RESTRICTIONS, RULES)
        node = command.node or self._first_alive()
        self.state.subscriptions[command.sender] = Subscription(node, request, list(found.values()), self.state.number)
        self._sweep()

    def _start_description(self, name: str, node: str, text: str, command: Command) -> None:
        book = loads(text, ENDING, name)
        outputs = tuple(dict.fromkeys(output for detector in book.detectors for output in detector.outputs))
        expr = " ; ".join(f"[{type}]" for type in sorted(types_named(book))) or "[anything]"
        made = Detector(name, expr, node, RESTRICTIONS, command.detection, self.state.number, self.state.number)
        made.rules, made.ending, made.file, made.outputs = text, ENDING, name, outputs
        made.graph, made.same, made.heard = command.sender, text, self.state.counted
        made.sources = self._sources(types_read(book))
        self.state.detectors[name] = made

    def _place_description(self, detector: Detector) -> None:
        """The best of the nodes that could carry it, all others where they are; if there is none, it stays."""
        for graph in self.state.graphs.values():
            for cd, name in graph.detectors.items():
                if name == detector.name:
                    found = places_for(graph_of(graph.text), self.values(), cd, self.assignment(graph))
                    if found:
                        self._move(detector, found[0][0])
                    return

    def _first_alive(self) -> str:
        alive = sorted(name for name, member in self.state.members.items() if member.alive)
        if not alive:
            raise InputError("there is no node in this network yet")
        return alive[0]

    def _unsubscribe(self, command: Command) -> None:
        subscriber = command.sender if command.target == "*" else command.target
        if self.state.subscriptions.pop(subscriber, None) is None:
            raise InputError(f"there is no subscriber '{subscriber}'")
        self.state.graphs.pop(subscriber, None)
        self._sweep()

    def _sweep(self) -> None:
        """What nobody uses any more is destroyed."""
        used = self._closure([name for s in self.state.subscriptions.values() for name in s.detectors])
        for name in [name for name in self.state.detectors if name not in used]:
            del self.state.detectors[name]

    def _targets(self, command: Command) -> list[Detector]:
        if command.target == "*":
            return list(self.state.detectors.values())
        if command.target not in self.state.detectors:
            raise InputError(f"there is no detector '{command.target[:80]}'{_hint(command.target, self.state.detectors)}")
        return [self.state.detectors[command.target]]

    def _created(self, command: Command) -> None:
        for detector in self._targets(command):
            if command.value != detector.node:
                raise InputError(f"'{detector.name}' belongs on node '{detector.node}', not on '{command.value[:80]}'")
            detector.ready = True

    def _set_policy(self, command: Command) -> None:
        if command.value not in POLICIES:
            raise InputError(f"there is no policy '{command.value[:80]}'{_hint(command.value, POLICIES)}")
        for detector in self._targets(command):
            detector.policy, detector.pinned = command.value, False
        self._control()

    def _migrate(self, command: Command) -> None:
        member = self.state.members.get(command.value)
        if member is None or not member.alive or not member.offer.host:
            raise InputError(f"node '{command.value[:80]}' carries no detectors{_hint(command.value, self.state.members)}")
        for detector in self._targets(command):
            self._move(detector, command.value)
            detector.pinned = True

    def _destroy(self, command: Command) -> None:
        for detector in self._targets(command):
            self.state.detectors.pop(detector.name, None)
            for subscription in self.state.subscriptions.values():
                subscription.detectors = [name for name in subscription.detectors if name != detector.name]
        self._sweep()

    def _set(self, command: Command) -> None:
        name, _, value = command.value.partition("=")
        try:
            if name == "near":
                self.state.near = float(value)
            elif name in ("control-interval", "patience"):
                setattr(self.state, "interval" if name == "control-interval" else name, duration_microseconds(value))
            else:
                hint = _hint(name, ("near", "control-interval", "patience"))
                raise InputError(f"'{command.value[:80]}' cannot be set{hint}")
        except ValueError as error:
            raise InputError(f"'{command.value[:80]}': {error}") from error

    def _status(self, command: Command) -> None:
        if not command.answers:
            data = msgspec.json.encode(self.state).decode()
            self._answer(Command("status", command.sender, data, answers=self.state.number))


def rules_of(detector: Detector) -> Rulebook:
    """What it detects, as rules. Raises RuleError."""
    if detector.rules:
        return loads(detector.rules, detector.ending, detector.file)
    restart = " restart" if detector.restart else ""
    return loads(f"detect {detector.name}{restart} = {detector.expr}", "opera", detector.name)


def types_read(book: Rulebook) -> frozenset[str] | None:
    """External types; None: all."""
    found: set[str] = set()
    for detector in book.detectors:
        if detector.inputs.external is None:
            return None
        found |= detector.inputs.external
    return frozenset(found)


def _free(name: str, taken: Collection[str]) -> str:
    return next(found for n in count(1) if (found := name if n == 1 else f"{name}-{n}") not in taken)


def _undated(text: str, cd: str) -> str:
    """What makes a description equal to another, whatever it is called."""
    return "".join(next(operator.document for operator in graph_of(text).operators if operator.name == cd))


def types_named(book: Rulebook) -> frozenset[str]:
    """Types that its rules name and do not make: others may make them."""
    named = {name for d in book.detectors for name in (*(d.inputs.external or ()), *d.inputs.detections)}
    return frozenset(named) - {output for d in book.detectors for output in d.outputs}


def _hint(name: str, known: Collection[str]) -> str:
    hint = nearest(name, known)
    return f": {hint}" if hint else ""


def _ashore(nodes: Mapping[str, Broker], links: Collection[Link]) -> list[str]:
    """One node of each part that links do not connect to others."""
    parts = {name: name for name in nodes if name != HUB}

    def part(name: str) -> str:
        while parts[name] != name:
            name = parts[name]
        return name

    for link in links:
        a, b = sorted(map(part, link.ends))
        parts[b] = a
    return sorted(name for name in parts if parts[name] == name)


def _outline(command: Command) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Rules of any language as planners see them: an expression that hears what they read, no part of which is to be factored
    out, and the types that they make."""
    book = loads(command.rules, command.ending, command.name or "rules")
    outputs = tuple(dict.fromkeys(output for detector in book.detectors for output in detector.outputs))
    atoms = [f"[{name}]" for name in sorted(types_named(book)) or ["anything"]]
    parts = tuple(" ; ".join(atoms[:size]) for size in range(2, len(atoms)))
    return " ; ".join(atoms), parts, outputs


def _offered(member: Member) -> Broker:
    return member.offer if member.alive else msgspec.structs.replace(member.offer, host=False)


def _standing(member: Member) -> object:
    """What of a node decides where detectors should be, without the small changes that are there all the time."""
    measured = {**member.rates, **member.sizes}
    links = {name: _about(latency) for name, latency in member.links.items()}
    rough = {name: _about(value) for name, value in measured.items()}
    return member.alive, member.offer, _about(member.latency), round(10 * member.busy), links, rough


def _about(value: float) -> int:
    """Values that differ by less than a fifth are mostly the same, those below one always."""
    return round(log(max(value, 1.0), 1.2))
