"""What a description compiles to: how sources match messages, what groups test and when, what is published (section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coincide.detect.correlation import values as cdl
from coincide.detect.correlation.evaluate import Evaluation
from coincide.detect.correlation.view import ENVELOPE, Evaluate, Message, View, message_of
from coincide.expr.tree import And, Expr, Not, Or, Reference
from coincide.lang.cdl.conditions import condition_of, filter_condition
from coincide.lang.cdl.definition import Collection, Description, Preference, Source, TimeEvent
from coincide.lang.cdl.equality import floor, followed
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.providers import open_providers
from coincide.lang.cdl.terms import Group, Literal, Term, groups, literal_sources
from coincide.model.event import Event, Value
from coincide.model.stamp import MILLISECOND

Test = Callable[[View], bool]


def microseconds(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds * MILLISECOND)


@dataclass(frozen=True, eq=False)
class SourceProgram:
    """One source, collection or time event."""

    number: int
    node: Source | Collection | TimeEvent
    within: int | None  # microseconds
    floor: int | None  # how old, by its hi, a remembered message can be and still count
    declared: tuple[tuple[str, str, bool, Evaluate | None], ...]  # name, type, optional, look-up
    own: tuple[Test, ...]  # filters that refer to no other source
    joins: tuple[tuple[frozenset[int], Expr], ...]  # join filters: all sources that they read, and the condition
    join_tests: tuple[Test, ...]
    kept: bool  # in history
    triggers: tuple[int, ...]  # time events that it sets
    trigger: int  # of a time event: the source that sets it; otherwise -1

    @property
    def anchor(self) -> str:
        return self.node.anchor

    @property
    def is_collection(self) -> bool:
        return isinstance(self.node, Collection)

    @property
    def is_time(self) -> bool:
        return self.trigger >= 0

    def content(self, message: Message) -> tuple[object, ...]:
        """What `duplicates` compares: declared attributes that are not the envelope's (section 4.7)."""
        return tuple(cdl.canonical(message.values.get(name)) for name, *_ in self.declared if name not in ENVELOPE)

    def match(self, event: Event, now: int, slots: int) -> Message | None:
        """The event as this source sees it, if it matches on its own."""
        node = self.node
        if isinstance(node, TimeEvent) or node.message_class not in (event.type, "*") or not self._admits(event):
            return None
        message = message_of(event)
        view = View((None,) * slots, now).with_message(self.number, message)
        for name, kind, optional, lookup in self.declared:
            envelope = ENVELOPE.get(name)
            raw = lookup(view) if lookup else envelope(message) if envelope else event.attributes.get(name)
            value = cdl.matched(raw, kind)
            if value is None and not optional:
                return None
            message.values[name] = value
        return message if all(test(view) for test in self.own) else None

    def _admits(self, event: Event) -> bool:
        assert not isinstance(self.node, TimeEvent)
        access = "external" if self.node.message_class == "*" and self.node.access == "any" else self.node.access
        if self.node.message_class == "*" and event.is_detection:
            return False
        if access in ("external", "internal"):
            return event.is_detection is (access == "internal")
        return access in ("any", event.source)


@dataclass(frozen=True, eq=False)
class Absence:
    """`none(x)`: sources of x that are not mapped, for which there must be no choice that makes x non-null."""

    unmapped: tuple[int, ...]
    defined: Test


@dataclass(frozen=True, eq=False)
class TermProgram:
    """When each literal of a term is decided (section 3.3)."""

    early: tuple[tuple[frozenset[int], Test], ...]
    member: dict[int, tuple[Test, ...]]  # by collection
    late: tuple[Test, ...]
    presence: tuple[tuple[Absence, bool], ...]  # at completion: is there such a choice? must there be?


@dataclass(frozen=True, eq=False)
class GroupProgram:
    number: int
    trigger: str
    pos: frozenset[int]
    cols: tuple[int, ...]  # in the order in which they are filled
    terms: tuple[TermProgram, ...]
    consumed: frozenset[int]  # collections whose members a detection uses up
    times: tuple[int, ...]  # time events in pos


@dataclass(frozen=True, eq=False)
class PreferenceProgram:
    self_: Evaluate | None
    previous: Evaluate | None
    other: Evaluate | None
    better: Evaluate | None


@dataclass(frozen=True, eq=False)
class Publication:
    message_class: str
    source: str | None
    hidden: bool
    attributes: tuple[tuple[str, str, Evaluate], ...]

    def values(self, view: View) -> dict[str, Value]:
        return {name: cdl.computed(evaluate(view), kind) for name, kind, evaluate in self.attributes}


@dataclass(frozen=True, eq=False)
class Program:
    cd: Description
    sources: tuple[SourceProgram, ...]
    groups: tuple[GroupProgram, ...]
    preferences: tuple[PreferenceProgram, ...]
    publications: dict[str, tuple[Publication, ...]]  # by trigger
    dues: dict[int, Evaluate]  # by time event

    @property
    def slots(self) -> int:
        return len(self.sources)


def compile_description(cd: Description) -> Program:
    return _Compilation(cd).program()


class _Compilation:
    def __init__(self, cd: Description) -> None:
        self.cd = cd
        self.names = Names(cd)
        self.groups = groups(cd, self.names)
        self.evaluation = Evaluation(self.names, *open_providers((*cd.providers, *cd.shared)))

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
            any(number in group.cols or any(number in neg for _, neg in group.terms) for group in self.groups),
            tuple(t for t, s in enumerate(self.cd.sources) if isinstance(s, TimeEvent) and s.trigger == node.anchor),
            self.cd.index[node.trigger] if isinstance(node, TimeEvent) else -1,
        )

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

    def _followed(self, term: Term, group: Group, sources: tuple[SourceProgram, ...]) -> list[tuple[frozenset[int], Test]]:
        """Equalities that follow from those of positive early literals and join filters."""
        given = [
            (condition_of(literal.predicate), self.names) for literal in term if literal.presence is None and not literal.negated
        ]
        given += [(tree, self.names.inside(s)) for s in sorted(group.pos) for _, tree in sources[s].joins]
        return [(self.names.sources(tree), self._condition(tree)) for tree in followed(given, self.names)]

    # Preferences, events

    def _preference(self, node: Preference) -> PreferenceProgram:
        names = (node.self_, node.previous, node.other, node.better)
        return PreferenceProgram(*(None if name is None else self.evaluation.compile(self._logic(name)) for name in names))

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
