"""CDL: correlation descriptions, in XML or YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from coincide.editing.fields import CONTENT, Field, element_fields, mended, xml_fields, yaml_comments, yaml_keys
from coincide.editing.marks import ATTRIBUTE, DETECTOR, EVENT, FILE, KEYWORD, NUMBER, TEXT, Mark
from coincide.editing.phrases import expression_marks
from coincide.editing.walking import Role, role
from coincide.editing.words import parts_of
from coincide.expr.tokens import unquoted
from coincide.lang.cdl.definition import TYPES
from coincide.lang.cdl.yaml import root_of
from coincide.source import SourceText

ANCHOR, PROVIDER = "anchor", "provider"
ANCHORED = ("source", "collection", "time", "attribute", "computation", "predicate", "expression")
CHOSEN = ("type", "duplicates", "of", "disjoint", "optional", "reuse", "operators", "operator", "method", "kind", "access")
ENDS = ("self", "previous", "other", "better")
_WORD = re.compile(r"\S+")


def marks(source: SourceText) -> Iterator[Mark]:
    found = list(xml_fields(source.text)) if source.name.endswith(".xml") else list(_yaml(source))
    fields = [item for item in found if isinstance(item, Field)]
    anchors = anchors_of(fields)
    for field in fields:
        yield from _marks(field, anchors.get(_cd(field), {}))
    yield from (item for item in found if isinstance(item, Mark))


def _yaml(source: SourceText) -> Iterator[Field | Mark]:
    root = mended(source, root_of)
    fields = list(element_fields(() if root is None else (root,)))
    yield from fields
    taken = {field.start for field in fields}
    for _, key, _ in yaml_keys(source):
        if key.span.start not in taken and key.text.lower() in parts_of("cdl") | set(TYPES):
            yield Mark(key.span.start, key.span.end, KEYWORD)
    yield from yaml_comments(source.text, ((field.start, field.end) for field in fields))


def role_of(field: Field, scope: str) -> Role | None:
    """What a value names; None: it is not a name."""
    place = (field.element, field.attribute)
    if place == ("cd", "id"):
        return role(DETECTOR, True)
    if field.attribute == "class":
        return role(EVENT, field.element == "event") if field.text != "*" else None
    if field.attribute == "anchor" and field.element in ANCHORED:
        return role(ANCHOR, True, scope)
    if place == ("attribute", "name"):
        return role(ATTRIBUTE, field.parent == "event")
    if place == ("provider", "name"):
        return role(PROVIDER, True, FILE)
    if field.attribute == "provider":
        return role(PROVIDER, False, FILE)
    return role(ANCHOR, False, scope) if field.attribute == "trigger" else None


def _cd(field: Field) -> int:
    """The description that a field belongs to: the only one, or one of several."""
    return field.item if field.path[0] == "cds" else 0


def anchors_of(fields: Sequence[Field]) -> Mapping[int, Mapping[str, Role]]:
    found: dict[int, dict[str, Role]] = {}
    for field in fields:
        cd = _cd(field)
        if field.attribute == "anchor" and field.element in ANCHORED:
            found.setdefault(cd, {})[field.text] = role(ANCHOR, False, f"cd {cd}")
    return found


def _marks(field: Field, anchors: Mapping[str, Role]) -> Iterator[Mark]:
    scope = f"cd {_cd(field)}"
    start, text = field.start + len(field.text) - len(field.text.lstrip()), field.text.strip()
    if field.attribute == CONTENT and field.element != "value":
        known = {**{name: role(KEYWORD) for name in ENDS}, **anchors}
        yield from expression_marks(field.text, field.start, known)
    elif (field.element, field.attribute) == ("ref", "anchor"):
        yield from expression_marks(field.text, field.start, anchors)
    elif (found := role_of(field, scope)) is not None and text:
        kind, defines, inside = found
        yield Mark(start, start + len(text), kind, unquoted(text), defines, inside)
    elif field.attribute in CHOSEN or (field.element, field.attribute) == ("predicate", "name"):
        yield from (Mark(field.start + m.start(), field.start + m.end(), KEYWORD) for m in _WORD.finditer(field.text))
    else:
        yield Mark(field.start, field.end, NUMBER if field.attribute == "within" else TEXT)
