"""What Amit's operators do, an object each: which candidates they select, when they are decided again, what the compiled loop
calls them or why it has no place for them. How they are written stands in `lang/amit/operators.py`, under the same names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coincide.detection.situation.scope import Selection
from coincide.detection.situation.select import Decision
from coincide.lang.amit.definition import Operator

if TYPE_CHECKING:
    from coincide.detection.situation.program import SituationProgram


def _none(operator: Operator) -> Sequence[int]:
    return ()


def _every(operator: Operator) -> Sequence[int]:
    return range(len(operator.operands))


def _blocking(operator: Operator) -> Sequence[int]:
    return (1,) if operator.where is None else ()


@dataclass(frozen=True)
class Behaviour:
    """An operator decides of its candidates (`found`), or at instants (`next_tick`), or some time after events (`delays`)."""

    found: Callable[[Decision], list[Selection]] | None = None
    joins: bool = False  # is a selection one candidate of each operand?
    ordered: bool = False  # and must they come one after another?
    satisfied: Callable[[int, int], bool] | None = None  # by a total, given the quantity: the operator counts
    repeated: bool = True  # at the end of a lifespan, is it decided again until nothing is found?
    flags: Callable[[Operator], Sequence[int]] = _none  # operands of which it matters only whether there is a candidate
    next_tick: Callable[[SituationProgram, int], int | None] | None = None  # after this instant
    delays: bool = False
    of_nothing: bool = False  # is it detected at the end of a lifespan without candidates?
    kernel: str = ""  # its kind in kernel/layout.py
    without_kernel: str = ""  # why it has none

    @property
    def counts(self) -> bool:
        return self.satisfied is not None

    @property
    def ticks(self) -> bool:
        return self.next_tick is not None

    def keeps_reported(self, operator: Operator) -> bool:
        """Must selections be remembered between decisions? (Section 8: of joins never, each has a new event in it.)"""
        if self.satisfied is None or not self.repeated:
            return False
        if any(o.keeping is not None for o in operator.operands):
            return True
        always = operator.repeat == "always" and (operator.mode == "deferred" or operator.where is not None)
        return always and self.satisfied(0, operator.quantity)


def _interval_on(situation: SituationProgram, now: int) -> int:
    return now + situation.operator.interval


def _next_match(situation: SituationProgram, now: int) -> int | None:
    assert situation.pattern is not None
    return situation.pattern.after(now)


BEHAVIOURS: dict[str, Behaviour] = {
    "all": Behaviour(Decision.join, joins=True, kernel="ALL"),
    "sequence": Behaviour(Decision.join, joins=True, ordered=True, kernel="SEQUENCE"),
    "atleast": Behaviour(Decision.count, satisfied=lambda total, quantity: total >= quantity, kernel="ATLEAST"),
    "nth": Behaviour(Decision.count, satisfied=lambda total, quantity: total == quantity, kernel="NTH"),
    "atmost": Behaviour(
        Decision.count,
        satisfied=lambda total, quantity: total < quantity,  # decision 3
        repeated=False,
        kernel="ATMOST",
    ),
    "not": Behaviour(Decision.none, repeated=False, flags=_every, of_nothing=True, kernel="NOT"),
    "unless": Behaviour(Decision.unless, repeated=False, flags=_blocking, kernel="UNLESS"),
    "every": Behaviour(next_tick=_interval_on, kernel="TICKING"),
    "at": Behaviour(next_tick=_next_match, without_kernel="whose instants are those of a calendar"),
    "after": Behaviour(delays=True, kernel="PASSED"),
}
"""By the names of operators."""
