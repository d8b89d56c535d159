"""Amit's XML (section 2.1) as definitions. Names and types are looked at when all files are known (resolve.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from coincide.lang.amit.attributes import NAME, Attributes, children_of, error
from coincide.lang.amit.definition import (
    Definition,
    EventAttribute,
    EventKey,
    EventType,
    Expiration,
    File,
    Initiator,
    Item,
    Key,
    KeyBy,
    Lifespan,
    Operator,
    Situation,
    SituationAttribute,
    Template,
    Terminator,
    Use,
)
from coincide.lang.amit.functions import expression_functions
from coincide.lang.amit.grammar import CHILDREN, CHOICES, SHAPES, SYNONYMS, TYPES
from coincide.lang.amit.operators import elements
from coincide.lang.amit.parse_operator import operator
from coincide.lang.shared.xml import Element, parse_xml
from coincide.source import SourceText

Named = TypeVar("Named", EventAttribute, SituationAttribute)


def parse(source: SourceText) -> File:
    root = parse_xml(source)
    if root.name != "amit":
        raise error(root.span, f"the root element must be 'amit', not '{root.name}'")
    Attributes(root, ())
    return File(items(children_of(root, ITEMS)))


def items(elements: Iterable[Element]) -> tuple[Item, ...]:
    return tuple(item(element) for element in elements)


def item(element: Element) -> Item:
    return ITEMS[element.name](element)


def _attributes(element: Element) -> Attributes:
    return Attributes(element, SHAPES[element.name], SYNONYMS.get(element.name, {}))


def _event(element: Element) -> EventType:
    name = _attributes(element).name("name")
    attributes = [_event_attribute(child) for child in children_of(element, CHILDREN["event"])]
    return EventType(name, _distinct(attributes), span=element.span)


def _event_attribute(element: Element) -> EventAttribute:
    children_of(element, ())
    attributes = _attributes(element)
    return EventAttribute(attributes.attribute_name(), attributes.choice("type", TYPES), span=element.span)


def _distinct(attributes: Iterable[Named]) -> tuple[Named, ...]:
    seen: dict[str, Named] = {}
    for attribute in attributes:
        if attribute.name in seen:
            raise error(attribute.span, f"attribute '{attribute.name}' is defined twice")
        seen[attribute.name] = attribute
    return tuple(seen.values())


def _key(element: Element) -> Key:
    attributes = _attributes(element)
    name = attributes.name("name")
    kind = attributes.choice("type", TYPES) if attributes.given("type") else None
    members = tuple(_event_key(child) for child in children_of(element, CHILDREN["key"]))
    if not members:
        raise error(element.span, "element 'key' needs at least one 'eventKey'")
    return Key(name, members, kind, span=element.span)


def _event_key(element: Element) -> EventKey:
    children_of(element, ())
    attributes = _attributes(element)
    return EventKey(attributes.text("event"), attributes.text("attribute"), span=element.span)


def _key_by(element: Element) -> KeyBy:
    children_of(element, ())
    attributes = _attributes(element)
    if attributes.given("name") == attributes.given("attribute"):
        raise error(element.span, "element 'keyBy' needs the attribute 'name' (or 'attribute')")
    if attributes.given("name"):
        return KeyBy(name=attributes.text("name"), span=element.span)
    return KeyBy(attribute=attributes.text("attribute"), span=element.span)


def _lifespan(element: Element) -> Lifespan:
    name = _attributes(element).name("name")
    children = children_of(element, CHILDREN["lifespan"])
    order = [child.name for child in children]
    if order[:2] != ["initiator", "terminator"] or set(order[2:]) - {"keyBy"}:
        raise error(element.span, "element 'lifespan' holds one 'initiator', one 'terminator', then any 'keyBy'")
    startup, initiators = _initiators(children[0])
    terminators, expiration = _terminators(children[1])
    keys = tuple(_key_by(child) for child in children[2:])
    return Lifespan(name, startup, initiators, terminators, expiration, keys, span=element.span)


def _initiators(element: Element) -> tuple[bool, tuple[Initiator, ...]]:
    Attributes(element, ())
    children = children_of(element, CHILDREN["initiator"])
    if not children:
        raise error(element.span, "element 'initiator' is empty")
    startups = [child for child in children if child.name == "startup"]
    for startup in startups:
        Attributes(startup, ())
        children_of(startup, ())
    _at_most_one(startups)
    return bool(startups), tuple(_initiator(child) for child in children if child.name == "eventInitiator")


def _at_most_one(elements: list[Element]) -> None:
    if len(elements) > 1:
        raise error(elements[1].span, f"a lifespan has at most one '{elements[1].name}'")


def _initiator(element: Element) -> Initiator:
    children_of(element, ())
    attributes = _attributes(element)
    return Initiator(
        attributes.text("event"),
        attributes.alias(),
        attributes.choice("correlate", CHOICES["correlate"], "ignore"),
        attributes.expression("where"),
        span=element.span,
    )


def _terminators(element: Element) -> tuple[tuple[Terminator, ...], Expiration | None]:
    Attributes(element, ())
    children = children_of(element, CHILDREN["terminator"])
    if not children:
        raise error(element.span, "element 'terminator' is empty")
    for child in children:
        children_of(child, ())
        if child.name == "noTerminator":
            Attributes(child, ())
            if len(children) > 1:
                raise error(child.span, "'noTerminator' excludes other terminators")
    expirations = [child for child in children if child.name == "expirationInterval"]
    _at_most_one(expirations)
    terminators = tuple(_terminator(child) for child in children if child.name == "eventTerminator")
    return terminators, _expiration(expirations[0]) if expirations else None


def _terminator(element: Element) -> Terminator:
    attributes = _attributes(element)
    return Terminator(
        attributes.text("event"),
        attributes.alias(),
        attributes.choice("quantifier", CHOICES["quantifier"], "each"),
        attributes.choice("terminationType", CHOICES["terminationType"], "terminate"),
        attributes.expression("where"),
        span=element.span,
    )


def _expiration(element: Element) -> Expiration:
    attributes = _attributes(element)
    interval = attributes.duration("timeInterval")
    kind = attributes.choice("terminationType", CHOICES["terminationType"], "terminate")
    return Expiration(interval, kind, span=element.span)


def _situation(element: Element) -> Situation:
    attributes = _attributes(element)
    name, lifespan, internal = attributes.name("name"), attributes.text("lifespan"), attributes.flag("internal", False)
    children = children_of(element, ("operator", *elements(), "situationAttribute"))
    computed = [_situation_attribute(child) for child in children if child.name == "situationAttribute"]
    return Situation(name, lifespan, _only_operator(element, name), _distinct(computed), internal, span=element.span)


def _only_operator(element: Element, situation: str) -> Operator:
    found: list[Element] = []
    kinds = elements()
    for child in element.children:
        if child.name == "operator":
            Attributes(child, ())
            found += children_of(child, kinds)
        elif child.name in kinds:
            found.append(child)
    if len(found) != 1:
        raise error(element.span, f"situation '{situation}' needs exactly one operator")
    return operator(found[0], _key_by)


def _situation_attribute(element: Element) -> SituationAttribute:
    children_of(element, ())
    attributes = _attributes(element)
    name, kind = attributes.attribute_name(), attributes.choice("type", TYPES)
    return SituationAttribute(name, kind, attributes.expression("expression", expression_functions), span=element.span)


def _template(element: Element) -> Template:
    attributes = _attributes(element)
    parameters = tuple(attributes.values.get("parameters", "").split())
    for parameter in parameters:
        if not NAME.fullmatch(parameter):
            raise error(element.span, f"'{parameter}' is not a name")
    return Template(attributes.name("name"), parameters, children_of(element, DEFINITIONS), span=element.span)


def _use(element: Element) -> Use:
    children_of(element, ())
    attributes = Attributes(element, list(element.attributes))
    template = attributes.text("template")
    arguments = {name: value for name, value in element.attributes.items() if name != "template"}
    return Use(template, arguments, span=element.span)


DEFINITIONS: dict[str, Callable[[Element], Definition]] = {
    "event": _event,
    "key": _key,
    "lifespan": _lifespan,
    "situation": _situation,
}
ITEMS: dict[str, Callable[[Element], Item]] = {**DEFINITIONS, "template": _template, "use": _use}
