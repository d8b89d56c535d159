"""Descriptions in YAML: turned into the elements that the XML has, so that all checks and messages are shared.

    cd: late
    within: 1 hour
    sources:      {O: {class: order, attributes: {item: string, amount: {type: int, filter: amount > 0}}},
                   P: {collection: part}, T: {trigger: O, relative: 10 s}}
    computations: {wait: {double: T.time - O.time}}
    predicates:   {long: wait > 1 min, heavy: {greater: [sum(P.weight), O.amount]}}
    expressions:  {X: long and heavy}
    events:       {late: {attributes: {item: {string: O.item}}}}
    preferences:  [{other: E, better: B}]

A scalar is text in the expression language, a mapping one element of the nested form, a list several values. Where names
would be given twice, a section is a list whose entries hold their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from coincide.errors import RuleError, nearest
from coincide.lang.cdl.definition import TYPES, File
from coincide.lang.cdl.parse import file_of
from coincide.lang.cdl.shape import SHAPES, fail
from coincide.lang.cdl.values import ARITHMETIC, CALLS
from coincide.lang.shared.xml import Element
from coincide.source import SourceText
from coincide.yaml import Entries, Items, Node, Scalar, parse_yaml, several

Pairs = Sequence[tuple[Scalar, Node]]
ELEMENT = re.compile(r"<([a-z]*)>")
LOGIC = ("and", "or", "not")
NESTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "value": ("", ("type",)),
    "ref": ("anchor", ("of",)),
    "call": ("method", ("arguments",)),
    "lookup": ("", ("provider", "column")),
    "context": ("name", ()),
    **dict.fromkeys((*ARITHMETIC, "neg", *CALLS), ("", ())),
}
"""Elements that stand as mappings: the attribute that the element's own entry is (none: its content), other entries."""


def parse_file(source: SourceText) -> File:
    root = root_of(source)
    try:
        return replace(file_of(root), form="yaml")
    except RuleError as error:
        raise RuleError(*(replace(d, message=ELEMENT.sub(_quoted, d.message)) for d in error.diagnostics)) from None


def _quoted(element: re.Match[str]) -> str:
    """Messages speak of elements, of which YAML has none."""
    return f"'{element[1]}'" if element[1] else "the text"


def root_of(source: SourceText) -> Element:
    """The document as the elements that it stands for."""
    node = parse_yaml(source)
    pairs = _pairs(node, "cd")
    given = {key.text: body for key, body in pairs}
    if "cds" not in given:
        return _description(node)
    _check_names(pairs, "cds", ("providers", "cds"))
    providers = [_section(key, body) for key, body in pairs if key.text == "providers"]
    return Element("cds", {}, (*providers, *map(_description, several(given["cds"]))), "", node.span)


def _description(node: Node) -> Element:
    pairs = _pairs(node, "cd")
    _check_names(pairs, "cd", ("cd", *ATTRIBUTES, *SECTIONS, "preferences"))
    name = next((body for key, body in pairs if key.text == "cd"), None)
    if name is None:
        fail(node.span, "a description needs its name, 'cd: NAME'; several stand in a list 'cds'")
    values = [*_only("id", name), *(pair for pair in pairs if pair[0].text in ATTRIBUTES)]
    return _element("cd", values, (_section(*pair) for pair in pairs if pair[0].text not in ("cd", *ATTRIBUTES)), name)


def _section(key: Scalar, body: Node) -> Element:
    if key.text == "preferences":
        return Element(key.text, {}, tuple(map(_preference, several(body))), "", key.span)
    name, build = SECTIONS[key.text]
    return Element(key.text, {}, tuple(build(*pair) for pair in _named(body, name, key.text)), "", key.span)


# Sections


def _provider(name: Scalar, body: Node) -> Element:
    pairs = _pairs(body, "provider")
    _check_names(pairs, "provider", SHAPES["provider"].needed + SHAPES["provider"].optional)
    return _element("provider", [*_only("name", name), *pairs], (), name)


def _source(anchor: Scalar, body: Node) -> Element:
    """A class alone, or what tells by its entries whether it is a source, a collection or a time event."""
    if isinstance(body, Scalar) and not body.is_empty:
        return _element("source", [*_only("anchor", anchor), *_only("class", body)], (), anchor)
    pairs = _pairs(body, "source")
    given = {key.text for key, _ in pairs}
    if given & {"trigger", *WHEN}:
        return _time(anchor, pairs)
    kind = "collection" if "collection" in given else "source"
    own = "collection" if kind == "collection" else "class"
    _check_names(pairs, kind, (own, *(name for name in SHAPES[kind].optional if name != "anchor"), "attributes"))
    values = [(replace(key, text="class") if key.text == own else key, value) for key, value in pairs if key.text != "attributes"]
    attributes = [a for key, value in pairs if key.text == "attributes" for a in _named(value, "name", key.text)]
    return _element(kind, [*_only("anchor", anchor), *values], (_attribute(*a) for a in attributes), anchor)


def _time(anchor: Scalar, pairs: Pairs) -> Element:
    _check_names(pairs, "time", ("trigger", *WHEN))
    values = [pair for pair in pairs if pair[0].text == "trigger"]
    children = [_holding(key.text, (), key, value) for key, value in pairs if key.text in WHEN]
    return _element("time", [*_only("anchor", anchor), *values], children, anchor)


def _attribute(name: Scalar, body: Node) -> Element:
    """Its type alone, or with more entries."""
    if isinstance(body, Scalar):
        return _element("attribute", [*_only("name", name), *_only("type", body)], (), name)
    pairs = _pairs(body, "attribute")
    _check_names(pairs, "attribute", ("type", "anchor", "optional", "lookup", "filter"))
    values = [pair for pair in pairs if pair[0].text not in ("lookup", "filter")]
    parts = [part for key, value in pairs for part in _parts(key, value)]
    return _element("attribute", [*_only("name", name), *values], parts, name)


def _parts(key: Scalar, body: Node) -> Iterator[Element]:
    """Look-up and filters: a condition, or operators with what they compare with, or several of these."""
    if key.text == "lookup":
        pairs = _pairs(body, "lookup")
        _check_names(pairs, "lookup", ("provider", "column", "key"))
        yield _holding("lookup", [p for p in pairs if p[0].text != "key"], key, _entry(pairs, "key", key))
    for node in several(body) if key.text == "filter" else ():
        if isinstance(node, Scalar):
            yield _holding("filter", (), node, node)
        for operators, values in () if isinstance(node, Scalar) else _pairs(node, "filter", distinct=False):
            given = () if operators.text == CONDITION else _only("operators", operators)
            yield _holding("filter", given, operators, values)


def _typed(element: str, attribute: str) -> Callable[[Scalar, Node], Element]:
    """A value with its type, `{TYPE: VALUE}`."""

    def build(name: Scalar, body: Node) -> Element:
        pairs = _pairs(body, element, hint="write {TYPE: VALUE}")
        others = SHAPES[element].optional if element == "computation" else ()
        kinds = [key for key, _ in pairs if key.text not in others]
        if len(kinds) != 1:
            hint = f"{{TYPE: VALUE}}, the type one of {', '.join(TYPES)}"
            fail(name.span, f"'{name.text}' needs one type with its value", hint)
        values = [*_only("type", kinds[0]), *_only(attribute, name), *(pair for pair in pairs if pair[0].text in others)]
        return _holding(element, values, name, _entry(pairs, kinds[0].text, name))

    return build


def _predicate(anchor: Scalar, body: Node) -> Element:
    """A condition, or `{NAME: ARGUMENTS}`."""
    if isinstance(body, Scalar):
        return _holding("predicate", _only("anchor", anchor), anchor, body)
    pairs = _pairs(body, "predicate", hint="write a condition, or {PREDICATE: ARGUMENTS}")
    names = [key for key, _ in pairs if key.text not in ("of", "selectivity")]
    if len(names) != 1:
        fail(anchor.span, f"'{anchor.text}' needs one condition or one predicate with its arguments")
    values = [*_only("anchor", anchor), *(pair for pair in pairs if pair[0] is not names[0])]
    given = () if names[0].text == CONDITION else _only("name", names[0])
    return _holding("predicate", [*values, *given], anchor, _entry(pairs, names[0].text, anchor))


def _expression(anchor: Scalar, body: Node) -> Element:
    """Text, or names that must all hold, or and, or, not of them."""
    if isinstance(body, Scalar):
        return _holding("expression", _only("anchor", anchor), anchor, body)
    return _element("expression", _only("anchor", anchor), map(_logic, several(body)), anchor)


def _event(name: Scalar, body: Node) -> Element:
    pairs = _pairs(body, "event")
    _check_names(pairs, "event", (*SHAPES["event"].optional, "attributes"))
    values = [pair for pair in pairs if pair[0].text != "attributes"]
    attributes = [a for key, value in pairs if key.text == "attributes" for a in _named(value, "name", key.text)]
    return _element("event", [*_only("class", name), *values], (_typed("attribute", "name")(*a) for a in attributes), name)


def _preference(node: Node) -> Element:
    pairs = _pairs(node, "preference")
    _check_names(pairs, "preference", SHAPES["preference"].children or ())
    return Element("preference", {}, tuple(_holding(key.text, (), key, value) for key, value in pairs), "", node.span)


WHEN = ("relative", "absolute")
CONDITION = "condition"
ATTRIBUTES = SHAPES["cd"].optional
SECTIONS: dict[str, tuple[str, Callable[[Scalar, Node], Element]]] = {
    "providers": ("name", _provider),
    "sources": ("anchor", _source),
    "computations": ("anchor", _typed("computation", "anchor")),
    "predicates": ("anchor", _predicate),
    "expressions": ("anchor", _expression),
    "events": ("class", _event),
}
"""Sections, each with the attribute that the key of an entry stands for."""


# Values


def _holding(name: str, values: Pairs, place: Scalar, body: Node) -> Element:
    """An element whose content is values: a text, or nested elements."""
    element = _element(name, values, (), place)
    if isinstance(body, Scalar):
        return replace(element, text=body.text.strip(), content=body.text, places={**element.places, "": body.span})
    return replace(element, children=tuple(map(_value, several(body))))


def _value(node: Node) -> Element:
    if isinstance(node, Scalar):
        return Element("", {}, (), node.text.strip(), node.span, node.text, {"": node.span})
    pairs = _pairs(node, "value")
    name = next((key for key, _ in pairs if key.text in NESTED), None)
    if name is None:
        fail(node.span, "a value is a text, or a mapping with the name of an element", f"one of {', '.join(NESTED)}")
    attribute, others = NESTED[name.text]
    _check_names(pairs, name.text, (name.text, *others))
    values = [(key, value) for key, value in pairs if key.text in others and key.text != "arguments"]
    own = _entry(pairs, name.text, name)
    if attribute:
        values = [*_only(attribute, own), *values]
        own = _entry(pairs, "arguments", name)
    return _holding(name.text, values, name, own)


def _logic(node: Node) -> Element:
    if isinstance(node, Scalar):
        return _value(node)
    pairs = _pairs(node, "expression")
    if len(pairs) == 1 and pairs[0][0].text == "ref":
        return _value(node)
    if len(pairs) != 1 or pairs[0][0].text not in LOGIC:
        fail(node.span, "an expression is a text, a list of names, or one of {and: …}, {or: …}, {not: …}, {ref: NAME}")
    return Element(pairs[0][0].text, {}, tuple(map(_logic, several(pairs[0][1]))), "", node.span)


# Nodes


def _element(name: str, values: Pairs, children: Iterable[Element], place: Node) -> Element:
    texts = {key.text: _text(value, key.text) for key, value in values}
    places = {key.text: value.span for key, value in values}
    return Element(name, texts, tuple(children), "", place.span, places=places)


def _only(name: str, value: Node) -> Pairs:
    return [(Scalar(name, value.span), value)]


def _entry(pairs: Pairs, name: str, place: Node) -> Node:
    """What an entry holds; an empty list if it is not there."""
    return next((value for key, value in pairs if key.text == name), Items((), place.span))


def _named(node: Node, attribute: str, section: str) -> Iterator[tuple[Scalar, Node]]:
    """The entries of a section by name; in a list, each entry holds its own."""
    if not isinstance(node, Items):
        yield from _pairs(node, section, distinct=False)
        return
    for item in node.nodes:
        pairs = _pairs(item, section)
        name = _entry(pairs, attribute, item)
        if not isinstance(name, Scalar):
            fail(item.span, f"an entry of the list '{section}' needs '{attribute}'")
        yield name, Entries(tuple(pair for pair in pairs if pair[1] is not name), item.span)


def _pairs(node: Node, inside: str, distinct: bool = True, hint: str = "write NAME: VALUE, one a line") -> Pairs:
    """The entries of a mapping; nothing at all is an empty one. Names that are defined may come twice: that is seen later."""
    if isinstance(node, Scalar) and node.is_empty:
        return ()
    if not isinstance(node, Entries):
        given = "a list" if isinstance(node, Items) else f"'{node.text[:20]}'"
        fail(node.span, f"'{inside}' must be a mapping, not {given}", hint)
    seen: set[str] = set()
    for key, _ in node.pairs if distinct else ():
        if key.text in seen:
            fail(key.span, f"'{key.text}' is given twice")
        seen.add(key.text)
    return node.pairs


def _check_names(pairs: Pairs, inside: str, names: Sequence[str]) -> None:
    for key, _ in pairs:
        if key.text not in names:
            fail(key.span, f"'{inside}' has no entry '{key.text}'", nearest(key.text, names) or f"one of {', '.join(names)}")


def _text(node: Node, name: str) -> str:
    if not isinstance(node, Scalar):
        fail(node.span, f"'{name}' must be one value, not {'a list' if isinstance(node, Items) else 'a mapping'}")
    return node.text
