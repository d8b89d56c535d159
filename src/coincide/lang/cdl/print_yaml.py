"""Definitions as YAML that parses back to equal ones, in the shortest form that says them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coincide.expr.functions import number_text
from coincide.expr.print import expression_text
from coincide.expr.quantities import microseconds_of, whole_units
from coincide.expr.tree import And, Arithmetic, Call, Expr, Literal, Negate, Not, Or, Reference
from coincide.lang.cdl.definition import (
    AnySource,
    Attribute,
    Collection,
    ComplexEvent,
    Computation,
    Description,
    EventAttribute,
    Expression,
    File,
    Filter,
    Predicate,
    Preference,
    Provider,
    TimeEvent,
    version_text,
)
from coincide.lang.cdl.print import ELEMENTS, SIGNS, reads_back
from coincide.lang.shared.yaml_text import dumped, plain

Data = dict[str, Any]


def print_file(file: File) -> str:
    if file.single:
        return dumped(_description(file.descriptions[0]))
    providers = _section("providers", "name", map(_provider, file.providers))
    return dumped({**providers, "cds": [*map(_description, file.descriptions)]})


def _entries(**values: object) -> Data:
    """Those that are not left out. Names of entries that are not names of Python end in an underscore."""
    return {name.rstrip("_"): value for name, value in values.items() if value is not None}


def _section(name: str, key: str, entries: Iterable[tuple[str, Any]]) -> Data:
    """By name, unless a name comes twice."""
    found = list(entries)
    if len({entry for entry, _ in found}) < len(found):
        return {name: [{key: entry, **(body if isinstance(body, dict) else {"type": body})} for entry, body in found]}
    return {name: dict(found)} if found else {}


def _description(cd: Description) -> Data:
    version = None if cd.version == (1,) else version_text(cd.version)
    return {
        **_entries(cd=cd.id, version=version, within=_duration(cd.within), disjoint=cd.disjoint or None),
        **_section("providers", "name", map(_provider, cd.providers)),
        **_section("sources", "anchor", map(_source, cd.sources)),
        **_section("computations", "anchor", map(_computation, cd.computations)),
        **_section("predicates", "anchor", map(_predicate, cd.predicates)),
        **_section("expressions", "anchor", map(_expression, cd.expressions)),
        **_section("events", "class", (_event(event, len(cd.expressions) > 1) for event in cd.events)),
        **({"preferences": [*map(_preference, cd.preferences)]} if cd.preferences else {}),
    }


def _duration(milliseconds: float | None) -> object:
    if milliseconds and (found := whole_units(microseconds_of(milliseconds))):
        return f"{found[0]} {found[1]}"
    return None if milliseconds is None else plain(number_text(milliseconds))


def _provider(node: Provider) -> tuple[str, Data]:
    return node.name, _entries(kind=node.kind, href=node.href, key=node.key)


def _source(node: AnySource) -> tuple[str, object]:
    if isinstance(node, TimeEvent):
        return node.anchor, {"trigger": node.trigger, "relative" if node.relative else "absolute": _value(node.value)}
    common = _entries(
        access=None if node.access == "any" else node.access,
        within=_duration(node.within),
        duplicates=None if node.duplicates == "accept" else node.duplicates,
        reuse=node.reuse if isinstance(node, Collection) else None,
    )
    common |= _section("attributes", "name", map(_attribute, node.attributes))
    if isinstance(node, Collection):
        return node.anchor, {"collection": node.message_class, **common}
    return node.anchor, {"class": node.message_class, **common} if common or not node.message_class else node.message_class


def _attribute(node: Attribute) -> tuple[str, object]:
    lookup = None
    if isinstance(node.lookup, Call):
        provider, column, key = node.lookup.arguments
        lookup = {"provider": _constant(provider), "column": _constant(column), "key": _value(key)}
    filters = _filters(node.filters)
    more = _entries(anchor=node.anchor, optional=node.optional or None, lookup=lookup, filter=filters)
    return node.name, {"type": node.type, **more} if more else node.type


def _constant(tree: Expr) -> object:
    assert isinstance(tree, Literal)
    return tree.value


def _filters(filters: tuple[Filter, ...]) -> object:
    """A condition, operators with their values, or a list of these."""
    found = [_filter(node) for node in filters]
    return found[0] if len(found) == 1 else found or None


def _filter(node: Filter) -> object:
    if node.operators:
        return {" ".join(node.operators): _values(node.values)}
    value = _values(node.values)
    return {"condition": value} if isinstance(value, dict) else value


def _computation(node: Computation) -> tuple[str, Data]:
    return node.anchor, {node.type: _value(node.value), **_entries(overhead=node.overhead)}


def _predicate(node: Predicate) -> tuple[str, object]:
    more = _entries(of=node.of, selectivity=node.selectivity)
    value = _values(node.arguments)
    if node.name is None and not more and not isinstance(value, dict):
        return node.anchor, value
    return node.anchor, {node.name or "condition": value, **more}


def _expression(node: Expression) -> tuple[str, object]:
    text = expression_text(node.logic)
    return node.anchor, plain(text) if reads_back(text, (node.logic,)) else _logic(node.logic)


def _event(node: ComplexEvent, with_trigger: bool) -> tuple[str, Data]:
    given = _entries(access=None if node.access == "public" else node.access, trigger=node.trigger if with_trigger else None)
    return node.message_class, given | _section("attributes", "name", map(_event_attribute, node.attributes))


def _event_attribute(node: EventAttribute) -> tuple[str, Data]:
    return node.name, {node.type: _value(node.value)}


def _preference(node: Preference) -> Data:
    return _entries(self_=node.self_, previous=node.previous, other=node.other, better=node.better)


# Values


def _values(trees: tuple[Expr, ...]) -> object:
    found = [_value(tree) for tree in trees]
    return found[0] if len(found) == 1 else found


def _value(tree: Expr) -> object:
    """Text, unless text cannot say it."""
    text = expression_text(tree)
    return plain(text) if reads_back(text, (tree,)) else _nested(tree)


def _logic(tree: Expr) -> Data:
    if isinstance(tree, (And, Or)):
        return {"and" if isinstance(tree, And) else "or": [_logic_part(operand) for operand in tree.operands]}
    if isinstance(tree, Not):
        return {"not": _logic_part(tree.operand)}
    assert isinstance(tree, Reference)
    return {"ref": tree.name}


def _logic_part(tree: Expr) -> object:
    text = expression_text(tree)
    return plain(text) if reads_back(text, (tree,)) else _logic(tree)


def _nested(tree: Expr) -> Data:
    """A value as an element. Conditions have no such form, but they were text, which reads back."""
    if isinstance(tree, Literal):
        return {"value": tree.value} if isinstance(tree.value, str) else {"value": _scalar(tree.value), "type": _kind(tree.value)}
    if isinstance(tree, Reference):
        of, dot, rest = tree.name.partition(".")
        return {"ref": rest, "of": of} if dot and of in ("self", "other", "previous") else {"ref": tree.name}
    if isinstance(tree, Negate):
        return {"neg": _value(tree.operand)}
    if isinstance(tree, Arithmetic):
        return {SIGNS[tree.op]: [_value(tree.left), _value(tree.right)]}
    assert isinstance(tree, Call)
    return _call(tree)


def _call(tree: Call) -> Data:
    if tree.name == "lookup":
        provider, column, key = tree.arguments
        return {"lookup": _value(key), "provider": _constant(provider), "column": _constant(column)}
    if tree.name == "node":
        return {"context": _constant(tree.arguments[0])}
    arguments = [_value(argument) for argument in tree.arguments]
    return {ELEMENTS[tree.name]: arguments} if tree.name in ELEMENTS else {"call": tree.name, "arguments": arguments}


def _scalar(value: object) -> object:
    return value if isinstance(value, bool) else plain(number_text(value))  # type: ignore[arg-type]


def _kind(value: object) -> str:
    return "boolean" if isinstance(value, bool) else "double"
