"""Conditions of a description as the join tier reads them: trees of the shared expression language, over columns.

References become `source number.attribute`. What that language lacks (computations with a type, `before`, look-ups, whether a
source is mapped) becomes a *special*: a column of its own, which the combinations work out and keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from coincide.detection.correlation.program import Program
from coincide.expr.functions import FUNCTIONS
from coincide.expr.parts import Unsupported
from coincide.expr.tree import ALIAS_FUNCTIONS, Alias, Call, Expr, IsNull, Literal, Not, Reference
from coincide.lang.cdl.bounds import in_microseconds, time_bounds
from coincide.lang.cdl.conditions import condition_of, filter_condition
from coincide.lang.cdl.definition import AnySource, ComplexEvent, TimeEvent
from coincide.lang.cdl.equality import followed
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.providers import open_providers
from coincide.lang.cdl.tables import Lookup
from coincide.lang.cdl.terms import Group, Term, groups, literal_sources
from coincide.lang.cdl.terms import Literal as DecidedLiteral
from coincide.syntax import rebuilt

SPECIAL = "#"
"""The alias of specials; their names are their numbers."""


@dataclass(frozen=True, eq=False)
class Computed:
    """A computation: its value as its type."""

    tree: Expr
    kind: str
    sources: frozenset[int]


@dataclass(frozen=True, eq=False)
class Order:
    """`before` or `concurrent`."""

    name: str
    events: tuple[int, ...]

    @property
    def sources(self) -> frozenset[int]:
        return frozenset(self.events)


@dataclass(frozen=True, eq=False)
class Mapped:
    """Is there a message of the source?"""

    source: int

    @property
    def sources(self) -> frozenset[int]:
        return frozenset({self.source})


@dataclass(frozen=True, eq=False)
class Looked:
    """A look-up; equal keys are looked up once."""

    provider: Lookup
    column: Expr
    key: Expr
    sources: frozenset[int]


@dataclass(frozen=True, eq=False)
class Aggregated:
    """An aggregate of what a tree gives of each member of a collection; no tree: of the members themselves."""

    name: str
    collection: int
    tree: Expr | None

    @property
    def sources(self) -> frozenset[int]:
        return frozenset({self.collection})


Special = Computed | Order | Mapped | Looked | Aggregated


@dataclass(frozen=True)
class Condition:
    """A literal of one or more terms: decided when all its sources are mapped."""

    sources: frozenset[int]
    tree: Expr


@dataclass(frozen=True)
class Presence:
    """Whether there is to be a message of the source (a member, of a collection) with which the condition holds. No source: does
    it hold?"""

    source: int | None
    tree: Expr
    wanted: bool


@dataclass(frozen=True)
class Completion:
    """What a term asks of a complete combination: of the members of each collection, of aggregates, of what was remembered."""

    members: dict[int, tuple[Expr, ...]] = field(default_factory=dict)
    late: tuple[Expr, ...] = ()
    presence: tuple[Presence, ...] = ()


@dataclass(frozen=True, eq=False)
class Selection:
    """A group: its sources, its conditions, and for each of its terms which of them it demands. `apart`: how many microseconds,
    at most, the time of the first source is after that of the second. `cols`: its collections, in the order in which they are
    filled."""

    trigger: str
    pos: tuple[int, ...]
    conditions: tuple[Condition, ...]
    terms: tuple[frozenset[int], ...]
    apart: dict[tuple[int, int], int] = field(default_factory=dict)
    cols: tuple[int, ...] = ()
    completions: tuple[Completion, ...] = ()

    @property
    def is_remembering(self) -> bool:
        """Does what was remembered matter to it?"""
        return bool(self.cols) or any(completion != Completion() for completion in self.completions)

    def lasting(self, source: int, timely: Set[int], due: Set[int]) -> int | None:
        """How long after its time a message of a source may still be joined by one that comes later; None: for ever. `timely`
        are the sources whose messages are never older than the clock, `due` the time events that it sets: they are left out."""
        others = [other for other in self.pos if other != source and other not in due]
        later = [self.apart.get((other, source)) if other in timely else None for other in others]
        known = [most for most in later if most is not None]
        return max(known, default=0) if len(known) == len(later) else None


@dataclass(frozen=True, eq=False)
class Attribute:
    """What a source declares; `lookup` replaces the message's own value."""

    name: str
    kind: str
    optional: bool
    lookup: Expr | None


@dataclass(frozen=True, eq=False)
class Published:
    """An event: class, publisher, and name, type and value of its attributes."""

    message_class: str
    source: str | None
    attributes: tuple[tuple[str, str, Expr], ...]
    hidden: bool = False


def attributes_of(node: AnySource) -> tuple[Any, ...]:
    return () if isinstance(node, TimeEvent) else node.attributes


@dataclass(eq=False)
class Trees:
    """Everything that the join tier evaluates. Raises Unsupported, with the reason, for what it cannot."""

    program: Program
    specials: list[Special] = field(default_factory=list)

    def __post_init__(self) -> None:
        cd = self.program.cd
        self.names = Names(cd)
        self._lookups, _ = open_providers(cd)
        self._computations: dict[str, Reference] = {}
        self.sources = cd.sources
        self.declared = [[self._attribute(s, a) for a in attributes_of(node)] for s, node in enumerate(self.sources)]
        self.filters = [list(self._filters(s, own=True)) for s in range(len(self.sources))]
        self.joins = [
            [self.rewritten(t, self.names.inside(s)) for t in self._filters(s, own=False)] for s in range(len(cd.sources))
        ]
        self.dues = {s: self.rewritten(t.value, self.names) for s, t in enumerate(cd.sources) if isinstance(t, TimeEvent)}
        known = zip(groups(cd, self.names), self.program.groups, strict=True)
        self.selections = [self._selection(group, compiled.cols) for group, compiled in known]
        self.published = {
            trigger: [self._published(event) for event in cd.events if event.trigger == trigger] for trigger in cd.triggers
        }

    def _published(self, event: ComplexEvent) -> Published:
        attributes = tuple((a.name, a.type, self.rewritten(a.value, self.names)) for a in event.attributes)
        hidden = event.access == "internal"
        source = None if hidden or event.access == "public" else event.access
        return Published(event.message_class, source, attributes, hidden)

    def _attribute(self, source: int, node: Any) -> Attribute:
        lookup = None if node.lookup is None else self.rewritten(node.lookup, self.names.inside(source))
        return Attribute(node.name, node.type, node.optional, lookup)

    def _filters(self, source: int, own: bool) -> Iterator[Expr]:
        """Filters about the message alone, or join filters."""
        node, inside = self.sources[source], self.names.inside(source)
        for attribute in attributes_of(node):
            for one in attribute.filters:
                tree = filter_condition(node.anchor, attribute, one)
                if (inside.sources(tree) <= {source}) is own:
                    yield self.rewritten(tree, inside) if own else tree

    # Groups.

    def _selection(self, group: Group, cols: tuple[int, ...]) -> Selection:
        conditions: dict[Condition, int] = {}
        terms, completions = [], []
        for term, _ in group.terms:
            found = self._conditions(term, group)
            terms.append(frozenset(conditions.setdefault(c, len(conditions)) for c in found))
            completions.append(self._completion(term, group))
        apart = in_microseconds(time_bounds(group, self.names))
        pos = tuple(sorted(group.pos))
        return Selection(group.trigger, pos, tuple(conditions), tuple(terms), apart, cols, tuple(completions))

    def _conditions(self, term: Term, group: Group) -> Iterator[Condition]:
        """Those that are decided as soon as their sources are mapped."""
        demanded: list[tuple[Expr, Names]] = []
        for literal in term:
            asked = literal.presence
            if asked is not None:
                yield from self._presence(asked[1], literal, group)
                continue
            tree = condition_of(literal.predicate)
            if not literal.negated:
                demanded.append((tree, self.names))
            if not self._is_late(tree, self.names):
                yield Condition(self.names.sources(tree), self._literal(literal))
        for source in sorted(group.pos):
            inside = self.names.inside(source)
            for tree in self._filters(source, own=False):
                demanded.append((tree, inside))
                if not self._is_late(tree, inside):
                    yield Condition(inside.sources(tree) | {source}, self.rewritten(tree, inside))
        for tree in followed(demanded, self.names):
            yield Condition(self.names.sources(tree), self.rewritten(tree, self.names))

    def _literal(self, literal: DecidedLiteral) -> Expr:
        tree = condition_of(literal.predicate)
        return self.rewritten(Not(tree) if literal.negated else tree, self.names)

    def _presence(self, asked: Expr, literal: DecidedLiteral, group: Group) -> Iterator[Condition]:
        """`none` of what has all its sources mapped is decided when the combination is complete."""
        sources, wanted = literal_sources(literal, self.names), literal.absence() is None
        if sources <= group.pos:
            yield Condition(sources if wanted else group.pos, self.rewritten(IsNull(asked, wanted), self.names))

    def _is_late(self, tree: Expr, names: Names) -> bool:
        return any(names.is_collection(source) for source in names.sources(tree))

    def _completion(self, term: Term, group: Group) -> Completion:
        members: dict[int, tuple[Expr, ...]] = {}
        late: list[Expr] = []
        presence: list[Presence] = []
        for literal in term:
            asked, tree = literal.presence, condition_of(literal.predicate)
            if asked is not None:
                presence += self._remembered(asked[1], literal, group)
            elif read := self.names.members(tree):
                collection = next(iter(read))
                members[collection] = (*members.get(collection, ()), self._literal(literal))
            elif self._is_late(tree, self.names):
                late.append(self._literal(literal))
        for source in sorted(group.pos):
            inside = self.names.inside(source)
            late += [self.rewritten(t, inside) for t in self._filters(source, own=False) if self._is_late(t, inside)]
        return Completion(members, tuple(late), tuple(presence))

    def _remembered(self, asked: Expr, literal: DecidedLiteral, group: Group) -> Iterator[Presence]:
        if literal_sources(literal, self.names) <= group.pos:
            return
        unmapped = sorted(self.names.reads(asked, through_aggregates=False) - group.pos)
        if len(unmapped) > 1 or any(isinstance(self.sources[s], TimeEvent) for s in unmapped):
            raise Unsupported("absence of several sources at once, or of a time event")
        tree = self.rewritten(IsNull(asked, True), self.names)
        yield Presence(unmapped[0] if unmapped else None, tree, literal.absence() is None)

    # Expressions.

    def rewritten(self, tree: Expr, names: Names) -> Expr:
        if isinstance(tree, Reference):
            return self._reference(tree, names)
        if isinstance(tree, IsNull) and (source := self._source(tree.operand, names)) is not None:
            mapped = self._special(Mapped(source))
            return mapped if tree.negated else Not(mapped)
        if isinstance(tree, Call):
            return self._call(tree, names)
        return rebuilt(tree, lambda inner: self.rewritten(inner, names))

    def _reference(self, node: Reference, names: Names) -> Expr:
        meaning = names.meaning(node)
        if meaning.computation is not None:
            return self._computation(meaning.computation)
        if meaning.attribute is None:
            return Literal(None)  # a source is no value
        return Reference(meaning.attribute, str(meaning.source))

    def _computation(self, anchor: str) -> Reference:
        if anchor not in self._computations:
            node = self.names.computations[anchor]
            tree = self.rewritten(node.value, self.names)
            self._computations[anchor] = self._special(Computed(tree, node.type, self.names.sources(node.value)))
        return self._computations[anchor]

    def _source(self, tree: Expr, names: Names) -> int | None:
        if not isinstance(tree, Reference):
            return None
        meaning = names.meaning(tree)
        return meaning.source if meaning.attribute is None and meaning.computation is None else None

    def _special(self, special: Special) -> Reference:
        self.specials.append(special)
        return Reference(str(len(self.specials) - 1), SPECIAL)

    def _call(self, node: Call, names: Names) -> Expr:
        if names.is_aggregate(node) and node.name != "set":
            return self._aggregate(node, names)
        if node.name in ("before", "concurrent"):
            sources = [self._source(a, names) for a in node.arguments]
            return self._special(Order(node.name, tuple(s for s in sources if s is not None)))
        if node.name == "lookup":
            return self._lookup(node, names)
        if node.name in ALIAS_FUNCTIONS:
            return Call(node.name, self._event_arguments(node, names))
        if node.name not in FUNCTIONS:
            raise Unsupported(REASONS.get(node.name, f"function '{node.name}'"))
        return Call(node.name, tuple(self.rewritten(a, names) for a in node.arguments))

    def _event_arguments(self, node: Call, names: Names) -> tuple[Expr, ...]:
        sources = [self._source(a, names) for a in node.arguments]
        pairs = zip(node.arguments, sources, strict=True)
        arguments = tuple(self.rewritten(a, names) if s is None else Alias(str(s)) for a, s in pairs)
        if names.owner is None or any(s is not None for s in sources):
            return arguments
        return (Alias(str(names.owner)), *(a for a in arguments if not isinstance(a, Alias)))

    def _aggregate(self, node: Call, names: Names) -> Expr:
        (argument,) = node.arguments
        (collection,) = names.members(argument)
        counted = node.name == "count" and self._source(argument, names) is not None
        return self._special(Aggregated(node.name, collection, None if counted else self.rewritten(argument, names)))

    def _lookup(self, node: Call, names: Names) -> Expr:
        name, column, key = node.arguments
        assert isinstance(name, Literal)
        assert isinstance(name.value, str)
        trees = self.rewritten(column, names), self.rewritten(key, names)
        return self._special(Looked(self._lookups[name.value], *trees, names.sources(node)))


REASONS = {
    "node": "node context",
    "predicate": "a predicate of this installation",
    **dict.fromkeys(("set", "range", "overlaps"), "sets and ranges"),
}


def reasons(program: Program, trees: Callable[[], Trees]) -> tuple[str, ...]:
    """Why the join tier cannot do it, in words; empty: it can. `trees` makes those of the program."""
    cd = program.cd
    asked = {
        "preferences": cd.preferences,
        "suppression of duplicates": any(source.duplicates != "accept" for source in program.sources),
        "disjoint messages": cd.disjoint,
        "collections that are used up": any(group.consumed for group in program.groups),
        "collections alone": any(not group.pos for group in program.groups),
        "time events that time events set": any(source.is_time and source.triggers for source in program.sources),
        "several sources of one class that set time events": _set_together(program),
    }
    found = [reason for reason, used in asked.items() if used]
    if not found:
        try:
            trees()
        except Unsupported as unsupported:
            found.append(unsupported.reason)
    return tuple(f"description '{cd.id}' uses {reason}" for reason in found)


def _set_together(program: Program) -> bool:
    """Can one message set time events of several sources?"""
    classes = [source.message_class for source in program.sources if source.triggers]
    return len(classes) > 1 and (len(set(classes)) < len(classes) or "*" in classes)
