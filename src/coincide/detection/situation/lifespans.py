"""Lifespans by themselves: what opens and what closes them (section 4: `terminate`, `initiate`, `open`)."""

from __future__ import annotations

from dataclasses import dataclass

from coincide.detection.eventwise import Cause
from coincide.detection.situation.program import Condition, LifespanProgram
from coincide.detection.situation.scope import Ending
from coincide.detection.situation.state import Expire, Key, Lifespan, SituationState, fresh_content
from coincide.model.event import Event


@dataclass(slots=True)
class Closed:
    """A lifespan that is being closed, and how."""

    lifespan: Lifespan
    termination: str
    ending: Ending


class Lifespans:
    """The open lifespans of a state."""

    def __init__(self, state: SituationState) -> None:
        self.state = state

    def terminate(self, lifespan: LifespanProgram, event: Event) -> list[Closed]:
        key = lifespan.key(event)
        spans = None if key is None else self.state.open[lifespan.number].get(key)
        if not spans or key is None:
            return []
        counter = self.state.lifespans[lifespan.number]
        terms = [t for t in lifespan.terminators_on(event.type) if holds(t[3], event, counter)]
        closed: list[Closed] = []
        for span in list(spans):
            for number, quantifier, termination, _ in terms:
                if quantifier.covers(span, spans):
                    closed.append(Closed(span, termination, Ending(number, event)))
                    break
        for ended in closed:
            self.close(ended.lifespan)
        return closed

    def initiate(self, lifespan: LifespanProgram, event: Event, cause: Cause, recurring: bool) -> Lifespan | None:
        """One event opens at most one lifespan of a definition. One that expires now does not stop `ignore` (decision 35)."""
        initiators = lifespan.initiators_on(event.type)
        key = lifespan.key(event) if initiators else None
        if key is None:
            return None
        counter = self.state.lifespans[lifespan.number]
        for number, correlate, where in initiators:
            if holds(where, event, counter):
                spans = self.state.open[lifespan.number].get(key, ())
                if correlate == "add" or not any(span.due is None or span.due > cause.now for span in spans):
                    return self.open(lifespan, key, cause, number, event, recurring)
        return None

    def open(
        self,
        lifespan: LifespanProgram,
        key: Key,
        cause: Cause,
        initiator: int | None = None,
        event: Event | None = None,
        recurring: bool = False,
    ) -> Lifespan:
        span = Lifespan(lifespan.number, key, cause.place, cause.now, initiator=initiator, event=event)
        for situation in lifespan.situations:
            span.contents[situation.number] = fresh_content(situation)
        self.state.open[lifespan.number].setdefault(key, []).append(span)
        self.state.lifespans[lifespan.number]["initiated"] += 1
        expiration = lifespan.definition.expiration
        if expiration is not None:
            span.due = cause.now + expiration.interval
            span.expiration = cause.set_timer(lifespan.order, span.due, Expire(span), recurring)
        return span

    def close(self, span: Lifespan) -> None:
        """Remove a lifespan and cancel its timers."""
        spans = self.state.open[span.definition][span.key]
        spans.remove(span)
        if not spans:
            del self.state.open[span.definition][span.key]
        for timer in span.timers():
            timer.cancelled = True
        self.state.lifespans[span.definition]["terminated"] += 1


def holds(condition: Condition, event: Event, counter: dict[str, int]) -> bool:
    if condition.constant is not None:
        return condition.constant
    counter["conditions"] += 1
    counter["accesses"] += condition.cost
    assert condition.holds is not None
    return condition.holds(event)
