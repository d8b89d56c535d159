"""Disjunctive normal form, inducing sets and groups (sections 3.1, 3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from coincide.expr.tree import And, Expr, Not, Or, Reference
from coincide.lang.cdl.conditions import condition_of, filter_condition, presence
from coincide.lang.cdl.definition import Description, Predicate, TimeEvent
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.shape import fail
from coincide.source import Span

MAXIMUM_TERMS = 1024
MAXIMUM_ON_THE_WAY = 16 * MAXIMUM_TERMS


@dataclass(frozen=True)
class Literal:
    """A predicate or its negation. `any` and `none` are each other's: none of them is negated."""

    anchor: str
    negated: bool
    predicate: Predicate = field(compare=False)

    @property
    def presence(self) -> tuple[str, Expr] | None:
        """`any` or `none`, after the negation, and what it asks for."""
        found = presence(self.predicate)
        if found is None or not self.negated:
            return found
        return ("none" if found[0] == "any" else "any"), found[1]

    def absence(self) -> Expr | None:
        found = self.presence
        return found[1] if found is not None and found[0] == "none" else None

    @property
    def opposite(self) -> Literal:
        return Literal(self.anchor, not self.negated, self.predicate)


Term = tuple[Literal, ...]


@dataclass
class Group:
    """Terms of one trigger with the same inducing set. Instances belong to groups."""

    trigger: str
    pos: frozenset[int]
    cols: frozenset[int]
    terms: list[tuple[Term, frozenset[int]]] = field(default_factory=list)
    """Each term with its sources that must be absent."""

    @property
    def sources(self) -> frozenset[int]:
        return self.pos.union(self.cols, *(neg for _, neg in self.terms))


def groups(cd: Description, names: Names | None = None) -> list[Group]:
    """The groups of all triggers, in order. RuleError for terms that cannot be."""
    names = names or Names(cd)
    joins = join_sources(cd, names)
    found: dict[tuple[str, frozenset[int], frozenset[int]], Group] = {}
    for trigger in cd.triggers:
        expression = names.expressions[trigger]
        for term in terms(names, trigger):
            pos, cols, neg = inducing_set(term, names, joins)
            _check_term(term, pos, cols, names, trigger, expression.span)
            group = found.setdefault((trigger, pos, cols), Group(trigger, pos, cols))
            group.terms.append((term, neg))
    return list(found.values())


def _check_term(term: Term, pos: frozenset[int], cols: frozenset[int], names: Names, trigger: str, span: Span | None) -> None:
    if not pos and not cols:
        fail(span, f"expression '{trigger}' has a term that no source can trigger")
    for literal in term:
        absent = literal.absence()
        if isinstance(absent, Reference):
            meaning = names.meaning(absent)
            if meaning.attribute is None and meaning.computation is None and meaning.source in pos:
                assert meaning.source is not None
                fail(span, f"'{names.cd.sources[meaning.source].anchor}' is both required and absent in a term")


def terms(names: Names, trigger: str) -> list[Term]:
    expression = names.expressions[trigger]
    found = _NormalForm(names, expression.span).of(expression.logic, False)
    if len(found) > MAXIMUM_TERMS:
        fail(expression.span, f"expression '{trigger}' has more than {MAXIMUM_TERMS} terms")
    return found


class _NormalForm:
    """Negations move inward; `and` distributes over `or`, left operand outermost."""

    def __init__(self, names: Names, span: Span | None) -> None:
        self.names = names
        self.span = span
        self._known: dict[tuple[str, bool], list[Term]] = {}

    def of(self, tree: Expr, negated: bool) -> list[Term]:
        if isinstance(tree, Reference):
            return self._named(tree.name, negated)
        if isinstance(tree, Not):
            return self.of(tree.operand, not negated)
        assert isinstance(tree, (And, Or))
        parts = [self.of(operand, negated) for operand in tree.operands]
        if isinstance(tree, Or) is not negated:
            return _distinct(term for part in parts for term in part)
        return self._product(parts)

    def _named(self, name: str, negated: bool) -> list[Term]:
        if name in self.names.predicates:
            return [(Literal(name, negated, self.names.predicates[name]),)]
        if (name, negated) not in self._known:
            self._known[name, negated] = self.of(self.names.expressions[name].logic, negated)
        return self._known[name, negated]

    def _product(self, parts: list[list[Term]]) -> list[Term]:
        product: list[Term] = [()]
        for part in parts:
            if len(product) * len(part) > MAXIMUM_ON_THE_WAY:
                fail(self.span, f"an expression has more than {MAXIMUM_TERMS} terms")
            product = _distinct(left + right for left in product for right in part)
        return product


def _distinct(found: Iterable[Term]) -> list[Term]:
    """A literal counts once; contradictions and terms with the same literals as an earlier one are left out."""
    terms: dict[frozenset[Literal], Term] = {}
    for term in found:
        literals = dict.fromkeys(term)
        if not any(literal.opposite in literals for literal in literals):
            terms.setdefault(frozenset(literals), tuple(literals))
    return list(terms.values())


def literal_sources(literal: Literal, names: Names) -> frozenset[int]:
    found = literal.presence
    return names.sources(condition_of(literal.predicate) if found is None else found[1])


def join_sources(cd: Description, names: Names) -> dict[int, frozenset[int]]:
    """What the join filters of each source refer to."""
    found: dict[int, frozenset[int]] = {}
    for number, source in enumerate(cd.sources):
        inside = names.inside(number)
        trees = (
            []
            if isinstance(source, TimeEvent)
            else [filter_condition(source.anchor, a, f) for a in source.attributes for f in a.filters]
        )
        found[number] = frozenset[int]().union(*(inside.sources(tree) for tree in trees)) - {number}
    return found


def inducing_set(
    term: Term, names: Names, joins: dict[int, frozenset[int]]
) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    """pos, cols and neg of a term (section 3.2)."""
    present = [literal_sources(literal, names) for literal in term if literal.absence() is None]
    absent = frozenset[int]().union(*(literal_sources(literal, names) for literal in term if literal.absence() is not None))
    referred = absent.union(*present)
    cols = {s for s in referred if names.is_collection(s)}
    pos = set().union(*present) - cols
    while True:
        neg = {s for s in absent if s not in pos and not names.is_collection(s)}
        new = set().union(*(joins[s] for s in pos | cols | neg), _triggers(pos | neg, names))
        added = {s for s in new if s not in pos and s not in cols}
        if not added:
            return frozenset(pos), frozenset(cols), frozenset(neg)
        cols |= {s for s in added if names.is_collection(s)}
        pos |= {s for s in added if not names.is_collection(s)}


def _triggers(sources: set[int], names: Names) -> set[int]:
    nodes = [names.cd.sources[s] for s in sources]
    return {names.cd.index[node.trigger] for node in nodes if isinstance(node, TimeEvent)}
