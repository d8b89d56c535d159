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

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coincide.adapters.extraction import Extract
from coincide.adapters.mapping import FieldMapping
from coincide.errors import Diagnostic, InputError, nearest
from coincide.source import SourceText, Span

if TYPE_CHECKING:
    import yaml

FIELDS = ("type", "time", "end", "id", "source", "space", "arrival")
SETTINGS = {"time-unit": "unit", "constant-type": "constant_type"}
EVENTS = (*FIELDS, *SETTINGS, "untyped")
SIGMA = ("logsources", "fields", "placeholders", "attributes")
SECTIONS = ("events", "types", "extract", *SIGMA)


@dataclass(frozen=True)
class MappingFile:
    """A mapping file; `others` are the sections that a language reads, as YAML's nodes with their places in `source`."""

    source: SourceText
    events: FieldMapping
    others: Mapping[str, yaml.Node] = field(default_factory=dict)


def load_mapping(path: str | Path) -> MappingFile:
    """Raises InputError with the place of whatever is wrong."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read '{path}': {getattr(error, 'strerror', None) or error}") from error
    return parse_mapping(SourceText(str(path), text))


def parse_mapping(source: SourceText) -> MappingFile:
    import yaml

    try:
        root = yaml.compose(source.text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark.index if error.problem_mark else 0
        raise InputError(Diagnostic(f"not well-formed YAML: {error.problem}", source.span(place, place + 1))) from error
    reader = _Reader(source)
    sections = reader.entries(root, SECTIONS, "a mapping file") if root is not None else {}
    values: dict[str, Any] = {}
    for name, node in reader.entries(sections.get("events"), EVENTS, "'events'").items():
        values[SETTINGS.get(name, name)] = reader.flag(node) if name == "untyped" else reader.text(node)
    types = {name: reader.text(node) for name, node in reader.entries(sections.get("types"), None, "'types'").items()}
    extracts = tuple(
        reader.extract(name, node) for name, node in reader.entries(sections.get("extract"), None, "'extract'").items()
    )
    try:
        events = FieldMapping(**values, types=tuple(types.items()), extracts=extracts)
    except InputError as error:
        raise InputError(Diagnostic(error.diagnostics[0].message, reader.span(root))) from None
    return MappingFile(source, events, {name: node for name, node in sections.items() if name in SIGMA})


class _Reader:
    def __init__(self, source: SourceText) -> None:
        self.source = source

    def entries(self, node: yaml.Node | None, known: tuple[str, ...] | None, inside: str) -> dict[str, yaml.Node]:
        import yaml

        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise self._fail(node, f"{inside} must be a mapping, NAME: VALUE")
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = self.text(key)
            if known is not None and name not in known:
                raise self._fail(key, f"unknown attribute '{name}' of {inside}", nearest(name, known))
            if name in found:
                raise self._fail(key, f"'{name}' is given twice")
            found[name] = value
        return found

    def extract(self, name: str, node: yaml.Node) -> Extract:
        found = self.entries(node, ("from", "pattern", "type"), f"'{name}'")
        for wanted in ("from", "pattern"):
            if wanted not in found:
                raise self._fail(node, f"'{name}' needs '{wanted}'")
        kind = self.text(found["type"]) if "type" in found else "text"
        try:
            return Extract(name, self.text(found["from"]), self.texts(found["pattern"]), kind)
        except InputError as error:
            raise self._fail(found["pattern"], error.diagnostics[0].message) from None

    def texts(self, node: yaml.Node) -> tuple[str, ...]:
        import yaml

        several = node.value if isinstance(node, yaml.SequenceNode) and node.value else [node]
        return tuple(self.text(one) for one in several)

    def text(self, node: yaml.Node) -> str:
        import yaml

        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self._fail(node, "a text is wanted here")
        return str(node.value)

    def flag(self, node: yaml.Node) -> bool:
        text = self.text(node)
        if text not in ("true", "false"):
            raise self._fail(node, "true or false is wanted here")
        return text == "true"

    def span(self, node: yaml.Node | None) -> Span:
        if node is None or node.start_mark is None:
            return self.source.span(0, 0)
        return self.source.span(node.start_mark.index, max(node.end_mark.index, node.start_mark.index + 1))

    def _fail(self, node: yaml.Node, message: str, hint: str | None = None) -> InputError:
        return InputError(Diagnostic(message, self.span(node), hint=hint))
