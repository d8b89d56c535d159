"""Definitions as YAML, in the shortest form that says them. Items keep their order: where one mapping of sections cannot
hold it, a list of such mappings does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coincide.errors import Diagnostic, RuleError
from coincide.lang.amit.definition import File
from coincide.lang.amit.elements import element_of
from coincide.lang.amit.operators import elements
from coincide.lang.shared.xml import Element
from coincide.lang.shared.yaml_text import dumped, plain

PLURALS = {"event": "events", "key": "keys", "lifespan": "lifespans", "situation": "situations", "template": "templates"}


def print_file(file: File) -> str:
    return print_elements(map(element_of, file.items))


def print_elements(elements: Iterable[Element]) -> str:
    sections = _sections(elements)
    data = sections[0] if len(sections) == 1 else sections
    return dumped(data) if sections else "{}\n"


def _sections(elements: Iterable[Element]) -> list[dict[str, Any]]:
    """A section that begins anew after another one, or a name that is there already, begins a new mapping."""
    found: list[dict[str, Any]] = []
    last = ""
    for element in elements:
        section = PLURALS.get(element.name, "use")
        name = element.attributes.get("name", "")
        began_before = found and section != last and section in found[-1]
        if not found or began_before or (section != "use" and name in found[-1].get(section, {})):
            found.append({})
        if section == "use":
            found[-1].setdefault(section, []).append(_values(element))
        else:
            found[-1].setdefault(section, {})[name] = _body(element)
        last = section
    return found


def _body(element: Element) -> dict[str, Any]:
    children = element.children
    if element.name == "event":
        return {c.attributes.get("name", ""): c.attributes.get("type", "") for c in children}
    if element.name == "key":
        members = {c.attributes.get("event", ""): c.attributes.get("attribute", "") for c in children}
        kind = _values(element, "name")
        return {**kind, "events": members} if kind else members
    if element.name == "lifespan":
        return {c.name: _alone([_role(role) for role in c.children]) for c in children if c.name != "keyBy"} | _keys(children)
    return _situation(element) if element.name == "situation" else _template(element)


def _role(element: Element) -> object:
    if element.name in ("startup", "noTerminator"):
        return element.name
    if element.name == "expirationInterval":
        values = _values(element)
        return {"expirationInterval": values.pop("timeInterval", ""), **values}
    return _short(element, "event", ("startup", "noTerminator"))


def _situation(element: Element) -> dict[str, Any]:
    parts = [part for child in element.children for part in (child.children if child.name == "operator" else [child])]
    attributes = {c.attributes.get("name", ""): _short_type(c) for c in parts if c.name == "situationAttribute"}
    operators = {c.name: _operator(c) for c in parts if c.name != "situationAttribute"}
    return _values(element, "name") | operators | ({"attributes": attributes} if attributes else {})


def _operator(element: Element) -> object:
    form = elements().get(element.name)
    if form is None:
        message = f"'{element.name}' cannot be written in YAML"
        raise RuleError(Diagnostic(message, element.span, hint="it is not an operator of Amit"))
    values, keys = _values(element), _keys(element.children)
    operands = [_short(child, "event") for child in element.children if child.name != "keyBy"]
    if not form.operands and list(values) == [form.attributes[0]]:
        return values[form.attributes[0]]
    if not values and not keys:
        return operands
    return values | ({"operands": operands} if operands else {}) | keys


def _keys(children: Iterable[Element]) -> dict[str, Any]:
    keys = [_short(child, "attribute") for child in children if child.name == "keyBy"]
    return {"keyBy": _alone(keys)} if keys else {}


def _template(element: Element) -> dict[str, Any]:
    parameters = element.attributes.get("parameters", "").split()
    sections = _sections(element.children)
    body = sections[0] if len(sections) == 1 else {"body": sections} if sections else {}
    return ({"parameters": parameters} if parameters else {}) | body


def _alone(values: list[Any]) -> object:
    return values[0] if len(values) == 1 else values


def _short(element: Element, attribute: str, reserved: tuple[str, ...] = ()) -> object:
    """The one attribute's value, if there is no other and it cannot be taken for something else."""
    values = _values(element)
    value = values.get(attribute)
    return value if list(values) == [attribute] and value not in (*reserved, "") else values


def _short_type(element: Element) -> object:
    values = _values(element, "name")
    return values["type"] if list(values) == ["type"] else values


def _values(element: Element, *without: str) -> dict[str, Any]:
    return {name: plain(value) for name, value in _attributes_but(element.attributes, without)}


def _attributes_but(attributes: Mapping[str, str], without: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    return ((name, value) for name, value in attributes.items() if name not in without)
