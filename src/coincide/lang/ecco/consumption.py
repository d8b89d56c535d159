"""ECCO's consumption policies (ECCO-27), an object each: its name, and when an iteration under it piles up elements. What they do
stands in `detection/algebra/consumption.py`, under the same names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coincide.lang.ecco.definition import Iter, Policy, Ref, core


@dataclass(frozen=True)
class Consumption:
    name: str
    piles_up: Callable[[Iter], bool] = lambda node: node.by is not None  # one value may come again and again
    longest: bool = False  # does an iteration take the longest run?


def _unless_bounded_events(node: Iter) -> bool:
    """Elements that no run can have any more go, where they cannot keep out others that share an event with them."""
    return node.by is not None or node.most is None or not isinstance(core(node.operand), Ref)


DEFAULT = "unrestricted"
CONSUMPTIONS: dict[str, Consumption] = {
    consumption.name: consumption
    for consumption in (
        Consumption(DEFAULT, _unless_bounded_events, longest=True),
        Consumption("recent"),
        Consumption("chronicle", lambda node: False),
        Consumption("continuous"),
        Consumption("cumulative", lambda node: node.by is not None or node.most is None, longest=True),
    )
}
"""All of them, by name."""


def chosen(policies: tuple[Policy, ...], outer: str = DEFAULT) -> str:
    """An inner policy overrides an outer one."""
    return next((p.name for p in reversed(policies) if p.name in CONSUMPTIONS), outer)
