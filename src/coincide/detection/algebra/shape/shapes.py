"""Definitions as the kernel tier sees them: operators over events of single types, or one window of them."""

from __future__ import annotations

from dataclasses import dataclass

from coincide.detection.algebra.nodes.aggregate import WindowNode
from coincide.detection.algebra.nodes.base import Node, Reference
from coincide.detection.algebra.nodes.selection import Threshold
from coincide.detection.algebra.shape.keys import Unsupported
from coincide.expr.tree import Call, Expr
from coincide.expr.tree import Reference as FieldReference
from coincide.syntax import walk

LEAF, EITHER, SEQUENT, BOTH, WITHOUT, AFTER, SILENT, DELAYED, BOUND, ONCE, NTH, ABSENT = range(12)
TIMED = (AFTER, SILENT, DELAYED)
"""Operators whose operands wait for a time, at which something is made of each alone."""
PASSING = (WITHOUT, BOUND, ONCE, NTH)
"""Operators that pass some of their left operand's occurrences on."""
UNRESTRICTED, RECENT, CHRONICLE, CONTINUOUS, SHORTEST = range(5)
POLICIES = {"UNRESTRICTED": UNRESTRICTED, "RECENT": RECENT, "CHRONICLE": CHRONICLE, "CONTINUOUS": CONTINUOUS}
"""By the names that `consumption.py` has for them."""
BY_ORDER, BY_START = 1, 2
UNBOUNDED = 2**62
NEVER = 2**63 - 1
MOST_LEAVES = 32


@dataclass(frozen=True, eq=False)
class Leaf:
    """A reference. `aliases` mean its event; `optional`: it is one of several alternatives, or what must not be there;
    `made`: by a definition, so that its rows are detections."""

    reference: Reference
    aliases: tuple[str, ...] = ()
    optional: bool = False
    made: bool = False

    @property
    def type(self) -> str:
        return self.reference.kind or ""


@dataclass(frozen=True, eq=False)
class Operator:
    """One node, after its operands. `bindings` are the aliases around it, inner first; `store`: where its prefixes are kept (or
    what waits for a time), after them its right operands (or what is negated, or must not lie between)."""

    kind: int
    node: Node
    left: int = -1
    right: int = -1
    leaf: int = -1
    policy: int = UNRESTRICTED
    limit: int = UNBOUNDED  # of the whole
    operand_limit: int = UNBOUNDED  # since the operand before
    length: int = 0  # of what is timed
    horizon: int = 0  # of `(A - B) within T`: how long after the start of an A a B counts
    gap: int = -1  # what must not lie between the operands
    register: int = -1  # the first of its numbers that are kept for each key
    position: int = 0  # of the n-th
    step: int = 0  # from one window to the next
    offset: int = 0
    reduces: bool = False
    continues: bool = False
    condition: int = -1  # the first of its conditions
    conditions: int = 0
    mixed: bool = False  # can an event of one side be in a detection of the other?
    made: bool = False  # of a leaf
    best: int = 0
    store: int = -1
    bindings: tuple[str, ...] = ()


COMPARISONS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, eq=False)
class Condition:
    """`x.v < 2 * y.v`: what follows from one leaf's event alone, compared with what follows from another's."""

    comparison: str
    leaves: tuple[int, int]
    trees: tuple[Expr, Expr]


@dataclass(frozen=True, eq=False)
class Operators:
    """A definition of `;`, `+`, `|` and `-`. Its key: the attributes of `per`, then of each type those that equalities tie."""

    operators: tuple[Operator, ...]
    leaves: tuple[Leaf, ...]
    stores: int
    tied: tuple[dict[str, str], ...] = ()  # attribute by type
    registers: int = 0
    conditions: tuple[Condition, ...] = ()

    @property
    def reads_detections(self) -> bool:
        return any(leaf.made for leaf in self.leaves)

    @property
    def is_timed(self) -> bool:
        return self.is_absence or any(operator.kind in TIMED for operator in self.operators)

    @property
    def is_absence(self) -> bool:
        return self.operators[-1].kind == ABSENT


def stores_of(operator: Operator) -> dict[int, int]:
    """By number of a store the operator whose occurrences wait there."""
    waiting = {
        WITHOUT: (operator.right,),
        SILENT: (operator.left,),
        DELAYED: (operator.left,),
        SEQUENT: (operator.left, *([operator.gap] if operator.gap >= 0 else [])),
    }.get(operator.kind, (operator.left, operator.right))
    return dict(enumerate(waiting, operator.store)) if operator.store >= 0 else {}


@dataclass(frozen=True, eq=False)
class Window:
    """A definition that is one aggregate over a window of events, with thresholds on it."""

    node: WindowNode
    leaves: tuple[Leaf, ...]
    thresholds: tuple[Threshold, ...] = ()

    @property
    def reads_detections(self) -> bool:
        return any(leaf.made for leaf in self.leaves)


def tests_of(leaf: Leaf) -> list[Expr]:
    return [test.tree for test in leaf.reference.tests]


def check_tree(tree: Expr, of_event: bool = False) -> None:
    """Of one event alone it is known where it was."""
    for node in walk(tree):
        if isinstance(node, FieldReference) and node.name.startswith("space."):
            raise Unsupported("reads places")
        if not of_event and isinstance(node, Call) and node.name in ("distance", "zone", "within_box", "within_radius"):
            raise Unsupported("reads places")


def leaf_of(node: Reference, aliases: tuple[str, ...], optional: bool, made: frozenset[str]) -> Leaf:
    if node.thinning.aspects:
        raise Unsupported("uses precision")
    is_made = node.kind in made
    if node.places and is_made:
        raise Unsupported("restricts the places of detections with '@'")
    for test in node.tests:
        check_tree(test.tree, not is_made)
    own = (node.kind or "",) if node.alias else ()
    return Leaf(node, (*own, *aliases), optional, is_made)
