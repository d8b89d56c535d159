"""The conditions of a description that can be divided, and why one cannot (distribution-cordies.md, sections 1.1 and 1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from coincide.expr.quantities import number_of
from coincide.expr.tree import Alias, And, Call, Compare, Expr, Reference
from coincide.lang.cdl.conditions import condition_of, filter_condition
from coincide.lang.cdl.definition import Attribute, Collection, Description, Filter, Predicate, Source, TimeEvent
from coincide.lang.cdl.names import EVENT_CALLS, Names
from coincide.lang.cdl.terms import Literal, Term, inducing_set, join_sources, terms
from coincide.syntax import walk

SELECTIVITY = {"high": 2, "medium": 1, "low": 0}


@dataclass(frozen=True)
class Condition:
    """A literal of the term, or a join filter. `predicates` say it; `negated` of a literal."""

    name: str
    predicates: tuple[Predicate, ...] = field(repr=False)
    negated: bool
    sources: frozenset[int]
    computations: tuple[str, ...]  # all that it needs, in document order
    selectivity: int
    reads_node: bool


@dataclass(frozen=True)
class Whole:
    """A description with one term: what is divided."""

    cd: Description
    names: Names
    trigger: str
    sources: tuple[int, ...]  # the inducing set, in document order
    conditions: tuple[Condition, ...]

    def overhead(self, computation: str) -> float:
        given = self.names.computations[computation].overhead
        return 1.0 if given is None else number_of(given)


def reason_against(cd: Description) -> str | None:
    """The first that applies."""
    names = Names(cd)
    found = [(trigger, term) for trigger in cd.triggers for term in terms(names, trigger)]
    if len(found) != 1:
        return "the expression has more than one term" if found else "the expression has no term"
    ((_, term),) = found
    if cd.preferences:
        return "the cd has preferences"
    absent = any(literal.absence() is not None for literal in term)
    if absent or any(isinstance(source, Collection | TimeEvent) for source in cd.sources):
        return "the cd uses collections, absence or time events"
    if _uses_whole_messages(cd, names, term):
        return "the cd uses functions of whole messages"
    plain = [source for source in cd.sources if isinstance(source, Source)]
    if any(source.duplicates != "accept" for source in plain):
        return "the cd suppresses duplicates"
    if any(source.within is not None for source in plain):
        return "the cd limits the age of single sources"
    return None


def _uses_whole_messages(cd: Description, names: Names, term: Term) -> bool:
    trees = [condition_of(literal.predicate) for literal in term if literal.presence is None]
    trees += [attribute.value for event in cd.events for attribute in event.attributes]
    if any(_is_whole(node, names) for tree in trees for node in names.expanded(tree)):
        return True
    for number, attribute, node in _filters(cd):
        inside = names.inside(number)
        tree = filter_condition(cd.sources[number].anchor, attribute, node)
        if any(_is_whole(part, inside) for part in walk(tree)):
            return True
    return False


def _is_whole(node: Expr, names: Names) -> bool:
    if isinstance(node, Alias):
        return True
    if isinstance(node, Call) and node.name in EVENT_CALLS:
        return True
    if not isinstance(node, Reference):
        return False
    meaning = names.meaning(node)
    return meaning.computation is None and meaning.attribute is None


def whole_of(cd: Description) -> Whole:
    """Of a description that nothing speaks against."""
    names = Names(cd)
    ((trigger, term),) = [(trigger, term) for trigger in cd.triggers for term in terms(names, trigger)]
    sources, _, _ = inducing_set(term, names, join_sources(cd, names))
    order = {predicate.anchor: number for number, predicate in enumerate(cd.predicates)}
    literals = sorted(term, key=lambda literal: order[literal.anchor])
    found = [_literal(literal, names) for literal in literals]
    found += [condition for number in sorted(sources) for condition in _join_filters(number, names)]
    return Whole(cd, names, trigger, tuple(sorted(sources)), tuple(found))


def _literal(literal: Literal, names: Names) -> Condition:
    found = literal.presence
    tree = condition_of(literal.predicate) if found is None else found[1]
    equal = found is None and not literal.negated and _has_equality(tree)
    hint = literal.predicate.selectivity
    selectivity = SELECTIVITY.get(hint or "", 2 if equal else 1)
    return _condition(literal.anchor, (literal.predicate,), literal.negated, tree, names, selectivity)


def _has_equality(tree: Expr) -> bool:
    if isinstance(tree, And):
        return any(map(_has_equality, tree.operands))
    return isinstance(tree, Compare) and tree.op == "="


def _join_filters(number: int, names: Names) -> Iterator[Condition]:
    """Filters that refer to other sources: the n-th of source S is called filter:S:n."""
    cd, inside, count = names.cd, names.inside(number), 0
    anchor = cd.sources[number].anchor
    for owner, attribute, node in _filters(cd):
        tree = filter_condition(anchor, attribute, node)
        if owner != number or not inside.sources(tree) - {number}:
            continue
        count += 1
        predicates = tuple(_predicates(anchor, attribute, node))
        yield _condition(f"filter:{anchor}:{count}", predicates, False, tree, inside, 2 if _has_equality(tree) else 1)


def is_join_filter(names: Names, number: int, attribute: Attribute, node: Filter) -> bool:
    tree = filter_condition(names.cd.sources[number].anchor, attribute, node)
    return bool(names.inside(number).sources(tree) - {number})


def _predicates(anchor: str, attribute: Attribute, node: Filter) -> Iterator[Predicate]:
    """The filter as predicates, one for each of its operators."""
    if not node.operators:
        yield Predicate("", None, node.values)
        return
    own = Reference(f"{anchor}.{attribute.name}")
    only = node.values[0] if len(node.values) == 1 else None
    for number, operator in enumerate(node.operators):
        bounds = len(node.operators) == 2 and isinstance(only, Call) and only.name == "range"
        values = (only.arguments[number],) if bounds and isinstance(only, Call) else node.values
        yield Predicate("", operator, (own, *values))


def _filters(cd: Description) -> Iterator[tuple[int, Attribute, Filter]]:
    for number, source in enumerate(cd.sources):
        for attribute in source.attributes if isinstance(source, Source) else ():
            yield from ((number, attribute, node) for node in attribute.filters)


def _condition(
    name: str, predicates: tuple[Predicate, ...], negated: bool, tree: Expr, names: Names, selectivity: int
) -> Condition:
    return Condition(
        name, predicates, negated, names.sources(tree), computations_of(tree, names), selectivity, names.uses(tree, "node")
    )


def computations_of(tree: Expr, names: Names) -> tuple[str, ...]:
    """All that it refers to, through others too, in document order."""
    nodes = [node for node in names.expanded(tree) if isinstance(node, Reference)]
    used = {names.meaning(node).computation for node in nodes}
    return tuple(anchor for anchor in names.computations if anchor in used)
