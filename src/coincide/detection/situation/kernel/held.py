"""Detections that are held back until their lifespan ends (detectionMode `delayed`), in the compiled loop.

They are made as others are, and then moved from there; at the end they are made again, by what ends the lifespan."""

from __future__ import annotations

from typing import Any

from coincide.detection.columns.linked import grown, next_row, occupy
from coincide.detection.columns.worlds import inner
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.decide import report, select
from coincide.detection.situation.kernel.queues import link_held


@inner
def hold_back(world: at.World, s: int, first: int) -> None:
    """All that was made after the first so many."""
    made = world.counts[at.COUNT.made]
    for number in range(first, made):
        begin = world.made[number, at.MADE.chosen]
        end = world.made[number + 1, at.MADE.chosen] if number + 1 < made else world.counts[at.COUNT.selected]
        keep(world, world.made[number, at.MADE.span], s, world.made[number, at.MADE.cell], begin, end)
    if made > first:
        whose = world.keys[world.cells[world.made[first, at.MADE.cell], at.CELL.key], at.KEY.whose]
        world.counts[at.COUNT.selected] = world.made[first, at.MADE.chosen]
        world.counts[at.COUNT.made] = first
        world.counted[s + whose, at.COUNTED.detections] -= made - first


@inner
def keep(world: Any, span: int, s: int, cell: int, begin: int, end: int) -> None:
    if next_row(world.heads[at.OF.held]) == len(world.held):
        world.held = grown(world.held)
    row, event = occupy(world.held, world.heads[at.OF.held]), world.counts[at.COUNT.held_events]
    world.held[row, at.WAITING.span] = span
    world.held[row, at.WAITING.situation] = s
    world.held[row, at.WAITING.cell] = cell
    world.held[row, at.WAITING.first] = event
    for number in range(begin, end):
        if event == len(world.held_events):
            world.held_events = grown(world.held_events)
        world.held_events[event, 0] = world.selected[number, 0]
        world.held_events[event, 1] = world.selected[number, 1]
        event += 1
    world.held[row, at.WAITING.last] = event
    world.counts[at.COUNT.held_events] = event
    link_held(world, row)


@inner
def let_go(world: at.World, s: int, span: int) -> None:
    """At the end of the lifespan, in the order in which they were made."""
    row = world.spans[span, at.SPAN.held_first]
    while row >= 0:
        if world.held[row, at.WAITING.situation] == s:
            report(world, s, span, world.held[row, at.WAITING.cell])
            for number in range(world.held[row, at.WAITING.first], world.held[row, at.WAITING.last]):
                select(world, world.held_events[number, 0], world.held_events[number, 1])
        row = world.held[row, at.WAITING.after]
