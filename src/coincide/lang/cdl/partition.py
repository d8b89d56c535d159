"""By which attribute detection can be divided (section 8, by key, in parallel)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coincide.expr.tree import And, Call, Compare, Expr, Reference
from coincide.lang.cdl.conditions import condition_of, filter_condition
from coincide.lang.cdl.definition import Description, Preference, Source, TimeEvent
from coincide.lang.cdl.equality import Conditions, equalities
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.preferences import PREFERENCES
from coincide.lang.cdl.terms import Group, Term, groups

ENVELOPE = ("time", "id", "type")


def partition_of(cd: Description) -> tuple[str, ...] | None:
    """An attribute that every source has and whose equality every term and preference demands."""
    names = Names(cd)
    found = groups(cd, names)
    if not found or any(not group.pos for group in found):
        return None
    used = sorted(frozenset[int]().union(*(group.sources for group in found)))
    for key in _candidates([cd.sources[s] for s in used]):
        if all(_connects(key, term, group, names) for group in found for term, _ in group.terms) and _prefers(key, names):
            return (key,)
    return None


def _candidates(sources: Iterable[object]) -> Iterator[str]:
    """Attributes that every message has as they are. Of `time_t` equal ones may be written differently. What is repeated by one
    publisher is told by `source`, what is sent again by whomever by its content, of which `source` is no part (4.7)."""
    nodes = [s for s in sources if isinstance(s, Source)]
    common = [{a.name for a in s.attributes if not a.optional and a.lookup is None and a.type != "time_t"} for s in nodes]
    for attribute in nodes[0].attributes if nodes else ():
        name = attribute.name
        told_by = {"accept": True, "unchanged": name == "source", "replay": name != "source"}
        kept_together = all(told_by[s.duplicates] for s in nodes)
        if name not in ENVELOPE and kept_together and all(name in some for some in common):
            yield name


def _connects(key: str, term: Term, group: Group, names: Names) -> bool:
    """Do equalities of the key lead from any source of the group to every other? Time events go with their triggers."""
    neg = next(absent for other, absent in group.terms if other is term)
    sources = group.pos | group.cols | neg
    left = set(sources)
    reached = {min(sources)}
    links = [*_links(key, term, sources, names), *_triggers(sources, names)]
    while grown := {b for a, b in links if a in reached and b in left} - reached:
        reached |= grown
    return reached >= left


def _links(key: str, term: Term, sources: frozenset[int], names: Names) -> Iterator[tuple[int, int]]:
    for _, _, a, b in equalities(demands(term, sources, names)):
        if a.attribute == key == b.attribute and a.of == b.of == "self" and a.source is not None and b.source is not None:
            yield a.source, b.source
            yield b.source, a.source


def demands(term: Term, sources: frozenset[int], names: Names) -> Conditions:
    """What must hold for the term to hold: its positive literals, the filters of its sources."""
    for literal in term:
        if literal.presence is None and not literal.negated:
            yield condition_of(literal.predicate), names
    for number in sources:
        source = names.cd.sources[number]
        if isinstance(source, Source):
            for attribute in source.attributes:
                for node in attribute.filters:
                    yield filter_condition(source.anchor, attribute, node), names.inside(number)


def _triggers(sources: frozenset[int], names: Names) -> Iterator[tuple[int, int]]:
    for number in sources:
        source = names.cd.sources[number]
        if isinstance(source, TimeEvent):
            trigger = names.cd.index[source.trigger]
            yield number, trigger
            yield trigger, number


def _prefers(key: str, names: Names) -> bool:
    """Every preference that compares instances compares only those of one key."""
    return all(prefers_within_key(p, key, names) for p in names.cd.preferences if p.better is not None)


def prefers_within_key(preference: Preference, key: str | None, names: Names) -> bool:
    """Without a key: of some key."""
    if preference.other is None:
        return False
    return any(_same_key(c, key, names) for c in positive_conditions(names.expressions[preference.other].logic, names))


def positive_conditions(tree: Expr, names: Names) -> Iterator[Expr]:
    """Conditions of the predicates that must be true for the expression to be true."""
    if isinstance(tree, And):
        for operand in tree.operands:
            yield from positive_conditions(operand, names)
    elif isinstance(tree, Reference):
        if tree.name in names.predicates:
            yield condition_of(names.predicates[tree.name])
        else:
            yield from positive_conditions(names.expressions[tree.name].logic, names)


def _same_key(tree: Expr, key: str | None, names: Names) -> bool:
    if isinstance(tree, Call):
        return tree.name in PREFERENCES and PREFERENCES[tree.name].same_messages
    if isinstance(tree, And):
        return any(_same_key(operand, key, names) for operand in tree.operands)
    if not isinstance(tree, Compare):
        return False
    for _, _, a, b in equalities([(tree, names)]):
        if {a.of, b.of} == {"self", "other"} and a.attribute == b.attribute:
            return key in (None, a.attribute) or (a.attribute == "id" and a.source == b.source)
    return False
