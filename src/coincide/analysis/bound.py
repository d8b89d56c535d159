"""How much a monitor can come to remember: what `explain` tells."""

from __future__ import annotations

from dataclasses import dataclass

from coincide.analysis.monitor import Definition, MonitorAnalysis
from coincide.detection.machine.literal import LiteralTransducer
from coincide.lang.ecl.definition import Correlation, Loop, Monitor, Persist, Predicate, Repeat


@dataclass(frozen=True)
class Bound:
    """`states`: of the minimal machine, None beyond the limit; then a configuration has a bit for each of `places`, the
    states of its correlation machine. `forgotten`: can the start be reached again from everywhere, so that keys that are
    at rest need not be kept? None: not known."""

    states: int | None
    places: int
    keys: tuple[str, ...]
    forgotten: bool | None

    @property
    def text(self) -> str:
        kept = f"at most {self.places} bits" if self.states is None else f"one of {self.states} state{'s' * (self.states != 1)}"
        if not self.keys:
            return kept
        per_key = f"{kept} for each value of {', '.join(self.keys)}"
        return f"{per_key}, {KEPT[self.forgotten]}"


KEPT = {
    True: "dropped when it is back at the start",
    False: "some of them kept for ever",
    None: "dropped if it is back at the start",
}


def memory_bound(definition: Definition) -> Bound:
    analysis = MonitorAnalysis(definition)
    if analysis.limited:
        return Bound(None, places(definition), definition.keys, None)
    return Bound(analysis.minimal.states, places(definition), definition.keys, analysis.forgets)


def places(definition: Definition) -> int:
    """The number of states of the correlation machine (section 3)."""
    return _expression(definition.body) if isinstance(definition, Monitor) else len(LiteralTransducer(definition).states)


def _expression(expression: Correlation) -> int:
    """Three of a predicate, two more of each composite; a maximum multiplies those of its body."""
    if isinstance(expression, Predicate):
        return 3
    inside = sum(_expression(part) for part in expression.parts_in_order)
    if isinstance(expression, Persist | Repeat | Loop):
        inside *= expression.maximum or 1
    return inside + 2
