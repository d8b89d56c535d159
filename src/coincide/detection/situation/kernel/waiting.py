"""Which records an arriving candidate is tried in.

A join that is decided at once takes a candidate for every operand, and most records lack one. Each of these watches one operand
that it lacks, and is not looked at before a candidate of that operand comes; the others are ready. Lifespans that wait for a rare
event cost nothing while frequent ones arrive. Records of other operators are always in the list of the ready ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.compiled import inner
from coincide.detection.situation.kernel.lists import append, take_out


@inner
def activate(world: Any, record: Any) -> Any:
    world.cells[place_of(world, record), at.WAITING] += 1
    link(world, record)


@inner
def deactivate(world: Any, record: Any) -> Any:
    """It is done or closed, and never looked at again."""
    world.cells[place_of(world, record), at.WAITING] -= 1
    unlink(world, record)


@inner
def place_of(world: Any, record: Any) -> Any:
    return world.situations[world.records[record, at.SITUATION], at.CELL_BASE] + world.records[record, at.CELL]


@inner
def link(world: Any, record: Any) -> Any:
    """To the list where it belongs, at the end."""
    s, cell = world.records[record, at.SITUATION], world.records[record, at.CELL]
    lacking = lacks(world, record, s, cell)
    world.records[record, at.WATCHING] = lacking
    if lacking < 0:
        append(world.records, at.LIST_BEFORE, record, world.cells, place_of(world, record), at.READY_FIRST)
    else:
        place = world.operands[world.situations[s, at.FIRST_OPERAND] + lacking, at.STREAM_BASE] + cell
        append(world.records, at.LIST_BEFORE, record, world.streams, place, at.WATCHED_FIRST)


@inner
def lacks(world: Any, record: Any, s: Any, cell: Any) -> Any:
    """Of the operands without a candidate, the one that has come least often; -1: there is none, or nobody asks."""
    if world.situations[s, at.KIND] > at.SEQUENCE or world.situations[s, at.MODE] == at.DEFERRED:
        return -1
    first, least, fewest = world.situations[s, at.FIRST_OPERAND], -1, 0
    for operand in range(world.situations[s, at.OPERANDS]):
        filled = world.streams[world.operands[first + operand, at.STREAM_BASE] + cell, at.FILLED]
        if world.records[record, at.OPS + at.PER_OP * operand + at.START] >= filled and (least < 0 or filled < fewest):
            least, fewest = operand, filled
    return least


@inner
def unlink(world: Any, record: Any) -> Any:
    s, cell, watching = world.records[record, at.SITUATION], world.records[record, at.CELL], world.records[record, at.WATCHING]
    if watching < 0:
        take_out(world.records, at.LIST_BEFORE, record, world.cells, place_of(world, record), at.READY_FIRST)
    else:
        place = world.operands[world.situations[s, at.FIRST_OPERAND] + watching, at.STREAM_BASE] + cell
        take_out(world.records, at.LIST_BEFORE, record, world.streams, place, at.WATCHED_FIRST)


@inner
def wake(world: Any, s: Any, cell: Any, mask: Any) -> Any:
    """The records that watch an operand for which a candidate has come find another, or are ready."""
    first = world.situations[s, at.FIRST_OPERAND]
    for operand in range(world.situations[s, at.OPERANDS]):
        if (mask >> operand) & 1:
            place = world.operands[first + operand, at.STREAM_BASE] + cell
            record = world.streams[place, at.WATCHED_FIRST]
            world.streams[place, at.WATCHED_FIRST] = world.streams[place, at.WATCHED_LAST] = -1
            while record >= 0:
                following = world.records[record, at.LIST_AFTER]
                link(world, record)
                record = following


@inner
def ready(world: Any, s: Any, cell: Any) -> Any:
    """The first of the ready records, which stand in the order in which their lifespans opened. Those that have lost their
    last candidate of an operand leave the list here."""
    place = world.situations[s, at.CELL_BASE] + cell
    record, latest, ordered, several = world.cells[place, at.READY_FIRST], -1, True, 0
    while record >= 0:
        following = world.records[record, at.LIST_AFTER]
        if lacks(world, record, s, cell) >= 0:
            unlink(world, record)
            link(world, record)
        else:
            opened = world.spans[world.records[record, at.SPAN], at.OPENED]
            ordered, latest, several = ordered and opened > latest, opened, several + 1
        record = following
    if not ordered:
        sort(world, place, several)
    return world.cells[place, at.READY_FIRST]


@inner
def sort(world: Any, place: Any, several: Any) -> Any:
    found, opened = np.empty(several, np.int64), np.empty(several, np.int64)
    record = world.cells[place, at.READY_FIRST]
    for number in range(several):
        found[number], opened[number] = record, world.spans[world.records[record, at.SPAN], at.OPENED]
        record = world.records[record, at.LIST_AFTER]
    world.cells[place, at.READY_FIRST] = world.cells[place, at.READY_LAST] = -1
    for number in np.argsort(opened):
        append(world.records, at.LIST_BEFORE, found[number], world.cells, place, at.READY_FIRST)
