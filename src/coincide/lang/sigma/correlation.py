"""Correlation rules (section 6)."""

from __future__ import annotations

import re

from coincide.errors import nearest
from coincide.expr.quantities import UNITS, QuantityError, microseconds_of
from coincide.lang.sigma.definition import (
    COMPARISONS,
    NUMERIC,
    TEMPORAL,
    TYPES,
    Alias,
    CorrelationRule,
    Head,
    Reference,
    Shown,
    within,
)  # fmt: skip
from coincide.lang.sigma.mapping import Mapping
from coincide.lang.sigma.nodes import Map, fail, is_null, text_of, texts_of, value_of
from coincide.model.numbers import is_number
from coincide.source import Span
from coincide.yaml import Entries, Node, Scalar

ATTRIBUTES = ("type", "rules", "group-by", "timespan", "condition", "aliases", "generate")
SPAN = re.compile(r"([0-9]+) ?([a-z]+)")


def correlation_of(head: Head, document: Map, mapping: Mapping) -> CorrelationRule:
    key = document.keys["correlation"]
    parts = Map(document.values["correlation"], "'correlation'")
    parts.check_known(ATTRIBUTES, "a correlation")
    kind = _needed(parts, "type", key)
    if text_of(kind) not in TYPES:
        fail(f"unknown type of correlation '{text_of(kind)}'", kind.span, nearest(text_of(kind), TYPES))
    rules = tuple(Reference(scalar.text, scalar.span) for scalar in texts_of(_needed(parts, "rules", key)))
    if not rules:
        fail("a correlation needs 'rules'", key.span)
    timespan = _timespan(_needed(parts, "timespan", key))
    groups = parts.get("group-by")
    group_by = () if groups is None or is_null(groups) else tuple(_shown(s.text, mapping) for s in texts_of(groups))
    condition = _Condition(text_of(kind), parts.get("condition"), len(rules), key, mapping)
    return CorrelationRule(
        head,
        text_of(kind),
        rules,
        timespan,
        group_by,
        _aliases(parts.get("aliases"), mapping),
        condition.bounds,
        condition.fields,
        condition.percentile,
        _generate(parts) or _generate(document),
    )


def _shown(name: str, mapping: Mapping) -> Shown:
    return Shown(name, mapping.attribute(name))


def _needed(parts: Map, name: str, key: Scalar) -> Node:
    node = parts.get(name)
    if node is None or is_null(node):
        fail(f"a correlation needs '{name}'", key.span)
    return node


def _timespan(node: Node) -> int:
    text = text_of(node)
    found = SPAN.fullmatch(text)
    try:
        if found is not None and found[2] in UNITS and len(found[1]) <= 30:
            return microseconds_of(int(found[1]) * UNITS[found[2]], zero=False)
    except QuantityError:
        pass
    fail(f"'{text}' is not a time span, such as 30s, 5m, 1h, 7d", node.span)


def _generate(parts: Map) -> bool:
    node = parts.get("generate")
    if node is None:
        return False
    value = value_of(node)
    if not isinstance(value, bool):
        fail("'generate' must be true or false", node.span)
    return value


def _aliases(node: Node | None, mapping: Mapping) -> tuple[Alias, ...]:
    if node is None or is_null(node):
        return ()
    return tuple(_alias(key, value, mapping) for key, value in Map(node, "'aliases'").items())


def _alias(key: Scalar, node: Node, mapping: Mapping) -> Alias:
    pairs = Map(node, f"alias '{key.text}'").items()
    fields = tuple((Reference(rule.text, rule.span), mapping.attribute(text_of(name))) for rule, name in pairs)
    return Alias(key.text, fields, key.span)


class _Condition:
    """The condition of a correlation."""

    def __init__(self, kind: str, node: Node | None, rules: int, key: Scalar, mapping: Mapping) -> None:
        self.bounds: tuple[tuple[str, float], ...] = ()
        self.fields: tuple[Shown, ...] = ()
        self.percentile: float | None = None
        if node is None or is_null(node):
            if kind not in TEMPORAL:
                fail("a correlation needs 'condition'", key.span)
            return
        if not isinstance(node, Entries):
            fail("a condition that is an expression is not supported", node.span)
        parts = Map(node, "a condition")
        parts.check_known((*COMPARISONS, "field", "percentile"), "a condition")
        self.bounds = tuple((op, _number(parts.values[op], op)) for op in COMPARISONS if op in parts)
        if not self.bounds:
            fail("a condition needs one of gt, gte, lt, lte, eq, neq", node.span)
        self._read_fields(kind, parts, node.span, mapping)
        self._read_percentile(parts)
        if kind == "temporal_ordered" and not _needs_all(self.bounds, rules):
            fail("'temporal_ordered' needs all of its rules", node.span)

    def _read_fields(self, kind: str, parts: Map, place: Span, mapping: Mapping) -> None:
        """Other types count units, whatever values they have."""
        node = parts.get("field")
        if kind.startswith("value_") and node is not None and not is_null(node):
            self.fields = tuple(_shown(scalar.text, mapping) for scalar in texts_of(node))
        if kind.startswith("value_") and not self.fields:
            fail(f"'{kind}' needs a field", place)
        if (kind in NUMERIC or kind == "value_percentile") and len(self.fields) > 1:
            fail(f"'{kind}' takes one field", place)

    def _read_percentile(self, parts: Map) -> None:
        node = parts.get("percentile")
        if node is None:
            return
        value = value_of(node)
        if not is_number(value) or not 0 <= value <= 100:
            fail("'percentile' must be a number from 0 to 100", node.span)
        self.percentile = value


def _number(node: Node, op: str) -> float:
    value = value_of(node)
    if not is_number(value):
        fail(f"'{op}' needs a number", node.span)
    return value


def _needs_all(bounds: tuple[tuple[str, float], ...], rules: int) -> bool:
    return within(bounds, rules) and not any(within(bounds, fewer) for fewer in range(1, rules))
