"""What names in predicates mean (ECL-3), and predicates with the named ones in their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coincide.errors import Diagnostic, RuleError
from coincide.expr.quantities import UNITS
from coincide.expr.tokens import Token, back_quoted
from coincide.expr.tree import And, Compare, Expr, Literal, Not, Or, Reference
from coincide.lang.ecl.syntax import Phrase, PredicateSyntax
from coincide.source import SourceText, Span
from coincide.syntax import rebuilt

FIELDS = frozenset({"type", "id", "source", "time", "from", "space"})

# A few lines of names that double one another are a predicate that no memory holds, a chain of names one that no recursive
# pass survives: limits far above what people write. Sizes are numbers of tokens.
MAXIMUM_EXPANDED_DEPTH = 200
MAXIMUM_EXPANDED_SIZE = 100_000
MAXIMUM_FILE_SIZE = 10_000_000


@dataclass(frozen=True)
class Expanded:
    """A predicate or value without named predicates: its tree, its tokens, and how deep the tree is."""

    tree: Expr
    tokens: tuple[str, ...]
    depth: int


class Expansion:
    """Expands the phrases of one file; `uses` remembers what stands for the token at each offset."""

    def __init__(self, source: SourceText, predicates: Iterable[PredicateSyntax]) -> None:
        self.source = source
        self.predicates: dict[str, Phrase] = {}
        for predicate in predicates:
            self._define(predicate)
        self._done: dict[str, Expanded] = {}
        self._path: list[str] = []  # the names that are being expanded, outermost first
        self._uses: dict[int, Expanded] = {}
        self._deepest = 0
        self._spent = 0

    def expand_all(self) -> None:
        """Every named predicate, also those that nothing uses: their errors count too."""
        for name in self.predicates:
            if name not in self._done:
                self._named(name, 0)

    def predicate(self, phrase: Phrase) -> Expanded:
        return self._expanded(phrase, boolean=True, depth=0)

    def value(self, phrase: Phrase) -> Expanded:
        return self._expanded(phrase, boolean=False, depth=0)

    def flat(self, tokens: Iterable[Token]) -> Iterator[str]:
        """The tokens, with those of a named predicate in parentheses in the place of each use of it."""
        for token in tokens:
            use = self._uses.get(token.start)
            if use is None:
                yield token.text
            else:
                yield "("
                yield from use.tokens
                yield ")"

    def error(self, place: Token | Span, message: str, hint: str | None = None) -> RuleError:
        return RuleError(Diagnostic(message, self.source.span(place.start, place.end), hint=hint))

    def _define(self, predicate: PredicateSyntax) -> None:
        name = predicate.name.text
        if name in UNITS:
            raise self.error(predicate.name, f"'{name}' is a unit of time and cannot name a predicate")
        if name in self.predicates:
            first = self.source.place(self.predicates[name].tokens[0].start)[0]
            raise self.error(predicate.name, f"predicate '{name}' is already defined", f"it is defined on line {first}")
        self.predicates[name] = predicate.phrase

    def _named(self, name: str, depth: int) -> Expanded:
        outer, self._deepest = self._deepest, depth
        self._path.append(name)
        expanded = self._expanded(self.predicates[name], boolean=True, depth=depth)
        self._path.pop()
        self._deepest = max(outer, self._deepest)
        self._done[name] = expanded
        return expanded

    def _expanded(self, phrase: Phrase, boolean: bool, depth: int) -> Expanded:
        self._deepest = depth
        tree = self._resolved(phrase.tree, boolean, depth)
        deepest = self._deepest
        self._check_size(phrase)
        return Expanded(tree, tuple(self.flat(phrase.tokens)), deepest - depth)

    def _check_size(self, phrase: Phrase) -> None:
        """Before the tokens are put together, at the use that makes them too many."""
        size = len(phrase.tokens)
        for token in phrase.tokens:
            use = self._uses.get(token.start)
            if use is None:
                continue
            size += len(use.tokens) + 1
            self._spent += len(use.tokens)
            if size > MAXIMUM_EXPANDED_SIZE or self._spent > MAXIMUM_FILE_SIZE:
                raise self.error(token, f"the predicates grow too large with '{token.text}' replaced by its definition")

    def _resolved(self, node: Expr, boolean: bool, depth: int) -> Expr:
        """The operands of `and`, `or`, `not` are boolean positions wherever they occur; all else inside is a value."""
        self._deepest = max(self._deepest, depth)
        if isinstance(node, Reference):
            return self._test(node, depth) if boolean else self._attribute(node)
        inside = isinstance(node, And | Or | Not)
        return rebuilt(node, lambda inner: self._resolved(inner, inside, depth + 1))

    def _attribute(self, node: Reference) -> Expr:
        assert node.span is not None
        if node.dots:
            raise self.error(
                node.span,
                f"'{node.name}': a predicate sees one event only, so a reference has no alias",
                f"write '{node.name.rpartition('.')[2]}', or {back_quoted(node.name)} for a nested attribute",
            )
        return node

    def _test(self, node: Reference, depth: int) -> Expr:
        name, span = node.name, node.span
        assert span is not None
        if name in FIELDS:
            message = f"'{name}' is a field of every event, not an event type or a predicate"
            raise self.error(span, message, f"compare it with something, or write type = '{name}' for an event type")
        if name not in self.predicates:
            return Compare("=", Reference("type", span=span), Literal(name, span=span), span=span)
        expanded = self._used(name, span, depth)
        self._uses[span.start] = expanded
        return expanded.tree

    def _used(self, name: str, span: Span, depth: int) -> Expanded:
        if name in self._path:
            raise self.error(span, f"predicate '{name}' is defined by itself", self._circle(name))
        known = self._done.get(name)
        if depth + (1 if known is None else known.depth + 1) > MAXIMUM_EXPANDED_DEPTH:
            message = f"the expression is nested more than {MAXIMUM_EXPANDED_DEPTH} deep with '{name}' replaced by its definition"
            raise self.error(span, message)
        if known is None:
            return self._named(name, depth + 1)
        self._deepest = max(self._deepest, depth + 1 + known.depth)
        return known

    def _circle(self, name: str) -> str | None:
        on_the_way = self._path[self._path.index(name) + 1 :]
        return f"through {', '.join(repr(n) for n in on_the_way)}" if on_the_way else None
