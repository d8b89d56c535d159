"""Decisions in the compiled loop: `detect` of section 4, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.detection.situation.kernel_compiled import compiled
from coincide.detection.situation.kernel_layout import (
    ATLEAST,
    ATMOST,
    BY_TIMER,
    CAUSE,
    CAUSE_NUMBER,
    CAUSE_REF,
    CAUSED_BY,
    CELL,
    CHOSEN,
    CLOCK,
    DETECTIONS,
    DONE,
    ENDED_BY,
    FILLED,
    FIRST_OPERAND,
    FOUND,
    FROM,
    INITIATOR,
    KIND,
    MADE,
    NOT,
    NOW,
    OF_CELL,
    OF_INITIATOR,
    OF_SITUATION,
    OF_TERMINATOR,
    ONCE,
    OPENED,
    OPENED_BY,
    OPERANDS,
    OPS,
    PER_OP,
    QUANTITY,
    SELECTED,
    SEQUENCE,
    SITUATION,
    SPAN,
    START,
    STREAM_BASE,
    TERMINATOR,
    TIMER,
    WEIGHT,
)
from coincide.detection.situation.kernel_pick import consume, pick
from coincide.detection.situation.kernel_spans import deactivate


@compiled
def decide(
    world: Any, records: Any, pool: Any, made: Any, selected: Any, found: Any, scratch: Any, record: Any, mask: Any
) -> Any:
    """`detect` of section 4. A mask says which operands the arriving event has entered; none: a deferred decision."""
    if records[record, DONE]:
        return pool, made, selected, found, False
    s = records[record, SITUATION]
    first, cell = world.situations[s, FIRST_OPERAND], records[record, CELL]
    operands = world.situations[s, OPERANDS]
    if world.situations[s, KIND] <= SEQUENCE:
        for operand in range(operands):
            filled = world.streams[world.operands[first + operand, STREAM_BASE] + cell, FILLED]
            if records[record, OPS + PER_OP * operand + START] >= filled:
                return pool, made, selected, found, False
        found = pick(world, records, pool, found, scratch, record, mask, world.counts[CAUSED_BY])
        several = world.counts[FOUND]
        if several and world.situations[s, ONCE]:
            several = 1
        for number in range(several):
            made = report(world.counts, world.spans, world.situations, records, made, record)
            for operand in range(operands):
                stream = world.streams[world.operands[first + operand, STREAM_BASE] + cell, FROM]
                selected = select(world.counts, selected, operand, world.stream[stream + found[number, operand]])
        pool = consume(world, records, pool, found, record, s, first, operands, several)
    else:
        total, several = np.int64(0), 1
        for operand in range(operands):
            length = (
                world.streams[world.operands[first + operand, STREAM_BASE] + cell, FILLED]
                - records[record, OPS + PER_OP * operand + START]
            )
            total += length if world.situations[s, KIND] == NOT else world.operands[first + operand, WEIGHT] * length
        if not satisfied(world.situations[s, KIND], total, world.situations[s, QUANTITY]):
            return pool, made, selected, found, False
        made = report(world.counts, world.spans, world.situations, records, made, record)
        for operand in range(operands if world.situations[s, KIND] != NOT else 0):
            stream = world.operands[first + operand, STREAM_BASE] + cell
            column = OPS + PER_OP * operand + START
            for position in range(records[record, column], world.streams[stream, FILLED]):
                selected = select(world.counts, selected, operand, world.stream[world.streams[stream, FROM] + position])
            records[record, column] = world.streams[stream, FILLED]
    if several and world.situations[s, ONCE]:
        records[record, DONE] = 1
        if mask:
            deactivate(world, records, record)
    return pool, made, selected, found, several > 0


@compiled
def satisfied(kind: Any, total: Any, quantity: Any) -> Any:
    if kind == ATLEAST:
        return total >= quantity
    if kind == ATMOST:
        return total < quantity
    return total == (0 if kind == NOT else quantity)


@compiled
def report(counts: Any, spans: Any, situations: Any, records: Any, made: Any, record: Any) -> Any:
    number, span = counts[MADE], records[record, SPAN]
    if number == len(made):
        more = np.empty((2 * number, made.shape[1]), np.int64)
        more[:number] = made
        made = more
    made[number, BY_TIMER] = counts[TIMER]
    made[number, CAUSE_NUMBER] = counts[CAUSE]
    made[number, CAUSE_REF] = counts[CAUSED_BY]
    made[number, NOW] = counts[CLOCK]
    made[number, OF_SITUATION] = records[record, SITUATION]
    made[number, OF_CELL] = records[record, CELL]
    made[number, OPENED_BY] = spans[span, OPENED]
    made[number, OF_INITIATOR] = spans[span, INITIATOR]
    made[number, OF_TERMINATOR] = spans[span, TERMINATOR]
    made[number, ENDED_BY] = counts[CAUSED_BY] if spans[span, TERMINATOR] >= 0 else -1
    made[number, CHOSEN] = counts[SELECTED]
    counts[MADE] += 1
    situations[records[record, SITUATION], DETECTIONS] += 1
    return made


@compiled
def select(counts: Any, selected: Any, operand: Any, ref: Any) -> Any:
    number = counts[SELECTED]
    if number == len(selected):
        more = np.empty((2 * number, 2), np.int64)
        more[:number] = selected
        selected = more
    selected[number, 0] = operand
    selected[number, 1] = ref
    counts[SELECTED] += 1
    return selected
