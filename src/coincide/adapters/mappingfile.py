"""Mapping files (YAML): which fields of foreign records are the envelope of an event, and the types of CSV columns.

events:
  type: winlog.event_id       # the field that is the type; time, end, id, source, space, arrival likewise
  time: '@timestamp'
  time-unit: s                # of times that are plain numbers: s, ms, us, ns
  constant-type: reading      # all events are of this type
  untyped: true               # records without a type are of their event.category, or else `event`
types:
  ip: text                    # of CSV columns: text, number, boolean
extract:
  user.name:                  # an attribute that stands in the text of another field; several expressions: a list
    from: message
    pattern: ' for (?:invalid user )?(\\S+) from '
    type: text                # or number, boolean
fields: …                     # what Sigma's rules need stands in the same file; who reads them asks for these sections
logsources: …
placeholders: …
attributes: …
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from coincide.adapters.extraction import Extract
from coincide.adapters.mapping import FieldMapping
from coincide.errors import Diagnostic, InputError, RuleError, nearest
from coincide.source import SourceText
from coincide.yaml import Entries, Items, Node, Scalar, parse_yaml

FIELDS = ("type", "time", "end", "id", "source", "space", "arrival")
SETTINGS = {"time-unit": "unit", "constant-type": "constant_type"}
EVENTS = (*FIELDS, *SETTINGS, "untyped")
SIGMA = ("logsources", "fields", "placeholders", "attributes")
SECTIONS = ("events", "types", "extract", *SIGMA)


def load_mapping(path: str | Path) -> FieldMapping:
    """Raises InputError with the place of whatever is wrong."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read '{path}': {getattr(error, 'strerror', None) or error}") from error
    return parse_mapping(SourceText(str(path), text))


def parse_mapping(source: SourceText) -> FieldMapping:
    """What it says of events; the other sections are for a language to read."""
    try:
        root = parse_yaml(source)
    except RuleError as error:
        raise InputError(*error.diagnostics) from error
    sections = {} if isinstance(root, Scalar) and root.is_empty else _entries(root, SECTIONS, "a mapping file")
    values: dict[str, Any] = {}
    for name, node in _section(sections, "events", EVENTS):
        values[SETTINGS.get(name, name)] = _flag(node) if name == "untyped" else _text(node)
    types = tuple((name, _text(node)) for name, node in _section(sections, "types"))
    extracts = tuple(_extract(name, node) for name, node in _section(sections, "extract"))
    try:
        return FieldMapping(**values, types=types, extracts=extracts)
    except InputError as error:
        _fail(root, error.diagnostics[0].message)


def _section(sections: Mapping[str, Node], name: str, known: tuple[str, ...] | None = None) -> Iterable[tuple[str, Node]]:
    return _entries(sections[name], known, f"'{name}'").items() if name in sections else ()


def _entries(node: Node, known: tuple[str, ...] | None, inside: str) -> dict[str, Node]:
    if not isinstance(node, Entries):
        _fail(node, f"{inside} must be a mapping, NAME: VALUE")
    found: dict[str, Node] = {}
    for key, value in node.pairs:
        name = _text(key)
        if known is not None and name not in known:
            _fail(key, f"unknown attribute '{name}' of {inside}", nearest(name, known))
        if name in found:
            _fail(key, f"'{name}' is given twice")
        found[name] = value
    return found


def _extract(name: str, node: Node) -> Extract:
    found = _entries(node, ("from", "pattern", "type"), f"'{name}'")
    for wanted in ("from", "pattern"):
        if wanted not in found:
            _fail(node, f"'{name}' needs '{wanted}'")
    kind = _text(found["type"]) if "type" in found else "text"
    try:
        return Extract(name, _text(found["from"]), _texts(found["pattern"]), kind)
    except InputError as error:
        _fail(found["pattern"], error.diagnostics[0].message)


def _texts(node: Node) -> tuple[str, ...]:
    several = node.nodes if isinstance(node, Items) and node.nodes else (node,)
    return tuple(map(_text, several))


def _text(node: Node) -> str:
    if not isinstance(node, Scalar) or not node.text:
        _fail(node, "a text is wanted here")
    return node.text


def _flag(node: Node) -> bool:
    text = _text(node)
    if text not in ("true", "false"):
        _fail(node, "true or false is wanted here")
    return text == "true"


def _fail(node: Node, message: str, hint: str | None = None) -> NoReturn:
    raise InputError(Diagnostic(message, node.span, hint=hint))
