"""Ten thousand brokers: what crosses the links under each policy of placement, against sending everything to one place.

On paper, by the rates of section 2 of distribution-opera.md: nothing is sent. A stream goes from where it is made to all who want
it along the shortest ways, and crosses a link once, however many are behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from statistics import median
from time import process_time

import msgspec

from coincide.distribution.brokers import Broker, Brokers, Link, Publisher, Request, Route, Routes, Running
from coincide.distribution.flows import Flows
from coincide.distribution.planning import POLICIES, Planner
from experiments.pictures import Pictures

CENTRE = "everything to one place"
Step = tuple[str, float]
"""A broker on the way to a hub, and how far it is from where the way begins."""


@dataclass(frozen=True)
class Size:
    regions: int = 100
    access: int = 99  # brokers of a region behind its hub, ten behind each of its switches
    types: int = 1_000
    rate: float = 100_000.0  # events a second, all types together
    subscribers: int = 1_000
    shapes: int = 300  # different expressions among them

    @property
    def nodes(self) -> int:
        return self.regions * (self.access + 1)


# The network.


def network(size: Size, random: Random) -> Brokers:
    """Hubs in a ring with chords, 5 to 40 ms apart; behind each a tree, 1 to 5 ms a link. A few types are most of the traffic."""
    hubs = [f"h{number:03}" for number in range(size.regions)]
    near = [(hub, hubs[(number + 1) % len(hubs)]) for number, hub in enumerate(hubs)]
    chords = [tuple(random.sample(hubs, 2)) for _ in range(2 * len(hubs))]
    links = [Link((a, b), round(random.uniform(5, 40), 3)) for a, b in (*near, *chords)]
    leaves: list[str] = []
    for hub in hubs:
        for number in range(size.access):
            above = hub if number % 11 == 0 else f"{hub}-{number - number % 11:02}"
            leaves.append(f"{hub}-{number:02}")
            links.append(Link((above, leaves[-1]), round(random.uniform(1, 5), 3)))
    shares = [1 / rank for rank in range(1, size.types + 1)]
    scale = size.rate / sum(shares)
    publishers = [Publisher(f"E{n}", random.choice(leaves), share * scale) for n, share in enumerate(shares)]
    subscribers = {f"u{number}": random.choice(leaves) for number in range(size.subscribers)}
    return Brokers({name: Broker() for name in (*hubs, *leaves)}, tuple(links), tuple(publishers), subscribers)


def requests(size: Size, random: Random) -> list[Request]:
    """Each subscriber wants one of the shapes; some shapes have parts in common."""
    types = [f"E{number}" for number in range(size.types)]
    pairs = [random.sample(types, 2) for _ in range(size.shapes // 3)]
    texts = [_shape(random, *random.choice(pairs), random.choice(types)) for _ in range(size.shapes)]
    names = {text: f"R{number}" for number, text in enumerate(texts)}
    chosen = [random.choice(texts) for _ in range(size.subscribers)]
    return [Request(f"u{number}", text, "hash", name=names[text]) for number, text in enumerate(chosen)]


def _shape(random: Random, a: str, b: str, c: str) -> str:
    forms = (f"[{a}] ; [{b}]", f"([{a}] ; [{b}]) | [{c}]", f"([{a}] ; [{b}]) ; [{c}]", f"([{a}], [{b}]) T = 1min")
    return random.choice(forms)


class TreeRoutes(Routes):
    """The same ways, found faster: behind a hub there is only one, so all that is asked for is the way between hubs."""

    @cached_property
    def _up(self) -> dict[str, tuple[Step, ...]]:
        """From each broker to its hub: the brokers on the way, and how far each is from the first."""
        found: dict[str, tuple[Step, ...]] = {name: ((name, 0.0),) for name in self.brokers.nodes if "-" not in name}
        for link in self.brokers.links:
            above, below = link.ends
            if "-" in below:  # a link stands behind those above it
                found[below] = ((below, 0.0), *((name, far + link.latency) for name, far in found[above]))
        return found

    @cached_property
    def _between(self) -> Routes:
        hubs = {name: node for name, node in self.brokers.nodes.items() if "-" not in name}
        links = tuple(link for link in self.brokers.links if not any("-" in end for end in link.ends))
        return Routes(Brokers(hubs, links))

    def route(self, a: str, b: str) -> Route:
        up, down = self._up[a], self._up[b]
        (hub, far), (other, also) = up[-1], down[-1]
        if hub != other:
            way = self._between.route(hub, other)
            nodes = (*(name for name, _ in up[:-1]), *way.nodes, *(name for name, _ in reversed(down[:-1])))
            return Route(far + way.latency + also, len(nodes) - 1, nodes)
        meets = next(name for name, _ in up if name in {name for name, _ in down})
        left = [name for name, _ in up[: [name for name, _ in up].index(meets) + 1]]
        right = [name for name, _ in down[: [name for name, _ in down].index(meets)]]
        return Route(dict(up)[meets] + dict(down)[meets], len(left) + len(right) - 1, (*left, *reversed(right)))

    def dist(self, a: str, b: str) -> float:
        up, down = self._up[a], self._up[b]
        if up[-1][0] == down[-1][0]:
            return self.route(a, b).latency
        return up[-1][1] + self._between.dist(up[-1][0], down[-1][0]) + down[-1][1]

    def hops(self, a: str, b: str) -> int:
        up, down = self._up[a], self._up[b]
        if up[-1][0] == down[-1][0]:
            return self.route(a, b).hops
        return len(up) + self._between.hops(up[-1][0], down[-1][0]) + len(down) - 2


# What a policy comes to.


@dataclass
class Outcome:
    """Of one policy, or of none."""

    name: str
    detectors: int = 0
    reused: int = 0  # subscriptions that needed no new one
    crossings: float = 0.0  # of links, by events, in a second
    busiest_link: float = 0.0  # events a second
    busiest_node: int = 0  # atoms
    delays: list[float] = field(default_factory=list)  # from the farthest publisher to the subscriber, in ms
    seconds: float = 0.0  # for all plans


def outcome(policy: str, brokers: Brokers, asked: Sequence[Request], routes: Routes) -> Outcome:
    """All subscriptions, one after another, as a running network would plan them."""
    found, streams, began = Outcome(policy), Flows(routes), process_time()
    late: dict[str, float] = {}  # how long after the farthest publisher a detector hears of it
    for request in asked:
        planner = Planner(brokers, msgspec.structs.replace(request, policy=policy), routes=routes)
        POLICIES[policy](planner)
        plan, places = planner.plan, planner.places
        for new in plan.new:
            late[new.name] = _hears(planner, new.name, streams, late)
        ways = [(name, places[name], planner.rate_of_type(name), planner.here) for name in plan.subscribe]
        found.delays.append(min(late[way[0]] + streams.add(*way) for way in ways))
        found.reused += not plan.new
        found.busiest_node = max(planner.loads.values())
        running = (Running(new.name, new.expr, new.node, new.restart) for new in plan.new)
        brokers = msgspec.structs.replace(brokers, detectors=(*brokers.detectors, *running))
    found.detectors, found.seconds = len(brokers.detectors), process_time() - began
    return _with_links(found, streams)


def _hears(planner: Planner, name: str, streams: Flows, late: Mapping[str, float]) -> float:
    """A new detector hears its inputs where it is: the latest of them decides."""
    here, made_at = planner.places[name], {p.type: p.node for p in planner.brokers.publishers} | planner.places
    kinds = planner.types_heard(planner.bodies[name])
    return max(late.get(kind, 0.0) + streams.add(kind, made_at[kind], planner.rate_of_type(kind), here) for kind in kinds)


def at_one_place(brokers: Brokers, asked: Sequence[Request], routes: Routes) -> Outcome:
    """Every event goes to the hub that is nearest to all, whoever wants it; detections come from there."""
    hubs = [name for name in brokers.nodes if "-" not in name]
    centre = min(hubs, key=lambda hub: sum(routes.dist(hub, other) for other in hubs))
    found, streams = Outcome(CENTRE), Flows(routes)
    nodes = {p.type: p.node for p in brokers.publishers}
    for publisher in brokers.publishers:
        streams.add(publisher.type, publisher.node, publisher.rate, centre)
    for request in asked:
        planner = Planner(brokers, request, routes=routes)
        heard = max(routes.dist(nodes[kind], centre) for kind in planner.types_heard(planner.wanted.body))
        rate = planner.rate(planner.wanted.body)
        found.delays.append(heard + streams.add(request.expr, centre, rate, planner.here))
    found.detectors = len({request.expr for request in asked})
    found.reused = len(asked) - found.detectors
    return _with_links(found, streams)


def _with_links(found: Outcome, streams: Flows) -> Outcome:
    links: dict[frozenset[str], float] = {}
    for link, over in streams.crossings().items():
        links[frozenset(link)] = links.get(frozenset(link), 0.0) + sum(over.values())
    found.crossings, found.busiest_link = sum(links.values()), max(links.values(), default=0.0)
    return found


def outcomes(size: Size = Size(), seed: int = 0) -> list[Outcome]:
    random = Random(seed)
    brokers = network(size, random)
    asked, routes = requests(size, random), TreeRoutes(brokers)
    return [at_one_place(brokers, asked, routes), *(outcome(policy, brokers, asked, routes) for policy in POLICIES)]


def report(pictures: Pictures, size: Size = Size()) -> Iterator[str]:
    found = outcomes(size)
    crossings = {one.name.replace("imum", "."): one.crossings / 1000 for one in found}
    pictures.bars("internet-crossings", f"{size.nodes:,} nodes: crossings of links", "", "thousand events/s", crossings)
    yield f"{size.nodes:,} nodes, {size.subscribers:,} subscribers, {size.types:,} types, {size.rate:,.0f} events/s"
    yield ""
    yield "| | detectors | crossings/s | against one place | busiest link | busiest node, atoms | median delay, ms | plans, s |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for one in found:
        share = f"{one.crossings / found[0].crossings:.0%}"
        figures = (f"{one.detectors:,}", f"{one.crossings:,.0f}", share, f"{one.busiest_link:,.0f}")
        node = f"{one.busiest_node:,}" if one.busiest_node else "all"
        planning = f"{one.seconds:.0f}" if one.seconds else ""
        yield f"| {one.name} | {' | '.join(figures)} | {node} | {median(one.delays):.0f} | {planning} |"
