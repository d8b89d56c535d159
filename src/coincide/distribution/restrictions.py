"""Restriction graphs (`.rg.xml`, distribution-cordies.md, section 2): descriptions, pins, and what is demanded of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import Any

from coincide.distribution.relations import CHOICES, TYPES, OfNode, OfPair, Relation
from coincide.errors import nearest
from coincide.expr.quantities import number_of
from coincide.lang.cdl.definition import Description
from coincide.lang.cdl.parse import canonical, file_of
from coincide.lang.cdl.shape import fail
from coincide.lang.shared.xml import Element, parse_xml
from coincide.source import SourceText


@dataclass(frozen=True)
class Operator:
    """A description that is to be placed. `document`: what makes it equal to another, whatever that is called."""

    cd: Description
    document: tuple[str, ...] = field(repr=False)

    @property
    def name(self) -> str:
        return self.cd.id


@dataclass(frozen=True)
class Restriction:
    """`operands` are names of descriptions, in document order, then of pins."""

    id: str
    relation: Relation
    operands: tuple[str, ...]


@dataclass(frozen=True)
class RestrictionGraph:
    operators: tuple[Operator, ...]
    pins: dict[str, str]  # to devices
    restrictions: tuple[Restriction, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(operator.name for operator in self.operators)

    @cached_property
    def _by_operand(self) -> dict[str, list[Restriction]]:
        found: dict[str, list[Restriction]] = {name: [] for name in (*self.names, *self.pins)}
        for restriction in self.restrictions:
            for name in restriction.operands:
                found[name].append(restriction)
        return found

    def of(self, name: str) -> list[Restriction]:
        """All restrictions with this operand, in document order."""
        return self._by_operand[name]

    def demands(self, name: str, kind: type[Relation]) -> bool:
        return any(isinstance(restriction.relation, kind) for restriction in self.of(name))

    def on_node(self, name: str) -> list[OfNode]:
        return [r.relation for r in self.of(name) if isinstance(r.relation, OfNode)]

    def with_others(self, name: str) -> list[tuple[OfPair, str]]:
        """Each relation to another operand."""
        return self._with_others[name]

    @cached_property
    def _with_others(self) -> dict[str, list[tuple[OfPair, str]]]:
        return {name: list(self._relations(name)) for name in self._by_operand}

    def _relations(self, name: str) -> Iterator[tuple[OfPair, str]]:
        for restriction in self.of(name):
            if isinstance(restriction.relation, OfPair):
                yield from ((restriction.relation, other) for other in restriction.operands if other != name)


def parse_graph(source: SourceText) -> RestrictionGraph:
    """RuleError at the first error, of the graph or of a description in it."""
    root = parse_xml(source)
    if root.name != "restrictionGraph":
        fail(root, f"the root element must be <restrictionGraph>, not <{root.name}>")
    sections = {name: _section(root, name) for name in ("operators", "pins", "restrictions")}
    for child in root.children:
        if child.name not in sections:
            fail(child, f"<{child.name}> is not allowed in <restrictionGraph>", nearest(child.name, sections))
    relations = {_id(e, "restriction"): (e, _relation(e)) for e in _named(sections["restrictions"], "restriction")}
    pins = {_id(e, "pin"): e.attributes.get("device", e.attributes["id"]) for e in _named(sections["pins"], "pin")}
    operators, references = [], {}
    for element in _named(sections["operators"], "operator"):
        operator = _operator(element)
        if operator.name in references:
            fail(element, f"cd '{operator.name}' is defined twice")
        operators.append(operator)
        references[operator.name] = _references(element, relations)
    if not operators:
        fail(root, "there is no <operator> to place")
    restrictions = tuple(_restriction(name, *found, references, pins) for name, found in relations.items())
    return RestrictionGraph(tuple(operators), pins, restrictions)


def _section(root: Element, name: str) -> tuple[Element, ...]:
    return next((child.children for child in root.children if child.name == name), ())


def _named(elements: Sequence[Element], name: str) -> Sequence[Element]:
    for element in elements:
        if element.name != name:
            fail(element, f"<{element.name}> is not allowed here: <{name}> is")
    return elements


def _id(element: Element, name: str) -> str:
    if "id" not in element.attributes:
        fail(element, f"<{name}> needs the attribute 'id'")
    return element.attributes["id"]


def _operator(element: Element) -> Operator:
    found = [child for child in element.children if child.name == "cd"]
    if len(found) != 1:
        fail(element, "<operator> needs one <cd>")
    return Operator(file_of(found[0]).descriptions[0], document_of(found[0]))


def document_of(cd: Element) -> tuple[str, ...]:
    """The document without its id and version (section 3.1)."""
    return tuple(canonical(cd, ("id", "version")))


def _references(operator: Element, known: dict[str, Any]) -> list[str]:
    found = []
    for child in operator.children:
        if child.name == "cd":
            continue
        if child.name != "restrictionReference":
            fail(child, f"<{child.name}> is not allowed in <operator>", nearest(child.name, ("cd", "restrictionReference")))
        name = child.attributes.get("ref", "")
        if name not in known:
            fail(child, f"unknown restriction '{name}'", nearest(name, known))
        found.append(name)
    return found


def _relation(element: Element) -> Relation:
    given = dict(element.attributes)
    kind = TYPES.get(given.pop("type", ""))
    if kind is None:
        written = element.attributes.get("type", "")
        fail(element, f"unknown restriction type '{written}'", nearest(written, TYPES))
    for name in ("id", "pins", "pin"):
        given.pop(name, None)
    known = {f.name: f for f in fields(kind)}
    for name in given:
        if name not in known:
            fail(element, f"a restriction of type '{element.attributes['type']}' has no '{name}'", nearest(name, known))
    for name, one in known.items():
        if name not in given and one.default is MISSING:
            fail(element, f"a restriction of type '{element.attributes['type']}' needs '{name}'")
    return kind(**{name: _value(element, name, text, str(known[name].type)) for name, text in given.items()})


def _value(element: Element, name: str, text: str, kind: str) -> Any:
    if kind.startswith("tuple"):
        return tuple(text.split())
    if name in CHOICES and text not in CHOICES[name]:
        fail(element, f"unknown {name} '{text}'", nearest(text, CHOICES[name]) or f"one of {', '.join(CHOICES[name])}")
    if kind != "float":
        return text
    try:
        return number_of(text.strip())
    except ValueError as error:
        fail(element, f"'{name}' is not a number: {error}")


def _restriction(
    name: str, element: Element, relation: Relation, references: dict[str, list[str]], pins: dict[str, str]
) -> Restriction:
    pinned = (element.attributes.get("pins") or element.attributes.get("pin") or "").split()
    for pin in pinned:
        if pin not in pins:
            fail(element, f"unknown pin '{pin}'", nearest(pin, pins))
    operands = (*(operator for operator, named in references.items() if name in named), *pinned)
    if relation.operands not in (None, len(operands)):
        fail(element, f"restriction '{name}' needs two operands, it has {len(operands)}")
    return Restriction(name, relation, operands)
