"""The state of the compiled loop as relations that are written (columns/codec.py), and from them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coincide.detection.algebra.kernel.rows import Numbers
from coincide.detection.algebra.layout import KEYS, OCCURRENCES, REGISTERS, SEQUENCE_KIND, WAITING
from coincide.detection.algebra.relations import keys_of, turns
from coincide.detection.algebra.sequence import pools
from coincide.detection.algebra.sequence.pools import OCCURRENCE, UNSET, mark_parts, tell_removed, tell_waiting
from coincide.detection.algebra.sequence.sequences import Memory, SequenceKernel
from coincide.detection.algebra.shape.shapes import AFTER, LEAF, TIMED, Operator
from coincide.detection.columns.codec import Relations, Rows, compact
from coincide.detection.columns.store import spread


def relations(kernel: SequenceKernel, memory: Memory, since_last: bool = False) -> Relations:
    """All there is, which what `changes` tells next can be added to; or what has changed."""
    p, size = memory.pools, int(memory.pools.n[0].occurrences)
    first_key, first_event = memory.written if since_last else (0, 0)
    first = int(p.n[0].written) if since_last else 0
    slots = np.flatnonzero(memory.touched) if since_last else np.arange(min(len(memory.slots), len(p.waiting)))
    waiting = np.empty((size - first, 3), np.int64)
    by_time = np.zeros(p.waiting.shape[1], np.bool_)
    by_time[[operator.store for operator in kernel.shape.operators if operator.kind in TIMED]] = True
    waiting = waiting[: tell_waiting(p, slots, first, by_time, waiting)][::-1]  # each list as it stands
    marks, room = np.zeros(size - first, np.bool_), np.zeros(2 * p.counts.shape[0] + 2, np.int64)
    mark_parts(p, np.ascontiguousarray(waiting[:, 0]), first, marks, room)
    some = p.occurrences[first:size][marks]
    told = {name: some[name] for name in ("operator", "left", "right", "event")}
    freed = _freed(memory, first, size, waiting[:, 0]) if since_last else waiting[:0, 0]
    keys = np.arange(first_key, len(memory.slots))
    rows = {
        "keys": Rows(KEYS, keys, {}, len(memory.slots), values=memory.slots.known.taken(keys)),
        "occurrences": Rows(OCCURRENCES, first + np.flatnonzero(marks), told, size),
        "waiting": _waiting_rows(waiting, size, freed),
    }
    if kernel.shape.registers:
        rows["registers"] = _register_rows(memory, slots)
    used = np.unique(told["event"])
    events = used[used >= first_event]
    notes = {"events": np.array([len(memory.events)])}
    since = memory.epoch if since_last else 0
    return Relations(SEQUENCE_KIND, rows, events, memory.events.taken(events), notes, since, memory.epoch)


def _freed(memory: Memory, first: int, size: int, waiting: Numbers) -> Numbers:
    """What was written and waits no more. Of later ones a snapshot in between may have told."""
    removed = np.empty(int(memory.pools.n[0].removed), np.int64)
    tell_removed(memory.pools, removed)
    return np.concatenate((np.sort(removed), np.setdiff1d(np.arange(first, size), waiting)))


def _waiting_rows(waiting: Numbers, size: int, freed: Numbers) -> Rows:
    turn = turns(waiting)
    order = np.argsort(waiting[:, 0])
    occurrence, key, store = waiting[order].T
    columns = {"occurrence": occurrence, "key": key, "store": store, "turn": turn[order]}
    return Rows(WAITING, occurrence, columns, size, freed=freed)


def _register_rows(memory: Memory, slots: Numbers) -> Rows:
    values = memory.pools.registers[slots]
    numbers = slots[:, None] * values.shape[1] + np.arange(values.shape[1])
    there = values != UNSET
    key, register = np.divmod(numbers[there], values.shape[1])
    columns = {"key": key, "register": register, "value": values[there]}
    return Rows(REGISTERS, numbers[there], columns, len(memory.slots) * values.shape[1], freed=numbers[~there])


# From relations.


def loaded(kernel: SequenceKernel, relations: Relations) -> Memory:
    """A state to go on from; what changes from then on can be told in addition to these. They have been checked."""
    relations, size, same = compact(relations)
    memory, rows = kernel.fresh(), relations.rows
    memory.slots.of(keys_of(rows["keys"], memory.slots.parts))
    if size:
        memory.events.add(spread(relations.events, relations.refs, size), np.arange(size))
    _load_occurrences(kernel, memory, rows["occurrences"])
    _load_waiting(kernel, memory, rows["waiting"])
    registers = np.full((len(memory.slots), memory.pools.registers.shape[1]), UNSET)
    if kernel.shape.registers:
        own = rows["registers"].columns
        registers[own["key"], own["register"]] = own["value"]
    memory.pools = memory.pools._replace(registers=registers)
    memory.swept = max(memory.swept, 2 * rows["occurrences"].size)
    memory.epoch = max(relations.epoch, 1)
    if same and _numbered_as_here(kernel, rows):
        memory.go_on()
    return memory


def _numbered_as_here(kernel: SequenceKernel, rows: Mapping[str, Rows]) -> bool:
    """What the interpreter has written numbers otherwise: nothing can be told in addition to that."""
    found = np.array_equal(rows["waiting"].numbers, rows["waiting"].columns["occurrence"])
    if kernel.shape.registers:
        own = rows["registers"]
        numbers = own.columns["key"] * kernel.shape.registers + own.columns["register"]
        found = found and np.array_equal(own.numbers, numbers)
    return found


def _load_occurrences(kernel: SequenceKernel, memory: Memory, rows: Rows) -> None:
    """Operands stand before what is made of them among the operators."""
    found = np.zeros(rows.size, OCCURRENCE)
    found["before"] = found["after"] = -1
    for name, column in rows.columns.items():
        found[name][rows.numbers] = column
    for number, operator in enumerate(kernel.shape.operators):
        own = rows.numbers[rows.columns["operator"] == number]
        if operator.kind == LEAF:
            events, index = np.unique(found["event"][own], return_inverse=True)
            found["lo"][own], found["hi"][own] = memory.events.lo(events)[index], memory.events.hi(events)[index]
        elif operator.kind in TIMED:
            left = found[found["left"][own]]
            found["lo"][own], found["hi"][own] = left["lo"], _dues(operator, left)
        else:
            left, right = found[found["left"][own]], found[found["right"][own]]
            found["lo"][own] = np.minimum(left["lo"], right["lo"])
            found["hi"][own] = np.maximum(left["hi"], right["hi"])
    memory.pools = memory.pools._replace(occurrences=found)
    memory.pools.n[0].occurrences = rows.size


def _dues(operator: Operator, some: Any) -> Numbers:
    """When something is made of occurrences that wait for a time."""
    if operator.kind == AFTER:
        return np.asarray(np.maximum(some["hi"], some["lo"] + operator.length))
    return np.asarray(some["hi"] + operator.length)


def _load_waiting(kernel: SequenceKernel, memory: Memory, rows: Rows) -> None:
    """Lists, made again by turn, or by the time that is waited for."""
    one, key, store, turn = (rows.columns[name] for name in ("occurrence", "key", "store", "turn"))
    occurrences, stores = memory.pools.occurrences, memory.pools.waiting.shape[1]
    due = np.zeros(len(one), np.int64)
    for operator in kernel.shape.operators:
        if operator.kind in TIMED:
            due[store == operator.store] = _dues(operator, occurrences[one[store == operator.store]])
    order = np.lexsort((turn, due, store, key))
    one, key, store = one[order], key[order], store[order]
    same = (key[1:] == key[:-1]) & (store[1:] == store[:-1])
    occurrences["before"][one[1:][same]] = one[:-1][same]
    occurrences["after"][one[:-1][same]] = one[1:][same]
    waiting = np.zeros((len(memory.slots), stores), pools.WAITING)
    waiting["first"] = waiting["last"] = -1
    begins = np.flatnonzero(np.concatenate((np.ones(min(1, len(one)), np.bool_), ~same)))
    ends = np.append(begins[1:], len(one))[: len(begins)]
    at = key[begins], store[begins]
    waiting["first"][at], waiting["last"][at], waiting["count"][at] = one[begins], one[ends - 1], ends - begins
    memory.pools = memory.pools._replace(waiting=waiting)
