"""Correlation descriptions from XML: syntax first, then what names mean, then types and terms (sections 2, 3, 5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from coincide.errors import nearest
from coincide.expr.tokens import EXPRESSION_KEYWORDS, unquoted
from coincide.lang.cdl.check import check
from coincide.lang.cdl.definition import (
    TYPES,
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
    Source,
    TimeEvent,
    Version,
)
from coincide.lang.cdl.providers import installed
from coincide.lang.cdl.shape import check_shape, fail
from coincide.lang.cdl.values import duration_of, logic_of, lookup_of, value_of, values_of
from coincide.lang.shared.xml import Element, parse_xml
from coincide.model.event import ENVELOPE
from coincide.source import SourceText

ANCHOR = re.compile(r"[\w-]+")
NOT_ANCHORS = EXPRESSION_KEYWORDS | {"self", "other", "previous"}
DUPLICATES = ("accept", "unchanged", "replay")
OF = ("self", "other", "previous")


def parse(source: SourceText) -> File:
    """The descriptions of a file, checked. RuleError at the first error."""
    return file_of(parse_xml(source))


def file_of(root: Element) -> File:
    if root.name not in ("cd", "cds"):
        fail(root, f"the root element must be <cd> or <cds>, not <{root.name}>")
    check_shape(root)
    if root.name == "cd":
        file = File((_description(root, ()),), single=True, span=root.span)
    else:
        shared = _providers(root)
        found = tuple(_description(child, shared) for child in root.children if child.name == "cd")
        if not found:
            fail(root, "<cds> is empty")
        file = File(found, shared, span=root.span)
    _check_versions(file)
    for description in file.descriptions:
        check(description)
    return file


def _check_versions(file: File) -> None:
    seen = set()
    for cd in file.descriptions:
        if (cd.id, cd.version) in seen:
            fail(cd.span, f"cd '{cd.id}' is defined twice")
        seen.add((cd.id, cd.version))


def _description(element: Element, shared: tuple[Provider, ...]) -> Description:
    name = element.attributes["id"]
    for section in ("sources", "expressions", "events"):
        if not _items(element, section):
            fail(element, f"cd '{name}' has no {section}")
    expressions = tuple(_expression(e) for e in _items(element, "expressions"))
    return Description(
        id=name,
        version=_version(element),
        sources=tuple(_source(e, n) for n, e in enumerate(_items(element, "sources"), 1)),
        expressions=expressions,
        events=tuple(_event(e, expressions) for e in _items(element, "events")),
        computations=tuple(_computation(e) for e in _items(element, "computations")),
        predicates=tuple(_predicate(e) for e in _items(element, "predicates")),
        preferences=tuple(_preference(e) for e in _items(element, "preferences")),
        within=duration_of(element, "within"),
        disjoint=_flag(element, "disjoint") or False,
        providers=_providers(element),
        shared=shared,
        document_digest=document_digest(element),
        installed=installed(),
        span=element.span,
    )


def _items(element: Element, section: str) -> tuple[Element, ...]:
    return next((child.children for child in element.children if child.name == section), ())


def _version(element: Element) -> Version:
    text = element.attributes.get("version", "1").strip()
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", text):
        fail(element.place("version"), f"'version' is not dotted whole numbers: {text}")
    return tuple(map(int, text.split(".")))


def _providers(element: Element) -> tuple[Provider, ...]:
    return tuple(_provider(child) for child in _items(element, "providers"))


def _provider(element: Element) -> Provider:
    given = element.attributes
    base = str(Path(element.span.file).parent)
    if given["kind"] != "context" and "key" not in given:
        fail(element, "<provider> needs the attribute 'key'")
    return Provider(given["name"], given["kind"], given["href"], given.get("key"), base, span=element.span)


def _source(element: Element, number: int) -> AnySource:
    if element.name == "time":
        return _time(element)
    given = element.attributes
    anchor = _anchor(element) or f"S{number}"
    if given["class"] == "*" and given.get("access") == "internal":
        fail(element, "class '*' matches external messages only")
    duplicates = given.get("duplicates", "accept")
    if duplicates not in DUPLICATES:
        fail(element.place("duplicates"), f"'duplicates' is not accept, unchanged or replay: {duplicates}")
    attributes = tuple(_attribute(child) for child in element.children)
    common = (given["class"], anchor, given.get("access", "any"), duration_of(element, "within"), duplicates, attributes)
    if element.name == "collection":
        return Collection(*common, reuse=_flag(element, "reuse"), span=element.span)
    return Source(*common, span=element.span)


def _time(element: Element) -> TimeEvent:
    if len(element.children) != 1:
        fail(element, "<time> holds more than one value" if element.children else "<time> is empty")
    (child,) = element.children
    anchor, trigger = _anchor(element), element.attributes["trigger"]
    assert anchor is not None
    return TimeEvent(anchor, trigger, child.name == "relative", value_of(child), span=element.span)


def _attribute(element: Element) -> Attribute:
    lookups = [child for child in element.children if child.name == "lookup"]
    return Attribute(
        unquoted(element.attributes["name"]),
        _type(element),
        _anchor(element),
        _flag(element, "optional") or False,
        lookup_of(lookups[0]) if lookups else None,
        tuple(_filter(child) for child in element.children if child.name == "filter"),
        span=element.span,
    )


def _filter(element: Element) -> Filter:
    given = element.attributes.get("operators", element.attributes.get("operator"))
    values = values_of(element)
    if given is None and len(values) != 1:
        fail(element, "<filter> holds more than one value" if values else "<filter> is empty")
    return Filter(() if given is None else tuple(given.split()), values, span=element.span)


def _computation(element: Element) -> Computation:
    anchor = _anchor(element)
    assert anchor is not None
    return Computation(anchor, _type(element), value_of(element), element.attributes.get("overhead"), span=element.span)


def _predicate(element: Element) -> Predicate:
    anchor, name, of = _anchor(element), element.attributes.get("name"), element.attributes.get("of")
    assert anchor is not None
    if of is not None and of not in OF:
        fail(element.place("of"), f"'{of}' is not self, other or previous")
    arguments = values_of(element)
    if name is None and len(arguments) != 1:
        fail(element, "<predicate> holds more than one value" if arguments else "<predicate> is empty")
    return Predicate(anchor, name, arguments, of, element.attributes.get("selectivity"), span=element.span)


def _expression(element: Element) -> Expression:
    anchor = _anchor(element)
    assert anchor is not None
    return Expression(anchor, logic_of(element), span=element.span)


def _event(element: Element, expressions: tuple[Expression, ...]) -> ComplexEvent:
    trigger = element.attributes.get("trigger")
    if trigger is None:
        if len(expressions) != 1:
            fail(element, "<event> needs the attribute 'trigger'")
        trigger = expressions[0].anchor
    attributes = tuple(_event_attribute(child) for child in element.children)
    access = element.attributes.get("access", "public")
    return ComplexEvent(element.attributes["class"], trigger, access, attributes, span=element.span)


def _event_attribute(element: Element) -> EventAttribute:
    name = unquoted(element.attributes["name"])
    if name in ENVELOPE:
        fail(element, f"an event cannot set '{name}'")
    return EventAttribute(name, _type(element), value_of(element), span=element.span)


def _preference(element: Element) -> Preference:
    given = {child.name: child for child in element.children}
    names = (_expression_name(given[part]) if part in given else None for part in ("self", "previous", "other", "better"))
    return Preference(*names, span=element.span)


def _expression_name(element: Element) -> str:
    if not element.text or element.children:
        fail(
            element,
            f"<{element.name}> is empty"
            if not element.children
            else f"<{element.children[0].name}> is not allowed in <{element.name}>",
        )
    return element.text


def _anchor(element: Element) -> str | None:
    anchor = element.attributes.get("anchor")
    if anchor is not None and (not ANCHOR.fullmatch(anchor) or anchor.lower() in NOT_ANCHORS):
        fail(element.place("anchor"), f"'{anchor}' cannot be an anchor")
    return anchor


def _type(element: Element) -> str:
    kind = element.attributes["type"]
    if kind not in TYPES:
        fail(element.place("type"), f"unknown type '{kind}'", nearest(kind, TYPES) or f"one of {', '.join(TYPES)}")
    return kind


def _flag(element: Element, name: str) -> bool | None:
    text = element.attributes.get(name)
    if text not in (None, "true", "false"):
        fail(element.place(name), f"'{text}' is not a value of type boolean")
    return None if text is None else text == "true"


def document_digest(element: Element) -> str:
    """Of the id and the document without id and version: attributes in any order, white space collapsed (section 8)."""
    data = "\x00".join(canonical(element, ("id", "version")))
    return blake2b(f"cdl\x00{element.attributes['id']}\x00{data}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def canonical(element: Element, without: tuple[str, ...] = ()) -> Iterator[str]:
    yield f"<{element.name}"
    for name, value in sorted(element.attributes.items()):
        if name not in without:
            yield from (name, " ".join(value.split()))
    yield " ".join(element.text.split())
    for child in element.children:
        yield from canonical(child)
    yield ">"
