"""What a definition waits for, and those that it refers to."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.lang.ecco.definition import Delay, Expression, Filter, Iter, Neg, Not, Null, Ref, Sel, Valid, Within, core
from coincide.lang.ecco.link import Linked
from coincide.lang.shared.wants import Slot, Wants, microseconds
from coincide.syntax import walk

LASTING = Within | Valid | Delay


def wants_of(item: Linked) -> Wants:
    named = {used.definition.name for used in item.together}
    nodes = [node for used in item.together for node in walk(used.definition.body)]
    refused = {id(inner) for node in nodes for stop in _stopping(node) for inner in walk(stop)}
    filters = [node for node in nodes if isinstance(node, Filter)]
    own = {id(ref): node for node in filters if isinstance(ref := core(node), Ref)}
    slots = [
        Slot(node.type, (own[id(node)].condition,) if id(node) in own else (), id(node) in refused)
        for node in nodes
        if isinstance(node, Ref) and node.type not in named
    ]
    tests = tuple(node.condition for node in filters if not isinstance(core(node), Ref))
    counts = [number for node in nodes for number in _counts(node)]
    return Wants(tuple(slots), tests, microseconds(d for node in nodes for d in _durations(node)), tuple(counts))


def _stopping(node: Expression) -> Iterator[Expression]:
    if isinstance(node, Neg):
        yield node.right
    elif isinstance(node, Not | Null):
        yield node


def _durations(node: Expression) -> Iterator[float | None]:
    if isinstance(node, LASTING):
        yield node.duration
    elif isinstance(node, Not):
        yield node.over
    elif isinstance(node, Sel):
        yield from (node.over, node.every)


def _counts(node: Expression) -> Iterator[int]:
    if isinstance(node, Iter):
        yield max(1, node.least or 1)
    elif isinstance(node, Sel) and node.number is not None and 0 < node.number < 100:
        yield int(node.number) + 1
