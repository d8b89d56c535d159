"""Equalities between references that conditions demand: what follows from them (section 3.3), and what they connect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from coincide.expr.tree import Compare, Expr, Reference, conjuncts
from coincide.lang.cdl.conditions import filter_condition
from coincide.lang.cdl.definition import AnySource, TimeEvent
from coincide.lang.cdl.names import Meaning, Names

Conditions = Iterable[tuple[Expr, Names]]
"""Conditions, each with the names that hold in it."""


def equalities(given: Conditions) -> Iterator[tuple[Compare, Names, Meaning, Meaning]]:
    """Conjuncts `x = y` between two references."""
    for tree, names in given:
        for node in conjuncts(tree):
            if isinstance(node, Compare) and node.op == "=":
                left, right = node.left, node.right
                if isinstance(left, Reference) and isinstance(right, Reference):
                    yield node, names, names.meaning(left), names.meaning(right)


def floor(source: int, names: Names) -> float | None:
    """How old (by `time`) a remembered message of a source can be and still count, in milliseconds: join filters demand that
    its time is not before that of a source whose messages are forgotten (section 8, memory)."""
    node = names.cd.sources[source]
    bounds = []
    for tree in join_filters(node, names.inside(source)):
        for part in conjuncts(tree):
            later = _not_before(part, source, names.inside(source))
            if later is not None and (within := names.cd.within_of(names.cd.sources[later])) is not None:
                bounds.append(within)
    return min(bounds, default=None)


def join_filters(node: AnySource, inside: Names) -> Iterator[Expr]:
    for attribute in () if isinstance(node, TimeEvent) else node.attributes:
        for one in attribute.filters:
            tree = filter_condition(node.anchor, attribute, one)
            if len(inside.sources(tree) | {inside.owner}) > 1:
                yield tree


def _not_before(tree: Expr, source: int, names: Names) -> int | None:
    """The single source whose time a condition puts at or before the time of `source`."""
    if not isinstance(tree, Compare) or not isinstance(tree.left, Reference) or not isinstance(tree.right, Reference):
        return None
    late, early = (tree.right, tree.left) if tree.op in ("<", "<=") else (tree.left, tree.right)
    a, b = names.meaning(late), names.meaning(early)
    if tree.op == "!=" or a.attribute != "time" or b.attribute != "time" or a.source != source or b.source in (None, source):
        return None
    replaced = any(time_is_looked_up(names.cd.sources[s]) for s in (source, b.source) if s is not None)
    return None if b.source is None or names.is_collection(b.source) or replaced else b.source


def time_is_looked_up(node: AnySource) -> bool:
    return not isinstance(node, TimeEvent) and any(a.name == "time" and a.lookup is not None for a in node.attributes)


def _is_value(meaning: Meaning) -> bool:
    return meaning.of == "self" and (meaning.computation is not None or meaning.attribute is not None)


def is_early(tree: Expr, names: Names) -> bool:
    return not any(map(names.is_collection, names.sources(tree))) and not names.uses(tree, "node")


def _classes(pairs: Iterable[tuple[Meaning, Meaning]]) -> list[list[Meaning]]:
    """References that are equal to one another, directly or not."""
    found: list[list[Meaning]] = []
    for a, b in pairs:
        touched = [c for c in found if a in c or b in c]
        merged = list(dict.fromkeys([m for c in touched for m in c] + [a, b]))
        found = [c for c in found if c not in touched] + [merged]
    return found


def closure(given: Conditions) -> tuple[set[frozenset[Meaning]], list[frozenset[Meaning]]]:
    """The equalities that are decided early, and those that follow from them."""
    pairs = [(a, b) for node, inside, a, b in equalities(given) if _is_value(a) and _is_value(b) and is_early(node, inside)]
    known = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    all_pairs = [frozenset(pair) for members in _classes(pairs) for pair in combinations(members, 2)]
    return known, [pair for pair in all_pairs if pair not in known]


def followed(given: Conditions, names: Names) -> list[Expr]:
    _, more = closure(given)
    return [Compare("=", *(_written(meaning, names) for meaning in pair)) for pair in more]


def _written(meaning: Meaning, names: Names) -> Reference:
    if meaning.computation is not None:
        return Reference(meaning.computation)
    assert meaning.source is not None
    return Reference(f"{names.cd.sources[meaning.source].anchor}.{meaning.attribute}")
