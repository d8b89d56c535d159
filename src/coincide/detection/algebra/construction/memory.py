"""When one stored occurrence is enough (section 8, pruning; ECCO-43).

Any event may come with a stamp that is a range, and in `a ; b` it may fit only an older a: of a1@1 and a2@5, b@[3,6] takes
a1. That none has come so far proves nothing. So a `;` step keeps all prefixes that may still fit, unless the definition itself
says that the right operand is an exact point: `b{duration() = 0}`."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.detection.algebra.construction.surroundings import Surroundings
from coincide.detection.algebra.consumption import CONSUMPTIONS, LATEST
from coincide.expr.tree import Call, Compare, Expr, Literal, conjuncts
from coincide.lang.ecco.consumption import DEFAULT
from coincide.lang.ecco.definition import (
    CONJUNCTION,
    SEQUENCE,
    Alt,
    As,
    At,
    Chain,
    Expression,
    Filter,
    Iter,
    Neg,
    Not,
    Null,
    Ref,
    Valid,
    Within,
    Wrapper,
    core,
)
from coincide.lang.ecco.lasting import LOOKED_THROUGH, Names
from coincide.lang.ecco.link import Setting
from coincide.syntax import walk

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
    if CONSUMPTIONS[around.consumption].single == LATEST:
        return None if around.within else BY_ORDER
    unrestricted = around.consumption == DEFAULT and around.subset
    return BY_START if unrestricted and (not around.within or setting.options.maybe == "reject") else None


def best_prefix(chain: Chain, index: int, around: Surroundings, names: Names, setting: Setting) -> str | None:
    """The same for the prefixes of a step of `;` whose right operand is element number `index`; where equalities alone join
    them, of each key."""
    prefix, right = Chain(SEQUENCE, chain.elements[:index]), chain.elements[index]
    plain = is_exact(right, names) and not lives(prefix, names) and not replaces(setting)
    if not plain or not apart(prefix, right, names) or any(isinstance(core(e, (As, At)), Iter) for e in chain.elements[1:index]):
        return None
    if CONSUMPTIONS[around.consumption].single == LATEST:
        return None if around.within and not all(is_exact(e, names) for e in prefix.elements) else BY_ORDER
    if around.consumption != DEFAULT or not around.subset or setting.options.maybe == "keep":
        return None
    gap = isinstance(chain.elements[index - 1], (Null, Not))
    return None if gap or isinstance(core(right, LOOKED_THROUGH), Within) else BY_START


def is_exact(expression: Expression, names: Names) -> bool:
    """Is it always an exact point: an event of which the definition says so?"""
    if isinstance(expression, Alt):
        return all(is_exact(part, names) for part in expression.alternatives)
    if isinstance(expression, Filter) and any(map(_says_so, conjuncts(expression.condition))):
        inner = core(expression)
        return isinstance(inner, Ref) and inner.type not in names.definitions and inner.type not in names.foreign
    return isinstance(expression, Wrapper) and not isinstance(expression, Valid) and is_exact(expression.operand, names)


def _says_so(test: Expr) -> bool:
    if not isinstance(test, Compare) or test.op != "=":
        return False
    return any(
        isinstance(a, Call) and a.name == "duration" and not a.arguments and isinstance(b, Literal) and b.value == 0.0
        for a, b in ((test.left, test.right), (test.right, test.left))
    )


def one_is_enough(negation: Neg, names: Names, setting: Setting) -> bool:
    """`A - B`: whatever has come ended by now, as does the A that comes; it is hit iff the latest start is not before its
    own."""
    plain = not lives(negation.right, names) and not replaces(setting)
    return plain and apart(negation.left, negation.right, names)
