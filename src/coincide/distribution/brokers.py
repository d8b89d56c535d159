"""A network of brokers (distribution-opera.md, section 2): nodes, links, who publishes and subscribes where, what runs."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec

from coincide.errors import InputError

NEAR = 5.0
"""Milliseconds within which a detector is close to a subscriber."""


SPARK = "spark"
"""What runs detectors on a node, if not its own process: a cluster."""


class Broker(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """`host`: may it carry detectors? None that reads more than `rate` events a second or has more `state` (bytes)."""

    host: bool = True
    engine: Literal["embedded", "spark"] = "embedded"
    rate: float | None = None
    state: float | None = None

    def can_take(self, rate: float, state: float) -> bool:
        return (self.rate is None or rate <= self.rate) and (self.state is None or state <= self.state)


class Link(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Milliseconds and kbit/s, both ways."""

    ends: tuple[str, str]
    latency: float
    bandwidth: float = 0.0


class Publisher(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Events a second, bytes."""

    type: str
    node: str
    rate: float
    size: float = 100.0


class Running(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A detector that is there already. Equal ones of different detection policies are not the same."""

    name: str
    expr: str
    node: str
    restart: bool = False
    detection: str = "best-effort"


class Request(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A subscription. `keep`: subexpressions that are not to be factored out."""

    subscriber: str
    expr: str
    policy: str
    detection: str = "best-effort"
    restart: bool = False
    keep: tuple[str, ...] = ()
    name: str | None = None


class Brokers(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"content_based": "content-based"}):
    """A topology file."""

    nodes: dict[str, Broker]
    links: tuple[Link, ...] = ()
    publishers: tuple[Publisher, ...] = ()
    subscribers: dict[str, str] = {}
    detectors: tuple[Running, ...] = ()
    near: float = NEAR
    content_based: bool = True


@dataclass(frozen=True)
class Route:
    """The way between two nodes: least latency, then fewest links, then the least list of names."""

    latency: float
    hops: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Routes:
    brokers: Brokers

    def __post_init__(self) -> None:
        for what, name in self._named():
            if name not in self.brokers.nodes:
                raise InputError(f"{what} names node '{name}', which the topology does not have")

    def _named(self) -> list[tuple[str, str]]:
        given = self.brokers
        found = [("a link", end) for link in given.links for end in link.ends]
        found += [(f"the publisher of '{p.type}'", p.node) for p in given.publishers]
        found += [(f"subscriber '{name}'", node) for name, node in given.subscribers.items()]
        return found + [(f"detector '{d.name}'", d.node) for d in given.detectors]

    @cached_property
    def _neighbours(self) -> Mapping[str, list[tuple[str, float]]]:
        found: dict[str, list[tuple[str, float]]] = {name: [] for name in self.brokers.nodes}
        for link in self.brokers.links:
            a, b = link.ends
            found[a].append((b, link.latency))
            found[b].append((a, link.latency))
        return found

    @cached_property
    def _from(self) -> dict[str, dict[str, Route]]:
        return {}

    def route(self, a: str, b: str) -> Route:
        if a not in self._from:
            self._from[a] = self._routes(a)
        if b not in self._from[a]:
            raise InputError(f"there is no way from node '{a}' to node '{b}'")
        return self._from[a][b]

    def _routes(self, start: str) -> dict[str, Route]:
        """Dijkstra's; the order of the queue is that of routes."""
        found: dict[str, Route] = {}
        waiting: list[tuple[float, int, tuple[str, ...]]] = [(0.0, 0, (start,))]
        while waiting:
            latency, hops, nodes = heapq.heappop(waiting)
            if nodes[-1] in found:
                continue
            found[nodes[-1]] = Route(latency, hops, nodes)
            for neighbour, own in self._neighbours[nodes[-1]]:
                if neighbour not in found:
                    heapq.heappush(waiting, (latency + own, hops + 1, (*nodes, neighbour)))
        return found

    def dist(self, a: str, b: str) -> float:
        return self.route(a, b).latency

    def hops(self, a: str, b: str) -> int:
        return self.route(a, b).hops

    @cached_property
    def hosts(self) -> list[str]:
        """By name."""
        return sorted(name for name, node in self.brokers.nodes.items() if node.host)
