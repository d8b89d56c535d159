"""What the tables of a definition have to be, whoever reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coincide.detection.algebra.layout import OPERATORS, REGISTERS, SEQUENCE_KIND, WINDOW_KIND, WINDOWS
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.shape.shapes import (
    BOTH,
    EITHER,
    LEAF,
    NEVER,
    PASSING,
    SEQUENT,
    TIMED,
    Operators,
    Window,
    stores_of,
)
from coincide.detection.columns import codec
from coincide.detection.columns.codec import Relations, Rows, decode
from coincide.detection.columns.tables import Numbers
from coincide.detection.keys import Key
from coincide.detection.snapshots import damaged
from coincide.model.bounds import FURTHEST


def keys_of(rows: Rows, size: int) -> list[Key]:
    keys = codec.keys_of(rows, size)
    if len(rows) != rows.size or any(None in key for key in keys):
        damaged("its keys are not numbered one after another")
    return keys


def turns(waiting: Numbers) -> Numbers:
    """Of occurrences that wait (with slot and store), list by list as they stand. Numbers of those that have begun to wait at one
    instant need not ascend; those of later ones are greater. So the smallest number is the turn of the first."""
    changes = (waiting[1:, 1:] != waiting[:-1, 1:]).any(axis=1)
    lists = np.concatenate((np.zeros(min(1, len(waiting)), np.int64), np.cumsum(changes)))
    ordered: Numbers = waiting[np.lexsort((waiting[:, 0], lists)), 0]
    return ordered


def read(program: Program, shape: Operators | Window, base: bytes, later: Sequence[bytes]) -> Relations:
    """Tables of this definition. References have been checked; here, that they mean what they should. Raises ValueError."""
    if isinstance(shape, Operators):
        relations = decode((*OPERATORS, REGISTERS) if shape.registers else OPERATORS, SEQUENCE_KIND, base, *later)
        keys_of(relations.rows["keys"], len(program.keys) + len(shape.tied))
        _check_occurrences(shape, relations)
        if shape.registers:
            _check_registers(shape, relations.rows["registers"].columns)
    else:
        relations = decode(WINDOWS, WINDOW_KIND, base, *later)
        keys_of(relations.rows["keys"], len(program.keys))
        _check_windows(program, shape, relations)
    return relations


def _check(good: Any, what: str) -> None:
    if not np.all(good):
        damaged(what)


def _check_types(relations: Relations, events: Numbers, wanted: set[str]) -> None:
    if len(events):
        types = relations.events.column("type")
        known = np.array([text in wanted for text in types.texts] + [False])
        rows = np.searchsorted(relations.refs, events)
        _check(types.codes is not None and known[types.codes[rows]], "an event is of another type")


# Operators.


def makers(shape: Operators, number: int) -> list[int]:
    """The operators that make what comes out of one."""
    operator = shape.operators[number]
    if operator.kind == EITHER:
        return [maker for side in (operator.left, operator.right) if side >= 0 for maker in makers(shape, side)]
    return makers(shape, operator.left) if operator.kind in PASSING else [number]


def _check_occurrences(shape: Operators, relations: Relations) -> None:
    """Operands come from where they should: so nothing is made of itself, and nothing is deeper than the expression."""
    rows, waiting = relations.rows["occurrences"], relations.rows["waiting"].columns
    own = rows.columns
    makes = [operator.kind in (LEAF, SEQUENT, BOTH, *TIMED) for operator in shape.operators]
    _check((own["operator"] >= 0) & (own["operator"] < len(makes)), "an occurrence is of no operator")
    for number, operator in enumerate(shape.operators):
        mine = own["operator"] == number
        left, right, event = (own[name][mine] for name in ("left", "right", "event"))
        _check(makes[number] or not mine.any(), "an occurrence is of no operator")
        if operator.kind == LEAF:
            _check((left < 0) & (right < 0) & (event >= 0), "an occurrence has no event")
            _check_types(relations, event, {shape.leaves[operator.leaf].type})
        elif makes[number]:
            alone = operator.kind in TIMED
            _check((left >= 0) & ((right < 0) == alone) & (event < 0), "an occurrence has no operands")
            for side, operands in ((operator.left, left), *([] if alone else [(operator.right, right)])):
                _check_makers(shape, rows, side, operands)
    stores = {store: side for operator in shape.operators for store, side in stores_of(operator).items()}
    _check(np.isin(waiting["store"], list(stores)), "an occurrence waits for nothing")
    for store, side in stores.items():
        _check_makers(shape, rows, side, waiting["occurrence"][waiting["store"] == store])
    _check(len(np.unique(waiting["occurrence"])) == len(waiting["occurrence"]), "an occurrence waits twice")


def _check_makers(shape: Operators, rows: Rows, number: int, some: Numbers) -> None:
    found = rows.columns["operator"][np.searchsorted(rows.numbers, some)]
    _check(np.isin(found, makers(shape, number)), "an occurrence is of another operator")


def _check_registers(shape: Operators, registers: Mapping[str, Numbers]) -> None:
    key, register, value = (registers[name] for name in ("key", "register", "value"))
    _check((register >= 0) & (register < shape.registers), "it keeps a number for nothing")
    _check(len(np.unique(key * shape.registers + register)) == len(key), "it keeps a number twice")
    _check(((value >= -FURTHEST) & (value <= FURTHEST)) | (value == NEVER), "an instant is out of range")


# Windows.


def _check_windows(program: Program, shape: Window, relations: Relations) -> None:
    windows, observed = shape.node.windows, relations.rows["observed"].columns
    following = relations.notes.get("next")
    if following is None or len(following) > 1:
        damaged("it does not tell which window is next")
    event = relations.rows["members"].columns["event"]
    hi = relations.events.hi[np.searchsorted(relations.refs, event)]
    _check((np.diff(hi) >= 0) & (np.diff(event) > 0), "members of windows do not stand in order")
    _check(len(following) or not (len(event) or len(observed["key"])), "nothing waits for a window")
    furthest = (FURTHEST - abs(windows.offset) - windows.length) // windows.step
    _check(np.abs(np.concatenate((following, observed["window"]))) <= furthest, "a window is out of range")
    _check(np.abs(observed["since"]) <= FURTHEST, "an instant is out of range")
    if not shape.node.aggregator.fills_empty_windows:
        _check(len(observed["key"]) == 0, "a window is observed that makes nothing")
    elif not program.keys:
        _check(len(np.unique(observed["since"])) == len(following), "a window is not observed")
    _check_types(relations, event, {leaf.type for leaf in shape.leaves})
