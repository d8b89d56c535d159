"""Plans of one form, stepped as one: for as long as nobody is told of changes to what each of them remembers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from coincide.detection.base import DetectorPlan, PlanFamily

SEVERAL = 8
"""Plans of fewer definitions are stepped one by one."""


@dataclass(frozen=True)
class Group:
    """Some of a graph's plans, by their numbers there. The first one stands for all."""

    numbers: tuple[int, ...]
    plans: tuple[DetectorPlan, ...]

    @cached_property
    def family(self) -> PlanFamily:
        plan: Any = self.plans[0]
        found: PlanFamily = plan.together(self.plans)
        return found


class Groups:
    """All groups of a graph, by the numbers of their first plans."""

    def __init__(self, plans: Sequence[tuple[int, DetectorPlan]]) -> None:
        """Of numbered plans which no other one feeds."""
        forms: dict[object, list[tuple[int, DetectorPlan]]] = {}
        for number, plan in plans if _several(plans) else ():
            if (form := plan.form) is not None:
                forms.setdefault((type(plan), form), []).append((number, plan))
        found = [Group(*zip(*members, strict=True)) for members in forms.values() if _several(members)]
        self.by_first = {group.numbers[0]: group for group in found}
        self._first = {number: group.numbers[0] for group in found for number in group.numbers}

    def firsts(self, numbers: Iterable[int]) -> set[int]:
        """Those that are not in a group, and of each group the first one."""
        return {self._first.get(number, number) for number in numbers}


def _several(plans: Sequence[tuple[int, DetectorPlan]]) -> bool:
    return len(plans) > 1 and sum(len(plan.definitions) for _, plan in plans) >= SEVERAL
