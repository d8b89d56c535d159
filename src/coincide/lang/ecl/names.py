"""Names that detectors share over files: their own, the types they push, the types of detections they see (section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coincide.expr.tree import Compare, Expr, In, Literal, Reference
from coincide.lang.ecl.definition import Machine, Monitor, Output, Predicate, Push
from coincide.syntax import walk


def predicates(detector: Monitor | Machine) -> Iterator[Predicate]:
    """Its leaves, guards and `on` conditions, in the order of the text."""
    if isinstance(detector, Monitor):
        yield from (e for e in walk(detector.body) if isinstance(e, Predicate))
    else:
        yield from (t.test for t in detector.transitions if t.test is not None)


def pushes(detector: Monitor | Machine) -> Iterator[Output]:
    """What it can push, in the order of the text."""
    if isinstance(detector, Monitor):
        yield from (e.output for e in walk(detector.body) if isinstance(e, Push))
    else:
        yield from (t.output for t in detector.transitions if t.output is not None)


def outputs(detector: Monitor | Machine) -> tuple[str, ...]:
    """The types of its detections, each once."""
    return tuple(dict.fromkeys(output.token for output in pushes(detector)))


def mentions(detector: Monitor | Machine) -> frozenset[str]:
    """The types of the detections that it sees (ECL-25): tests such as `type like` and push attributes do not count."""
    return frozenset(name for p in predicates(detector) for node in walk(p.test) for name in _mentioned(node))


def _mentioned(node: Expr) -> Iterator[str]:
    """Bare names are comparisons of `type` already."""
    if isinstance(node, Compare) and node.op in ("=", "!="):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if _is_type(one):
                yield from _texts((other,))
    elif isinstance(node, In) and _is_type(node.operand):
        yield from _texts(node.options)


def _is_type(node: Expr) -> bool:
    return isinstance(node, Reference) and node.name == "type"


def _texts(nodes: Sequence[Expr]) -> Iterator[str]:
    yield from (n.value for n in nodes if isinstance(n, Literal) and isinstance(n.value, str))
