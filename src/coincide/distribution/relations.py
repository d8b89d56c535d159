"""The types of restrictions (distribution-cordies.md, section 2): what each needs, when it holds, what it measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import ClassVar, NamedTuple

from coincide.distribution.network import Network, NodeValues

LEVELS = ("none", "soft", "hard")
MOST = 1000.0
"""No ratio is better than this: a value that is zero would be."""


class Item(NamedTuple):
    """Of a bid: what was measured, what is required, and whether at least or at most that."""

    measured: float
    required: float
    at_least: bool

    @property
    def ratio(self) -> float:
        """Formula (1): how far the requirement is exceeded."""
        above, below = (self.measured, self.required) if self.at_least else (self.required, self.measured)
        return min(MOST, above / below) if below else MOST

    @property
    def holds(self) -> bool:
        return self.measured >= self.required if self.at_least else self.measured <= self.required


@dataclass(frozen=True)
class Relation:
    """What a restriction demands. Its fields are the parameters in the document."""

    counted: ClassVar[bool] = False
    """Does it make a description stricter, wherever the others are?"""
    operands: ClassVar[int | None] = None
    """How many it needs, where the number is fixed."""


class OfNode(Relation, ABC):
    """On a node alone."""

    counted: ClassVar[bool] = True

    @abstractmethod
    def holds_on(self, node: NodeValues) -> bool: ...

    def item(self, node: NodeValues) -> Item | None:
        """What a bid tells of it."""
        return None


class OfPair(Relation, ABC):
    """Between the nodes of two operands."""

    @abstractmethod
    def holds_between(self, network: Network, a: str, b: str) -> bool: ...

    def link_item(self, network: Network, a: str, b: str) -> Item | None:
        return None

    def partners(self, network: Network, node: str) -> set[str] | None:
        """The only nodes that can satisfy it together with this one; None: any may."""
        return None


class Measured(OfNode):
    """A value of the node against a limit."""

    @abstractmethod
    def item(self, node: NodeValues) -> Item: ...

    def holds_on(self, node: NodeValues) -> bool:
        return self.item(node).holds


@dataclass(frozen=True)
class Unique(Relation):
    """No second copy may run."""


@dataclass(frozen=True)
class Suspendable(Relation):
    """It may pause while a duplicate runs elsewhere."""


@dataclass(frozen=True)
class Immovable(Relation):
    """It is never placed again."""


@dataclass(frozen=True)
class ProcessingTime(Measured):
    work: float
    max: float

    def item(self, node: NodeValues) -> Item:
        return Item(self.work / node.speed if node.speed else inf, self.max, False)


@dataclass(frozen=True)
class Memory(Measured):
    min: float
    kind: str = "ram"

    def item(self, node: NodeValues) -> Item:
        return Item(node.ram if self.kind == "ram" else node.stable, self.min, True)


@dataclass(frozen=True)
class Cpu(Measured):
    min: float

    def item(self, node: NodeValues) -> Item:
        return Item(node.cpu, self.min, True)


@dataclass(frozen=True)
class Reliability(Measured):
    min: float

    def item(self, node: NodeValues) -> Item:
        return Item(node.reliability, self.min, True)


@dataclass(frozen=True)
class Realtime(OfNode):
    level: str = "hard"

    def holds_on(self, node: NodeValues) -> bool:
        return node.realtime in LEVELS and LEVELS.index(node.realtime) >= LEVELS.index(self.level)


@dataclass(frozen=True)
class Security(OfNode):
    methods: tuple[str, ...]

    def holds_on(self, node: NodeValues) -> bool:
        return set(self.methods) <= set(node.security)


@dataclass(frozen=True)
class NetworkInterface(OfNode):
    anyOf: tuple[str, ...]

    def holds_on(self, node: NodeValues) -> bool:
        return not set(self.anyOf).isdisjoint(node.network)


@dataclass(frozen=True)
class Energy(OfNode):
    anyOf: tuple[str, ...]

    def holds_on(self, node: NodeValues) -> bool:
        return node.energy in self.anyOf


@dataclass(frozen=True)
class Mobility(OfNode):
    anyOf: tuple[str, ...]

    def holds_on(self, node: NodeValues) -> bool:
        return node.mobility in self.anyOf


@dataclass(frozen=True)
class Identity(OfNode):
    device: str

    def holds_on(self, node: NodeValues) -> bool:
        return self.device in (node.id, node.device)


class Link(OfPair):
    """A value of the link between two nodes against a limit; one that is unknown satisfies nothing."""

    operands: ClassVar[int | None] = 2

    @property
    @abstractmethod
    def value(self) -> str:
        """Of a link, that it measures."""

    @abstractmethod
    def required(self, value: float) -> Item: ...

    def link_item(self, network: Network, a: str, b: str) -> Item | None:
        value = network.link(self.value, a, b)
        return None if value is None else self.required(value)

    def partners(self, network: Network, node: str) -> set[str]:
        return network.known_from(self.value, node)

    def holds_between(self, network: Network, a: str, b: str) -> bool:
        item = self.link_item(network, a, b)
        return item is not None and item.holds


METRICS = {"delay": "latency", "hops": "hops"}


@dataclass(frozen=True)
class MinDistance(Link):
    min: float
    metric: str = "delay"

    @property
    def value(self) -> str:
        return METRICS[self.metric]

    def required(self, value: float) -> Item:
        return Item(value, self.min, True)


@dataclass(frozen=True)
class MaxDistance(Link):
    max: float
    metric: str = "delay"

    @property
    def value(self) -> str:
        return METRICS[self.metric]

    def required(self, value: float) -> Item:
        return Item(value, self.max, False)


@dataclass(frozen=True)
class MinBandwidth(Link):
    min: float

    value: ClassVar[str] = "bandwidth"

    def required(self, value: float) -> Item:
        return Item(value, self.min, True)


@dataclass(frozen=True)
class Collocation(OfPair):
    def holds_between(self, network: Network, a: str, b: str) -> bool:
        return _domain(network, a) == _domain(network, b)


@dataclass(frozen=True)
class Distinct(OfPair):
    def holds_between(self, network: Network, a: str, b: str) -> bool:
        return a != b


def _domain(network: Network, name: str) -> str:
    return network.node(name).domain or name


TYPES: dict[str, type[Relation]] = {
    "unique": Unique,
    "suspendable": Suspendable,
    "immovable": Immovable,
    "processingTime": ProcessingTime,
    "minDistance": MinDistance,
    "maxDistance": MaxDistance,
    "minBandwidth": MinBandwidth,
    "collocation": Collocation,
    "distinct": Distinct,
    "realtime": Realtime,
    "security": Security,
    "memory": Memory,
    "cpu": Cpu,
    "reliability": Reliability,
    "networkInterface": NetworkInterface,
    "energy": Energy,
    "mobility": Mobility,
    "identity": Identity,
}
CHOICES = {"metric": tuple(METRICS), "kind": ("ram", "stable"), "level": LEVELS}
