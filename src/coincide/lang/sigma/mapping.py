"""Mapping files: which events a log source means, names of fields, values of placeholders (section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from coincide.adapters.mappingfile import SECTIONS, parse_mapping
from coincide.errors import InputError, RuleError
from coincide.lang.sigma.definition import Formula, LogSource, Looked
from coincide.lang.sigma.nodes import Map, check_keys, documents, text_of, texts_of
from coincide.lang.sigma.selections import selection_of
from coincide.lang.sigma.values import Meaning
from coincide.source import SourceText, Span
from coincide.yaml import Items, Node, Scalar

PARTS = ("category", "product", "service")


@dataclass(frozen=True)
class Entry:
    """What rules whose log source has all of these values look at."""

    source: LogSource
    types: tuple[str, ...] | None = None
    where: Formula | None = None
    attributes: tuple[str, ...] | None = None

    def applies(self, source: LogSource) -> bool:
        return set(self.source.values) <= set(source.values)


@dataclass(frozen=True)
class Mapping:
    entries: tuple[Entry, ...] = ()
    meaning: Meaning = field(default_factory=Meaning)

    def attribute(self, name: str) -> str:
        return self.meaning.attributes.get(name, name)

    def looked(self, source: LogSource, place: Span) -> Looked:
        """The first entry that applies decides."""
        entry = next((entry for entry in self.entries if entry.applies(source)), None)
        if entry is None:
            return Looked(source, span=place)
        return Looked(source, True, entry.types, entry.where, entry.attributes, place)


@lru_cache(maxsize=16)
def mapping_of(source: SourceText | None) -> Mapping:
    """Raises RuleError with the place of whatever is wrong."""
    found = [] if source is None else documents(source)
    if source is None or not found:
        return Mapping()
    check_keys(found[0])
    sections = Map(found[0], "a mapping file")
    sections.check_known(SECTIONS, "a mapping file")
    try:
        parse_mapping(source)
    except InputError as error:
        raise RuleError(*error.diagnostics) from None
    fields = {key.text: text_of(value) for key, value in _section(sections, "fields")}
    placeholders = {key.text: tuple(s.text for s in texts_of(value)) for key, value in _section(sections, "placeholders")}
    meaning = Meaning(placeholders, fields)
    logsources = sections.get("logsources")
    nodes = logsources.nodes if isinstance(logsources, Items) else () if logsources is None else (logsources,)
    common = sections.get("attributes")
    return Mapping(tuple(_entry(node, meaning, _names(common)) for node in nodes), meaning)


def _names(node: Node | None) -> tuple[str, ...] | None:
    return None if node is None else tuple(scalar.text for scalar in texts_of(node))


def _section(sections: Map, name: str) -> list[tuple[Scalar, Node]]:
    node = sections.get(name)
    return [] if node is None else list(Map(node, f"'{name}'").items())


def _entry(node: Node, meaning: Meaning, common: tuple[str, ...] | None) -> Entry:
    parts = Map(node, "a logsource")
    parts.check_known((*PARTS, "types", "where", "attributes"), "a logsource")
    where, own = parts.get("where"), _names(parts.get("attributes"))
    return Entry(
        logsource_of(parts),
        _names(parts.get("types")),
        None if where is None else selection_of(where, meaning),
        None if own is None and common is None else (*(own or ()), *(common or ())),
    )


def logsource_of(parts: Map) -> LogSource:
    return LogSource(*(_value(parts.get(name)) for name in PARTS))


def _value(node: Node | None) -> str | None:
    return None if node is None else text_of(node) or None
