"""From a definition to its nodes: policies, places, bounds and conditions are brought to where they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from coincide.detection.algebra.construction.chains import build_chain, build_selection
from coincide.detection.algebra.construction.memory import is_exact, one_is_enough
from coincide.detection.algebra.construction.surroundings import Surroundings, microseconds, without_bounds
from coincide.detection.algebra.nodes.base import Binding, Disjunction, LengthBound, Life, Node, Reference
from coincide.detection.algebra.nodes.equality import equality
from coincide.detection.algebra.nodes.iteration import Iteration
from coincide.detection.algebra.nodes.negation import Negation
from coincide.detection.algebra.nodes.precision import thinning
from coincide.detection.algebra.nodes.relations import Period
from coincide.detection.algebra.nodes.silence import Absence, DelayNode
from coincide.detection.algebra.occurrence import Composer
from coincide.detection.algebra.scope import Conjunct, value_of
from coincide.expr.tree import Expr
from coincide.expr.tree import Reference as FieldReference
from coincide.lang.ecco.aliases import Aliases
from coincide.lang.ecco.check import check_spaces, resolved_place
from coincide.lang.ecco.conditions import COUNTS, OUTPUT, Placed, has_bare_name, placed
from coincide.lang.ecco.consumption import CONSUMPTIONS
from coincide.lang.ecco.definition import (
    Alt,
    As,
    At,
    Chain,
    Definition,
    Delay,
    Expression,
    Filter,
    Iter,
    Neg,
    Not,
    Null,
    Ref,
    Sel,
    Valid,
    With,
    Within,
    Wrapper,
    core,
)
from coincide.lang.ecco.lasting import LOOKED_THROUGH, Names
from coincide.lang.ecco.link import Setting
from coincide.syntax import rebuilt, walk


def unshared(node: Expression) -> Expression:
    """The same expression with no node in two places, so that nodes can be told apart."""
    nodes = list(walk(node))
    return node if len({*map(id, nodes)}) == len(nodes) else _copied(node)


def _copied(node: Expression) -> Expression:
    changed = rebuilt(node, _copied)
    return replace(node) if changed is node else changed


Made = TypeVar("Made", bound=Node)


@dataclass(eq=False)
class Builder:
    """Builds the nodes of one definition."""

    definition: Definition
    setting: Setting
    names: Names
    punctual: bool = True  # do occurrences always arrive at their hi? Detections of other languages may come later
    nodes: list[Node] = field(default_factory=list)

    def build(self) -> Node:
        options = self.setting.options
        self.body = unshared(self.definition.body)
        self.aliases = Aliases(self.body)
        self.bound_by_name = self._bound_by_name()
        self.spaces = check_spaces(self.setting.spaces)
        self.placed: dict[tuple[int, str], list[Placed]] = {}
        for node in walk(self.body):
            if isinstance(node, Filter):
                for test in placed(node.condition, node.operand, self.aliases):
                    self.placed.setdefault((id(test.node), test.slot), []).append(test)
        self.composer = Composer(options.semantics == "point")
        return self.node(self.body, Surroundings().under(options.policies))

    def _bound_by_name(self) -> frozenset[str]:
        """References that bind their own name: those that are mentioned. Where all are distinct primitive types, the others
        follow from the events of an occurrence and so tell no copies apart."""
        nodes = list(walk(self.body))
        types = [node.type for node in nodes if isinstance(node, Ref)]
        if None in types or self.names.made(types):
            return self.aliases.implicit
        trees = [n.condition for n in nodes if isinstance(n, Filter)] + [i.value for i in self.definition.give or ()]
        names = {n.name for tree in trees for n in walk(tree) if isinstance(n, FieldReference)}
        return frozenset(a for a in self.aliases.implicit if any(n == a or n.startswith(f"{a}.") for n in names))

    # Small things.

    def add(self, make: Callable[..., Made], *arguments: Any, **options: Any) -> Made:
        node = make(len(self.nodes), *arguments, **options)
        self.nodes.append(node)
        return node

    def tests(self, node: Expression, slot: str = OUTPUT, index: int | None = None) -> tuple[Conjunct, ...]:
        found = self.placed.get((id(node), slot), [])
        return tuple(_conjunct(test) for test in found if index is None or test.index == index)

    def trees(self, node: Expression, slot: str, index: int) -> list[Expr]:
        """Tests of what is joined there, but for those about the whole."""
        return [t.test for t in self.placed.get((id(node), slot), []) if t.index == index and not t.whole]

    def periods(self, around: Surroundings) -> tuple[Period, ...]:
        options = self.setting.options
        return tuple(Period(microseconds(t), options.skew, options.maybe == "keep") for t in around.within)

    def usual(self, node: Expression, around: Surroundings) -> dict[str, Any]:
        return {"tests": self.tests(node), "reduces": around.subset}

    # One method a kind of expression.

    def node(self, expression: Expression, around: Surroundings) -> Node:
        for kind, build in _BUILDERS.items():
            if isinstance(expression, kind):
                found: Node = build(self, expression, around)
                return found
        raise AssertionError(f"{type(expression).__name__} stands where it cannot")

    def reference(self, ref: Ref, around: Surroundings) -> Node:
        return self.bounded(
            self.add(
                Reference,
                (),
                ref.type,
                ref.type in self.bound_by_name,
                tuple(resolved_place(place, self.spaces) for place in around.places),
                thinning(around.precision),
                tests=self.tests(ref),
            ),
            around,
        )

    def bounded(self, node: Node, around: Surroundings) -> Node:
        """`within` as a filter, on what is neither chain, iteration nor negation."""
        for period in self.periods(around):
            node = self.add(LengthBound, (node,), period)
        return node

    def disjunction(self, alt: Alt, around: Surroundings) -> Node:
        parts = tuple(self.node(part, around.inside) for part in alt.alternatives)
        return self.bounded(self.add(Disjunction, parts, **self.usual(alt, around)), around)

    def wrapper(self, wrapper: Wrapper, around: Surroundings) -> Node:
        if isinstance(wrapper, With):
            return self._with(wrapper, around)
        if isinstance(wrapper, At):
            return self.node(wrapper.operand, replace(around, places=(*around.places, wrapper.place)))
        if isinstance(wrapper, Within):
            return self.node(wrapper.operand, replace(around, within=(*around.within, wrapper.duration)))
        inner = self.node(wrapper.operand, around)
        if isinstance(wrapper, As):
            return self.add(Binding, (inner,), wrapper.alias)
        if isinstance(wrapper, Valid):
            return self.add(Life, (inner,), microseconds(wrapper.duration))
        return inner  # a filter's conjuncts are where they belong already

    def _with(self, wrapper: With, around: Surroundings) -> Node:
        """`subset` reduces a reference only if the expression that it closes is a bare one: an option closes none."""
        inner = self.node(wrapper.operand, around.under(wrapper.policies))
        bare = isinstance(core(wrapper.operand), Ref) and any(p.name == "subset" for p in wrapper.policies)
        return self.add(Disjunction, (inner,), reduces=True) if bare else inner

    def iteration(self, node: Iter, around: Surroundings) -> Node:
        child = self.node(node.operand, around.inside)
        least = max(1, 1 if node.least is None else node.least)
        simple = isinstance(core(node.operand), Ref)
        periods = self.periods(around)
        by = None if node.by is None else value_of(node.by)
        arguments = (least, node.most, around.consumption, periods, self.composer, simple, self._useful(node, around), by)
        return self.add(Iteration, (child,), *arguments, **self.usual(node, around))

    def _useful(self, node: Iter, around: Surroundings) -> tuple[Period, ...]:
        """How long a run may last to be of use, where all runs begin with the element that was first: nothing takes that away."""
        replaced = any(rule.keep == "last" for rule in self.setting.duplicates)
        if node.most is not None or not CONSUMPTIONS[around.consumption].longest or replaced or self.composer.points:
            return ()
        return self.periods(replace(around, within=around.whole))

    def negation(self, node: Neg, around: Surroundings) -> Node:
        """The innermost `within` around it is its own; further ones bound the length of what it makes."""
        own = around.within[-1:]
        length = microseconds(own[0]) if own else None
        right, bounds = without_bounds(node.right, self.names)
        children = (self.node(node.left, around.inside), self.node(right, around.inside))
        reach = self._reach(node.left) if self.punctual else None
        counts = self.tests(node, COUNTS)
        right_length = microseconds(min(bounds)) if bounds else None
        made = self.add(Negation, children, length, right_length, counts, reach, self.composer, **self.usual(node, around))
        made.equality = equality(self.trees(node, COUNTS, 0), self.aliases.bound(node.left), self.aliases.bound(node.right))
        plain = self.punctual and length is None and right_length is None and not counts
        made.keeps_one = plain and one_is_enough(node, self.names, self.setting)
        return self.bounded(made, replace(around, within=around.within[:-1]))

    def _reach(self, left: Expression) -> int | None:
        """How long an occurrence can last at most, if that is known: then older negated ones can go."""
        options = self.setting.options
        if is_exact(left, self.names):
            return 0
        if options.maybe == "keep":
            return None
        while isinstance(left, Wrapper):
            if isinstance(left, Within) and isinstance(core(left.operand, LOOKED_THROUGH), (Chain, Iter)):
                zero = left.duration == 0 and not isinstance(core(left.operand, LOOKED_THROUGH), Iter)
                return None if zero else microseconds(left.duration)
            left = left.operand
        return None

    def absence(self, node: Not, around: Surroundings) -> Node:
        child = self.node(node.operand, around.inside)
        made = self.add(Absence, (child,), microseconds(node.over or 0.0), self.composer, **self.usual(node, around))
        return self.bounded(made, around)

    def delay(self, node: Delay, around: Surroundings) -> Node:
        child = self.node(node.operand, around.inside)
        made = self.add(DelayNode, (child,), microseconds(node.duration), self.composer, **self.usual(node, around))
        return self.bounded(made, around)

    def null(self, node: Null, around: Surroundings) -> Node:
        """NULL is `any` that must not be there."""
        tests = () if node.condition is None else (Conjunct(value_of(node.condition), node.condition),)
        places = tuple(resolved_place(place, self.spaces) for place in around.places)
        return self.add(Reference, (), None, False, places, thinning(around.precision), tests=tests)


def _conjunct(test: Placed) -> Conjunct:
    return Conjunct(value_of(test.test), test.test, test.whole, bool(test.whole) or has_bare_name(test.test))


_BUILDERS: Mapping[type[Expression], Callable[[Builder, Any, Surroundings], Node]] = {
    Ref: Builder.reference,
    Null: Builder.null,
    Chain: build_chain,
    Alt: Builder.disjunction,
    Neg: Builder.negation,
    Iter: Builder.iteration,
    Sel: build_selection,
    Not: Builder.absence,
    Delay: Builder.delay,
    Wrapper: Builder.wrapper,
}
