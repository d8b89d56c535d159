"""Attributes of detections as expressions of one input event: what tells engines the types of columns."""

from __future__ import annotations

from coincide.detection.algebra.program import CERTAINTY
from coincide.detection.base import Attributes, Copied
from coincide.expr.tree import Expr, Literal, Reference, transform, with_aliases, without_aliases
from coincide.lang.ecco.aggregates import AGGREGATES
from coincide.lang.ecco.aliases import Aliases
from coincide.lang.ecco.definition import Definition, Iter, Sel
from coincide.syntax import walk


def given(definition: Definition) -> Attributes:
    """As far as the definition tells: without `give`, a detection has what its events agree on, too."""
    made: dict[str, tuple[Expr, ...]] = {key: (Reference(key),) for key in definition.keys}
    made[CERTAINTY] = (Literal("maybe"),)
    results = results_of(definition)
    if definition.give is None:
        return made | results
    aliases = Aliases(definition.body)
    for item in definition.give:
        tree = transform(without_aliases(with_aliases(item.value, aliases.given | aliases.implicit)), _placeless)
        own = results.get(tree.name, ()) if isinstance(tree, Reference) else ()
        made[item.name] = tuple(dict.fromkeys((*made.get(item.name, ()), tree, *own)))
    return made


def results_of(definition: Definition) -> dict[str, tuple[Expr, ...]]:
    """What iterations and selections add to an occurrence."""
    nodes = list(walk(definition.body))
    aggregates = [(AGGREGATES[node.function], node) for node in nodes if isinstance(node, Sel) and node.function in AGGREGATES]
    names = {aggregate.attribute for aggregate, _ in aggregates}
    if definition.give is None or any(isinstance(node, (Iter, Sel)) for node in nodes):
        names.add(AGGREGATES["COUNT"].attribute)
    if any(isinstance(node, Iter) and node.by is not None for node in nodes):
        names.add(AGGREGATES["DISTINCT"].attribute)
    made: dict[str, tuple[Expr, ...]] = dict.fromkeys(sorted(names), (Literal(0.0),))
    for aggregate, node in aggregates:
        if aggregate.selects and node.argument is not None:
            made[aggregate.attribute] = (Copied(Literal(0.0), without_aliases(node.argument)),)
    return made


def _placeless(node: Expr) -> Expr:
    """A part of a spacestamp as some value of its type."""
    if not isinstance(node, Reference) or not node.name.startswith("space."):
        return node
    return Literal("" if node.name == "space.zone" else 0.0)
