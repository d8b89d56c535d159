"""When one stored occurrence is enough (section 8, pruning; ECCO-43).

A `;` step is not among these cases: an event whose stamp is a range may still come and fit only an older prefix."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.detection.algebra.surroundings import Surroundings
from coincide.lang.ecco.definition import CONJUNCTION, Chain, Expression, Neg, Null, Ref, Valid, walk
from coincide.lang.ecco.lasting import Names
from coincide.lang.ecco.link import Setting

BY_ORDER, BY_START = "order", "start"


def walk_through(expression: Expression, names: Names) -> Iterator[Expression]:
    """All nodes of the expression and of the definitions that it refers to."""
    for node in walk(expression):
        yield node
        definition = names.definitions.get(node.type or "") if isinstance(node, Ref) else None
        if definition is not None:
            yield from walk_through(definition.body, names)


def apart(left: Expression, right: Expression, names: Names) -> bool:
    """Can they never share an event? Of another language's detections, nobody knows what they are made of."""
    sides = [_read(side, names) for side in (left, right)]
    known = all(None not in side and side.isdisjoint(names.foreign) for side in sides)
    return known and sides[0].isdisjoint(sides[1])


def _read(expression: Expression, names: Names) -> frozenset[str | None]:
    nodes = [node for node in walk_through(expression, names) if isinstance(node, (Ref, Null))]
    return frozenset(node.type if isinstance(node, Ref) else None for node in nodes)


def lives(expression: Expression, names: Names) -> bool:
    return any(isinstance(node, Valid) for node in walk_through(expression, names))


def replaces(setting: Setting) -> bool:
    """Can what is stored be taken away again, so that an older one is needed?"""
    return any(rule.keep == "last" for rule in setting.duplicates)


def best_partner(chain: Chain, index: int, around: Surroundings, names: Names, setting: Setting) -> str | None:
    """Of a step of `+`, which one of each side is enough: the most recent (recent), or that with the latest start (subset);
    None: all that may still fit are needed."""
    prefix, right = Chain(CONJUNCTION, chain.elements[:index]), chain.elements[index]
    plain = apart(prefix, right, names) and not lives(chain, names) and not replaces(setting)
    if chain.operator != CONJUNCTION or not plain:
        return None
    if around.consumption == "recent":
        return None if around.within else BY_ORDER
    unrestricted = around.consumption == "unrestricted" and around.subset
    return BY_START if unrestricted and (not around.within or setting.options.maybe == "reject") else None


def one_is_enough(negation: Neg, names: Names, setting: Setting) -> bool:
    """`A - B`: whatever has come ended by now, as does the A that comes; it is hit iff the latest start is not before its
    own."""
    plain = not lives(negation.right, names) and not replaces(setting)
    return plain and apart(negation.left, negation.right, names)
