"""Selections of a detection (section 4)."""

from __future__ import annotations

from coincide.lang.sigma.definition import All, Any_, Formula, Item, Test
from coincide.lang.sigma.nodes import fail, is_null, value_of
from coincide.lang.sigma.values import Meaning, check_modifiers, tests_of
from coincide.yaml import Entries, Items, Node, Scalar


def selection_of(node: Node, meaning: Meaning) -> Formula:
    if is_null(node) or (isinstance(node, Entries) and not node.pairs) or (isinstance(node, Items) and not node.nodes):
        fail("a selection must not be empty", node.span)
    if isinstance(node, Scalar):
        return Item(None, (_tests(node, (), meaning, keyword=True),))
    if isinstance(node, Entries):
        return _only(All(tuple(_item(key, value, meaning) for key, value in node.pairs)))
    return _only(Any_(tuple(selection_of(member, meaning) for member in node.nodes)))


def _only(formula: All | Any_) -> Formula:
    return formula.members[0] if len(formula.members) == 1 else formula


def _item(key: Scalar, node: Node, meaning: Meaning) -> Item:
    name, *modifiers = key.text.split("|")
    check_modifiers(modifiers, key.span)
    nodes = node.nodes if isinstance(node, Items) else (node,)
    if not nodes:
        fail("a list of values must not be empty", node.span)
    values = tuple(_tests(member, tuple(modifiers), meaning, keyword=not name) for member in nodes)
    attribute = meaning.attributes.get(name, name) if name else None
    return Item(attribute, values, "all" in modifiers, "neq" in modifiers, key.span)


def _tests(node: Node, modifiers: tuple[str, ...], meaning: Meaning, keyword: bool) -> tuple[Test, ...]:
    return tests_of(value_of(node), modifiers, node.span, meaning, keyword)
