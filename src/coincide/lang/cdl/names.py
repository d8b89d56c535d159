"""What names mean in a description: anchors share one name space (section 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from coincide.errors import nearest
from coincide.expr.tree import Alias, Call, Expr, Reference
from coincide.lang.cdl.definition import (
    ENVELOPE_NAMES,
    AnySource,
    Attribute,
    Collection,
    Computation,
    Description,
    Expression,
    Predicate,
    TimeEvent,
)
from coincide.lang.cdl.functions import AGGREGATES, MAYBE_AGGREGATES
from coincide.lang.cdl.shape import fail
from coincide.source import Span
from coincide.syntax import walk

PREFIXES = ("self", "other", "previous")

Anchored = AnySource | tuple[int, Attribute] | Computation | Predicate | Expression


@dataclass(frozen=True)
class Meaning:
    """What a reference means: a source, an attribute of it, or a computation; `of` which instance."""

    of: str = "self"
    source: int | None = None
    attribute: str | None = None
    computation: str | None = None


@dataclass(frozen=True, eq=False)
class Names:
    """The names of one description. Those of `owner` (a source's number) are known bare in its filters and look-ups."""

    cd: Description
    owner: int | None = None
    root: Names | None = None  # where computations are read: they do not know the names of a source's attributes
    _read: dict[tuple[str, bool], frozenset[int]] = field(default_factory=dict, repr=False)
    _meanings: dict[object, Meaning] = field(default_factory=dict, repr=False)

    def inside(self, source: int) -> Names:
        return Names(self.cd, source, self._outer)

    @cached_property
    def anchors(self) -> dict[str, Anchored]:
        """Each anchor's own. Raises for one that is defined twice."""
        found: dict[str, Anchored] = {}
        for anchor, span, node in self._definitions():
            if anchor in found:
                fail(span, f"anchor '{anchor}' is defined twice")
            found[anchor] = node
        return found

    def _definitions(self) -> Iterator[tuple[str, Span | None, Anchored]]:
        for number, source in enumerate(self.cd.sources):
            yield source.anchor, source.span, source
            for attribute in () if isinstance(source, TimeEvent) else source.attributes:
                if attribute.anchor is not None:
                    yield attribute.anchor, attribute.span, (number, attribute)
        rest: list[Computation | Predicate | Expression] = [*self.cd.computations, *self.cd.predicates, *self.cd.expressions]
        yield from ((node.anchor, node.span, node) for node in rest)

    @cached_property
    def computations(self) -> dict[str, Computation]:
        return {c.anchor: c for c in self.cd.computations}

    @cached_property
    def predicates(self) -> dict[str, Predicate]:
        return {p.anchor: p for p in self.cd.predicates}

    @cached_property
    def expressions(self) -> dict[str, Expression]:
        return {e.anchor: e for e in self.cd.expressions}

    def meaning(self, node: Reference | Alias) -> Meaning:
        """Found once for each way to write a name."""
        written = (node.name, node.splits) if isinstance(node, Reference) else node.name
        if written not in self._meanings:
            self._meanings[written] = self._found(node)
        return self._meanings[written]

    def _found(self, node: Reference | Alias) -> Meaning:
        name = node.name or ""
        dots = node.dots if isinstance(node, Reference) else ()
        if dots and (of := name[: dots[0]]) in PREFIXES:
            rest = dots[0] + 1
            return self._meaning(name[rest:], of, name, tuple(dot - rest for dot in dots[1:]), node.span)
        return self._meaning(name, "self", name, dots, node.span)

    def _meaning(self, name: str, of: str, written: str, dots: tuple[int, ...], span: Span | None) -> Meaning:
        found = self.anchors.get(name)
        if isinstance(found, Computation):
            return Meaning(of, computation=name)
        if isinstance(found, tuple):
            return Meaning(of, found[0], found[1].name)
        if name in self.cd.index:
            return Meaning(of, self.cd.index[name])
        for dot in reversed(dots):
            if name[:dot] in self.cd.index:
                return self._attribute(self.cd.index[name[:dot]], name[dot + 1 :], of, span)
        if self.owner is not None and found is None and self._declares(self.owner, name):
            return Meaning(of, self.owner, name)
        hint = nearest(written, [*self.anchors])
        fail(span, f"unknown anchor '{written}' (a text value needs quotes)", hint)

    def _attribute(self, source: int, name: str, of: str, span: Span | None) -> Meaning:
        if not self._declares(source, name):
            anchor = self.cd.sources[source].anchor
            fail(span, f"source '{anchor}' declares no attribute '{name}'", nearest(name, self._declared(source)))
        return Meaning(of, source, name)

    def _declared(self, number: int) -> list[str]:
        source = self.cd.sources[number]
        return ["time"] if isinstance(source, TimeEvent) else [*(a.name for a in source.attributes), *ENVELOPE_NAMES]

    def _declares(self, number: int, name: str) -> bool:
        return name in self._declared(number)

    # What an expression reads.

    def is_collection(self, source: int) -> bool:
        return isinstance(self.cd.sources[source], Collection)

    def is_aggregate(self, node: Expr) -> bool:
        """Always, or where its one argument reads members of a collection."""
        if not isinstance(node, Call):
            return False
        if node.name in AGGREGATES:
            return True
        return node.name in MAYBE_AGGREGATES and len(node.arguments) == 1 and bool(self.members(node.arguments[0]))

    def members(self, tree: Expr) -> frozenset[int]:
        """Collections whose members the tree reads outside aggregates, through computations too."""
        return frozenset(s for s in self.reads(tree, through_aggregates=False) if self.is_collection(s))

    def sources(self, tree: Expr) -> frozenset[int]:
        """All sources that the tree reads, through computations and aggregates too."""
        return self.reads(tree, through_aggregates=True)

    def reads(self, tree: Expr, through_aggregates: bool) -> frozenset[int]:
        if not through_aggregates and self.is_aggregate(tree):
            return frozenset()
        if isinstance(tree, (Reference, Alias)) and tree.name is not None:
            meaning = self.meaning(tree)
            if meaning.computation is not None:
                return self._outer._computation_reads(meaning.computation, through_aggregates)
            assert meaning.source is not None
            return frozenset({meaning.source})
        if isinstance(tree, Alias) or (isinstance(tree, Call) and tree.name in EVENT_CALLS and self._omits_alias(tree)):
            own = frozenset() if self.owner is None else frozenset({self.owner})
            return own.union(*(self.reads(child, through_aggregates) for child in tree.children))
        return frozenset[int]().union(*(self.reads(child, through_aggregates) for child in tree.children))

    def _computation_reads(self, anchor: str, through_aggregates: bool) -> frozenset[int]:
        key = anchor, through_aggregates
        if key not in self._read:
            self._read[key] = self.reads(self.computations[anchor].value, through_aggregates)
        return self._read[key]

    def _omits_alias(self, call: Call) -> bool:
        return not any(isinstance(a, Reference) and self._names_source(a) for a in call.arguments)

    def _names_source(self, node: Reference) -> bool:
        meaning = self.meaning(node)
        return meaning.source is not None and meaning.attribute is None

    @property
    def _outer(self) -> Names:
        return self.root or self

    def aggregates(self, tree: Expr) -> bool:
        """Does the tree use an aggregate, through computations too?"""
        return any(self.is_aggregate(node) for node in self.expanded(tree))

    def uses(self, tree: Expr, function: str) -> bool:
        return any(isinstance(node, Call) and node.name == function for node in self.expanded(tree))

    def instances(self, tree: Expr) -> frozenset[str]:
        """Which instances the tree reads: self, other, previous."""
        return frozenset(self.meaning(n).of for n in walk(tree) if isinstance(n, Reference))

    def expanded(self, tree: Expr) -> Iterator[Expr]:
        """All nodes of the tree and of the computations that it refers to, each once."""
        yield from walk(tree)
        seen: set[str] = set()
        queue = self._used(tree)
        while queue:
            anchor = queue.pop()
            if anchor not in seen:
                seen.add(anchor)
                value = self.computations[anchor].value
                yield from walk(value)
                queue += self._outer._used(value)

    def _used(self, tree: Expr) -> list[str]:
        found = (self.meaning(node).computation for node in walk(tree) if isinstance(node, Reference))
        return [anchor for anchor in found if anchor is not None]


EVENT_CALLS = frozenset({"start", "end", "duration", "zone", "within_box", "within_radius"})
