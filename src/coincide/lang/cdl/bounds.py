"""How far apart the times of two messages of a combination can be: what its conditions imply (section 9, hints)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from math import ceil

from coincide.expr.tree import Arithmetic, Between, Call, Compare, Expr, Literal, Negate, Reference, conjuncts
from coincide.lang.cdl.equality import Conditions, is_early, time_is_looked_up
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.partition import demands
from coincide.lang.cdl.terms import Group
from coincide.model.numbers import is_number
from coincide.model.stamp import MILLISECOND

Bounds = dict[tuple[int, int], float]
"""(a, b): the time of source a is at most so many milliseconds after that of source b."""

FARTHEST = 2**50
"""Bounds of more milliseconds bound nothing."""

SLACK = 1.0
"""Computations of type `int` are cut; a bound may be wider than it has to be."""


@dataclass(frozen=True)
class Linear:
    """A sum of times of sources, each with a factor, and a constant."""

    factors: dict[int, float]
    constant: float = 0.0

    def plus(self, other: Linear, times: float = 1.0) -> Linear:
        factors = {s: self.factors.get(s, 0.0) + times * other.factors.get(s, 0.0) for s in {*self.factors, *other.factors}}
        return Linear({s: f for s, f in factors.items() if f}, self.constant + times * other.constant)

    def scaled(self, factor: float) -> Linear:
        return Linear({}).plus(self, factor)


def time_bounds(group: Group, names: Names) -> Bounds:
    """What every term of the group implies."""
    return _common([_closed(_term_bounds(demands(term, group.pos, names)), group) for term, _ in group.terms])


def pair_bounds(group: Group, names: Names) -> Bounds:
    """What every term of the group demands as soon as two messages are there, whichever others come."""
    demanded = [[(tree, n) for tree, n in demands(term, group.pos, names) if _is_of_a_pair(tree, n)] for term, _ in group.terms]
    return _common([_term_bounds(conditions) for conditions in demanded])


def in_microseconds(bounds: Bounds) -> dict[tuple[int, int], int]:
    return {pair: ceil(most * MILLISECOND) for pair, most in bounds.items() if abs(most) < FARTHEST}


def _is_of_a_pair(tree: Expr, names: Names) -> bool:
    return is_early(tree, names) and len(names.sources(tree) | {names.owner} - {None}) == 2


def _common(found: list[Bounds]) -> Bounds:
    pairs = set.intersection(*map(set, found))
    return {pair: max(bounds[pair] for bounds in found) + SLACK for pair in pairs}


def _term_bounds(demanded: Conditions) -> Bounds:
    found: Bounds = {}
    for tree, inside in demanded:
        for part in conjuncts(tree):
            for pair, most in _implied(part, inside):
                found[pair] = min(most, found.get(pair, most))
    return found


def _closed(bounds: Bounds, group: Group) -> Bounds:
    """With what follows: from a at most 5 after b, and b at most 3 after c, a at most 8 after c."""
    for via in group.pos:
        after = [(a, most) for (a, b), most in bounds.items() if b == via]
        before = [(b, most) for (a, b), most in bounds.items() if a == via]
        for (a, first), (b, second) in product(after, before):
            if a != b:
                bounds[a, b] = min(first + second, bounds.get((a, b), first + second))
    return bounds


def _implied(tree: Expr, names: Names) -> Iterator[tuple[tuple[int, int], float]]:
    if isinstance(tree, Call) and tree.name == "before":
        sources = [names.meaning(a).source for a in tree.arguments if isinstance(a, Reference)]
        yield from (((a, b), 0.0) for a, b in pairwise(sources) if a is not None and b is not None)
    elif isinstance(tree, Between) and not tree.negated:
        yield from _at_most(tree.low, tree.operand, names)
        yield from _at_most(tree.operand, tree.high, names)
    elif isinstance(tree, Compare):
        if tree.op in ("<", "<=", "="):
            yield from _at_most(tree.left, tree.right, names)
        if tree.op in (">", ">=", "="):
            yield from _at_most(tree.right, tree.left, names)


def _at_most(less: Expr, more: Expr, names: Names) -> Iterator[tuple[tuple[int, int], float]]:
    a, b = _linear(less, names), _linear(more, names)
    if a is None or b is None:
        return
    difference = a.plus(b, -1.0)
    signs = sorted(difference.factors.items(), key=lambda item: item[1])
    if len(signs) == 2 and signs[0][1] == -signs[1][1]:
        (earlier, _), (later, factor) = signs
        yield (later, earlier), -difference.constant / factor


def _linear(tree: Expr, names: Names) -> Linear | None:
    if isinstance(tree, Literal):
        return Linear({}, tree.value) if is_number(tree.value) else None
    if isinstance(tree, Reference):
        return _time(tree, names)
    if isinstance(tree, Negate):
        inner = _linear(tree.operand, names)
        return None if inner is None else inner.scaled(-1.0)
    if not isinstance(tree, Arithmetic):
        return None
    left, right = _linear(tree.left, names), _linear(tree.right, names)
    if left is None or right is None:
        return None
    if tree.op in "+-":
        return left.plus(right, 1.0 if tree.op == "+" else -1.0)
    if tree.op == "*" and not (left.factors and right.factors):
        return right.scaled(left.constant) if right.factors else left.scaled(right.constant)
    return left.scaled(1 / right.constant) if tree.op == "/" and not right.factors and right.constant else None


def _time(tree: Reference, names: Names) -> Linear | None:
    """The time of a single source, or a computation on such times."""
    meaning = names.meaning(tree)
    if meaning.computation is not None:
        node = names.computations[meaning.computation]
        return _linear(node.value, Names(names.cd)) if node.type in ("int", "double", "time_t") else None
    if meaning.of != "self" or meaning.attribute != "time" or meaning.source is None or names.is_collection(meaning.source):
        return None
    return None if time_is_looked_up(names.cd.sources[meaning.source]) else Linear({meaning.source: 1.0})
