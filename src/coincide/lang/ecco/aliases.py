"""Which aliases a definition has, and where they can be seen (5.1, 5.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from coincide.errors import Diagnostic, RuleError
from coincide.lang.ecco.definition import (
    SEQUENCE,
    Alt,
    As,
    At,
    Chain,
    Delay,
    Expression,
    Iter,
    Neg,
    Not,
    Null,
    Ref,
    Within,
    Wrapper,
    core,
)
from coincide.syntax import walk

Names = frozenset[str]
NONE: Names = frozenset()


class Aliases:
    """The aliases of one definition. A name referred to exactly once is also its own alias."""

    def __init__(self, body: Expression) -> None:
        given = [node for node in walk(body) if isinstance(node, As)]
        self.given: Names = frozenset(node.alias for node in given)
        _check_distinct(given)
        counts = Counter(node.type for node in walk(body) if isinstance(node, Ref) and node.type is not None)
        self.implicit: Names = frozenset(name for name, count in counts.items() if count == 1) - self.given

    def bound(self, expression: Expression) -> Names:
        """Aliases that the expression's occurrences bind. Those inside iterations, selections and silences end there."""
        if isinstance(expression, Ref):
            return self.implicit & {expression.type or ""}
        if isinstance(expression, As):
            return self.bound(expression.operand) | {expression.alias}
        if isinstance(expression, (Wrapper, Delay)):
            return self.bound(expression.operand)
        if isinstance(expression, Neg):
            return self.bound(expression.left)
        if isinstance(expression, (Chain, Alt)):
            return NONE.union(*map(self.bound, expression.children))
        return NONE

    def counted(self, expression: Expression) -> Names:
        """Aliases of what is negated, or a member of a group, directly in this node: a condition that mentions one says
        which occurrences count."""
        if isinstance(expression, Neg):
            return self.bound(expression.right)
        if isinstance(expression, Chain):
            return NONE.union(*(self.between(e) for e in inner_elements(expression)))
        return NONE

    def between(self, element: Expression) -> Names:
        """Aliases inside a gap, a group or a silence."""
        inner = core(element, (As, At, Within))
        return self.bound(inner.operand) if isinstance(inner, (Iter, Not)) else NONE

    def reached(self, expression: Expression) -> Names:
        """All that a condition on the expression may mention."""
        found = self.bound(expression) | self.counted(expression)
        return found.union(*(self.reached(part) for part in ways_down(expression)))


def ways_down(expression: Expression) -> Iterator[Expression]:
    """Where conditions go: through wrappers, into operands of chains and the left side of `-` (5.6)."""
    if isinstance(expression, Wrapper):
        yield expression.operand
    elif isinstance(expression, Neg):
        yield expression.left
    elif isinstance(expression, Chain):
        inner = set(map(id, inner_elements(expression)))
        yield from (element for element in expression.elements if id(element) not in inner)


def inner_elements(chain: Chain) -> list[Expression]:
    """Elements of a `;` chain that are gaps, groups or silences."""
    if chain.operator != SEQUENCE:
        return []
    last = len(chain.elements) - 1
    return [
        e for n, e in enumerate(chain.elements) if is_gap(e) or (is_silence(e) and n > 0) or (is_iteration(e) and 0 < n < last)
    ]


def is_gap(element: Expression) -> bool:
    return isinstance(element, Null) or (isinstance(element, Not) and element.over is None)


def is_silence(element: Expression) -> bool:
    """With at most `as`, `@` and `within` around the `not` (5.2)."""
    inner = core(element, (As, At, Within))
    return isinstance(inner, Not) and inner.over is not None


def is_iteration(element: Expression) -> bool:
    """With at most `as` and `@` around it; between two operands of a sequence it is a group (5.3)."""
    return isinstance(core(element, (As, At)), Iter)


def _check_distinct(given: list[As]) -> None:
    seen: set[str] = set()
    for node in given:
        if node.alias in seen:
            raise RuleError(Diagnostic(f"alias '{node.alias}' is already used", node.span))
        seen.add(node.alias)
