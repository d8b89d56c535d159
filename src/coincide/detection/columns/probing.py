"""A table of hashes: an entry is the hash of a key and, in its lower half, the key's number. It stands where its hash says, or in
the first free place behind it."""

from __future__ import annotations

from typing import Any

from coincide.detection.columns.compiling import compiled, inlined

FREE = -1
GONE = -2
"""There was an entry: who looks for what stands behind it looks on."""
HALF = 32
LOWER = (1 << HALF) - 1


@inlined
def _hash(data: Any, start: int, size: int) -> Any:
    """31 bits (FNV-1a, mixed once more: its low bits would be poor)."""
    found = -3750763034362895579
    for at in range(start, start + size):
        found = (found ^ data[at]) * 1099511628211
    found = (found ^ (found >> 29)) * -4658895280553007687
    return (found >> 32) & 0x7FFFFFFF


@inlined
def _are_equal(some: Any, start: int, others: Any, begin: int, size: int) -> Any:
    at = 0
    while at < size and some[start + at] == others[begin + at]:
        at += 1
    return at == size


@compiled
def find(entries: Any, data: Any, starts: Any, sizes: Any, wanted: Any, begins: Any, lengths: Any, found: Any) -> None:
    """The numbers of keys, -1 where there is none."""
    last = len(entries) - 1
    for key in range(len(begins)):
        begin, length, found[key] = begins[key], lengths[key], -1
        hashed = _hash(wanted, begin, length)
        place = hashed & last
        while entries[place] != FREE:
            number = entries[place] & LOWER
            alike = entries[place] >> HALF == hashed and sizes[number] == length
            if alike and _are_equal(data, starts[number], wanted, begin, length):
                found[key] = number
                break
            place = (place + 1) & last


@inlined
def _enter(entries: Any, hashed: int, number: int) -> None:
    last = len(entries) - 1
    place = hashed & last
    while entries[place] >= 0:
        place = (place + 1) & last
    entries[place] = hashed << HALF | number


@compiled
def put(entries: Any, data: Any, starts: Any, sizes: Any, numbers: Any) -> None:
    """Keys that are not there yet; there is room."""
    for key in range(len(numbers)):
        _enter(entries, _hash(data, starts[key], sizes[key]), numbers[key])


@compiled
def refill(entries: Any, more: Any) -> None:
    """From one table into another."""
    for entry in entries:
        if entry >= 0:
            _enter(more, entry >> HALF, entry & LOWER)


@compiled
def remove(entries: Any, data: Any, starts: Any, sizes: Any, numbers: Any) -> None:
    last = len(entries) - 1
    for number in numbers:
        hashed = _hash(data, starts[number], sizes[number])
        place = hashed & last
        while entries[place] != hashed << HALF | number:
            place = (place + 1) & last
        entries[place] = GONE


@compiled
def gather(data: Any, starts: Any, sizes: Any, into: Any) -> None:
    """Some pieces, one after another."""
    end = 0
    for piece in range(len(starts)):
        start = starts[piece]
        for at in range(sizes[piece]):
            into[end + at] = data[start + at]
        end += sizes[piece]
