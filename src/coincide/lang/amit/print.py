"""Definitions as Amit's XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coincide.lang.amit.definition import File
from coincide.lang.amit.elements import element_of
from coincide.lang.amit.resolve import KeyTable, Resolved
from coincide.lang.shared.xml import Element, quoted


def print_file(file: File) -> str:
    return print_elements(map(element_of, file.items))


def resolved_text(resolved: Resolved) -> str:
    """A situation with all that its meaning depends on."""
    read = [f"event {event} {' '.join(map(' '.join, attributes))}" for event, attributes in resolved.types]
    keys = [f"{kind} {' '.join(map(' '.join, table))}" for kind, table in _key_tables(resolved)]
    definitions = print_elements([element_of(resolved.lifespan), element_of(resolved.situation)])
    return "\n".join([*read, *keys, definitions])


def _key_tables(resolved: Resolved) -> Iterator[tuple[str, KeyTable]]:
    yield from (("global", table) for table in resolved.global_keys)
    yield from (("local", table) for table in resolved.local_keys)


def print_elements(elements: Iterable[Element]) -> str:
    lines = [line for element in elements for line in _lines(element)]
    return "\n".join(["<amit>", *_indented(lines), "</amit>"]) + "\n"


def _lines(element: Element) -> Iterator[str]:
    attributes = "".join(f" {name}={quoted(value)}" for name, value in element.attributes.items())
    text = [element.text.replace("&", "&amp;").replace("<", "&lt;")] if element.text else []
    content = [*text, *(line for child in element.children for line in _lines(child))]
    if not content:
        yield f"<{element.name}{attributes}/>"
        return
    yield f"<{element.name}{attributes}>"
    yield from _indented(content)
    yield f"</{element.name}>"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
