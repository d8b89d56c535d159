"""What cannot last (5.1), and the checks that depend on it: whether a name is made by some definition of any language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from coincide.errors import Diagnostic, RuleError
from coincide.lang.ecco.aggregates import result_of
from coincide.lang.ecco.definition import (
    SEQUENCE,
    Alt,
    As,
    At,
    Chain,
    Definition,
    Expression,
    Filter,
    Iter,
    Neg,
    Ref,
    Sel,
    Valid,
    With,
    Within,
    Wrapper,
    core,
)
from coincide.syntax import walk

LOOKED_THROUGH = (As, Filter, With, At, Valid)
"""What `within` looks through for the chain, iteration or negation that it bounds."""

NO_EFFECT = "'within' has no effect here; write (A + B) within T"


@dataclass(frozen=True)
class Names:
    """What is known when all files are loaded: ECCO's definitions, and the names that other languages make."""

    definitions: Mapping[str, Definition]
    foreign: frozenset[str] = frozenset()

    def made(self, types: Iterable[str | None]) -> frozenset[str]:
        """Those that definitions make, of this language or another."""
        return frozenset(type for type in types if type is not None and (type in self.definitions or type in self.foreign))

    def cannot_last(self, node: Expression) -> bool:
        """Only a point in time, exactly or roughly known."""
        if isinstance(node, Ref):
            definition = self.definitions.get(node.type or "")
            return self.cannot_last(definition.body) if definition else node.type not in self.foreign
        if isinstance(node, Alt):
            return all(map(self.cannot_last, node.alternatives))
        if isinstance(node, Within) and isinstance(core(node.operand, LOOKED_THROUGH), Neg):
            return False  # (A - B) within T lasts until it is known
        if isinstance(node, Neg):
            return self.cannot_last(node.left)
        if isinstance(node, Sel):
            return _passes(node) and self.cannot_last(node.operand)
        return isinstance(node, Wrapper) and self.cannot_last(node.operand)

    def aggregate(self, node: Expression) -> str | None:
        """The attribute of the aggregate that the expression is, seen through wrappers and names."""
        inner = core(node)
        if isinstance(inner, Ref):
            definition = self.definitions.get(inner.type or "")
            return self.aggregate(definition.body) if definition else None
        if not isinstance(inner, Sel):
            return None
        if not inner.selection.compares:
            return result_of(inner.function)
        if inner.over is not None:
            return result_of("COUNT" if inner.argument is None else "SUM")
        return self.aggregate(inner.operand) if inner.argument is None else None


def _passes(node: Sel) -> bool:
    """Does the selection pass its instances on unchanged?"""
    selection = node.selection
    in_windows = selection.summarises and node.over is not None
    return selection.passes and not in_windows and (not selection.compares or node.argument is not None)


def check_linked(definition: Definition, names: Names) -> None:
    for node in walk(definition.body):
        if isinstance(node, Sel) and _compares_nothing(node, names):
            raise RuleError(Diagnostic(f"{node.function} needs an aggregate, an argument or 'over'", node.word))
    allowed = set(map(id, _bounding_withins(definition.body)))
    for node in walk(definition.body):
        if isinstance(node, Within) and id(node) not in allowed and _bounds_nothing(node, names):
            raise RuleError(Diagnostic(NO_EFFECT, node.span))


def _compares_nothing(node: Sel, names: Names) -> bool:
    alone = node.selection.compares and node.argument is None and node.over is None
    return alone and names.aggregate(node.operand) is None


def _bounds_nothing(node: Within, names: Names) -> bool:
    inner = core(node.operand, LOOKED_THROUGH)
    return not isinstance(inner, (Chain, Iter, Neg)) and names.cannot_last(inner)


def _bounding_withins(body: Expression) -> Iterator[Within]:
    """`within` on a later operand of `;` or on the right operand of `-`: the time since what comes before (5.1)."""
    for node in walk(body):
        if isinstance(node, Chain) and node.operator == SEQUENCE:
            for element in node.elements[1:]:
                yield from _withins(element)
        elif isinstance(node, Neg):
            yield from _withins(node.right)


def _withins(element: Expression) -> Iterator[Within]:
    while isinstance(element, Wrapper):
        if isinstance(element, Within):
            yield element
        element = element.operand
