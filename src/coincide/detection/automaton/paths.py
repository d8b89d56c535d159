"""The events of runs as paths of nodes to a root, and the order of section 3.5 between them."""

from __future__ import annotations

from coincide.detection.automaton.layout import NODE, OF
from coincide.detection.automaton.pools import Consumed, Pools
from coincide.detection.columns.compiling import inlined
from coincide.detection.columns.linked import added
from coincide.detection.columns.records import Numbers


@inlined
def child(p: Pools, parent: int, event: Consumed, aliases: int) -> int:
    """The node of one event more; one that the step has made already is found again."""
    nodes, n = p.nodes, p.n[0]
    latest = nodes[parent, NODE.child] if parent >= 0 else n.root
    found = latest
    while found >= 0 and nodes[found, NODE.sequence] == n.sequence:
        if nodes[found, NODE.aliases] == aliases:
            return int(found)
        found = nodes[found, NODE.sibling]
    node = added(nodes, p.heads[OF.nodes])
    nodes[node, NODE.parent], nodes[node, NODE.event], nodes[node, NODE.timer] = parent, event.event, event.timer
    nodes[node, NODE.sequence] = n.sequence
    nodes[node, NODE.aliases], nodes[node, NODE.sibling] = aliases, latest
    nodes[node, NODE.child], nodes[node, NODE.runs], nodes[node, NODE.accepted] = -1, -1, 0
    if parent >= 0:
        nodes[node, NODE.lo], nodes[node, NODE.hi] = min(nodes[parent, NODE.lo], event.lo), max(nodes[parent, NODE.hi], event.hi)
        nodes[node, NODE.depth] = nodes[parent, NODE.depth] + 1
        nodes[parent, NODE.child] = node
    else:
        nodes[node, NODE.lo], nodes[node, NODE.hi], nodes[node, NODE.depth] = event.lo, event.hi, 0
        n.root = node
    return int(node)


@inlined
def order(nodes: Numbers, a: int, b: int) -> int:
    """By the lists of events, compared element by element; aliases do not count."""
    result = (nodes[a, NODE.depth] > nodes[b, NODE.depth]) - (nodes[a, NODE.depth] < nodes[b, NODE.depth])
    while nodes[a, NODE.depth] > nodes[b, NODE.depth]:
        a = nodes[a, NODE.parent]
    while nodes[b, NODE.depth] > nodes[a, NODE.depth]:
        b = nodes[b, NODE.parent]
    while a != b:
        if nodes[a, NODE.sequence] != nodes[b, NODE.sequence]:
            result = (nodes[a, NODE.sequence] > nodes[b, NODE.sequence]) - (nodes[a, NODE.sequence] < nodes[b, NODE.sequence])
        a, b = nodes[a, NODE.parent], nodes[b, NODE.parent]
    return int(result)


@inlined
def sort_made(p: Pools) -> None:
    """The detections of the step; where the events are the same, the one with parameters comes first."""
    made, first, count = p.made, p.n[0].step, p.n[0].made - p.n[0].step
    for k in range(count):
        p.scratch[k] = made[first + k].node << 32 | (1 - made[first + k].bound)
    sort(p, count)
    for k in range(count):
        made[first + k].node = p.scratch[k] >> 32
        made[first + k].bound = 1 - (p.scratch[k] & 1)


@inlined
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


@inlined
def _less(nodes: Numbers, a: int, b: int) -> bool:
    found = order(nodes, a >> 32, b >> 32)
    return bool(found < 0 or (found == 0 and (a & 0xFFFFFFFF) < (b & 0xFFFFFFFF)))
