"""Operators whose memory nothing bounds (section 8), as warnings."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.errors import Diagnostic
from coincide.lang.ecco.aliases import inner_elements, is_gap, is_iteration, is_silence
from coincide.lang.ecco.definition import (
    AGGREGATES,
    CONCATENATION,
    CONJUNCTION,
    CONSUMPTIONS,
    SEQUENCE,
    Chain,
    Definition,
    DuplicatesRule,
    Expression,
    Iter,
    Policy,
    Ref,
    Sel,
    Valid,
    With,
    Within,
    Wrapper,
    core,
)
from coincide.lang.ecco.lasting import LOOKED_THROUGH, Names

KEPT = "what waits for a partner is kept for ever; add 'within T' or 'valid T'"
TOO_LONG = "the longest run is taken, and is lost if it lasts longer than the whole may; write ((A*) within T ; B) within T"
NAME = "unbounded-operator"
"""The diagnostics' name: a reader may want to leave these out."""


def unbounded(definition: Definition, policies: tuple[Policy, ...], names: Names) -> Iterator[Diagnostic]:
    yield from _visit(definition.body, consumption(policies, "unrestricted"), False, names)


def consumption(policies: tuple[Policy, ...], outer: str) -> str:
    """An inner policy overrides an outer one."""
    return next((p.name for p in reversed(policies) if p.name in CONSUMPTIONS), outer)


def _visit(node: Expression, policy: str, bounded: bool, names: Names, whole: bool = False) -> Iterator[Diagnostic]:
    """`bounded`: `within` bounds how long the node lasts; `whole`: it is an operand of a chain that is bounded so."""
    if isinstance(node, With):
        policy = consumption(node.policies, policy)
    if isinstance(node, Within):
        bounded = True
    if not bounded and (message := _grows(node, policy, names, whole)):
        yield Diagnostic(message, node.span, "warning", name=NAME)
    wraps = isinstance(node, (*LOOKED_THROUGH, Within))
    for part in _parts(node):
        yield from _visit(part, policy, bounded and wraps, names, whole if wraps else bounded and isinstance(node, Chain))


def _parts(node: Expression) -> tuple[Expression, ...]:
    """Groups and gaps are kept no longer than what stands before them."""
    inner = {id(e) for e in inner_elements(node)} if isinstance(node, Chain) else set()
    return tuple(part for part in node.children if id(part) not in inner)


def _grows(node: Expression, policy: str, names: Names, whole: bool) -> str | None:
    if isinstance(node, Chain) and node.operator in (SEQUENCE, CONJUNCTION, CONCATENATION):
        return KEPT if _waits_for_ever(node, names) else None
    if isinstance(node, Iter) and whole:
        return TOO_LONG if policy in ("unrestricted", "cumulative") and node.most != (node.least or 1) else None
    if isinstance(node, Iter) and _is_endless(node, policy):
        return "the elements of the iteration are kept for ever; add 'within T'"
    if isinstance(node, Sel) and node.function in AGGREGATES and node.over is None:
        return "a running aggregate keeps the ids of all its events; add 'over T'"
    return None


def _waits_for_ever(node: Chain, names: Names) -> bool:
    """Can what is joined so far, or in other chains than sequences an operand, wait without an end? A life of one part is the
    life of all that it is part of; a silence comes when its time is over, and an operand that cannot last within its time."""
    lives = [_lives(element) for element in node.elements]
    if node.operator != SEQUENCE:
        return not all(lives)
    return any(
        not (any(lives[:index]) or is_silence(element) or _is_close(element, names))
        for index, element in enumerate(node.elements)
        if index > 0 and not (is_gap(element) or (is_iteration(element) and index < len(node.elements) - 1))
    )


def _lives(element: Expression) -> bool:
    return isinstance(element, Valid) or isinstance(core(element, LOOKED_THROUGH[:-1]), Valid)


def _is_close(element: Expression, names: Names) -> bool:
    """`a ; b within T`: it comes so soon after what is before it, or never."""
    return names.cannot_last(element) and any(isinstance(part, Within) for part in _wrappers(element))


def _wrappers(element: Expression) -> Iterator[Expression]:
    while isinstance(element, Wrapper):
        yield element
        element = element.operand


def _is_endless(node: Iter, policy: str) -> bool:
    """Elements that no run can have any more go, where they cannot keep out others that share an event with them."""
    if node.by is not None:  # one value may come again and again
        return policy != "chronicle"
    if policy == "cumulative":
        return node.most is None
    return policy == "unrestricted" and (node.most is None or not isinstance(core(node.operand), Ref))


def unbounded_duplicates(rules: tuple[DuplicatesRule, ...]) -> Iterator[Diagnostic]:
    for rule in rules:
        if rule.horizon is None:
            yield Diagnostic("the keys of all instances are kept for ever; add 'within T'", rule.span, "warning", name=NAME)
