"""From the nodes of a definition to the operators of the kernel tier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import floor

from coincide.detection.algebra.consumption import CONSUMPTIONS
from coincide.detection.algebra.nodes.aggregate import Running, WindowNode
from coincide.detection.algebra.nodes.base import Binding, Disjunction, LengthBound, Life, Node, Reference
from coincide.detection.algebra.nodes.chain import Between, Step
from coincide.detection.algebra.nodes.iteration import Iteration
from coincide.detection.algebra.nodes.negation import Negation
from coincide.detection.algebra.nodes.relations import RELATION_OF, Period
from coincide.detection.algebra.nodes.selection import Every, Nth, Once, Threshold
from coincide.detection.algebra.nodes.silence import Absence, DelayNode, SilenceStep
from coincide.detection.algebra.program import Program
from coincide.detection.algebra.scope import Conjunct
from coincide.detection.algebra.shape.keys import Components, Unsupported, joined_by_equality
from coincide.detection.algebra.shape.shapes import (
    ABSENT,
    AFTER,
    BOTH,
    BOUND,
    BY_ORDER,
    BY_START,
    COMPARISONS,
    DELAYED,
    EITHER,
    LEAF,
    MOST_LEAVES,
    NTH,
    ONCE,
    PASSING,
    POLICIES,
    SEQUENT,
    SHORTEST,
    SILENT,
    UNBOUNDED,
    WITHOUT,
    Condition,
    Leaf,
    Operator,
    Operators,
    check_tree,
    leaf_of,
)
from coincide.expr.tree import Alias, Call, Compare, Expr
from coincide.expr.tree import Reference as FieldReference
from coincide.lang.ecco.consumption import DEFAULT
from coincide.lang.ecco.definition import CONJUNCTION, SEQUENCE
from coincide.syntax import walk


@dataclass
class Reader:
    """Operands before their operator; raises Unsupported."""

    program: Program
    found: list[Operator] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    stores: int = 0
    registers: int = 0
    conditions: list[Condition] = field(default_factory=list)

    def operators(self) -> Operators:
        node = self.program.root
        root = self._absence(node) if isinstance(node, Absence) else self._read(node, (), False)
        if len(self.leaves) > MOST_LEAVES:
            raise Unsupported(f"refers to more than {MOST_LEAVES} events")
        components = self._tied(root)
        if components and any(operator.reduces for operator in self.found):
            raise Unsupported("uses subset and compares operands")
        if components and any(leaf.made for leaf in self.leaves) and any(operator.kind == BOTH for operator in self.found):
            raise Unsupported("uses + and compares detections")
        if components and self.registers:
            raise Unsupported("compares operands and selects")
        tied = tuple(map(self._by_type, components or []))
        return Operators(tuple(self.found), tuple(self.leaves), self.stores, tied, self.registers, tuple(self.conditions))

    def _add(self, operator: Operator) -> int:
        self.found.append(operator)
        return len(self.found) - 1

    def _read(self, node: Node, bindings: tuple[str, ...], optional: bool) -> int:
        if isinstance(node, Binding):
            return self._read(node.children[0], (node.alias, *bindings), optional)
        if isinstance(node, Reference):
            self.leaves.append(leaf_of(node, bindings, optional, self.program.made_types))
            made = self.leaves[-1].made
            return self._add(Operator(LEAF, node, leaf=len(self.leaves) - 1, made=made, bindings=bindings))
        if isinstance(node, Disjunction):
            return self._either(node, bindings, optional)
        if isinstance(node, Negation):
            return self._without(node, bindings, optional)
        if isinstance(node, SilenceStep):
            return self._silence(node, bindings, optional)
        if isinstance(node, Step):
            return self._step(node, bindings, optional)
        if isinstance(node, LengthBound):
            child = self._read(node.children[0], (), optional)
            return self._add(Operator(BOUND, node, child, limit=_limit([node.period]), bindings=bindings))
        if isinstance(node, DelayNode) and not node.tests:
            child = self._read(node.children[0], (), optional)
            delayed = Operator(DELAYED, node, child, length=node.length, reduces=node.reduces, bindings=bindings)
            return self._add(replace(delayed, store=self._room(1)))
        if isinstance(node, Once | Nth | Every) and not node.tests:
            return self._selection(node, bindings, optional)
        raise Unsupported(_what(node))

    def _absence(self, node: Absence) -> int:
        """Standing alone it needs no events."""
        if node.tests or node.length == 0:
            raise Unsupported("has a condition on a silence, or one that does not last")
        child = self._read(node.children[0], (), True)
        return self._add(Operator(ABSENT, node, child, length=node.length, register=self._registers(1)))

    def _selection(self, node: Once | Nth | Every, bindings: tuple[str, ...], optional: bool) -> int:
        """Aliases end here."""
        child = self._read(node.children[0], (), optional)
        below = self.below(child)
        if self.found[child].kind != LEAF and any(self.leaves[leaf].made for leaf in below):
            raise Unsupported("selects from what is composed of detections")
        for leaf in below:
            self.leaves[leaf] = replace(self.leaves[leaf], aliases=(), optional=True)
        operator = Operator(EITHER, node, child, reduces=node.reduces, bindings=bindings)
        if isinstance(node, Once):
            until = self._read(node.children[1], (), True) if len(node.children) > 1 else -1
            length = UNBOUNDED if node.length is None else node.length
            operator = replace(operator, kind=ONCE, right=until, length=length, register=self._registers(1))
        elif isinstance(node, Nth):
            operator = replace(operator, kind=NTH, position=node.position, register=self._registers(2))
            if (windows := node.windows) is not None:
                if windows.step < windows.length:
                    raise Unsupported("selects the first or n-th of windows that overlap")
                operator = replace(operator, length=windows.length, step=windows.step, offset=windows.offset)
        return self._add(operator)

    def _registers(self, count: int) -> int:
        self.registers += count
        return self.registers - count

    def _either(self, node: Disjunction, bindings: tuple[str, ...], optional: bool) -> int:
        if node.tests:
            raise Unsupported("has a condition on alternatives")
        several = len(node.children) > 1
        parts = [self._read(child, (), optional or several) for child in node.children]
        if several and bindings:
            raise Unsupported("names alternatives")
        for one in range(1, len(parts)):
            self._check_apart(parts[:one], parts[one], "has alternatives that can be one event")
            last = one == len(parts) - 1
            parts[one] = self._add(Operator(EITHER, node, parts[one - 1], parts[one], reduces=last and node.reduces))
            parts[one - 1] = parts[one]
        if not several:
            return self._add(Operator(EITHER, node, parts[0], reduces=node.reduces, bindings=bindings))
        return parts[-1]

    def _without(self, node: Negation, bindings: tuple[str, ...], optional: bool) -> int:
        if node.length is None and node.right_length is not None:
            raise Unsupported("has 'within' on what is negated")
        if node.tests:
            raise Unsupported("has a condition on a negation")
        left, right = self._read(node.children[0], (), optional), self._read(node.children[1], (), True)
        self._check_apart([left], right, "negates events that it looks for")
        if self._is_mixed(left, right):
            raise Unsupported("negates events that a detection may be made of")
        limit = UNBOUNDED if node.reach is None else node.reach
        found = Operator(WITHOUT, node, left, right, limit=limit, reduces=node.reduces, bindings=bindings)
        if node.length is None:
            return self._add(replace(found, store=self._room(1)))
        horizon = node.length if node.right_length is None else min(node.length, node.right_length)
        return self._add(replace(found, kind=AFTER, length=node.length, horizon=horizon, store=self._room(2)))

    def _silence(self, node: SilenceStep, bindings: tuple[str, ...], optional: bool) -> int:
        policy = _policy(node)
        if node.length == 0:
            raise Unsupported("uses a silence that does not last")
        if node.conjuncts:
            raise Unsupported("has a condition on a silence")
        assert node.left is not None
        assert node.between is not None
        operator = Operator(
            SILENT,
            node,
            self._read(node.left, (), optional),
            self._read(node.between.node, (), True),
            policy=policy,
            limit=_limit(node.periods),
            operand_limit=_limit(node.operand_periods),
            length=node.length,
            reduces=node.reduces,
            continues=node.continues,
            store=self._room(1),
            bindings=bindings,
        )
        return self._add(operator)

    def _step(self, node: Step, bindings: tuple[str, ...], optional: bool) -> int:
        if node.relation not in (RELATION_OF[SEQUENCE], RELATION_OF[CONJUNCTION]):
            raise Unsupported("uses an operator other than ; + | -")
        policy = _policy(node)
        assert node.left is not None
        assert node.right is not None
        left, right = self._read(node.left, (), optional), self._read(node.right, (), optional)
        last = self.found[left].right if node.continues else left
        follows_silence = node.continues and self.found[left].kind == SILENT
        if not (node.sequence and (follows_silence or self._is_point(last)) and self._is_point(right)):  # points never meet
            self._check_apart([left], right, "has operands that can be one event")
        gap = -1 if node.between is None else self._gap(node.between, right)
        operator = Operator(
            SEQUENT if node.sequence else BOTH,
            node,
            left,
            right,
            policy=policy,
            limit=_limit(node.periods),
            operand_limit=_limit(node.operand_periods),
            reduces=node.reduces,
            continues=node.continues,
            gap=gap,
            mixed=self._is_mixed(left, right),
            best={None: 0, "order": BY_ORDER, "start": BY_START}[node.best],
            store=self._room(2),
            bindings=bindings,
        )
        return self._add(operator)

    def _gap(self, between: Between, right: int) -> int:
        if between.is_group:
            raise Unsupported("has a group between operands")
        if not self._is_point(right):
            raise Unsupported("has a gap before something that lasts")
        return self._read(between.node, (), True)

    def _room(self, stores: int) -> int:
        self.stores += stores
        return self.stores - stores

    # What operands have in common.

    def below(self, operator: int) -> list[int]:
        """The leaves in an operator."""
        if operator < 0:
            return []
        one = self.found[operator]
        return [one.leaf] if one.kind == LEAF else [*self.below(one.left), *self.below(one.right)]

    def _check_apart(self, left: Sequence[int], right: int, reason: str) -> None:
        types = {self.leaves[leaf].type for side in left for leaf in self.below(side)}
        if not types.isdisjoint(self.leaves[leaf].type for leaf in self.below(right)):
            raise Unsupported(reason)

    def _is_mixed(self, left: int, right: int) -> bool:
        """Are there events on one side, detections on the other?"""
        sides = [{self.leaves[leaf].made for leaf in self.below(side)} for side in (left, right)]
        return any(made in sides[0] and (not made) in sides[1] for made in (False, True))

    def _is_point(self, operator: int) -> bool:
        one = self.found[operator]
        if one.kind == LEAF:
            return not self.leaves[one.leaf].made
        if one.kind in PASSING:
            return self._is_point(one.left)
        return one.kind == EITHER and all(self._is_point(o) for o in (one.left, one.right) if o >= 0)

    def _tied(self, operator: int) -> Components | None:
        """What all events of an occurrence have in common; None: nothing, for want of equalities."""
        one = self.found[operator]
        if one.kind == LEAF:
            return None
        sides = [self._tied(side) for side in (one.left, one.right) if side >= 0]
        if one.kind == EITHER:
            if any(side is not None for side in sides):
                raise Unsupported("compares operands inside alternatives")
            return None
        if one.kind in (BOUND, DELAYED, ONCE, NTH, ABSENT):
            return sides[0]
        tests = _joining(one.node)
        is_leaf = [self.found[side].kind == LEAF for side in (one.left, one.right)]
        if one.kind in (WITHOUT, AFTER, SILENT) and tests and is_leaf[0]:
            raise Unsupported("compares a single event with what it negates")
        names = self._names(self.below(one.left)), self._names(self.below(one.right))
        trees = self._without_conditions(operator, _trees(tests), {**names[0], **names[1]})
        joined = joined_by_equality(trees, names, (sides[0], sides[1]), (is_leaf[0], is_leaf[1]))
        if one.gap < 0:
            return joined
        assert isinstance(one.node, Step)
        assert one.node.between is not None
        names = self._names([*self.below(one.left), *self.below(one.right)]), self._names(self.below(one.gap))
        gap = self._tied(one.gap), self.found[one.gap].kind == LEAF
        return joined_by_equality(_trees(one.node.between.counts), names, (joined, gap[0]), (False, gap[1]))

    def _without_conditions(self, operator: int, tests: list[Expr], names: dict[str | None, int]) -> list[Expr]:
        """What is left of the tests where steps try some pair by pair."""
        if self.found[operator].kind not in (SEQUENT, BOTH):
            return tests
        found = [(test, self._condition(test, names)) for test in tests]
        own = [condition for _, condition in found if condition is not None]
        if own:
            self.found[operator] = replace(self.found[operator], condition=len(self.conditions), conditions=len(own))
            self.conditions += own
        return [test for test, condition in found if condition is None]

    def _condition(self, test: Expr, names: dict[str | None, int]) -> Condition | None:
        if not isinstance(test, Compare) or test.op not in COMPARISONS:
            return None
        a, b = (self._only_leaf(side, names) for side in (test.left, test.right))
        if a is None or b is None or a == b:
            return None
        return Condition(test.op, (a, b), (test.left, test.right))

    def _only_leaf(self, tree: Expr, names: dict[str | None, int]) -> int | None:
        """The leaf whose event alone the value follows from."""
        nodes = list(walk(tree))
        leaves = {names.get(node.alias) for node in nodes if isinstance(node, FieldReference)}
        if len(leaves) != 1 or any(isinstance(node, Call | Alias) for node in nodes):
            return None
        (leaf,) = leaves
        return None if leaf is None or self.leaves[leaf].made or self.leaves[leaf].optional else leaf

    def _names(self, leaves: Iterable[int]) -> dict[str | None, int]:
        return {alias: leaf for leaf in leaves for alias in self.leaves[leaf].aliases}

    def _by_type(self, component: dict[int, str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for leaf, attribute in component.items():
            if found.setdefault(self.leaves[leaf].type, attribute) != attribute:
                raise Unsupported("compares different attributes of one type")
        return found


def _policy(node: Step) -> int:
    consumption = CONSUMPTIONS[node.policy]
    if consumption.without_kernel:
        raise Unsupported(f"uses {node.policy}, {consumption.without_kernel}")
    return SHORTEST if node.policy == DEFAULT and node.reduces else POLICIES[consumption.kernel]


def _joining(node: Node) -> Sequence[Conjunct]:
    """What is tested of two operands, or of what is negated."""
    if isinstance(node, SilenceStep):
        return node.between.counts if node.between is not None else ()
    return node.conjuncts if isinstance(node, Step) else node.counts if isinstance(node, Negation) else ()


def _trees(tests: Iterable[Conjunct]) -> list[Expr]:
    found = []
    for test in tests:
        if test.whole:
            raise Unsupported("compares the whole by its alias")
        check_tree(test.tree)
        found.append(test.tree)
    return found


def _limit(periods: Iterable[Period]) -> int:
    """Between exact points a length is within T, or it is not."""
    return min((floor(period.length * (1 - period.skew)) for period in periods), default=UNBOUNDED)


_NAMES: tuple[tuple[type[Node], str], ...] = (
    (Life, "uses valid"),
    (Iteration, "uses an iteration"),
    (Absence, "has a silence inside another operator"),
    (DelayNode, "has a condition on a delay"),
    (WindowNode, "has a window inside another operator"),
    (Threshold, "has a threshold inside another operator"),
    (Running, "uses a running aggregate"),
    (Nth, "has a condition on a selection"),
    (Once, "has a condition on a selection"),
    (Every, "has a condition on a selection"),
)


def _what(node: Node) -> str:
    return next((name for kind, name in _NAMES if isinstance(node, kind)), "uses an operator other than ; + | -")
