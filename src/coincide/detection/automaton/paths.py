"""The events of runs as paths of nodes to a root, and the order of section 3.5 between them."""

from __future__ import annotations

from typing import Any

from coincide.detection.automaton.pools import MADE, NODES, ROOT, SEQUENCE, STEP, Consumed, Pools
from coincide.detection.columns.compiling import inner


@inner
def child(p: Pools, parent: int, event: Consumed, aliases: int) -> int:
    """The node of one event more; one that the step has made already is found again."""
    nodes, n = p.nodes, p.n
    latest = nodes[parent].child if parent >= 0 else n[ROOT]
    found = latest
    while found >= 0 and nodes[found].sequence == n[SEQUENCE]:
        if nodes[found].aliases == aliases:
            return int(found)
        found = nodes[found].sibling
    node = n[NODES]
    n[NODES] += 1
    nodes[node].parent, nodes[node].event, nodes[node].sequence = parent, event.event, n[SEQUENCE]
    nodes[node].aliases, nodes[node].sibling = aliases, latest
    nodes[node].child, nodes[node].runs, nodes[node].accepted = -1, -1, 0
    if parent >= 0:
        nodes[node].lo, nodes[node].hi = min(nodes[parent].lo, event.lo), max(nodes[parent].hi, event.hi)
        nodes[node].depth = nodes[parent].depth + 1
        nodes[parent].child = node
    else:
        nodes[node].lo, nodes[node].hi, nodes[node].depth = event.lo, event.hi, 0
        n[ROOT] = node
    return int(node)


@inner
def order(nodes: Any, a: int, b: int) -> int:
    """By the lists of events, compared element by element; aliases do not count."""
    result = (nodes[a].depth > nodes[b].depth) - (nodes[a].depth < nodes[b].depth)
    while nodes[a].depth > nodes[b].depth:
        a = nodes[a].parent
    while nodes[b].depth > nodes[a].depth:
        b = nodes[b].parent
    while a != b:
        if nodes[a].sequence != nodes[b].sequence:
            result = (nodes[a].sequence > nodes[b].sequence) - (nodes[a].sequence < nodes[b].sequence)
        a, b = nodes[a].parent, nodes[b].parent
    return int(result)


@inner
def sort_made(p: Pools) -> None:
    """The detections of the step; where the events are the same, the one with parameters comes first."""
    made, first, count = p.made, p.n[STEP], p.n[MADE] - p.n[STEP]
    for k in range(count):
        p.scratch[k] = made[first + k].node << 32 | (1 - made[first + k].bound)
    sort(p, count)
    for k in range(count):
        made[first + k].node = p.scratch[k] >> 32
        made[first + k].bound = 1 - (p.scratch[k] & 1)


@inner
def sort(p: Pools, count: int) -> None:
    """The first `count` pairs (node << 32 | number) in scratch: a heap sort."""
    a = p.scratch
    for end in range(2 * count - 1, 0, -1):  # first the heap is built, then emptied
        top, size = (end - count, count) if end >= count else (0, end)
        if end < count:
            a[0], a[end] = a[end], a[0]
        while True:
            lower = 2 * top + 1
            if lower >= size:
                break
            if lower + 1 < size and _less(p.nodes, a[lower], a[lower + 1]):
                lower += 1
            if not _less(p.nodes, a[top], a[lower]):
                break
            a[top], a[lower] = a[lower], a[top]
            top = lower


@inner
def _less(nodes: Any, a: int, b: int) -> bool:
    found = order(nodes, a >> 32, b >> 32)
    return bool(found < 0 or (found == 0 and (a & 0xFFFFFFFF) < (b & 0xFFFFFFFF)))
