"""Which records an arriving candidate is tried in.

A join that is decided at once takes a candidate for every operand, and most records lack one. Each of these watches one operand
that it lacks, and is not looked at before a candidate of that operand comes; the others are ready. Lifespans that wait for a rare
event cost nothing while frequent ones arrive. Records of other operators are always in the list of the ready ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.columns.linked import append, take_out
from coincide.detection.columns.worlds import inner
from coincide.detection.situation.kernel import layout as at
from coincide.detection.situation.kernel.parts import op_at, stream_at


@inner
def activate(world: at.World, record: int) -> None:
    world.cells[world.records[record, at.RECORD.cell], at.CELL.waiting] += 1
    link(world, record)


@inner
def deactivate(world: at.World, record: int) -> None:
    """It is done or closed, and never looked at again."""
    world.cells[world.records[record, at.RECORD.cell], at.CELL.waiting] -= 1
    unlink(world, record)


@inner
def link(world: at.World, record: int) -> None:
    """To the list where it belongs, at the end."""
    s, cell = world.records[record, at.RECORD.situation], world.records[record, at.RECORD.cell]
    lacking = lacks(world, record, s, cell)
    world.records[record, at.RECORD.watching] = lacking
    if lacking < 0:
        append(world.records, at.RECORD.list_before, record, world.cells, cell, at.CELL.ready_first)
    else:
        first = stream_at(lacking) + at.STREAM.watched_first
        append(world.records, at.RECORD.list_before, record, world.cells, cell, first)


@inner
def lacks(world: at.World, record: int, s: int, cell: int) -> Any:
    """Of the operands without a candidate, the one that has come least often; -1: there is none, or nobody asks."""
    if world.situations[s, at.SITUATION.kind] > at.SEQUENCE or world.situations[s, at.SITUATION.mode] == at.DEFERRED:
        return -1
    least, fewest = -1, 0
    for operand in range(world.situations[s, at.SITUATION.operands]):
        filled = world.cells[cell, stream_at(operand) + at.STREAM.filled]
        if world.records[record, op_at(operand) + at.TAKEN.start] >= filled and (least < 0 or filled < fewest):
            least, fewest = operand, filled
    return least


@inner
def unlink(world: at.World, record: int) -> None:
    cell, watching = world.records[record, at.RECORD.cell], world.records[record, at.RECORD.watching]
    if watching < 0:
        take_out(world.records, at.RECORD.list_before, record, world.cells, cell, at.CELL.ready_first)
    else:
        first = stream_at(watching) + at.STREAM.watched_first
        take_out(world.records, at.RECORD.list_before, record, world.cells, cell, first)


@inner
def wake(world: at.World, s: int, cell: int, mask: int) -> None:
    """The records that watch an operand for which a candidate has come find another, or are ready."""
    for operand in range(world.situations[s, at.SITUATION.operands]):
        if (mask >> operand) & 1:
            place = stream_at(operand)
            record = world.cells[cell, place + at.STREAM.watched_first]
            world.cells[cell, place + at.STREAM.watched_first] = world.cells[cell, place + at.STREAM.watched_last] = -1
            while record >= 0:
                following = world.records[record, at.RECORD.list_after]
                link(world, record)
                record = following


@inner
def ready(world: at.World, s: int, cell: int) -> Any:
    """The first of the ready records, which stand in the order in which their lifespans opened. Those that have lost their
    last candidate of an operand leave the list here."""
    record, latest, ordered, several = world.cells[cell, at.CELL.ready_first], -1, True, 0
    while record >= 0:
        following = world.records[record, at.RECORD.list_after]
        if lacks(world, record, s, cell) >= 0:
            unlink(world, record)
            link(world, record)
        else:
            opened = world.spans[world.records[record, at.RECORD.span], at.SPAN.opened]
            ordered, latest, several = ordered and opened > latest, opened, several + 1
        record = following
    if not ordered:
        sort(world, cell, several)
    return world.cells[cell, at.CELL.ready_first]


@inner
def sort(world: at.World, cell: int, several: int) -> None:
    found, opened = np.empty(several, np.int64), np.empty(several, np.int64)
    record = world.cells[cell, at.CELL.ready_first]
    for number in range(several):
        found[number], opened[number] = record, world.spans[world.records[record, at.RECORD.span], at.SPAN.opened]
        record = world.records[record, at.RECORD.list_after]
    world.cells[cell, at.CELL.ready_first] = world.cells[cell, at.CELL.ready_last] = -1
    for number in np.argsort(opened):
        append(world.records, at.RECORD.list_before, found[number], world.cells, cell, at.CELL.ready_first)
