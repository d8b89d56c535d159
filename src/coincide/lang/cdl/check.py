"""What is wrong with a description: names, arities, types, circles, collections, absence, terms (section 5)."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.errors import nearest
from coincide.expr.functions import BOOLEAN, NUMBER
from coincide.expr.tree import Call, Expr, Literal, Reference
from coincide.lang.cdl.conditions import condition_of, filter_condition, presence
from coincide.lang.cdl.definition import ENVELOPE_NAMES, Attribute, ComplexEvent, Description, Filter, Predicate, TimeEvent
from coincide.lang.cdl.functions import ORDERS, PRESENCE, predicate_kind, predicate_names
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.providers import check_provider, use_contexts, used_lookup
from coincide.lang.cdl.shape import fail
from coincide.lang.cdl.terms import groups
from coincide.lang.cdl.typing import check_comparisons, kind_of
from coincide.source import Span
from coincide.syntax import walk

INSTANCES_ONLY = "references to other instances are for preferences only"


def check(cd: Description) -> None:
    """RuleError at the first error."""
    _Check(cd).run()


class _Check:
    def __init__(self, cd: Description) -> None:
        self.cd = cd
        self.names = Names(cd)

    def run(self) -> None:
        assert self.names.anchors  # defines them all, so the first that is there twice is noticed
        for provider in (*self.cd.shared, *self.cd.providers):
            check_provider(provider)
        self._circles()
        for computation in self.cd.computations:
            self._value(computation.value, self.names, computation.span)
        for number, source in enumerate(self.cd.sources):
            if isinstance(source, TimeEvent):
                self._time(source)
            else:
                self._attributes(number, source.anchor, source.attributes)
        self._predicates()
        self._uses()
        for event in self.cd.events:
            self._event(event)
        groups(self.cd, self.names)

    # Circles

    def _circles(self) -> None:
        computations = {
            c.anchor: [n.name for n in walk(c.value) if isinstance(n, Reference) and n.name in self.names.computations]
            for c in self.cd.computations
        }
        for c in self.cd.computations:
            if _reaches_itself(c.anchor, computations):
                fail(c.span, f"computation '{c.anchor}' refers to itself")
        for source in self.cd.sources:
            if isinstance(source, TimeEvent):
                self._trigger(source)
        triggers = {s.anchor: [s.trigger] for s in self.cd.sources if isinstance(s, TimeEvent)}
        for source in self.cd.sources:
            if source.anchor in triggers and _reaches_itself(source.anchor, triggers):
                fail(source.span, f"time event '{source.anchor}' triggers itself")

    def _trigger(self, time: TimeEvent) -> None:
        number = self.cd.index.get(time.trigger)
        if number is None or self.names.is_collection(number):
            fail(time.span, f"trigger '{time.trigger}' is not a source or time event of this cd")

    # Sources

    def _time(self, time: TimeEvent) -> None:
        trigger = self.cd.index[time.trigger]
        self._value(time.value, self.names, time.span)
        if self.names.sources(time.value) - {trigger} or self.names.uses(time.value, "node"):
            fail(time.span, f"time event '{time.anchor}' may refer to its trigger '{time.trigger}' only")
        kind = kind_of(time.value, self.names)
        if time.relative and kind not in (NUMBER, None):
            shown = time.value.value if isinstance(time.value, Literal) else f"a {kind}"
            fail(time.span, f"'relative' is not a duration: {shown}")

    def _attributes(self, number: int, anchor: str, attributes: tuple[Attribute, ...]) -> None:
        inside = self.names.inside(number)
        declared: set[str] = set()
        for attribute in attributes:
            if attribute.lookup is not None:
                self._value(attribute.lookup, inside, attribute.span)
                self._key(attribute, inside, number, declared)
            for node in attribute.filters:
                self._filter(number, anchor, attribute, node)
            declared.add(attribute.name)

    def _key(self, attribute: Attribute, inside: Names, number: int, declared: set[str]) -> None:
        """A look-up's key comes from the attributes that are declared before it."""
        assert attribute.lookup is not None
        for node in walk(attribute.lookup):
            if isinstance(node, Reference):
                meaning = inside.meaning(node)
                if (
                    meaning.source != number
                    or meaning.attribute is None
                    or meaning.attribute not in declared.union(ENVELOPE_NAMES)
                ):
                    fail(node.span, f"a look-up's key comes from the attributes declared before it, not '{node.name}'")

    def _filter(self, number: int, anchor: str, attribute: Attribute, node: Filter) -> None:
        inside = self.names.inside(number)
        bound_wise = len(node.operators) == 2 and len(node.values) == 1 and getattr(node.values[0], "name", "") == "range"
        for operator in node.operators:
            self._operator(operator, 2 if bound_wise else 1 + len(node.values), node)
        condition = filter_condition(anchor, attribute, node)
        self._whole(condition, node.span)
        self._value(condition, inside, node.span)
        if inside.members(condition) - {number}:
            fail(node.span, "a filter cannot refer to members of a collection")
        if kind_of(condition, inside) not in (BOOLEAN, None):
            fail(node.span, "the filter is not a condition")

    def _operator(self, operator: str, count: int, node: Filter) -> None:
        kind = predicate_kind(operator)
        if kind is None:
            fail(node.span, f"unknown predicate '{operator}'", nearest(operator, predicate_names()))
        if kind.name in PRESENCE:
            fail(node.span, f"'{kind.name}' must be a whole predicate")
        if kind.preference:
            fail(node.span, f"predicate '{operator}' is for preferences only")
        if not kind.accepts(count):
            fail(node.span, f"predicate '{operator}' takes {kind.arity} arguments, not {count}")

    # Values

    def _value(self, tree: Expr, names: Names, span: Span | None, preference: bool = False) -> None:
        """Names, functions, providers, aggregates, types; where it may not refer to other instances, that too."""
        for node in walk(tree):
            if isinstance(node, Reference):
                names.meaning(node)
            elif isinstance(node, Call):
                self._call(node, names, span)
        if not preference:
            self._whole(tree, span)
            if names.instances(tree) - {"self"}:
                fail(span, INSTANCES_ONLY)
        check_comparisons(tree, names, span)

    def _call(self, node: Call, names: Names, span: Span | None) -> None:
        if names.is_aggregate(node) and len(names.members(node.arguments[0])) != 1:
            fail(span, f"'{node.name}' must refer to one collection")
        if node.name == "lookup":
            self._lookup(node, span)
        if node.name == "node":
            use_contexts(self.cd)
        if node.name in ORDERS and not all(self._is_source(a) for a in node.arguments):
            fail(span, f"'{node.name}' takes sources")

    def _lookup(self, node: Call, span: Span | None) -> None:
        name, column = node.arguments[:2]
        if not isinstance(name, Literal) or not isinstance(name.value, str):
            fail(span, "the provider of a look-up must be a text")
        provider = used_lookup(name.value, self.cd)
        if provider is None:
            known = [*(p.name for p in (*self.cd.providers, *self.cd.shared)), *self.cd.installed.lookups]
            fail(span, f"unknown provider '{name.value}'", nearest(name.value, known))
        columns = getattr(provider, "columns", None)
        if columns is not None and isinstance(column, Literal) and column.value not in columns:
            hint = nearest(str(column.value), columns) or f"there are {', '.join(sorted(columns))}"
            fail(span, f"provider '{name.value}' has no column '{column.value}'", hint)

    def _is_source(self, tree: Expr) -> bool:
        if not isinstance(tree, Reference):
            return False
        meaning = self.names.meaning(tree)
        return meaning.source is not None and meaning.attribute is None and not self.names.is_collection(meaning.source)

    def _whole(self, tree: Expr, span: Span | None) -> None:
        for node in walk(tree):
            if isinstance(node, Call) and node.name in PRESENCE:
                fail(span, f"'{node.name}' must be a whole predicate")

    # Predicates

    def _predicates(self) -> None:
        used = self._reachable(e for p in self.cd.preferences for e in p.expressions)
        triggered = self._reachable(self.cd.triggers)
        for predicate in self.cd.predicates:
            self._arity(predicate)
            only_preferred = predicate.anchor in used and predicate.anchor not in triggered
            self._predicate(predicate, only_preferred)
            if predicate.anchor in triggered and self._is_for_preferences(predicate):
                fail(predicate.span, f"predicate '{predicate.anchor}' is for preferences only")

    def _arity(self, predicate: Predicate) -> None:
        if predicate.name is None:
            return
        kind = predicate_kind(predicate.name)
        if kind is None:
            fail(predicate.span, f"unknown predicate '{predicate.name}'", nearest(predicate.name, predicate_names()))
        if not kind.accepts(len(predicate.arguments)):
            fail(predicate.span, f"predicate '{predicate.name}' takes {kind.arity} arguments, not {len(predicate.arguments)}")

    def _predicate(self, predicate: Predicate, preference: bool) -> None:
        asked = presence(predicate)
        if asked is not None:
            if not isinstance(asked[1], Reference):
                fail(predicate.span, f"'{asked[0]}' takes one reference")
            self._value(asked[1], self.names, predicate.span, preference=True)
            return
        condition = condition_of(predicate)
        self._value(condition, self.names, predicate.span, preference=True)
        if not preference:
            self._whole(condition, predicate.span)
        if kind_of(condition, self.names) not in (BOOLEAN, None):
            fail(predicate.span, f"predicate '{predicate.anchor}' is not a condition")
        members = self.names.members(condition)
        if members and preference:
            self._no_members(condition, predicate.span)
        if len(members) > 1 or (members and self.names.aggregates(condition)):
            fail(predicate.span, "a condition on members must refer to one collection and no aggregate")

    def _is_for_preferences(self, predicate: Predicate) -> bool:
        kind = None if predicate.name is None else predicate_kind(predicate.name)
        if kind is not None and kind.preference:
            return True
        return any(self.names.instances(tree) - {"self"} for tree in predicate.arguments)

    # Expressions, events, preferences

    def _uses(self) -> None:
        expressions = self.names.expressions
        uses = {e.anchor: [n.name for n in walk(e.logic) if isinstance(n, Reference)] for e in expressions.values()}
        for expression in expressions.values():
            for name in uses[expression.anchor]:
                if name not in self.names.predicates and name not in expressions:
                    hint = nearest(name, [*self.names.predicates, *expressions])
                    fail(expression.span, f"unknown predicate '{name}'", hint)
        for expression in expressions.values():
            if _reaches_itself(expression.anchor, uses):
                fail(expression.span, f"expression '{expression.anchor}' refers to itself")
        for event in self.cd.events:
            self._known_expression(event.trigger, event.span)
        for preference in self.cd.preferences:
            for name in preference.expressions:
                self._known_expression(name, preference.span)

    def _known_expression(self, name: str, span: Span | None) -> None:
        if name not in self.names.expressions:
            fail(span, f"unknown expression '{name}'", nearest(name, self.names.expressions))

    def _event(self, event: ComplexEvent) -> None:
        for attribute in event.attributes:
            self._value(attribute.value, self.names, attribute.span)
            self._no_members(attribute.value, attribute.span)

    def _no_members(self, tree: Expr, span: Span | None) -> None:
        for source in sorted(self.names.members(tree)):
            fail(span, f"members of collection '{self.cd.sources[source].anchor}' can only be used in an aggregate here")

    def _reachable(self, expressions: Iterator[str] | tuple[str, ...]) -> set[str]:
        """Anchors of the predicates and expressions that these expressions lead to."""
        seen: set[str] = set()
        queue = list(expressions)
        while queue:
            name = queue.pop()
            if name not in seen:
                seen.add(name)
                logic = self.names.expressions[name].logic if name in self.names.expressions else None
                queue += [n.name for n in walk(logic) if isinstance(n, Reference)] if logic is not None else []
        return seen


def _reaches_itself(start: str, edges: dict[str, list[str]]) -> bool:
    seen: set[str] = set()
    queue = list(edges.get(start, ()))
    while queue:
        name = queue.pop()
        if name == start:
            return True
        if name not in seen:
            seen.add(name)
            queue += edges.get(name, ())
    return False
