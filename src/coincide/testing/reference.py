"""Event by event, literally as conventions.md says: the oracle that the staged graph is held equal to.

Slow on purpose: a plan of its own for each detector, one event at a time, detections first in first out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from coincide.detection.base import Clock, DetectorPlan, State
from coincide.model.batch import EventBatch
from coincide.model.event import Event
from coincide.rulebook import Rulebook


def reference_run(rules: Rulebook, events: Sequence[Event]) -> list[Event]:
    """All detections of rules without timers, in the order in which they are made."""
    plans = [plan for d in rules.detectors for plan in rules.compiled.languages[d.language].plans([d])]
    states = [plan.initial() for plan in plans]
    made: list[Event] = []
    for number, event in enumerate(sorted(events, key=lambda e: e.origin)):
        made += _cascade(plans, states, event.placed(number))
    return made


def _cascade(plans: Sequence[DetectorPlan], states: list[State], event: Event) -> list[Event]:
    queue = deque([event])
    made: list[Event] = []
    while queue:
        shown = queue.popleft()
        for n, plan in enumerate(plans):
            if shown.is_detection and shown.type not in plan.inputs.detections:
                continue
            states[n], detections = plan.step(states[n], EventBatch([shown]), Clock(shown.hi))
            queue.extend(detections.events)
            made += detections.events
    return made
