"""Amit: elements and attributes, in XML or YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coincide.editing.fields import Field, element_fields, mended, xml_fields, yaml_comments, yaml_keys
from coincide.editing.marks import ATTRIBUTE, EVENT, KEYWORD, NUMBER, TEXT, Mark
from coincide.editing.phrases import expression_marks
from coincide.editing.walking import Role, role
from coincide.editing.words import parts_of
from coincide.expr.tokens import unquoted
from coincide.lang.amit.grammar import CHOICES
from coincide.lang.amit.yaml import elements_of
from coincide.source import SourceText

KEY, LIFESPAN, TEMPLATE, ALIAS = "key", "lifespan", "template", "alias"
NAMES: dict[tuple[str, str], Role] = {
    ("event", "name"): role(EVENT, True),
    ("situation", "name"): role(EVENT, True),
    ("eventAttribute", "name"): role(ATTRIBUTE, True),
    ("situationAttribute", "name"): role(ATTRIBUTE, True),
    ("key", "name"): role(KEY, True),
    ("keyBy", "name"): role(KEY),
    ("keyBy", "attribute"): role(ATTRIBUTE),
    ("eventKey", "attribute"): role(ATTRIBUTE),
    ("lifespan", "name"): role(LIFESPAN, True),
    ("situation", "lifespan"): role(LIFESPAN),
    ("template", "name"): role(TEMPLATE, True),
    ("use", "template"): role(TEMPLATE),
}
"""What the values of attributes name; `event` is a type of events wherever it stands."""

EXPRESSIONS = frozenset({"where", "condition", "threshold", "override", "retain", "consumption", "distinct", "expression"})
NUMBERS = frozenset({"quantity", "weight", "interval", "timeInterval"})
MODES = "detectionMode"


def marks(source: SourceText) -> Iterator[Mark]:
    found = list(xml_fields(source.text)) if source.name.endswith(".xml") else list(_yaml(source))
    fields = [item for item in found if isinstance(item, Field)]
    aliases = aliases_of(fields)
    for field in fields:
        yield from _marks(field, aliases)
    yield from (item for item in found if isinstance(item, Mark))


def _yaml(source: SourceText) -> Iterator[Field | Mark]:
    read = mended(source, lambda text: list(elements_of(text)))
    fields = list(element_fields(read or (), ("amit",)))
    yield from fields
    taken = {field.start for field in fields}
    for _, key, _ in yaml_keys(source):
        if key.span.start not in taken and key.text.lower() in parts_of("amit"):
            yield Mark(key.span.start, key.span.end, KEYWORD)
    yield from yaml_comments(source.text, ((field.start, field.end) for field in fields))


def role_of(field: Field) -> Role | None:
    """What a value names; None: it is not a name."""
    if field.attribute in ("as", "alias"):
        return role(ALIAS, True, _scope(field))
    if field.attribute == "event":
        return role(EVENT)
    return NAMES.get((field.element, field.attribute))


def _scope(field: Field) -> str:
    return f"item {field.item}"


def aliases_of(fields: Sequence[Field]) -> Mapping[int, Mapping[str, Role]]:
    """What expressions of each item may refer to: its aliases, those of lifespans, types of events."""
    shared: dict[str, Role] = {}
    own: dict[int, dict[str, Role]] = {}
    for field in fields:
        if field.attribute in ("as", "alias"):
            known = role(ALIAS, False, _scope(field))
            own.setdefault(field.item, {})[field.text] = known
            if "lifespan" in field.path:
                shared.setdefault(field.text, known)
        elif field.attribute == "event":
            own.setdefault(field.item, {}).setdefault(field.text, role(EVENT))
    return {field.item: {**shared, **own.get(field.item, {})} for field in fields}


def _marks(field: Field, aliases: Mapping[int, Mapping[str, Role]]) -> Iterator[Mark]:
    if field.attribute in EXPRESSIONS:
        yield from expression_marks(field.text, field.start, aliases[field.item])
        return
    found = role_of(field)
    start, text = field.start + len(field.text) - len(field.text.lstrip()), field.text.strip()
    if found is not None and text and "${" not in text:
        kind, defines, scope = found
        yield Mark(start, start + len(text), kind, unquoted(text), defines, scope)
    elif field.attribute in (*CHOICES, MODES):
        yield Mark(start, start + len(text), KEYWORD)
    else:
        yield Mark(field.start, field.end, NUMBER if field.attribute in NUMBERS else TEXT)
