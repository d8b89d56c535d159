"""Definitions as calls of `coincide.amit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword

from coincide.lang.amit.definition import Definition
from coincide.lang.amit.elements import element_of
from coincide.lang.amit.operators import OPERATORS, OperatorKind
from coincide.lang.shared.xml import Element

HEAD = "from coincide.amit import event, key, lifespan, operand, rules, situation\n\n"
REFINEMENTS = {"where": "where", "detectionMode": "mode", "repeatMode": "repeated"}


def print_definitions(definitions: Iterable[Definition]) -> str:
    """A module that has them as `book`. Templates must have been expanded: Python has functions instead."""
    calls = [f"    {_definition(element_of(definition))},\n" for definition in definitions]
    return f"{HEAD}book = rules(\n{''.join(calls)}).book\n"


def _definition(element: Element) -> str:
    name, children = element.attributes["name"], element.children
    if element.name == "event":
        return _call("event", [name], {c.attributes["name"]: c.attributes["type"] for c in children})
    if element.name == "key":
        members = {c.attributes["event"]: c.attributes["attribute"] for c in children}
        return _call("key", [name, members], _rest(element, "name"))
    links = _lifespan(children) if element.name == "lifespan" else _situation(element)
    return "\n    .".join([_call(element.name, [name]), *links])


def _lifespan(children: Sequence[Element]) -> Iterator[str]:
    for role in (role for child in children for role in child.children):
        values = _rest(role, "event", "terminationType", "timeInterval")
        if role.attributes.get("terminationType") == "discard":
            values["discard"] = True
        if role.name == "startup":
            yield "opened_at_startup()"
        elif role.name == "expirationInterval":
            yield _call("expires", [role.attributes["timeInterval"]], values)
        elif role.name != "noTerminator":
            method = "opened_by" if role.name == "eventInitiator" else "closed_by"
            yield _call(method, [role.attributes["event"]], values)
    yield from _keys(children)


def _situation(element: Element) -> Iterator[str]:
    operator, *attributes = element.children
    internal = {"internal": True} if "internal" in element.attributes else {}
    yield _call("within", [element.attributes["lifespan"]], internal)
    yield _operator(operator)
    for name, method in REFINEMENTS.items():
        if name in operator.attributes:
            yield _call(method, [operator.attributes[name]])
    yield from _keys(operator.children)
    for attribute in attributes:
        name, kind = attribute.attributes["name"], attribute.attributes["type"]
        expression = attribute.attributes.get("expression")
        yield _call("having", [kind, name]) if expression is None else _call("having", [kind], {name: expression})


def _operator(element: Element) -> str:
    kind = OPERATORS[element.name]
    values = _rest(element, *REFINEMENTS)
    first = [_leading(kind, values)] if kind.leading else []
    operands = [Code(_operand(child)) for child in element.children if child.name != "keyBy"]
    return _call(kind.method or kind.name, [*first, *operands], values)


def _leading(kind: OperatorKind, values: dict[str, object]) -> object:
    if kind.leading != "quantity":
        return values.pop(kind.leading)
    return Code(values.pop("quantity", kind.quantity))


def _operand(element: Element) -> str:
    values = _rest(element, "event", "threshold", "quantifierType")
    if "threshold" in element.attributes:
        values["where"] = element.attributes["threshold"]
    if element.attributes.get("quantifierType") == "absolute":
        values["strict"] = True
    if "weight" in values:
        values["weight"] = Code(values["weight"])
    if "counted" in values:
        values["counted"] = False
    return _call("operand", [element.attributes["event"]], values)


def _keys(children: Sequence[Element]) -> Iterator[str]:
    for key in (child.attributes for child in children if child.name == "keyBy"):
        yield _call("keyed_by", [], {"key": key["name"]}) if "name" in key else _call("keyed_by", [key["attribute"]])


class Code(str):
    """Python text that stands as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _rest(element: Element, *without: str) -> dict[str, object]:
    return {"as_" if name == "as" else name: value for name, value in element.attributes.items() if name not in without}


def _call(name: str, arguments: Sequence[object], keywords: Mapping[str, object] | None = None) -> str:
    """If one of the names is no Python name, all are given as a dict, in their order."""
    given = keywords or {}
    if all(key.isidentifier() and not iskeyword(key) for key in given):
        named = [f"{key}={value!r}" for key, value in given.items()]
    else:
        named = [f"**{dict(given)!r}"]
    return f"{name}({', '.join([*map(repr, arguments), *named])})"
