"""Where each condition is tested (5.6): `where` is split at its `and`s, and each conjunct goes to the innermost node whose
operands bind all the aliases that it mentions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.functions import FUNCTIONS
from coincide.expr.tokens import back_quoted
from coincide.expr.tree import Alias, Call, Expr, Reference, conjuncts, with_aliases
from coincide.lang.ecco.aliases import Aliases, Names, inner_elements, ways_down
from coincide.lang.ecco.definition import As, Chain, Expression, Neg, Wrapper, core
from coincide.syntax import walk

OUTPUT, STEP, COUNTS = "output", "step", "counts"


@dataclass(frozen=True)
class Placed:
    """A conjunct at its place. OUTPUT: on what the node makes. STEP: when element number `index` joins the chain. COUNTS:
    on an occurrence of what `index` (of a chain), or the right side (of `-`), says must or must not be there.
    `whole`: aliases that mean the node's own composite."""

    node: Expression
    slot: str
    index: int
    test: Expr
    whole: Names = frozenset()


def placed(condition: Expr, closed: Expression, aliases: Aliases) -> list[Placed]:
    """The conjuncts of a condition that closes an expression. RuleError for an alias that cannot be seen from there."""
    tree = resolved(condition, aliases.reached(closed))
    return [_place(test, closed, aliases) for test in conjuncts(tree)]


def resolved(tree: Expr, known: Names) -> Expr:
    """The tree with aliases told from attributes."""
    tree = with_aliases(tree, known)
    for node in walk(tree):
        if isinstance(node, Reference) and node.alias is None and node.dots and not node.name.startswith("space."):
            nested = None if node.splits else f"a nested attribute is written {back_quoted(node.name)}"
            raise _unknown(node.name[: node.dots[0]], node, known, nested)
        if (
            isinstance(node, Call)
            and (wanted := FUNCTIONS[node.name].aliases)
            and len(node.arguments) == FUNCTIONS[node.name].most
        ):
            for argument in node.arguments[:wanted]:
                if not isinstance(argument, Alias):
                    raise _unknown(argument.name if isinstance(argument, Reference) else "", argument, known)
    return tree


def _unknown(name: str, node: Expr, known: Names, otherwise: str | None = None) -> RuleError:
    return RuleError(Diagnostic(f"unknown alias '{name}'", node.span, hint=nearest(name, known) or otherwise))


def mentioned(test: Expr) -> Names:
    names = {n.alias for n in walk(test) if isinstance(n, Reference)} | {n.name for n in walk(test) if isinstance(n, Alias)}
    return frozenset(name for name in names if name is not None)


def has_bare_name(test: Expr) -> bool:
    """Does it speak of the event under test?"""
    for node in walk(test):
        if isinstance(node, Reference) and node.alias is None:
            return True
        if isinstance(node, Call) and FUNCTIONS[node.name].aliases and not any(isinstance(a, Alias) for a in node.arguments):
            return True
    return False


def _place(test: Expr, closed: Expression, aliases: Aliases) -> Placed:
    names = mentioned(test)
    counted = any(names & aliases.counted(node) for node in _reachable(closed))
    if not names or (has_bare_name(test) and not counted):
        return _output(closed, test, names)
    return _Descent(test, names, aliases).descend(closed)


def _reachable(expression: Expression) -> Iterator[Expression]:
    yield expression
    for part in ways_down(expression):
        yield from _reachable(part)


def _output(expression: Expression, test: Expr, names: Names) -> Placed:
    """On what the node inside the wrappers makes; of a chain, that is its last step."""
    whole = frozenset(w.alias for w in wrappers(expression) if isinstance(w, As)) & names
    node = core(expression)
    if isinstance(node, Chain):
        return Placed(node, STEP, len(node.elements) - 1, test, whole)
    return Placed(node, OUTPUT, 0, test, whole)


def wrappers(expression: Expression) -> Iterator[Wrapper]:
    while isinstance(expression, Wrapper):
        yield expression
        expression = expression.operand


@dataclass(frozen=True)
class _Descent:
    test: Expr
    names: Names
    aliases: Aliases

    def descend(self, node: Expression) -> Placed:
        if isinstance(node, As) and node.alias in self.names:
            return _output(node, self.test, self.names)
        if isinstance(node, Wrapper):
            return self.descend(node.operand)
        if isinstance(node, (Chain, Neg)):
            for part in ways_down(node):
                if self.names <= self.aliases.reached(part):
                    return self.descend(part)
            return self._in_chain(node) if isinstance(node, Chain) else self._in_negation(node)
        return Placed(node, OUTPUT, 0, self.test)

    def _in_negation(self, node: Neg) -> Placed:
        others = self.names - self.aliases.bound(node.right)
        self._check(others, self.aliases.bound(node.left))
        return Placed(node, COUNTS, 0, self.test)

    def _in_chain(self, node: Chain) -> Placed:
        inner = set(map(id, inner_elements(node)))
        for index, element in enumerate(node.elements):
            inside = self.aliases.between(element) if id(element) in inner else frozenset()
            if self.names & inside:
                seen = self.aliases.bound(Chain(node.operator, node.elements[: index + 2]))
                self._check(self.names - inside, seen)
                return Placed(node, COUNTS, index, self.test)
        self._check(self.names, self.aliases.bound(node))
        return Placed(node, STEP, self._first_step(node), self.test)

    def _first_step(self, node: Chain) -> int:
        """The first element with which all are bound; a group is bound with the operand after it."""
        missing = set(self.names)
        for index, element in enumerate(node.elements):
            missing -= self.aliases.bound(element)
            if not missing:
                return max(1, index)
        return len(node.elements) - 1

    def _check(self, names: Names, known: Names) -> None:
        """Aliases of two nodes that never meet cannot be compared."""
        for node in walk(self.test):
            name = node.alias if isinstance(node, Reference) else node.name if isinstance(node, Alias) else None
            if name in names - known:
                assert name is not None
                raise _unknown(name, node, known)
