"""Attributes of detections as expressions of one input event: what tells engines the types of columns."""

from __future__ import annotations

from coincide.detection.eventsets import Leaf
from coincide.expr.functions import BOOLEAN, FUNCTIONS, NUMBER, TEXT
from coincide.expr.tree import Call, Expr, Literal, Reference, transform
from coincide.lang.opera.attributes import aggregate_parts
from coincide.lang.opera.definition import Definition
from coincide.lang.opera.functions import AGGREGATES

SOME: dict[str, Expr] = {NUMBER: Literal(0.0), TEXT: Literal(""), BOOLEAN: Literal(False)}
"""Some value of a type: what stands for a value that no expression of one event can give."""


def produced(definition: Definition, leaves: list[Leaf]) -> dict[str, tuple[Expr, ...]]:
    bound: dict[str, dict[Expr, None]] = {parameter: {} for parameter in definition.parameters}
    for leaf in leaves:
        for attribute, parameter in leaf.bindings:
            bound[parameter][Reference(attribute)] = None
    made = {parameter: tuple(trees) for parameter, trees in bound.items()}
    return made | {a.name: (_of_one_event(a.value, made),) for a in definition.attributes}


def _of_one_event(value: Expr, parameters: dict[str, tuple[Expr, ...]]) -> Expr:
    def rewrite(node: Expr) -> Expr:
        if isinstance(node, Call) and FUNCTIONS[node.name].aliases:
            return SOME[FUNCTIONS[node.name].result]
        if not isinstance(node, Reference):
            return node
        return parameters[node.name][0] if node.alias is None else _of_alias(node.name)

    return transform(value, rewrite)


def _of_alias(name: str) -> Expr:
    function, attribute = aggregate_parts(name) or ("last", name)
    return SOME.get(AGGREGATES[function]) or Reference(attribute)
