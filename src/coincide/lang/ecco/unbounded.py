"""Operators whose memory nothing bounds (section 8), as warnings."""

from __future__ import annotations

from collections.abc import Iterator

from coincide.errors import Diagnostic
from coincide.lang.ecco.aliases import inner_elements
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
    Sel,
    Valid,
    With,
    Within,
    core,
)
from coincide.lang.ecco.lasting import LOOKED_THROUGH

NAME = "unbounded-operator"
"""The diagnostics' name: a reader may want to leave these out."""


def unbounded(definition: Definition, policies: tuple[Policy, ...]) -> Iterator[Diagnostic]:
    yield from _visit(definition.body, consumption(policies, "unrestricted"), False)


def consumption(policies: tuple[Policy, ...], outer: str) -> str:
    """An inner policy overrides an outer one."""
    return next((p.name for p in reversed(policies) if p.name in CONSUMPTIONS), outer)


def _visit(node: Expression, policy: str, bounded: bool) -> Iterator[Diagnostic]:
    if isinstance(node, With):
        policy = consumption(node.policies, policy)
    if isinstance(node, Within):
        bounded = True
    if not bounded and (message := _grows(node, policy)):
        yield Diagnostic(message, node.span, "warning", name=NAME)
    inside = bounded and isinstance(node, (*LOOKED_THROUGH, Within))
    for part in _parts(node):
        yield from _visit(part, policy, inside)


def _parts(node: Expression) -> tuple[Expression, ...]:
    """Groups and gaps are kept no longer than what stands before them."""
    inner = {id(e) for e in inner_elements(node)} if isinstance(node, Chain) else set()
    return tuple(part for part in node.parts if id(part) not in inner)


def _grows(node: Expression, policy: str) -> str | None:
    if isinstance(node, Chain) and node.operator in (SEQUENCE, CONJUNCTION, CONCATENATION):
        stored = node.elements[:-1] if node.operator == SEQUENCE else node.elements
        lives = all(isinstance(part, Valid) or isinstance(core(part, LOOKED_THROUGH[:-1]), Valid) for part in stored)
        return None if lives else "what waits for a partner is kept for ever; add 'within T' or 'valid T'"
    if isinstance(node, Iter) and policy in ("unrestricted", "cumulative"):
        return "the elements of the iteration are kept for ever; add 'within T'"
    if isinstance(node, Sel) and node.function in AGGREGATES and node.over is None:
        return "a running aggregate keeps the ids of all its events; add 'over T'"
    return None


def unbounded_duplicates(rules: tuple[DuplicatesRule, ...]) -> Iterator[Diagnostic]:
    for rule in rules:
        if rule.horizon is None:
            yield Diagnostic("the keys of all instances are kept for ever; add 'within T'", rule.span, "warning", name=NAME)
