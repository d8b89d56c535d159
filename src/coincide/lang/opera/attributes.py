"""The `with` clause: what its expressions refer to (section 3.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from coincide.errors import Diagnostic, RuleError
from coincide.expr.print import expression_text
from coincide.expr.tree import Alias, Call, Expr, Reference, transform, with_aliases
from coincide.expr.typing import infer
from coincide.lang.opera.definition import Attribute, Detect, Expression, Item, aliased_items
from coincide.lang.opera.functions import AGGREGATES, WITH_FUNCTIONS
from coincide.lang.opera.typing import Declared, WithTypes
from coincide.lang.shared.eventsets import types
from coincide.model.event import ENVELOPE
from coincide.syntax import walk


def resolved_attributes(
    statement: Detect, body: Expression, parameters: Sequence[str], composites: frozenset[str], declared: Declared
) -> tuple[Attribute, ...]:
    """The attributes with aliases told from dotted names; an aggregate `sum(a.x)` is the reference `sum(x)` of alias a. A
    condition comes last."""
    items = aliased_items(body)
    seen: set[str] = set()
    kinds = WithTypes(body, declared)
    resolved = []
    condition = () if statement.condition is None else (statement.condition,)
    for attribute in (*statement.attributes, *condition):
        if attribute is not statement.condition:
            _check_name(attribute, seen, parameters)
        value = _resolved(attribute.value, frozenset(item.alias for item in items if item.alias))
        _check_references(replace(attribute, value=value), statement.name, parameters, kinds)
        check_ids(replace(attribute, value=value), items, composites)
        resolved.append(replace(attribute, value=value))
    return tuple(resolved)


def _check_name(attribute: Attribute, seen: set[str], parameters: Sequence[str]) -> None:
    if attribute.name in ENVELOPE:
        raise _error(f"'{attribute.name}' cannot be an attribute name", attribute)
    if attribute.name in seen or attribute.name in parameters:
        raise _error(f"attribute '{attribute.name}' is given twice", attribute)
    seen.add(attribute.name)


def _resolved(value: Expr, aliases: frozenset[str]) -> Expr:
    def rewrite(node: Expr) -> Expr:
        return (_aggregate(node, aliases) or node) if isinstance(node, Call) and node.name in AGGREGATES else node

    return transform(with_aliases(value, aliases), rewrite)


def _aggregate(node: Call, aliases: frozenset[str]) -> Reference | None:
    (argument,) = node.arguments
    if not isinstance(argument, Reference):
        return None
    if node.name == "count":
        return Reference("count()", argument.name, span=node.span) if argument.text in aliases else None
    return Reference(f"{node.name}({argument.name})", argument.alias, span=node.span) if argument.alias else None


def aggregate_parts(name: str) -> tuple[str, str] | None:
    """`sum(x)` as ("sum", "x"); None if the name is not an aggregate's."""
    function, opened, attribute = name.partition("(")
    return (function, attribute.removesuffix(")")) if opened else None


def _check_references(attribute: Attribute, detector: str, parameters: Sequence[str], kinds: WithTypes) -> None:
    for node in walk(attribute.value):
        wrong = isinstance(node, Reference) and node.alias is None and node.name not in parameters
        unfinished = isinstance(node, Call) and node.name in AGGREGATES
        if wrong or unfinished:
            text = expression_text(node)
            raise _error(f"'{text}' is neither a parameter nor an attribute of an alias of '{detector}'", attribute)
    try:
        infer(attribute.value, kinds, WITH_FUNCTIONS)
    except RuleError as error:
        raise _error(error.diagnostics[0].message, attribute) from None


def check_ids(attribute: Attribute, items: Sequence[Item], composites: frozenset[str]) -> None:
    """Generated ids are not stable, so no attribute may show them (decision D-26)."""
    for alias in _aliases_of_ids(attribute.value):
        for name in [name for item in items if item.alias == alias for name in types(item.events)]:
            if name in composites:
                raise _error(f"the ids of composite type '{name}' are generated and cannot be used", attribute)


def _aliases_of_ids(value: Expr) -> Iterator[str]:
    for node in walk(value):
        if isinstance(node, Reference) and node.alias is not None:
            parts = aggregate_parts(node.name)
            if (parts[1] if parts else node.name) == "id":
                yield node.alias


def used_aliases(attributes: Sequence[Attribute]) -> frozenset[str]:
    """Aliases that any attribute reads: only their events need be remembered."""
    nodes = [node for attribute in attributes for node in walk(attribute.value)]
    named = {node.name for node in nodes if isinstance(node, Alias)} | {n.alias for n in nodes if isinstance(n, Reference)}
    return frozenset(alias for alias in named if alias is not None)


def _error(message: str, attribute: Attribute) -> RuleError:
    return RuleError(Diagnostic(message, attribute.span))
