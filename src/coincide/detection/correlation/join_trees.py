"""Conditions of a description as the join tier reads them: trees of the shared expression language, over columns.

References become `source number.attribute`. What that language lacks (computations with a type, `before`, look-ups, whether a
source is mapped) becomes a *special*: a column of its own, which the combinations work out and keep."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from coincide.detection.correlation.program import Program
from coincide.expr.functions import FUNCTIONS
from coincide.expr.parts import Unsupported
from coincide.expr.tree import ALIAS_FUNCTIONS, Alias, Call, Expr, IsNull, Literal, Not, Reference
from coincide.lang.cdl.bounds import in_microseconds, time_bounds
from coincide.lang.cdl.conditions import condition_of, filter_condition
from coincide.lang.cdl.definition import Collection, ComplexEvent, Source, TimeEvent
from coincide.lang.cdl.equality import followed
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.providers import open_providers
from coincide.lang.cdl.tables import Lookup
from coincide.lang.cdl.terms import Group, Term, groups, literal_sources
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


Special = Computed | Order | Mapped | Looked


@dataclass(frozen=True)
class Condition:
    """A literal of one or more terms: decided when all its sources are mapped."""

    sources: frozenset[int]
    tree: Expr


@dataclass(frozen=True, eq=False)
class Selection:
    """A group: its sources, its conditions, and for each of its terms which of them it demands. `apart`: how many microseconds,
    at most, the time of the first source is after that of the second."""

    trigger: str
    pos: tuple[int, ...]
    conditions: tuple[Condition, ...]
    terms: tuple[frozenset[int], ...]
    apart: dict[tuple[int, int], int] = field(default_factory=dict)

    def lasting(self, source: int, timely: Set[int]) -> int | None:
        """How long after its time a message of a source may still be joined by one that comes later; None: for ever. `timely`
        are the sources whose messages are never older than the clock."""
        later = [self.apart.get((other, source)) if other in timely else None for other in self.pos if other != source]
        known = [most for most in later if most is not None]
        return max(known) if len(known) == len(later) else None


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
        self.sources = [node for node in cd.sources if isinstance(node, Source)]
        self.declared = [[self._attribute(s, a) for a in node.attributes] for s, node in enumerate(self.sources)]
        self.filters = [list(self._filters(s, own=True)) for s in range(len(self.sources))]
        self.selections = [self._selection(group) for group in groups(cd, self.names)]
        self.published = {
            trigger: [self._published(event) for event in cd.events if event.trigger == trigger] for trigger in cd.triggers
        }

    def _published(self, event: ComplexEvent) -> Published:
        attributes = tuple((a.name, a.type, self.rewritten(a.value, self.names)) for a in event.attributes)
        return Published(event.message_class, None if event.access == "public" else event.access, attributes)

    def _attribute(self, source: int, node: Any) -> Attribute:
        lookup = None if node.lookup is None else self.rewritten(node.lookup, self.names.inside(source))
        return Attribute(node.name, node.type, node.optional, lookup)

    def _filters(self, source: int, own: bool) -> Iterator[Expr]:
        """Filters about the message alone, or join filters."""
        node, inside = self.sources[source], self.names.inside(source)
        for attribute in node.attributes:
            for one in attribute.filters:
                tree = filter_condition(node.anchor, attribute, one)
                if (inside.sources(tree) <= {source}) is own:
                    yield self.rewritten(tree, inside) if own else tree

    # Groups.

    def _selection(self, group: Group) -> Selection:
        conditions: dict[Condition, int] = {}
        terms = []
        for term, _ in group.terms:
            found = self._conditions(term, group)
            terms.append(frozenset(conditions.setdefault(c, len(conditions)) for c in found))
        apart = in_microseconds(time_bounds(group, self.names))
        return Selection(group.trigger, tuple(sorted(group.pos)), tuple(conditions), tuple(terms), apart)

    def _conditions(self, term: Term, group: Group) -> Iterator[Condition]:
        demanded: list[tuple[Expr, Names]] = []
        for literal in term:
            asked = literal.presence
            if asked is not None:
                yield self._presence(asked[1], literal.absence() is None, literal_sources(literal, self.names), group)
                continue
            tree = condition_of(literal.predicate)
            if not literal.negated:
                demanded.append((tree, self.names))
            yield Condition(self.names.sources(tree), self.rewritten(Not(tree) if literal.negated else tree, self.names))
        for source in sorted(group.pos):
            inside = self.names.inside(source)
            for tree in self._filters(source, own=False):
                demanded.append((tree, inside))
                yield Condition(inside.sources(tree) | {source}, self.rewritten(tree, inside))
        for tree in followed(demanded, self.names):
            yield Condition(self.names.sources(tree), self.rewritten(tree, self.names))

    def _presence(self, asked: Expr, wanted: bool, sources: frozenset[int], group: Group) -> Condition:
        """`none` of what has all its sources mapped is decided when the combination is complete."""
        if not sources <= group.pos:
            raise Unsupported("absence of a source")
        return Condition(sources if wanted else group.pos, self.rewritten(IsNull(asked, wanted), self.names))

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


def reasons(program: Program) -> tuple[str, ...]:
    """Why the join tier cannot do it, in words; empty: it can."""
    cd = program.cd
    found: dict[str, None] = {}
    if cd.preferences:
        found["preferences"] = None
    if any(isinstance(node, TimeEvent) for node in cd.sources):
        found["time events"] = None
    if any(isinstance(node, Collection) for node in cd.sources):
        found["collections"] = None
    if any(source.duplicates != "accept" for source in program.sources):
        found["suppression of duplicates"] = None
    if any(event.access == "internal" for event in cd.events):
        found["internal events"] = None
    if cd.disjoint:
        found["disjoint messages"] = None
    if not found:
        try:
            Trees(program)
        except Unsupported as unsupported:
            found[unsupported.reason] = None
    return tuple(f"description '{cd.id}' uses {reason}" for reason in found)
