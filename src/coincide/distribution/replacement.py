"""A description whose restrictions are broken is placed again, from what its node knows (distribution-cordies.md, section 4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from coincide.distribution.placement import Domain, Setting, Tender
from coincide.distribution.relations import Immovable, OfNode, OfPair
from coincide.distribution.restrictions import Restriction, RestrictionGraph
from coincide.errors import InputError


@dataclass(frozen=True)
class Replacement:
    violated: list[str]
    candidates: Domain
    target: str | None = None
    reason: str | None = None


def replace_description(
    graph: RestrictionGraph, setting: Setting, name: str, assignment: Mapping[str, str], view: Collection[str] | None = None
) -> Replacement:
    """Where to move it: to the known node that could bid with the greatest weight, all others fixed where they are."""
    for operator in graph.names:
        if operator not in assignment:
            raise InputError(f"the assignment has no place for '{operator}'")
    if name not in graph.names:
        raise InputError(f"the graph has no description '{name}'")
    places = {**graph.pins, **assignment}
    violated = [r.id for r in graph.of(name) if not _holds(r, setting, name, places)]
    if not violated:
        return Replacement([], [])
    if graph.demands(name, Immovable):
        return Replacement(violated, [], None, f"'{name}' is immovable")
    found = candidates(graph, setting, name, places, view)
    if not found:
        return Replacement(violated, [], None, "no known node satisfies the restrictions")
    return Replacement(violated, found, found[0][0])


def candidates(
    graph: RestrictionGraph, setting: Setting, name: str, places: Mapping[str, str], view: Collection[str] | None = None
) -> Domain:
    """Known nodes other than the present one that could bid, all other operands fixed where they are; best first."""
    tender = Tender(graph, setting, {other: {place} for other, place in places.items() if other != name})
    known = [n for n in setting.network.nodes if n != places[name] and (view is None or n in view)]
    bids = {node: tender.bid(name, setting.network.node(node)) for node in known}
    return sorted(((n, tender.weight(bid)) for n, bid in bids.items() if bid is not None), key=lambda pair: -pair[1])


def _holds(restriction: Restriction, setting: Setting, name: str, places: Mapping[str, str]) -> bool:
    relation, here = restriction.relation, places[name]
    if isinstance(relation, OfNode):
        return relation.holds_on(setting.network.node(here))
    if isinstance(relation, OfPair):
        others = [other for other in restriction.operands if other != name]
        return all(relation.holds_between(setting.network, here, places[other]) for other in others)
    return True
