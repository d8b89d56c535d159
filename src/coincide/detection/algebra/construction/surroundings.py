"""What holds inside an expression: policies, places and bounds, on the way down to the nodes that keep them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from coincide.lang.ecco.consumption import DEFAULT, chosen
from coincide.lang.ecco.definition import Expression, Place, Policy, Within, Wrapper
from coincide.lang.ecco.lasting import Names
from coincide.model.stamp import MILLISECOND


def microseconds(milliseconds: float) -> int:
    return round(milliseconds * MILLISECOND)


@dataclass(frozen=True)
class Surroundings:
    """What holds inside an expression: policies, places, and the bounds that the node inside the wrappers is to keep."""

    consumption: str = DEFAULT
    subset: bool = False
    precision: tuple[Policy, ...] = ()
    places: tuple[Place, ...] = ()
    within: tuple[float, ...] = ()
    whole: tuple[float, ...] = ()  # bounds of the chain that it is an operand of

    def under(self, policies: tuple[Policy, ...]) -> Surroundings:
        """An inner consumption overrides, an inner precision overrides that of the same aspect, `subset` adds up."""
        precise = tuple(p for p in policies if p.name == "precision")
        aspects = {p.aspect for p in precise}
        outer = tuple(p for p in self.precision if p.aspect not in aspects)
        return replace(
            self,
            consumption=chosen(policies, self.consumption),
            subset=self.subset or any(p.name == "subset" for p in policies),
            precision=(*outer, *precise),
        )

    @property
    def inside(self) -> Surroundings:
        """For operands: bounds end here."""
        return replace(self, within=(), whole=())

    @property
    def inside_chain(self) -> Surroundings:
        """For operands of a chain, which cannot be of use if they last longer than it may. `within 0` says that they meet."""
        return replace(self, within=(), whole=tuple(bound for bound in self.within if bound > 0))


def without_bounds(element: Expression, names: Names) -> tuple[Expression, tuple[float, ...]]:
    """An operand that cannot last, without the `within`s around it, which bound the time since what comes before (5.1)."""
    if not isinstance(element, Wrapper) or not names.cannot_last(element):
        return element, ()
    inner, bounds = without_bounds(element.operand, names)
    if isinstance(element, Within):
        return inner, (element.duration, *bounds)
    return (element if inner is element.operand else replace(element, operand=inner)), bounds
