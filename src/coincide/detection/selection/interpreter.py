"""Rules and correlations, event by event."""

from __future__ import annotations

from coincide.detection.base import Clock
from coincide.detection.selection.correlating import Happened
from coincide.detection.selection.matching import matcher
from coincide.detection.selection.program import Program
from coincide.detection.selection.state import SelectionState
from coincide.model.batch import EventBatch
from coincide.model.event import Event


class Interpreter:
    """Steps a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._matchers = [(rule, matcher(rule.rule)) for rule in program.simple]

    def step(self, state: SelectionState, batch: EventBatch, clock: Clock) -> tuple[SelectionState, EventBatch]:
        made: list[Event] = []
        for event in batch.events:
            matched = {rule.name for rule, holds in self._matchers if holds(event)}
            if matched:
                made += [rule.detection(event) for rule in self.program.simple if rule.order is not None and rule.name in matched]
                correlate(self.program, state, event, matched, made)
        made.sort(key=lambda event: event.place)
        return state, EventBatch(made)


def correlate(program: Program, state: SelectionState, event: Event, matched: set[str], made: list[Event]) -> None:
    """Inner correlations see an event before outer ones."""
    happened = Happened()
    for correlation, groups in zip(program.correlations, state.groups, strict=True):
        correlation.show(groups, event, matched, happened, made)
