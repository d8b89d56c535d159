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

LEAF, EITHER, SEQUENT, BOTH, WITHOUT = range(5)
UNRESTRICTED, RECENT, CHRONICLE, CONTINUOUS, SHORTEST = range(5)
POLICIES = {"UNRESTRICTED": UNRESTRICTED, "RECENT": RECENT, "CHRONICLE": CHRONICLE, "CONTINUOUS": CONTINUOUS}
"""By the names that `consumption.py` has for them."""
BY_ORDER, BY_START = 1, 2
UNBOUNDED = 2**62
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
    """One node, after its operands. `bindings` are the aliases around it, inner first; `store`: where its prefixes, and
    after them its right operands, are kept."""

    kind: int
    node: Node
    left: int = -1
    right: int = -1
    leaf: int = -1
    policy: int = UNRESTRICTED
    limit: int = UNBOUNDED  # of the whole
    operand_limit: int = UNBOUNDED  # since the operand before
    reduces: bool = False
    continues: bool = False
    mixed: bool = False  # can an event of one side be in a detection of the other?
    made: bool = False  # of a leaf
    best: int = 0
    store: int = -1
    bindings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Operators:
    """A definition of `;`, `+`, `|` and `-`. Its key: the attributes of `per`, then of each type those that equalities tie."""

    operators: tuple[Operator, ...]
    leaves: tuple[Leaf, ...]
    stores: int
    tied: tuple[dict[str, str], ...] = ()  # attribute by type

    @property
    def reads_detections(self) -> bool:
        return any(leaf.made for leaf in self.leaves)


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


def check_tree(tree: Expr) -> None:
    for node in walk(tree):
        if isinstance(node, FieldReference) and node.name.startswith("space."):
            raise Unsupported("reads places")
        if isinstance(node, Call) and node.name in ("distance", "zone", "within_box", "within_radius"):
            raise Unsupported("reads places")


def leaf_of(node: Reference, aliases: tuple[str, ...], optional: bool, made: frozenset[str]) -> Leaf:
    if node.thinning.aspects:
        raise Unsupported("uses precision")
    if node.places:
        raise Unsupported("restricts places with '@'")
    for test in node.tests:
        check_tree(test.tree)
    own = (node.kind or "",) if node.alias else ()
    return Leaf(node, (*own, *aliases), optional, node.kind in made)
