"""A second algorithm of placement, that shows the seam: of all assignments that satisfy the restrictions, the one whose least
weight is greatest, and among those the one with the greatest sum; by branch and bound."""

from __future__ import annotations

from dataclasses import dataclass, field

from coincide.distribution.placement import Placement, Setting, fits, fixed_places, heuristic
from coincide.distribution.restrictions import RestrictionGraph

Score = tuple[float, float]


def exact(graph: RestrictionGraph, setting: Setting) -> Placement:
    """Bids and domains are those of the heuristic: only the search differs. Where that finds nothing, there is nothing."""
    placement = heuristic(graph, setting)
    if placement.assignment is None:
        return placement
    order = [name for level in placement.levels[1:] for name in level]
    best = _Search(graph, setting, placement, order).run()
    placement.assignment = {name: best[name] for name in graph.names}
    placement.backsteps = 0
    return placement


def score(placement: Placement, assignment: dict[str, str]) -> Score:
    weights = [dict(placement.domains[name])[node] for name, node in assignment.items() if name in placement.domains]
    return (min(weights, default=0.0), sum(weights))


@dataclass
class _Search:
    graph: RestrictionGraph
    setting: Setting
    placement: Placement
    order: list[str]
    best: dict[str, str] = field(default_factory=dict)
    best_score: Score = (float("-inf"), float("-inf"))

    def run(self) -> dict[str, str]:
        fixed = fixed_places(self.graph, self.placement.reused)
        # Of those not placed yet, nobody can do better than the first of its domain.
        tops = [self.placement.domains[name][0][1] for name in self.order]
        self._rest = [(min(tops[n:], default=float("inf")), sum(tops[n:])) for n in range(len(tops) + 1)]
        self._place(0, dict(fixed), (float("inf"), 0.0))
        return self.best

    def _place(self, number: int, places: dict[str, str], so_far: Score) -> None:
        least, total = self._rest[number]
        if (min(so_far[0], least), so_far[1] + total) <= self.best_score:
            return
        if number == len(self.order):
            self.best, self.best_score = dict(places), so_far
            return
        name = self.order[number]
        for node, weight in self.placement.domains[name]:
            self.placement.tried += 1
            if fits(self.graph, self.setting.network, name, node, places):
                places[name] = node
                self._place(number + 1, places, (min(so_far[0], weight), so_far[1] + weight))
                del places[name]
