"""Templates (AMIT-60): at each use the elements are copied, parameters replaced, and read like any others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from coincide.errors import nearest
from coincide.lang.amit.attributes import error
from coincide.lang.amit.definition import Definition, File, Template, Use
from coincide.lang.amit.parse import item
from coincide.lang.shared.xml import Element
from coincide.source import Span

PARAMETER = re.compile(r"\$\{([^}]*)\}")


def expand(files: Sequence[File]) -> list[list[Definition]]:
    """The definitions of each file; a template may be used in any file, also before it is defined."""
    templates = _templates(files)
    return [list(_definitions(file, templates)) for file in files]


def _templates(files: Sequence[File]) -> dict[str, Template]:
    found: dict[str, Template] = {}
    for template in (entry for file in files for entry in file.items if isinstance(entry, Template)):
        if template.name in found:
            raise error(template.span, f"template '{template.name}' is defined twice")
        found[template.name] = template
    return found


def _definitions(file: File, templates: Mapping[str, Template]) -> Iterator[Definition]:
    for entry in file.items:
        if isinstance(entry, Use):
            yield from _copied(entry, templates)
        elif not isinstance(entry, Template):
            yield entry


def _copied(use: Use, templates: Mapping[str, Template]) -> Iterator[Definition]:
    template = templates.get(use.template)
    if template is None:
        raise error(use.span, f"unknown template '{use.template}'", nearest(use.template, templates))
    if set(use.arguments) != set(template.parameters):
        wanted = " ".join(template.parameters)
        raise error(use.span, f"template '{template.name}' wants the parameters: {wanted}")
    assert use.span is not None
    for element in template.body:
        yield item(_filled(element, use.arguments, use.span))  # type: ignore[misc]


def _filled(element: Element, arguments: Mapping[str, str], span: Span) -> Element:
    """Whatever is wrong in the copy is reported at the use."""
    attributes = {name: PARAMETER.sub(lambda m: arguments.get(m[1], m[0]), value) for name, value in element.attributes.items()}
    children = tuple(_filled(child, arguments, span) for child in element.children)
    return replace(element, attributes=attributes, children=children, span=span, places={})
