"""Correlation descriptions with restriction graphs in a network (distribution-cordies.md, sections 3 to 5): what nodes have,
where descriptions may be, whether what was promised still holds, and what nodes tell one another of their resources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random
from typing import Any

import msgspec

from coincide.distribution.brokers import Brokers, Routes
from coincide.distribution.gossip import View
from coincide.distribution.network import Network, NodeValues
from coincide.distribution.network import Report as Told
from coincide.distribution.placement import Domain, Setting
from coincide.distribution.replacement import candidates
from coincide.distribution.restrictions import RestrictionGraph, parse_graph
from coincide.errors import InputError
from coincide.lang.shared.xml import parse_xml
from coincide.source import SourceText

RESTRICTIONS = "restrictions"
"""The policy of descriptions that have a restriction graph."""
ENDING = "cdl"


@lru_cache(maxsize=64)
def graph_of(text: str) -> RestrictionGraph:
    return parse_graph(SourceText("graph.rg.xml", text))


@lru_cache(maxsize=256)
def documents(text: str) -> dict[str, str]:
    """Each description of a graph as a document of its own, as it was written."""
    found = {}
    for operator in (o for section in parse_xml(SourceText("graph.rg.xml", text)).children for o in section.children):
        for cd in operator.children:
            if cd.name == "cd":
                found[cd.attributes["id"]] = text[cd.span.start : text.index("</cd>", cd.span.start) + len("</cd>")]
    return found


def values_of(name: str, resources: Mapping[str, Any], bids: bool) -> NodeValues:
    """What a node says it has; what it says amiss it does not have."""
    known = {key: value for key, value in resources.items() if key in NodeValues.__struct_fields__ and key not in ("id", "bids")}
    try:
        return msgspec.convert({**known, "id": name, "bids": bids}, NodeValues)
    except msgspec.ValidationError:
        return NodeValues(name, bids)


def network_of(brokers: Brokers, nodes: Mapping[str, NodeValues]) -> Network:
    """Latency and hops are those of the shortest ways, bandwidth that of links."""
    routes = Routes(brokers)
    links: dict[str, dict[frozenset[str], float]] = {"latency": {}, "bandwidth": {}, "hops": {}}
    for a in nodes:
        for b in nodes:
            if a < b:
                with_way = _way(routes, a, b)
                if with_way is not None:
                    links["latency"][frozenset((a, b))], links["hops"][frozenset((a, b))] = with_way
    for link in brokers.links:
        if link.bandwidth:
            links["bandwidth"][frozenset(link.ends)] = link.bandwidth
    return Network(nodes, links)


def _way(routes: Routes, a: str, b: str) -> tuple[float, float] | None:
    try:
        route = routes.route(a, b)
    except InputError:
        return None
    return route.latency, float(route.hops)


def places_for(graph: RestrictionGraph, network: Network, name: str, assignment: Mapping[str, str]) -> Domain:
    """Where a description could be instead, all others fixed, best first."""
    return [(n, w) for n, w in candidates(graph, Setting(network), name, {**graph.pins, **assignment}) if network.node(n).bids]


class Resources(msgspec.Struct, frozen=True):
    """A message of the Resource Collection Protocol."""

    node: str
    number: int
    via: str
    resources: dict[str, float]


@dataclass
class Gossip:
    """What a node has been told, and what it passes on: each report once, with the probability of its benefit."""

    name: str
    view: View = field(default_factory=lambda: View({"latency": "low"}))
    number: int = 0
    _seen: set[tuple[str, int]] = field(default_factory=set)
    _random: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        self._random.seed(self.name)

    @property
    def known(self) -> set[str]:
        return {self.name, *self.view.resources}

    def own(self, resources: Mapping[str, Any], neighbours: Collection[str]) -> Iterator[tuple[str, Resources]]:
        """To each neighbour what this node has."""
        self.number += 1
        resources_of_node = Resources(self.name, self.number, self.name, _numbers(resources))
        self._seen.add((self.name, self.number))
        return ((neighbour, resources_of_node) for neighbour in sorted(neighbours))

    def take(self, message: Resources, neighbours: Collection[str]) -> Iterator[tuple[str, Resources]]:
        """What is to be passed on of what was told."""
        if (message.node, message.number) in self._seen or message.node == self.name:
            return
        self._seen.add((message.node, message.number))
        benefit = self.view.take(Told(message.node, message.via, message.resources)).overall
        for neighbour in sorted(set(neighbours) - {message.via, message.node}):
            if self._random.random() < benefit:
                yield neighbour, msgspec.structs.replace(message, via=self.name)


def _numbers(resources: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value) for name, value in resources.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }
