"""Types of expressions, as far as they are declared. Only comparisons of different kinds are errors (section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from coincide.expr.functions import BOOLEAN, NUMBER, TEXT
from coincide.expr.tree import Arithmetic, Between, Call, Compare, Expr, In, Literal, Negate, Reference
from coincide.lang.cdl.definition import TimeEvent
from coincide.lang.cdl.functions import FUNCTIONS
from coincide.lang.cdl.names import Meaning, Names
from coincide.lang.cdl.preferences import PREFERENCES
from coincide.lang.cdl.shape import fail
from coincide.source import Span
from coincide.syntax import walk

KINDS = {"int": NUMBER, "double": NUMBER, "time_t": NUMBER, "string": TEXT, "boolean": BOOLEAN}
ENVELOPE_KINDS = {"time": NUMBER, "id": TEXT, "type": TEXT, "source": TEXT}
OF_ARGUMENT = frozenset({"first", "last", "min", "max", "set", "range", "coalesce"})


def kind_of(tree: Expr, names: Names) -> str | None:
    """number, string, boolean, or None where it is not known."""
    if isinstance(tree, Literal):
        return {float: NUMBER, str: TEXT, bool: BOOLEAN}.get(type(tree.value))
    if isinstance(tree, Reference):
        return _reference(names.meaning(tree), names)
    if isinstance(tree, (Arithmetic, Negate)):
        return NUMBER
    if not isinstance(tree, Call):
        return BOOLEAN
    if tree.name in OF_ARGUMENT or tree.name == "if":
        arguments = tree.arguments[1:] if tree.name == "if" else tree.arguments
        return next((kind for a in arguments if (kind := kind_of(a, names)) is not None), None)
    function = FUNCTIONS.get(tree.name)
    if function is None:
        return BOOLEAN  # predicates
    return NUMBER if tree.name == "count" else function.result if function.result in (NUMBER, TEXT, BOOLEAN) else None


def _reference(meaning: Meaning, names: Names) -> str | None:
    if meaning.computation is not None:
        return KINDS[names.computations[meaning.computation].type]
    if meaning.source is None or meaning.attribute is None:
        return None
    source = names.cd.sources[meaning.source]
    if not isinstance(source, TimeEvent):
        for attribute in source.attributes:
            if attribute.name == meaning.attribute:
                return KINDS[attribute.type]
    return ENVELOPE_KINDS.get(meaning.attribute)


def check_comparisons(tree: Expr, names: Names, place: Span | None) -> None:
    for node in walk(tree):
        for left, right in _compared(node):
            kinds = kind_of(left, names), kind_of(right, names)
            if None not in kinds and kinds[0] != kinds[1]:
                a, b = sorted(filter(None, kinds), reverse=True)
                fail(place, f"a {a} is compared with a {b}")


def _compared(node: Expr) -> Sequence[tuple[Expr, Expr]]:
    if isinstance(node, Compare):
        return [(node.left, node.right)]
    if isinstance(node, In):
        return [(node.operand, option) for option in node.options]
    if isinstance(node, Between):
        return [(node.operand, node.low), (node.operand, node.high)]
    if isinstance(node, Call) and node.name in PREFERENCES and PREFERENCES[node.name].arguments:
        return [*pairwise(node.arguments)]
    return []
