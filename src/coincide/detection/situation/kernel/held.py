"""Detections that are held back until their lifespan ends (detectionMode `delayed`), in the compiled loop.

They are made as others are, and then moved from there; at the end they are made again, by what ends the lifespan."""

from __future__ import annotations

from typing import Any

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import inner
from coincide.detection.situation.kernel.decide import report, select
from coincide.detection.situation.kernel.lists import append, grown


@inner
def hold_back(world: Any, s: Any, first: Any) -> Any:
    """All that was made after the first so many."""
    made = world.counts[at.MADE]
    for number in range(first, made):
        begin = world.made[number, at.CHOSEN]
        end = world.made[number + 1, at.CHOSEN] if number + 1 < made else world.counts[at.SELECTED]
        keep(world, world.made[number, at.OF_SPAN_NUMBER], s, world.made[number, at.OF_CELL], begin, end)
    if made > first:
        world.counts[at.SELECTED] = world.made[first, at.CHOSEN]
        world.counts[at.MADE] = first
        world.situations[s, at.DETECTIONS] -= made - first


@inner
def keep(world: Any, span: Any, s: Any, cell: Any, begin: Any, end: Any) -> Any:
    row, event = world.counts[at.HELD_COUNT], world.counts[at.HELD_EVENTS]
    if row == len(world.held):
        world.held = grown(world.held)
    world.held[row, at.HELD_SPAN] = span
    world.held[row, at.HELD_SITUATION] = s
    world.held[row, at.HELD_CELL] = cell
    world.held[row, at.HELD_FROM] = event
    for number in range(begin, end):
        if event == len(world.held_events):
            world.held_events = grown(world.held_events)
        world.held_events[event, 0] = world.selected[number, 0]
        world.held_events[event, 1] = world.selected[number, 1]
        event += 1
    world.held[row, at.HELD_TO] = event
    world.counts[at.HELD_COUNT], world.counts[at.HELD_EVENTS] = row + 1, event
    append(world.held, at.HELD_BEFORE, row, world.spans, span, at.HELD_FIRST)


@inner
def let_go(world: Any, s: Any, span: Any) -> Any:
    """At the end of the lifespan, in the order in which they were made."""
    row = world.spans[span, at.HELD_FIRST]
    while row >= 0:
        if world.held[row, at.HELD_SITUATION] == s:
            report(world, s, span, world.held[row, at.HELD_CELL])
            for number in range(world.held[row, at.HELD_FROM], world.held[row, at.HELD_TO]):
                select(world, world.held_events[number, 0], world.held_events[number, 1])
        row = world.held[row, at.HELD_AFTER]
