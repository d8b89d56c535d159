"""The places of ticks of `every`. Each is set by the one before it, so its place has theirs in it, as far as places tell."""

from __future__ import annotations

from coincide.detection.eventwise import Timer
from coincide.detection.situation.program import SituationProgram
from coincide.detection.situation.state import Lifespan
from coincide.model.event import LEVELS, Place, timer_place

MOST = 100_000
"""After so many ticks of a lifespan a state of the interpreter is left as it is: to find places anew would take too long."""
KEPT = 10_000
"""Of so many lifespans the last place is known."""


class Ticks:
    """Places of ticks. The last one of each lifespan is kept: from there it is one step to the next."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, Place, int], tuple[int, Place]] = {}

    def place(self, situation: SituationProgram, opened: Place, due: int, number: int) -> Place:
        """Of the tick at this instant, in a lifespan opened there; the first one was set as that number."""
        interval, key = situation.operator.interval, (situation.order, opened, number)
        again, later = situation.operator.repeat == "always", int(situation.operator.mode != "delayed")
        now, place = self._last.get(key, (opened[0], opened))
        if now > due:
            now, place = opened[0], opened
        while now < due:
            now += interval
            place = timer_place(now, place, situation.order, later if place is not opened else number, again)
        if len(self._last) >= KEPT:
            self._last.clear()
        self._last[key] = now, place
        return place


def first_number(place: Place) -> int:
    """As which number the first tick of those in a place was set."""
    setting, level = place[2], 0
    while setting[1] == 1 and level < LEVELS:
        setting, level = setting[2], level + 1
    number: int = setting[-2] if setting[1] == 0 else setting[2][-3]
    return number


def is_known(situation: SituationProgram, span: Lifespan, timer: Timer) -> bool:
    """Is the timer one of those whose places can be found anew?"""
    after, interval = timer.due - span.opened, situation.operator.interval
    if after <= 0 or after % interval or after > MOST * interval:
        return False
    return Ticks().place(situation, span.place, timer.due, first_number(timer.place)) == timer.place
