"""Equalities that follow from others (section 3.3): they only delete doomed instances sooner. And keys that span all sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from coincide.expr.tree import And, Compare, Expr, Reference
from coincide.lang.cdl.names import Meaning, Names


def conjuncts(tree: Expr) -> Iterator[Expr]:
    if isinstance(tree, And):
        for operand in tree.operands:
            yield from conjuncts(operand)
    else:
        yield tree


def equalities(given: Iterable[tuple[Expr, Names]]) -> list[tuple[Meaning, Meaning]]:
    """Pairs of references (attributes or computations) that conjuncts of these conditions make equal."""
    found = []
    for tree, names in given:
        for node in conjuncts(tree):
            if isinstance(node, Compare) and node.op == "=" and isinstance(node.left, Reference) and isinstance(node.right, Reference):
                pair = names.meaning(node.left), names.meaning(node.right)
                if all(_is_value(m) for m in pair) and _is_early(node, names):
                    found.append(pair)
    return found


def _is_value(meaning: Meaning) -> bool:
    return meaning.of == "self" and (meaning.computation is not None or meaning.attribute is not None)


def _is_early(tree: Expr, names: Names) -> bool:
    return not any(map(names.is_collection, names.sources(tree))) and not names.uses(tree, "node")


def classes(pairs: Iterable[tuple[Meaning, Meaning]]) -> list[list[Meaning]]:
    """References that are equal to one another, directly or not."""
    found: list[list[Meaning]] = []
    for a, b in pairs:
        touched = [c for c in found if a in c or b in c]
        merged = list(dict.fromkeys([m for c in touched for m in c] + [a, b]))
        found = [c for c in found if c not in touched] + [merged]
    return found


def followed(given: list[tuple[Expr, Names]], names: Names) -> list[Expr]:
    """The equalities of the transitive closure that are not there already."""
    pairs = equalities(given)
    known = {frozenset(pair) for pair in pairs}
    out: list[Expr] = []
    for members in classes(pairs):
        for a, b in combinations(members, 2):
            if frozenset((a, b)) not in known:
                out.append(Compare("=", _written(a, names), _written(b, names)))
    return out


def _written(meaning: Meaning, names: Names) -> Reference:
    if meaning.computation is not None:
        return Reference(meaning.computation)
    assert meaning.source is not None
    return Reference(f"{names.cd.sources[meaning.source].anchor}.{meaning.attribute}")
