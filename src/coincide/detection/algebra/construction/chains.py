"""Chains and selections as nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from coincide.detection.algebra.construction.memory import best_partner, best_prefix
from coincide.detection.algebra.construction.surroundings import Surroundings, microseconds, without_bounds
from coincide.detection.algebra.nodes.aggregate import Aggregator, Running, WindowNode
from coincide.detection.algebra.nodes.base import Node
from coincide.detection.algebra.nodes.chain import Between, Step
from coincide.detection.algebra.nodes.equality import Equality, equality
from coincide.detection.algebra.nodes.relations import RELATION_OF, contiguous
from coincide.detection.algebra.nodes.selection import Every, Nth, Once, Threshold, Windows
from coincide.detection.algebra.nodes.silence import SilenceStep
from coincide.detection.algebra.scope import value_of
from coincide.expr.tree import Expr, Reference
from coincide.lang.ecco.aggregates import AGGREGATES
from coincide.lang.ecco.aliases import inner_elements, is_gap, is_silence
from coincide.lang.ecco.conditions import COUNTS, STEP
from coincide.lang.ecco.definition import SEQUENCE, As, At, Chain, Expression, Iter, Not, Null, Sel, Within

if TYPE_CHECKING:
    from coincide.detection.algebra.construction.build import Builder


def build_chain(builder: Builder, chain: Chain, around: Surroundings) -> Node:
    """Steps one after another; the bounds of the chain hold at each of them."""
    inner = set(map(id, inner_elements(chain)))
    silences = {id(e) for e in chain.elements[1:] if chain.operator == SEQUENCE and is_silence(e)}
    left = builder.node(chain.elements[0], around.inside_chain)
    waiting: int | None = None  # the gap or group before the next operand
    since = 0
    for index, element in enumerate(chain.elements[1:], 1):
        if id(element) in inner and id(element) not in silences:
            waiting = index
            continue
        step = _silence(builder, chain, index, around) if id(element) in silences else _ordinary(builder, chain, index, around)
        step.left, step.continues = left, since > 0
        if waiting is not None:
            step.between = _between(builder, chain, waiting, around)
        step.equality = _equality(builder, chain, since, index)
        step.conjuncts = tuple(test for i in range(since + 1, index + 1) for test in builder.tests(chain, STEP, i))
        if id(element) not in silences:
            step.best = _best(builder, chain, index, step.equality, around)
        left, waiting, since = step, None, index
    return left


def _equality(builder: Builder, chain: Chain, since: int, index: int) -> Equality | None:
    """What the operand has in common with the prefix before it, which ends with element number `since`."""
    if chain.operator != SEQUENCE or is_silence(chain.elements[index]):
        return None
    before = frozenset().union(*(builder.aliases.bound(element) for element in chain.elements[: since + 1]))
    tests = [test for i in range(since + 1, index + 1) for test in builder.trees(chain, STEP, i)]
    return equality(tests, builder.aliases.bound(chain.elements[index]), before)


def _best(builder: Builder, chain: Chain, index: int, tied: Equality | None, around: Surroundings) -> str | None:
    """Which stored partner is enough; where something but the equality of two operands is compared, none is."""
    tests = len(builder.tests(chain, STEP))
    if tests and (tied is None or len(tied.arriving) < tests or len(chain.elements) > 2):
        return None
    find = best_prefix if chain.operator == SEQUENCE else best_partner
    return find(chain, index, around, builder.names, builder.setting)


def _step_options(builder: Builder, chain: Chain, around: Surroundings) -> dict[str, object]:
    """`(A ; B) within 0` means that neighbours meet: a sequence cannot last 0 (5.1)."""
    periods = builder.periods(around)
    meet = chain.operator == SEQUENCE and any(period.length == 0 for period in periods)
    return {
        "relation": contiguous if meet else RELATION_OF[chain.operator],
        "sequence": chain.operator == SEQUENCE,
        "policy": around.consumption,
        "periods": tuple(p for p in periods if p.length > 0) if meet else periods,
        "composer": builder.composer,
        "punctual": builder.punctual,
        "reduces": around.subset,
    }


def _ordinary(builder: Builder, chain: Chain, index: int, around: Surroundings) -> Step:
    element, bounds = chain.elements[index], ()
    if chain.operator == SEQUENCE:
        element, bounds = without_bounds(element, builder.names)  # type: ignore[assignment]
    right = builder.node(element, around.inside_chain)
    step: Step = builder.add(Step, right=right, **_step_options(builder, chain, around))
    step.operand_periods = builder.periods(replace(around, within=bounds))
    return step


def _silence(builder: Builder, chain: Chain, index: int, around: Surroundings) -> Step:
    element, around_it, alias, bounds = _unwrapped(chain.elements[index], around)
    assert isinstance(element, Not)
    node = builder.node(element.operand, around_it)
    between = Between(node, False, counts=builder.tests(chain, COUNTS, index))
    options = _step_options(builder, chain, around)
    length = microseconds(element.over or 0.0)
    step: SilenceStep = builder.add(SilenceStep, between=between, length=length, alias=alias, **options)
    step.operand_periods = builder.periods(replace(around, within=bounds))
    return step


def _between(builder: Builder, chain: Chain, index: int, around: Surroundings) -> Between:
    element, around_it, alias, _ = _unwrapped(chain.elements[index], around)
    counts = builder.tests(chain, COUNTS, index)
    if is_gap(element):
        operand = element if isinstance(element, Null) else element.children[0]
        return Between(builder.node(operand, around_it), False, counts=counts)
    assert isinstance(element, Iter)
    node = builder.node(element.operand, around_it)
    by = None if element.by is None else value_of(element.by)
    return Between(node, True, element.least or 0, element.most, alias, counts, by)


def _unwrapped(element: Expression, around: Surroundings) -> tuple[Expression, Surroundings, str | None, tuple[float, ...]]:
    """What stands inside `as`, `@` and `within`, with what those say."""
    inside, alias, bounds = around.inside, None, ()
    while isinstance(element, (As, At, Within)):
        if isinstance(element, As):
            alias = element.alias
        elif isinstance(element, At):
            inside = replace(inside, places=(*inside.places, element.place))
        else:
            bounds = (*bounds, element.duration)  # type: ignore[assignment]
        element = element.operand
    return element, inside, alias, bounds


# Selections.


def build_selection(builder: Builder, node: Sel, around: Surroundings) -> Node:
    build = SELECTED.get(node.function, _aggregated)
    child = builder.node(node.operand, around.inside)
    return builder.bounded(build(builder, node, child, around), around)


def _once(builder: Builder, node: Sel, child: Node, around: Surroundings) -> Node:
    usual = builder.usual(node, around)
    children = (child,) if node.until is None else (child, builder.node(node.until, around.inside))
    made: Node = builder.add(Once, children, None if node.over is None else microseconds(node.over), **usual)
    return made


def _nth(builder: Builder, node: Sel, child: Node, around: Surroundings) -> Node:
    usual = builder.usual(node, around)
    made: Node = builder.add(Nth, (child,), int(node.number or 1), _windows(builder, node), **usual)
    return made


def _last(builder: Builder, node: Sel, child: Node, around: Surroundings) -> Node:
    if node.over is not None:
        return _aggregated(builder, node, child, around)
    made: Node = builder.add(Every, (child,), **builder.usual(node, around))
    return made


def _aggregated(builder: Builder, node: Sel, child: Node, around: Surroundings) -> Node:
    usual = builder.usual(node, around)
    return _aggregate(builder, node.function, node.argument, _windows(builder, node), child, usual)


def _aggregate(
    builder: Builder, function: str, argument: Expr | None, windows: Windows | None, child: Node, usual: dict[str, object]
) -> Node:
    value = None if argument is None else value_of(argument)
    aggregator = Aggregator(function, value, argument, builder.composer)
    if windows is None:
        running: Node = builder.add(Running, (child,), aggregator, **usual)
        return running
    window: Node = builder.add(WindowNode, (child,), aggregator, windows, **usual)
    return window


def _windows(builder: Builder, node: Sel) -> Windows | None:
    if node.over is None:
        return None
    length = microseconds(node.over)
    step = length if node.every is None else microseconds(node.every)
    return Windows(length, step, microseconds(builder.setting.options.offset))


def _threshold(builder: Builder, node: Sel, child: Node, around: Surroundings) -> Node:
    """With `over`, LESS and MORE are short for a threshold on the COUNT, or on the SUM of the argument."""
    if node.over is not None:
        function = "COUNT" if node.argument is None else "SUM"
        usual: dict[str, object] = {"reduces": around.subset}
        child = _aggregate(builder, function, node.argument, _windows(builder, node), child, usual)
        tested: Expr = Reference(AGGREGATES[function].attribute)
    elif node.argument is not None:
        tested = node.argument
    else:
        tested = Reference(builder.names.aggregate(node.operand) or "")
    usual = builder.usual(node, around)
    made: Node = builder.add(Threshold, (child,), node.function == "LESS", node.number or 0.0, value_of(tested), tested, **usual)
    return made


SELECTED: dict[str, Callable[[Builder, Sel, Node, Surroundings], Node]] = {
    "FIRST": _nth,
    "NTH": _nth,
    "LAST": _last,
    "ONCE": _once,
    "LESS": _threshold,
    "MORE": _threshold,
}
"""What is built of a selection, by its name (`lang/ecco/selections.py`); of all others, an aggregate."""
