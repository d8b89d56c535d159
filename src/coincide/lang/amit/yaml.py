"""Rules in YAML: turned into the elements that the XML has, so that all checks and messages are shared.

    events:      {quote: {symbol: string, change: number}}
    keys:        {symbol: {quote: symbol, order: stock}}
    lifespans:   {day: {initiator: open, terminator: [close, {expirationInterval: 9h}], keyBy: exchange}}
    situations:  {fall: {lifespan: day, atleast: {quantity: 3, operands: [{event: quote, threshold: change < 0}]}}}
    templates:   {watch: {parameters: [stock], situations: …}}
    use:         [{template: watch, stock: IBM}]

Attributes are called as in the XML. Where an element has one attribute that matters, its value alone may stand; where there
can be several elements, one may stand without a list. A list of such mappings keeps an order that one mapping cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

from coincide.errors import nearest
from coincide.lang.amit.attributes import error
from coincide.lang.amit.definition import File
from coincide.lang.amit.grammar import SHAPES, SYNONYMS
from coincide.lang.amit.operators import OPERATOR_SYNONYMS, OperatorKind, elements
from coincide.lang.amit.parse import items
from coincide.lang.shared.xml import Element
from coincide.source import SourceText, Span
from coincide.yaml import Entries, Items, Node, Scalar, parse_yaml, several

Values = Sequence[tuple[str, str, Span]]
"""Attributes: name, value and the place of the value."""

Pairs = Sequence[tuple[Scalar, Node]]


def parse_file(source: SourceText) -> File:
    return File(items(elements_of(source)), "yaml")


def elements_of(source: SourceText) -> Iterator[Element]:
    """The file's items as the elements that they stand for."""
    return _sections(parse_yaml(source), "amit", TOP)


def _sections(node: Node, inside: str, known: Iterable[str]) -> Iterator[Element]:
    """The definitions of one mapping of sections, or of several."""
    for part in node.nodes if isinstance(node, Items) else [node]:
        for key, body in _pairs(part, inside):
            if key.text not in known:
                raise error(key.span, f"unknown element '{key.text}' in '{inside}'", nearest(key.text, known))
            yield from _section(key, body)


def _section(key: Scalar, body: Node) -> Iterator[Element]:
    if key.text == "use":
        return (_element("use", _scalars(_pairs(use, "use")), (), use.span) for use in several(body))
    name, build = SECTIONS.get(key.text, ("template", _template))
    return (build(name, called, content) for called, content in _pairs(body, key.text, distinct=False))


# Elements


def _event(element: str, name: Scalar, body: Node) -> Element:
    return _named(element, name, children=_typed("eventAttribute", _pairs(body, element, distinct=False)))


def _typed(element: str, pairs: Pairs) -> Iterator[Element]:
    """Attributes that are defined: `name: type`, or `name: {type: …, expression: …}`."""
    for name, body in pairs:
        values = [("type", body.text, body.span)] if isinstance(body, Scalar) else _scalars(_pairs(body, element))
        yield _named(element, name, values)


def _key(element: str, name: Scalar, body: Node) -> Element:
    """`event: attribute` for each member; with a type, `{type: …, events: {event: attribute}}`."""
    pairs = _pairs(body, element, distinct=False)
    given = {key.text: value for key, value in pairs}
    kind: Pairs = []
    if isinstance(given.get("events"), Entries):
        kind = [(key, value) for key, value in _pairs(body, element) if key.text != "events"]
        pairs = _pairs(given["events"], "events", distinct=False)
    members = [_member(event, value) for event, value in pairs]
    return _named(element, name, _scalars(kind), members)


def _member(event: Scalar, attribute: Node) -> Element:
    values = [*_only("event", event), ("attribute", _text(attribute, "attribute"), attribute.span)]
    return _element("eventKey", values, (), event.span)


def _lifespan(element: str, name: Scalar, body: Node) -> Element:
    values, parts = _divided(body, element, ("initiator", "terminator", "keyBy"))
    children = [
        _element(part.text, (), [_role(part.text, role) for role in several(content)], part.span)
        for part, content in sorted(parts, key=lambda pair: pair[0].text)
        if part.text != "keyBy"
    ]
    return _named(element, name, values, [*children, *_keys(parts)])


def _role(part: str, node: Node) -> Element:
    """An initiator or terminator: the word for one without attributes, an event's name, or attributes."""
    bare, element = ("startup", "eventInitiator") if part == "initiator" else ("noTerminator", "eventTerminator")
    if isinstance(node, Scalar):
        return _element(bare, (), (), node.span) if node.text == bare else _element(element, _only("event", node), (), node.span)
    pairs = _pairs(node, element)
    if any(key.text == "expirationInterval" for key, _ in pairs):
        values = [("timeInterval" if name == "expirationInterval" else name, text, span) for name, text, span in _scalars(pairs)]
        return _element("expirationInterval", values, (), node.span)
    return _element(element, _scalars(pairs), (), node.span)


def _situation(element: str, name: Scalar, body: Node) -> Element:
    kinds = elements()
    values, parts = _divided(body, element, (*kinds, "attributes"))
    operators = [_operator(key, kinds[key.text], content) for key, content in parts if key.text in kinds]
    defined = [pair for key, content in parts if key.text == "attributes" for pair in _pairs(content, key.text, distinct=False)]
    return _named(element, name, values, [*operators, *_typed("situationAttribute", defined)])


def _operator(key: Scalar, form: OperatorKind, body: Node) -> Element:
    if not isinstance(body, Entries) and not form.operands and isinstance(body, Scalar):
        return _element(key.text, _only(form.attributes[0], body), (), key.span)
    if not isinstance(body, Entries):
        return _element(key.text, (), _operands(form.operands, body), key.span)
    values, parts = _divided(body, key.text, ("operands", "keyBy"), form.attributes, OPERATOR_SYNONYMS)
    operands = [o for part, content in parts if part.text == "operands" for o in _operands(form.operands, content)]
    return _element(key.text, values, [*operands, *_keys(parts)], key.span)


def _operands(names: Sequence[str], body: Node) -> Iterator[Element]:
    for position, node in enumerate(several(body)):
        name = names[min(position, len(names) - 1)] if names else "operand"
        values = _only("event", node) if isinstance(node, Scalar) else _scalars(_pairs(node, name))
        yield _element(name, values, (), node.span)


def _keys(parts: Pairs) -> Iterator[Element]:
    """An attribute's name, or `{name: KEY}`, or several of them."""
    for node in (node for key, content in parts if key.text == "keyBy" for node in several(content)):
        values = _only("attribute", node) if isinstance(node, Scalar) else _scalars(_pairs(node, "keyBy"))
        yield _element("keyBy", values, (), node.span)


def _template(element: str, name: Scalar, body: Node) -> Element:
    """`parameters`, and the sections of its definitions, or a list of such sections as `body`."""
    values: list[tuple[str, str, Span]] = []
    children: list[Element] = []
    for key, content in _pairs(body, element):
        if key.text == "parameters":
            values.append(("parameters", " ".join(_text(part, "parameters") for part in several(content)), content.span))
        elif key.text == "body":
            children += _sections(content, element, SECTIONS)
        elif key.text in SECTIONS:
            children += _section(key, content)
        else:
            _unknown(key, element, ("parameters", "body", *SECTIONS))
    return _named(element, name, values, children)


Build = Callable[[str, Scalar, Node], Element]
SECTIONS: dict[str, tuple[str, Build]] = {
    "events": ("event", _event),
    "keys": ("key", _key),
    "lifespans": ("lifespan", _lifespan),
    "situations": ("situation", _situation),
}
"""Sections, each with the element that it holds; templates may have them, too."""

TOP = (*SECTIONS, "templates", "use")


# Nodes


def _element(name: str, values: Values, children: Iterable[Element], span: Span) -> Element:
    places = {key: place for key, _, place in values}
    return Element(name, {key: text for key, text, _ in values}, tuple(children), "", span, places=places)


def _named(element: str, name: Scalar, values: Values = (), children: Iterable[Element] = ()) -> Element:
    return _element(element, [("name", name.text, name.span), *values], children, name.span)


def _only(name: str, value: Scalar) -> Values:
    return [(name, value.text, value.span)]


def _pairs(node: Node, inside: str, distinct: bool = True) -> Pairs:
    """The entries of a mapping; nothing at all is an empty one. Names that are defined may come twice: that is seen later."""
    if isinstance(node, Scalar) and node.is_empty:
        return ()
    if not isinstance(node, Entries):
        given = "a list" if isinstance(node, Items) else f"'{node.text[:20]}'"
        raise error(node.span, f"'{inside}' must be a mapping, not {given}", "write NAME: VALUE, one a line")
    seen: set[str] = set()
    for key, _ in node.pairs if distinct else ():
        if key.text in seen:
            raise error(key.span, f"attribute '{key.text}' is given twice")
        seen.add(key.text)
    return node.pairs


def _divided(
    body: Node, element: str, parts: Sequence[str], attributes: Sequence[str] = (), synonyms: dict[str, str] | None = None
) -> tuple[Values, Pairs]:
    """Attributes, and the parts that are elements in the XML."""
    pairs = _pairs(body, element)
    known = [*(attributes or SHAPES[element][1:]), *(synonyms or SYNONYMS.get(element, {})), *parts]
    for key, _ in pairs:
        if key.text not in known:
            _unknown(key, element, known)
    inner = [pair for pair in pairs if pair[0].text in parts]
    return _scalars([pair for pair in pairs if pair[0].text not in parts]), inner


def _unknown(key: Scalar, element: str, known: Iterable[str]) -> NoReturn:
    raise error(key.span, f"element '{element}' has no attribute '{key.text}'", nearest(key.text, known))


def _scalars(pairs: Pairs) -> Values:
    return [(key.text, _text(value, key.text), value.span) for key, value in pairs]


def _text(node: Node, name: str) -> str:
    if not isinstance(node, Scalar):
        given = "a list" if isinstance(node, Items) else "a mapping"
        raise error(node.span, f"attribute '{name}' must be one value, not {given}")
    return node.text
