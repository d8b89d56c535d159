"""Which elements and attributes may stand where (section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.lang.shared.xml import Element
from coincide.source import Span


@dataclass(frozen=True)
class Shape:
    """Attributes that an element must and may have. Children: which elements; None: values, conditions or logic."""

    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    children: tuple[str, ...] | None = ()


def _shape(needed: str = "", optional: str = "", children: str | None = "") -> Shape:
    return Shape(tuple(needed.split()), tuple(optional.split()), None if children is None else tuple(children.split()))


SOURCES = ("source", "collection", "time")

SHAPES: dict[str, Shape] = {
    "cds": _shape(children="providers cd"),
    "cd": _shape("id", "version within disjoint", "providers sources computations predicates expressions events preferences"),
    "providers": _shape(children="provider"),
    "provider": _shape("name kind href", "key"),
    "sources": _shape(children=" ".join(SOURCES)),
    "source": _shape("class", "access anchor within duplicates", "attribute"),
    "collection": _shape("class anchor", "access within duplicates reuse", "attribute"),
    "time": _shape("anchor trigger", children="relative absolute"),
    "relative": _shape(children=None),
    "absolute": _shape(children=None),
    "attribute": _shape("name type", "anchor optional", "lookup filter"),
    "filter": _shape(optional="operators operator", children=None),
    "computations": _shape(children="computation"),
    "computation": _shape("type anchor", "overhead", None),
    "predicates": _shape(children="predicate"),
    "predicate": _shape("anchor", "name of selectivity", None),
    "expressions": _shape(children="expression"),
    "expression": _shape("anchor", children=None),
    "events": _shape(children="event"),
    "event": _shape("class", "access trigger", "attribute"),
    "event attribute": _shape("name type", children=None),
    "preferences": _shape(children="preference"),
    "preference": _shape(children="self previous other better"),
    **{name: _shape(children=None) for name in ("self", "previous", "other", "better")},
    # values and logic
    "value": _shape(optional="type"),
    "ref": _shape("anchor", "of"),
    "call": _shape("method", children=None),
    "lookup": _shape("provider column", children=None),
    "context": _shape("name"),
    **{name: _shape(children=None) for name in ("add", "sub", "mul", "div", "mod", "neg", "concat", "interval", "set")},
    **{name: _shape(children=None) for name in ("sum", "product", "min", "max", "avg", "count", "first", "last")},
    **{name: _shape(children=None) for name in ("and", "or", "not")},
}

REPEATED = frozenset({"provider", *SOURCES, "attribute", "filter", "computation", "predicate", "expression", "event"})
REPEATED |= {"preference", "cd"}


def fail(place: Element | Span | None, message: str, hint: str | None = None) -> NoReturn:
    raise RuleError(Diagnostic(message, place.span if isinstance(place, Element) else place, hint=hint))


def check_shape(element: Element, name: str | None = None) -> None:
    """Its attributes and, unless it holds values, its children, each of which is checked too."""
    shape = SHAPES[name or element.name]
    _check_attributes(element, shape)
    if shape.children is None:
        return
    if element.text and element.name != "value":
        fail(element, f"<{element.name}> mixes text and elements")
    seen: set[str] = set()
    for child in element.children:
        if child.name not in shape.children or (child.name in seen and child.name not in REPEATED):
            fail(child, f"<{child.name}> is not allowed in <{element.name}>", nearest(child.name, shape.children))
        seen.add(child.name)
        check_shape(child, "event attribute" if (element.name, child.name) == ("event", "attribute") else None)


def _check_attributes(element: Element, shape: Shape) -> None:
    allowed = (*shape.needed, *shape.optional)
    for name in element.attributes:
        if name not in allowed:
            fail(element, f"<{element.name}> has no attribute '{name}'", nearest(name, allowed))
    for name in shape.needed:
        if name not in element.attributes:
            fail(element, f"<{element.name}> needs the attribute '{name}'")


def check_nested(parent: Element, child: Element, allowed: Sequence[str]) -> None:
    """An element among values or logic."""
    if child.name not in SHAPES:
        fail(child, f"unknown element <{child.name}>", nearest(child.name, allowed))
    if child.name not in allowed:
        fail(child, f"<{child.name}> is not allowed in <{parent.name}>", nearest(child.name, allowed))
    check_shape(child)
