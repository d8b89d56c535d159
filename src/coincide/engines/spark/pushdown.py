"""What Spark does natively before anything goes to Python: leave out events that no rule looks at, and columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from coincide.detection.base import DetectorPlan
from coincide.engines.spark.frame import TURN, Layout, Source
from coincide.engines.spark.groups import Group
from coincide.expr.parts import Unsupported
from coincide.expr.spark import relaxed
from coincide.expr.tree import And, Compare, Expr, In, Literal, Or, Reference, transform
from coincide.model.event import HEARTBEAT


def layout(source: Source, plans: Sequence[DetectorPlan], everything: bool = False, arriving: bool = False) -> Layout:
    """The fields that the plans read; with `everything`, what late events are shown with; if `arriving`, what orders arrivals."""
    wanted: set[str] = set(source.attributes) if everything else set()
    for plan in plans:
        columns = plan.columns
        wanted |= set(source.attributes) if columns is None else columns
    shown = {"source", "space", "arrival"} if everything else set()
    return source.layout(wanted, _envelope(plans) | shown | ({"source", "arrival", TURN} if arriving else set()))


def _envelope(plans: Sequence[DetectorPlan]) -> frozenset[str]:
    """Optional fields of the envelope that the plans may read: a plan that does not tell may read them all."""
    told = [plan.envelope for plan in plans]
    return frozenset().union(*({"source", "space"} if fields is None else fields for fields in told))


def relevant(source: Source, plans: Sequence[DetectorPlan]) -> Column | None:
    """A test that every event passes in which some plan takes an interest; None: all may be of interest."""
    tests = [plan.relevant for plan in plans]
    trees = [test for test in tests if test is not None]
    if len(trees) < len(tests):
        return None
    whole = _translated(source, Or(tuple(dict.fromkeys(trees))) if len(trees) > 1 else trees[0])
    if whole is not None:
        return whole
    types = united(implied_types(tree) for tree in trees)  # a filter that is too large, or that Spark cannot do
    return None if types is None else source.type.isin(sorted(types))


def _translated(source: Source, tree: Expr) -> Column | None:
    try:
        found: Column | None = relaxed(transform(tree, source.renamed), source.frame.schema)
    except Unsupported:
        return None
    return found


def implied_types(tree: Expr) -> frozenset[str] | None:
    """Types that an event must have one of for the tree to be true; None: it may have any."""
    if isinstance(tree, Literal) and tree.value is not True:
        return frozenset()
    if isinstance(tree, Compare) and tree.op == "=":
        return _options(tree.left, [tree.right]) or _options(tree.right, [tree.left])
    if isinstance(tree, In) and not tree.negated:
        return _options(tree.operand, tree.options)
    if isinstance(tree, Or):
        return united(implied_types(operand) for operand in tree.operands)
    if isinstance(tree, And):
        known = [types for operand in tree.operands if (types := implied_types(operand)) is not None]
        return reduce(and_, known) if known else None
    return None


def _options(tested: Expr, values: Sequence[Expr]) -> frozenset[str] | None:
    if not (isinstance(tested, Reference) and tested.name == "type" and all(isinstance(v, Literal) for v in values)):
        return None
    return frozenset(v.value for v in values if isinstance(v, Literal) and isinstance(v.value, str))


def united(sets: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found = list(sets)
    return None if any(types is None for types in found) else frozenset().union(*(types for types in found if types))


def wanted(source: Source, plans: Sequence[DetectorPlan], group: Group) -> Column:
    """Rows that must travel: events of interest that have the key. In the plain form that sources understand."""
    needed = () if group.null_keys else group.key or ()
    parts = [source.is_event, source.type != HEARTBEAT, *(_present(source, name) for name in needed)]
    test = relevant(source, plans)
    return reduce(and_, parts if test is None else [*parts, test])


def _present(source: Source, name: str) -> Column:
    values = source.values(name)
    return reduce(or_, [column.isNotNull() for column in values]) if values else F.lit(False)


def key_columns(source: Source, group: Group) -> list[Column]:
    """Values to spread events by: equal keys are equal here. Where there is no such column, no event has the key. Where null is
    a key, a list is null."""
    return [column for name in group.key or () for column in source.values(name, lists=not group.null_keys)] or [F.lit(0)]
