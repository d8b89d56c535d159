"""Initial placement of descriptions: advertisements, levels, tender and bids, order by stability, backtracking.

After the paper's heuristics as distribution-cordies.md, section 3, makes them exact. An algorithm of placement is a function of
a graph and a network (DIST-15); this one is `heuristic`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from statistics import fmean

from coincide.distribution.network import Advertisement, Network, NodeValues
from coincide.distribution.relations import Item, OfPair, Unique
from coincide.distribution.restrictions import RestrictionGraph, document_of
from coincide.lang.shared.xml import parse_xml
from coincide.source import SourceText

Candidates = AbstractSet[str]
Domain = list[tuple[str, float]]
"""Nodes that bid, with their weights, best first."""


@dataclass(frozen=True)
class Setting:
    """What a placement goes by besides the graph."""

    network: Network
    sigma: float = 1.0
    tau: float = 0.5
    advertisements: Sequence[Advertisement] = ()


@dataclass
class Placement:
    """The outcome. `assignment` is None where there is none, for the `reason`."""

    reused: dict[str, str] = field(default_factory=dict)
    levels: list[list[str]] = field(default_factory=list)
    domains: dict[str, Domain] = field(default_factory=dict)
    assignment: dict[str, str] | None = None
    backsteps: int = 0
    tried: int = 0
    reason: str | None = None


Algorithm = Callable[[RestrictionGraph, Setting], Placement]


def heuristic(graph: RestrictionGraph, setting: Setting) -> Placement:
    placement = Placement()
    if (refused := _reuse(graph, setting, placement.reused)) is not None:
        placement.reused, placement.reason = {}, refused
        return placement
    placement.levels = levels(graph, placement.reused)
    fixed = fixed_places(graph, placement.reused)
    tender = Tender(graph, setting, {name: {node} for name, node in fixed.items()})
    for level in placement.levels[1:]:
        placement.domains.update(tender.run(level))
    search(graph, setting.network, fixed, placement)
    return placement


def fixed_places(graph: RestrictionGraph, mapped: Mapping[str, str]) -> dict[str, str]:
    """Level 0: pins, and descriptions that run already."""
    return {**graph.pins, **mapped}


# Advertisements.


def _reuse(graph: RestrictionGraph, setting: Setting, mapped: dict[str, str]) -> str | None:
    """Descriptions that run already are mapped to where they do. Returns why the placement fails, if it does."""
    for advertisement in setting.advertisements:
        document = document_of(parse_xml(SourceText("advertisement", advertisement.cd)))
        for operator in graph.operators:
            if operator.document != document or operator.name in mapped:
                continue
            candidates: dict[str, Candidates] = {name: {node} for name, node in fixed_places(graph, mapped).items()}
            advertiser = setting.network.node(advertisement.node)
            if Tender(graph, setting, candidates).bid(operator.name, advertiser) is not None:
                mapped[operator.name] = advertiser.id
            elif graph.demands(operator.name, Unique):
                return f"'{operator.name}' must be unique, runs on '{advertiser.id}' and its restrictions do not hold there"
    return None


# Levels.


def levels(graph: RestrictionGraph, mapped: Mapping[str, str]) -> list[list[str]]:
    """Heuristic 1: the strictest descriptions first, those with operands in lower levels among them."""
    found = [[*graph.pins, *(name for name in graph.names if name in mapped)]]
    lower = set(found[0])
    remaining = [name for name in graph.names if name not in mapped]
    while remaining:
        strictness = {name: _strictness(graph, name, lower) for name in remaining}
        greatest = max(strictness.values())
        found.append([name for name in remaining if strictness[name] == greatest])
        lower.update(found[-1])
        remaining = [name for name in remaining if name not in lower]
    return found


def _strictness(graph: RestrictionGraph, name: str, lower: set[str]) -> int:
    linked = [r for r in graph.of(name) if isinstance(r.relation, OfPair) and lower & (set(r.operands) - {name})]
    return sum(r.relation.counted for r in graph.of(name)) + len(linked)


# Tender and bids.


@dataclass
class Tender:
    """Asks nodes which descriptions they could carry. `candidates`: of pins, and of descriptions in lower levels."""

    graph: RestrictionGraph
    setting: Setting
    candidates: dict[str, Candidates]

    def run(self, level: Iterable[str]) -> dict[str, Domain]:
        """The domains of a level, made arc-consistent within it, in order of stability."""
        bids = {name: self._bids(name) for name in level}
        consistent = arc_consistent(self.graph, self.setting.network, {name: list(found) for name, found in bids.items()})
        domains = {name: self._ordered({node: bids[name][node] for node in nodes}) for name, nodes in consistent.items()}
        self.candidates.update((name, {node for node, _ in domain}) for name, domain in domains.items())
        return domains

    def _bids(self, name: str) -> dict[str, list[Item]]:
        answers = {node.id: self.bid(name, node) for node in self.setting.network.nodes.values()}
        return {node: bid for node, bid in answers.items() if bid is not None}

    def bid(self, name: str, node: NodeValues) -> list[Item] | None:
        """What a node measures for a description; None: it does not bid, or a restriction does not hold there."""
        demands = self.graph.on_node(name)
        if not node.bids or not all(demand.holds_on(node) for demand in demands):
            return None
        items = [item for demand in demands if (item := demand.item(node)) is not None]
        for relation, other in self.graph.with_others(name):
            if other not in self.candidates:
                continue
            fitting = list(partners(relation, self.setting.network, node.id, self.candidates[other]))
            if not fitting:
                return None
            measured = [relation.link_item(self.setting.network, node.id, at) for at in fitting]
            items += [max(known, key=lambda item: item.ratio)] if (known := [m for m in measured if m is not None]) else []
        return items

    def _ordered(self, bids: Mapping[str, Sequence[Item]]) -> Domain:
        """By falling weight; the order of the topology decides between equal ones."""
        weights = [(node, self.weight(items)) for node, items in bids.items()]
        return sorted(weights, key=lambda pair: -pair[1])

    def weight(self, items: Sequence[Item]) -> float:
        """Heuristic 2, formulas (1) to (4): what is left of the resources, less how uneven it is."""
        if not items:
            return 0.0
        ratios = [item.ratio for item in items]
        scarcest = min(ratios)
        return self.setting.sigma * fmean(ratios) - self.setting.tau * fmean([ratio - scarcest for ratio in ratios])


def partners(relation: OfPair, network: Network, node: str, others: Candidates) -> Iterator[str]:
    """Which of the others satisfy the relation together with the node. Of most nodes, in a large network, nothing is known."""
    possible = relation.partners(network, node)
    for at in others if possible is None else others & possible:
        if relation.holds_between(network, node, at):
            yield at


def arc_consistent(graph: RestrictionGraph, network: Network, domains: dict[str, list[str]]) -> dict[str, list[str]]:
    """AC-3 on the restrictions between descriptions of one level: who has no partner left is out."""
    arcs = [(name, relation, other) for name in domains for relation, other in graph.with_others(name) if other in domains]
    waiting = list(arcs)
    while waiting:
        name, relation, other = waiting.pop(0)
        others = set(domains[other])
        possible = [node for node in domains[name] if any(True for _ in partners(relation, network, node, others))]
        if len(possible) < len(domains[name]):
            domains[name] = possible
            waiting += [arc for arc in arcs if arc[2] == name and arc not in waiting]
    return domains


# The search.


def search(graph: RestrictionGraph, network: Network, fixed: Mapping[str, str], placement: Placement) -> None:
    """The first assignment in order of levels and domains, by backtracking."""
    order = [name for level in placement.levels[1:] for name in level]
    empty = next((name for name in order if not placement.domains[name]), None)
    if empty is not None:
        placement.reason = f"no node bids for '{empty}'"
        return
    places = dict(fixed)
    untried: list[Iterator[str]] = []
    while len(untried) < len(order):
        untried.append(iter([node for node, _ in placement.domains[order[len(untried)]]]))
        while untried and not _advance(graph, network, order[len(untried) - 1], untried[-1], places, placement):
            untried.pop()
            if not untried:
                placement.reason = "no assignment satisfies all restrictions"
                return
            placement.backsteps += 1
    placement.assignment = {name: places[name] for name in graph.names}


def _advance(
    graph: RestrictionGraph, network: Network, name: str, values: Iterator[str], places: dict[str, str], placement: Placement
) -> bool:
    """Give the description its next value that fits all that are placed before it."""
    places.pop(name, None)
    for node in values:
        placement.tried += 1
        if fits(graph, network, name, node, places):
            places[name] = node
            return True
    return False


def fits(graph: RestrictionGraph, network: Network, name: str, node: str, places: Mapping[str, str]) -> bool:
    """Do all relations to operands that have a place hold?"""
    related = ((relation, places[other]) for relation, other in graph.with_others(name) if other in places)
    return all(relation.holds_between(network, node, place) for relation, place in related)


def local_graphs(graph: RestrictionGraph, assignment: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """What each node watches: its descriptions, and the restrictions that have one of them as operand."""
    found: dict[str, dict[str, list[str]]] = {}
    for node in dict.fromkeys(assignment[name] for name in graph.names):
        own = [name for name in graph.names if assignment[name] == node]
        watched = [r.id for r in graph.restrictions if not set(own).isdisjoint(r.operands)]
        found[node] = {"cds": own, "restrictions": watched}
    return found
