"""Expressions of a description as functions of a view: the shared scalar back end, with CDL's values and functions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any

from coincide.detection.correlation import values as cdl
from coincide.detection.correlation.preferences import DECISIONS, INSTANCES
from coincide.detection.correlation.view import ENVELOPE, Evaluate, Message, View
from coincide.expr.functions import finite
from coincide.expr.scalar import ScalarCompiler
from coincide.expr.tree import ALIAS_FUNCTIONS, Alias, Between, Call, Compare, Expr, In, IsNull, Literal, Reference
from coincide.lang.cdl.functions import FUNCTIONS, PRESENCE
from coincide.lang.cdl.names import Names
from coincide.lang.cdl.providers import Context
from coincide.lang.cdl.tables import Lookup
from coincide.model.compound import Compound
from coincide.model.event import Value, as_value
from coincide.model.numbers import is_number, same_kind


class Evaluation:
    """Compiles the expressions of one description."""

    def __init__(self, names: Names, lookups: dict[str, Lookup], contexts: list[Context]) -> None:
        self.names = names
        self.lookups = lookups
        self.contexts = contexts
        self._computations: dict[str, Evaluate] = {}

    def compile(self, tree: Expr, owner: int | None = None) -> Evaluate:
        """`owner` is the source whose filter or look-up this is."""
        names = self.names if owner is None else self.names.inside(owner)
        return _Compiler(_Scope(self, names)).compile(tree)

    def defined(self, tree: Expr) -> Callable[[View], bool]:
        """Is what a reference means there: the source mapped, the value not null?"""
        meaning = self.names.meaning(tree) if isinstance(tree, Reference) else None
        if meaning is not None and meaning.computation is None and meaning.attribute is None:
            pick, source = INSTANCES[meaning.of], meaning.source
            assert source is not None
            return lambda view: (of := pick(view)) is not None and of.has(source)
        evaluate = self.compile(tree)
        return lambda view: evaluate(view) is not None

    def computation(self, anchor: str) -> Evaluate:
        """Evaluated once per instance (CDL-10) where nothing but messages that stay can change it."""
        if anchor not in self._computations:
            self._computations[anchor] = self._computation(anchor)
        return self._computations[anchor]

    def _computation(self, anchor: str) -> Evaluate:
        node = self.names.computations[anchor]
        evaluate, kind = self.compile(node.value), node.type
        needed = tuple(self.names.sources(node.value))
        lasting = not any(map(self.names.is_collection, needed)) and not self.names.uses(node.value, "node")

        def run(view: View) -> Value:
            if anchor in view.computed:
                return view.computed[anchor]
            value = cdl.computed(evaluate(view), kind)
            if lasting and all(view.messages[s] is not None for s in needed):
                view.computed[anchor] = value
            return value

        return run


class _Scope:
    """How references are read."""

    def __init__(self, evaluation: Evaluation, names: Names) -> None:
        self.evaluation = evaluation
        self.names = names

    def reference(self, node: Reference) -> Evaluate:
        meaning = self.names.meaning(node)
        pick = INSTANCES[meaning.of]
        if meaning.computation is not None:
            compute = self.evaluation.computation(meaning.computation)
            return compute if meaning.of == "self" else lambda view: None if (of := pick(view)) is None else compute(of)
        if meaning.attribute is None:
            return lambda view: None  # a source is no value
        return self._attribute(pick, meaning.source, meaning.attribute)

    def _attribute(self, pick: Callable[[View], View | None], source: int | None, name: str) -> Evaluate:
        assert source is not None
        envelope = ENVELOPE.get(name)

        def read(view: View) -> Value:
            of = pick(view)
            message = None if of is None else of.messages[source]
            if message is None:
                return None
            if name in message.values or envelope is None:
                return message.values.get(name)
            return envelope(message)

        return read

    def event(self, alias: str | None) -> Callable[[Any], Any]:
        if alias is None:
            own = self.names.owner
            return lambda view: None if own is None else view.messages[own]
        meaning = self.names.meaning(Alias(alias))
        pick, source = INSTANCES[meaning.of], meaning.source
        assert source is not None
        return lambda view: None if (of := pick(view)) is None else of.messages[source]


class _Compiler(ScalarCompiler):
    """The shared back end, with sets and ranges in comparisons and CDL's own functions."""

    def __init__(self, scope: _Scope) -> None:
        super().__init__(scope, FUNCTIONS)
        self.own = scope

    def _compare(self, node: Compare) -> Evaluate:
        op, left, right = node.op, self.compile(node.left), self.compile(node.right)
        return lambda view: cdl.ternary(op, left(view), right(view))

    def _in(self, node: In) -> Evaluate:
        operand, options = self.compile(node.operand), [self.compile(o) for o in node.options]
        negated = node.negated

        def evaluate(view: View) -> bool | None:
            x = operand(view)
            found = {cdl.among(x, option(view)) for option in options}
            result = True if True in found else None if None in found else False
            return result if result is None or not negated else not result

        return evaluate

    def _between(self, node: Between) -> Evaluate:
        operand, low, high, negated = self.compile(node.operand), self.compile(node.low), self.compile(node.high), node.negated

        def evaluate(view: View) -> bool | None:
            x = operand(view)
            found = (cdl.ternary(">=", x, low(view)), cdl.ternary("<=", x, high(view)))
            result = False if False in found else None if None in found else True
            return result if result is None or not negated else not result

        return evaluate

    def _call(self, node: Call) -> Evaluate:
        if self.own.names.is_aggregate(node):
            return self._aggregate(node)
        if node.name in DECISIONS:
            return self._preference(node)
        own: Callable[[Call], Evaluate] | None = getattr(self, f"_call_{node.name}", None)
        if own is not None:
            return own(node)
        if node.name in ALIAS_FUNCTIONS:
            node = Call(node.name, tuple(self._alias(a) for a in node.arguments))
        return super()._call(node)

    def _alias(self, tree: Expr) -> Expr:
        if isinstance(tree, Reference):
            meaning = self.own.names.meaning(tree)
            if meaning.computation is None and meaning.attribute is None:
                return Alias(tree.name)
        return tree

    def _aggregate(self, node: Call) -> Evaluate:
        names, (argument,) = self.own.names, node.arguments
        (collection,) = names.members(argument)
        counts_members = node.name == "count" and self._is_source(argument)
        evaluate = (lambda view: True) if counts_members else self.compile(argument)
        combine = AGGREGATES[node.name]

        def run(view: View) -> Value:
            members = None if view.members is None else view.members.get(collection)
            if members is None:  # no literal of the kept term refers to it, or the instance is not complete (4.3)
                return None
            found = [evaluate(view.with_message(collection, member)) for member in members]
            return combine([value for value in found if value is not None])

        return run

    def _call_set(self, node: Call) -> Evaluate:
        parts = [self.compile(a) for a in node.arguments]
        return lambda view: cdl.set_of([part(view) for part in parts])

    def _call_range(self, node: Call) -> Evaluate:
        low, high = (self.compile(a) for a in node.arguments)
        return lambda view: cdl.range_of(low(view), high(view))

    def _call_overlaps(self, node: Call) -> Evaluate:
        a, b = (self.compile(a) for a in node.arguments)
        return lambda view: cdl.overlaps(a(view), b(view))

    def _call_lookup(self, node: Call) -> Evaluate:
        name, column, key = node.arguments[0], self.compile(node.arguments[1]), self.compile(node.arguments[2])
        provider = self.own.evaluation.lookups[_text(name)]

        def evaluate(view: View) -> Value:
            which, value = column(view), key(view)
            return provider.find(value, which) if isinstance(which, str) and value is not None else None

        return evaluate

    def _call_node(self, node: Call) -> Evaluate:
        name, contexts = self.compile(node.arguments[0]), self.own.evaluation.contexts

        def evaluate(view: View) -> Value:
            which = name(view)
            if not isinstance(which, str):
                return None
            return next((v for c in contexts if (v := c.read(which, view.now)) is not None), None)

        return evaluate

    def _call_any(self, node: Call) -> Evaluate:
        """In preferences `any` and `none` just test for null."""
        assert node.name in PRESENCE
        return self._isnull(IsNull(node.arguments[0], node.name == "any"))

    _call_none = _call_any

    def _isnull(self, node: IsNull) -> Evaluate:
        """Of a source: whether it is mapped."""
        defined, negated = self.own.evaluation.defined(node.operand) if self._is_source(node.operand) else None, node.negated
        if defined is None:
            return super()._isnull(node)
        return lambda view: defined(view) is negated

    def _is_source(self, tree: Expr) -> bool:
        return isinstance(tree, Reference) and isinstance(self._alias(tree), Alias)

    def _call_before(self, node: Call) -> Evaluate:
        return self._order(node, lambda a, b: a.hi < b.lo)

    def _call_concurrent(self, node: Call) -> Evaluate:
        return self._order(node, lambda a, b: not (a.hi < b.lo or b.hi < a.lo))

    def _order(self, node: Call, test: Callable[[Message, Message], bool]) -> Evaluate:
        events = [self.own.event(a.name) for a in node.arguments if isinstance(a, Reference)]

        def evaluate(view: View) -> bool | None:
            found = [event(view) for event in events]
            return None if None in found else all(test(a, b) for a, b in pairwise(found))

        return evaluate

    def _preference(self, node: Call) -> Evaluate:
        decide, arguments = DECISIONS[node.name], [self.compile(a) for a in node.arguments]
        return lambda view: decide(view, *(argument(view) for argument in arguments))

    def _call_predicate(self, node: Call) -> Evaluate:
        """One that this installation has registered."""
        name, *rest = node.arguments
        known, arguments = self.own.names.cd.installed.predicates, [self.compile(a) for a in rest]
        test = known[_text(name).lower()].test
        assert test is not None
        return lambda view: test(*(argument(view) for argument in arguments))


def _text(tree: Expr) -> str:
    value = tree.value if isinstance(tree, Literal) else None
    assert isinstance(value, str)
    return value


# Aggregates of the values that are not null (section 4.3)


def _numbers(combine: Callable[[list[float]], float]) -> Callable[[list[Value]], Value]:
    def run(values: list[Value]) -> Value:
        if not all(map(is_number, values)):
            return None
        return finite(combine([float(value) for value in values]))  # type: ignore[arg-type]

    return run


def _extreme(combine: Callable[[Any], Any]) -> Callable[[list[Value]], Value]:
    def run(values: list[Value]) -> Value:
        if not values or not all(same_kind(values[0], value) for value in values) or isinstance(values[0], (bool, Compound)):
            return None
        return as_value(combine(values))

    return run


def _average(values: list[Value]) -> Value:
    total = AGGREGATES["sum"](values)
    return total / len(values) if isinstance(total, float) and values else None


AGGREGATES: dict[str, Callable[[list[Value]], Value]] = {
    "sum": _numbers(lambda values: float(sum(values))),
    "product": _numbers(lambda values: float(prod(values))),
    "avg": _average,
    "min": _extreme(min),
    "max": _extreme(max),
    "count": lambda values: float(len(values)),
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
    "set": cdl.set_of,
}
