"""Warnings about a definition: operators whose memory nothing bounds (section 8), and what hardly means what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from coincide.errors import Diagnostic
from coincide.lang.ecco.aggregates import AGGREGATES
from coincide.lang.ecco.aliases import inner_elements, is_gap, is_iteration, is_silence
from coincide.lang.ecco.conditions import wrappers
from coincide.lang.ecco.consumption import CONSUMPTIONS, chosen
from coincide.lang.ecco.definition import (
    CONCATENATION,
    CONJUNCTION,
    SEQUENCE,
    Chain,
    Definition,
    DuplicatesRule,
    Expression,
    Iter,
    Neg,
    Policy,
    Sel,
    Valid,
    With,
    Within,
    core,
)
from coincide.lang.ecco.lasting import LOOKED_THROUGH, Names
from coincide.syntax import walk

KEPT = "what waits for a partner is kept for ever; add 'within T' or 'valid T'"
TOO_LONG = "the longest run is taken, and is lost if it lasts longer than the whole may; write ((A*) within T ; B) within T"
NAME = "unbounded-operator"
"""The diagnostics' name: a reader may want to leave these out."""


def unbounded(definition: Definition, policies: tuple[Policy, ...], names: Names) -> Iterator[Diagnostic]:
    yield from _visit(definition.body, chosen(policies), False, names)


def _visit(node: Expression, policy: str, bounded: bool, names: Names, whole: bool = False) -> Iterator[Diagnostic]:
    """`bounded`: `within` bounds how long the node lasts; `whole`: it is an operand of a chain that is bounded so."""
    if isinstance(node, With):
        policy = chosen(node.policies, policy)
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
        return TOO_LONG if CONSUMPTIONS[policy].longest and node.most != (node.least or 1) else None
    if isinstance(node, Iter) and CONSUMPTIONS[policy].piles_up(node):
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
    return names.cannot_last(element) and any(isinstance(part, Within) for part in wrappers(element))


def unbounded_duplicates(rules: tuple[DuplicatesRule, ...]) -> Iterator[Diagnostic]:
    for rule in rules:
        if rule.horizon is None:
            yield Diagnostic("the keys of all instances are kept for ever; add 'within T'", rule.span, "warning", name=NAME)


# What hardly means what it says


def warnings_of(definition: Definition, names: Names) -> Iterator[Diagnostic]:
    bounded = {id(core(n.operand, LOOKED_THROUGH)) for n in walk(definition.body) if isinstance(n, Within)}
    for node in walk(definition.body):
        check = _CHECKS.get(type(node))
        message = check(node, names, id(node) in bounded) if check else None
        if message is not None:
            yield Diagnostic(message, node.span, "warning")


def _concatenation(node: Chain, names: Names, bounded: bool) -> str | None:
    if node.operator != CONCATENATION or not all(map(names.cannot_last, node.elements)):
        return None
    return "a concatenation of points can never occur"


def _negation(node: Neg, names: Names, bounded: bool) -> str | None:
    if bounded or not names.cannot_last(node.left) or _has_life(node.right):
        return None
    return "'A - B' looks for B only at A's instant; for a sequence write (A ; B) - C"


def _has_life(node: Expression) -> bool:
    return any(isinstance(part, Valid) for part in walk(node))


def _selection(node: Sel, names: Names, bounded: bool) -> str | None:
    if not node.selection.by_number or node.over is None:
        return None
    number = int(node.number or 0)
    return f"windows are fixed; for any {number} close together write A*{{{number}}} within T"


_CHECKS: dict[type[Expression], Callable[..., str | None]] = {Chain: _concatenation, Neg: _negation, Sel: _selection}
