"""What crosses the links of a network: each stream goes along the shortest ways to all who hear it, over a link once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from coincide.distribution.brokers import Routes
from coincide.distribution.planning import Installation, Plan

Stream = tuple[str, str]
"""The name of what is published, and where."""
Crossing = tuple[str, str]
"""A link, and which way."""


@dataclass
class Flows:
    routes: Routes
    heard: dict[Stream, set[str]] = field(default_factory=dict)
    rates: dict[Stream, float] = field(default_factory=dict)

    def add(self, name: str, made_at: str, rate: float, heard_at: str) -> float:
        """A stream that is heard somewhere: how long it takes to get there, in ms."""
        self.heard.setdefault((name, made_at), set()).add(heard_at)
        self.rates[name, made_at] = rate
        return self.routes.dist(made_at, heard_at)

    def crossings(self) -> dict[Crossing, dict[str, float]]:
        """Events a second over each link, by the names of streams."""
        found: dict[Crossing, dict[str, float]] = {}
        for stream, nodes in self.heard.items():
            for link in {link for node in nodes for link in self._way(stream[1], node)}:
                over = found.setdefault(link, {})
                over[stream[0]] = over.get(stream[0], 0.0) + self.rates[stream]
        return found

    def _way(self, a: str, b: str) -> Iterator[Crossing]:
        return pairwise(self.routes.route(a, b).nodes)


def flows(installation: Installation, plan: Plan | None = None, subscriber: str | None = None) -> Flows:
    """What goes to the detectors that run, and, of a plan, to its subscriber."""
    found = Flows(installation.routes)
    for name, body in installation.bodies.items():
        for kind in installation.types_heard(body):
            for made_at, rate in installation.made(kind):
                found.add(kind, made_at, rate, installation.places[name])
    if plan is not None and subscriber is not None:
        for name in plan.subscribe:
            found.add(name, installation.places[name], installation.rate_of_type(name), subscriber)
    return found
