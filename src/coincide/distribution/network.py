"""What is known of a network: nodes with their values, links with theirs (distribution-cordies.md, section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import msgspec

from coincide.errors import InputError

LINKS = ("latency", "bandwidth", "hops")
TO_ITSELF = {"latency": 0.0, "bandwidth": inf, "hops": 0.0}


class NodeValues(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A node as it describes itself. Values that it does not know are those that satisfy least."""

    id: str
    bids: bool = True
    domain: str | None = None
    device: str | None = None
    speed: float = 1.0
    ram: float = 0.0
    stable: float = 0.0
    cpu: float = 0.0
    reliability: float = 0.0
    realtime: str = "none"
    energy: str | None = None
    mobility: str | None = None
    network: tuple[str, ...] = ()
    security: tuple[str, ...] = ()


class Advertisement(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A node says that a description runs on it."""

    node: str
    cd: str


class Report(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A message of the Resource Collection Protocol: what `node` has, as told by the neighbour `via`."""

    node: str
    via: str
    resources: dict[str, float]


class Topology(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A topology file: the network, and what is to be done in it."""

    nodes: tuple[NodeValues, ...] = ()
    latency: tuple[tuple[str, str, float], ...] = ()
    bandwidth: tuple[tuple[str, str, float], ...] = ()
    hops: tuple[tuple[str, str, float], ...] = ()
    sigma: float = 1.0
    tau: float = 0.5
    advertisements: tuple[Advertisement, ...] = ()
    task: str = "place"
    cd: str | None = None
    assignment: dict[str, str] = {}
    view: tuple[str, ...] | None = None
    better: dict[str, str] = {}
    weights: dict[str, float] = {}
    messages: tuple[Report, ...] = ()


@dataclass(frozen=True)
class Network:
    """Nodes by name, in the order of the topology, and values of links, which are symmetric."""

    nodes: Mapping[str, NodeValues]
    links: Mapping[str, Mapping[frozenset[str], float]]

    def node(self, name: str) -> NodeValues:
        """Of a node that nobody has described, only the name is known."""
        return self.nodes.get(name) or NodeValues(name)

    def link(self, metric: str, a: str, b: str) -> float | None:
        """None where it is unknown."""
        return TO_ITSELF[metric] if a == b else self.links[metric].get(frozenset((a, b)))

    def known_from(self, metric: str, name: str) -> set[str]:
        """The nodes to which the value of the link is known, itself among them."""
        return self._known[metric].get(name, {name})

    @cached_property
    def _known(self) -> Mapping[str, Mapping[str, set[str]]]:
        found: dict[str, dict[str, set[str]]] = {metric: {} for metric in self.links}
        for metric, values in self.links.items():
            for ends in values:
                for end in ends:
                    found[metric].setdefault(end, {end}).update(ends)
        return found


def network_of(topology: Topology) -> Network:
    nodes = {node.id: node for node in topology.nodes}
    if len(nodes) < len(topology.nodes):
        raise InputError(f"the topology has node '{_repeated(node.id for node in topology.nodes)}' twice")
    return Network(nodes, {metric: _values(metric, getattr(topology, metric), nodes) for metric in LINKS})


def _values(metric: str, given: Sequence[tuple[str, str, float]], nodes: Mapping[str, object]) -> dict[frozenset[str], float]:
    for a, b, _ in given:
        for name in (a, b):
            if name not in nodes:
                raise InputError(f"'{metric}' names node '{name}', which the topology does not have")
    return {frozenset((a, b)): value for a, b, value in given}


def _repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def read_json(data: bytes, kind: Any, name: str) -> Any:
    """A JSON document of a known shape; InputError says what does not fit."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise InputError(f"{name}: {error}") from error
