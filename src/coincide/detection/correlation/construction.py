"""From a description to its program (section 3)."""

from __future__ import annotations

from itertools import permutations

from coincide.detection.correlation.evaluate import Evaluation
from coincide.detection.correlation.live import PLACE, TRIGGER, Link, Links, Rivals
from coincide.detection.correlation.program import (
    Absence,
    GroupProgram,
    PreferenceProgram,
    Program,
    Publication,
    SourceProgram,
    TermProgram,
    Test,
    microseconds,
)
from coincide.detection.correlation.view import Evaluate
from coincide.expr.tree import And, Call, Expr, Not, Or, Reference
from coincide.lang.cdl.bounds import in_microseconds, pair_bounds
from coincide.lang.cdl.conditions import condition_of, filter_condition
from coincide.lang.cdl.definition import Collection, Description, Preference, TimeEvent
from coincide.lang.cdl.equality import closure, equalities, floor, followed
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.partition import positive_conditions
from coincide.lang.cdl.preferences import PREFERENCES
from coincide.lang.cdl.providers import open_providers
from coincide.lang.cdl.terms import Group, Literal, Term, groups, literal_sources


def compile_description(cd: Description) -> Program:
    return _Compilation(cd).program()


class _Compilation:
    def __init__(self, cd: Description) -> None:
        self.cd = cd
        self.names = Names(cd)
        self.groups = groups(cd, self.names)
        self.evaluation = Evaluation(self.names, *open_providers(cd))

    def program(self) -> Program:
        sources = tuple(self._source(number) for number in range(len(self.cd.sources)))
        return Program(
            self.cd,
            sources,
            tuple(self._group(number, group, sources) for number, group in enumerate(self.groups)),
            tuple(self._preference(p) for p in self.cd.preferences),
            {trigger: self._publications(trigger) for trigger in self.cd.triggers},
            {
                number: self.evaluation.compile(source.value)
                for number, source in enumerate(self.cd.sources)
                if isinstance(source, TimeEvent)
            },
        )

    def _condition(self, tree: Expr, negated: bool = False, owner: int | None = None) -> Test:
        """The literal is true: not when its predicate is unknown, either way."""
        evaluate, wanted = self.evaluation.compile(tree, owner), not negated
        return lambda view: evaluate(view) is wanted

    # Sources

    def _source(self, number: int) -> SourceProgram:
        node = self.cd.sources[number]
        attributes = () if isinstance(node, TimeEvent) else node.attributes
        filters = [filter_condition(node.anchor, a, f) for a in attributes for f in a.filters]
        inside = self.names.inside(number)
        reads = [inside.sources(tree) | {number} for tree in filters]
        joins = tuple((read, tree) for read, tree in zip(reads, filters, strict=True) if len(read) > 1)
        return SourceProgram(
            number,
            node,
            microseconds(self.cd.within_of(node)),
            microseconds(floor(number, self.names)),
            tuple((a.name, a.type, a.optional, self._lookup(a.lookup, number)) for a in attributes),
            tuple(self._condition(t, owner=number) for r, t in zip(reads, filters, strict=True) if len(r) == 1),
            joins,
            tuple(self._condition(tree, owner=number) for _, tree in joins),
            self._join_key(number, [tree for _, tree in joins]),
            any(number in group.cols or any(number in neg for _, neg in group.terms) for group in self.groups),
            tuple(t for t, s in enumerate(self.cd.sources) if isinstance(s, TimeEvent) and s.trigger == node.anchor),
            self.cd.index[node.trigger] if isinstance(node, TimeEvent) else -1,
        )

    def _join_key(self, number: int, joins: list[Expr]) -> Link | None:
        for _, _, *pair in equalities((tree, self.names.inside(number)) for tree in joins):
            for own, other in permutations(pair):
                partner = None if other.source is None or self.names.is_collection(other.source) else other.source
                if own.source == number and own.attribute and other.attribute and partner not in (None, number):
                    assert partner is not None
                    return own.attribute, partner, other.attribute
        return None

    def _lookup(self, tree: Expr | None, owner: int) -> Evaluate | None:
        return None if tree is None else self.evaluation.compile(tree, owner)

    # Groups

    def _group(self, number: int, group: Group, sources: tuple[SourceProgram, ...]) -> GroupProgram:
        def aggregates(collection: int) -> bool:
            return any(self.names.is_collection(s) for read, _ in sources[collection].joins for s in read - {collection})

        cols = sorted(group.cols, key=lambda c: (aggregates(c), c))
        return GroupProgram(
            number,
            group.trigger,
            group.pos,
            tuple(cols),
            tuple(self._term(term, group, sources) for term, _ in group.terms),
            frozenset(c for c in cols if self._uses_up(c, group)),
            tuple(sorted(s for s in group.pos if isinstance(self.cd.sources[s], TimeEvent))),
            self._links(group, sources),
            in_microseconds(pair_bounds(group, self.names)),
        )

    def _uses_up(self, collection: int, group: Group) -> bool:
        node = self.cd.sources[collection]
        assert isinstance(node, Collection)
        return not node.reuse if node.reuse is not None else not group.pos

    def _term(self, term: Term, group: Group, sources: tuple[SourceProgram, ...]) -> TermProgram:
        early: list[tuple[frozenset[int], Test]] = []
        member: dict[int, list[Test]] = {}
        late: list[Test] = []
        presence: list[tuple[Absence, bool]] = []
        for literal in term:
            asked = literal.presence
            if asked is not None:
                self._presence(literal, asked[1], group, early, presence)
                continue
            tree = condition_of(literal.predicate)
            test = self._condition(tree, literal.negated)
            if members := self.names.members(tree):
                member.setdefault(next(iter(members)), []).append(test)
            elif self._is_late(tree):
                late.append(test)
            else:
                early.append((self.names.sources(tree), test))
        for s in sorted(group.pos):
            for (read, _), test in zip(sources[s].joins, sources[s].join_tests, strict=True):
                if any(self.names.is_collection(r) for r in read):
                    late.append(test)
                else:
                    early.append((read, test))
        early += self._followed(term, group, sources)
        return TermProgram(tuple(early), {c: tuple(tests) for c, tests in member.items()}, tuple(late), tuple(presence))

    def _presence(
        self,
        literal: Literal,
        asked: Expr,
        group: Group,
        early: list[tuple[frozenset[int], Test]],
        presence: list[tuple[Absence, bool]],
    ) -> None:
        wanted = literal.absence() is None
        read = literal_sources(literal, self.names)
        defined = self.evaluation.defined(asked)
        if wanted and not any(map(self.names.is_collection, read)) and not self.names.uses(asked, "node"):
            early.append((read, defined))
            return
        unmapped = self.names.reads(asked, through_aggregates=False) - group.pos
        presence.append((Absence(tuple(sorted(unmapped)), defined), wanted))

    def _is_late(self, tree: Expr) -> bool:
        return self.names.aggregates(tree) or self.names.uses(tree, "node")

    def _demands(self, term: Term, group: Group, sources: tuple[SourceProgram, ...]) -> list[tuple[Expr, Names]]:
        """Conditions of positive literals and join filters, in which equalities are looked for."""
        found = [(condition_of(x.predicate), self.names) for x in term if x.presence is None and not x.negated]
        return found + [(tree, self.names.inside(s)) for s in sorted(group.pos) for _, tree in sources[s].joins]

    def _followed(self, term: Term, group: Group, sources: tuple[SourceProgram, ...]) -> list[tuple[frozenset[int], Test]]:
        """Equalities that follow from those of positive early literals and join filters."""
        found = followed(self._demands(term, group, sources), self.names)
        return [(self.names.sources(tree), self._condition(tree)) for tree in found]

    def _links(self, group: Group, sources: tuple[SourceProgram, ...]) -> Links:
        found: dict[int, list[Link]] = {}
        for s in group.pos:
            node = self.cd.sources[s]
            if isinstance(node, TimeEvent):
                found.setdefault(s, []).append((TRIGGER, self.cd.index[node.trigger], PLACE))
        demanded = [closure(self._demands(term, group, sources)) for term, _ in group.terms]
        for pair in set.intersection(*(known | set(more) for known, more in demanded)):
            for own, other in permutations(pair):
                a, b = own.source, other.source
                if own.attribute and other.attribute and a is not None and b is not None and a != b:
                    found.setdefault(a, []).append((own.attribute, b, other.attribute))
        return {s: tuple(sorted(links)) for s, links in found.items()}

    # Preferences, events

    def _preference(self, node: Preference) -> PreferenceProgram:
        names = (node.self_, node.previous, node.other, node.better)
        self_, previous, other, better = (None if n is None else self.evaluation.compile(self._logic(n)) for n in names)
        return PreferenceProgram(self_, previous, other, better, self._rivals(node.other))

    def _rivals(self, name: str | None) -> Rivals:
        logic = [] if name is None else [*positive_conditions(self.names.expressions[name].logic, self.names)]
        asked = [PREFERENCES[tree.name] for tree in logic if isinstance(tree, Call) and tree.name in PREFERENCES]
        equivalent = any(predicate.same_sources for predicate in asked)
        for _, _, a, b in equalities((tree, self.names) for tree in logic):
            alike = {a.of, b.of} == {"self", "other"} and (a.source, a.attribute) == (b.source, b.attribute)
            if alike and a.source is not None and a.attribute is not None:
                return Rivals(equivalent, (a.source, a.attribute))
        return Rivals(equivalent)

    def _logic(self, name: str) -> Expr:
        """An expression with its predicates' conditions in their places: Kleene logic, no normal form (section 4.4)."""
        return self._conditions(self.names.expressions[name].logic)

    def _conditions(self, tree: Expr) -> Expr:
        if isinstance(tree, Not):
            return Not(self._conditions(tree.operand))
        if isinstance(tree, (And, Or)):
            return type(tree)(tuple(self._conditions(operand) for operand in tree.operands))
        assert isinstance(tree, Reference)
        if tree.name in self.names.predicates:
            return condition_of(self.names.predicates[tree.name])
        return self._logic(tree.name)

    def _publications(self, trigger: str) -> tuple[Publication, ...]:
        return tuple(
            Publication(
                event.message_class,
                None if event.access in ("public", "internal") else event.access,
                event.access == "internal",
                tuple((a.name, a.type, self.evaluation.compile(a.value)) for a in event.attributes),
            )
            for event in self.cd.events
            if event.trigger == trigger
        )
