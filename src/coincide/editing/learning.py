"""Names of event types and attributes: from a sample of events, from a schema, from rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from coincide.adapters.guess import LOOKED_AT, guess, records_of
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.errors import InputError
from coincide.model.event import ENVELOPE

ANY = ""
"""The type of attributes that are known, but not of what."""


@dataclass(frozen=True)
class Names:
    """Attributes by type of event, each with the number of events that have it; of a schema, the number is 0."""

    types: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset(name for names in self.types.values() for name in names)

    def attributes_of(self, types: Iterable[str]) -> frozenset[str]:
        return frozenset(name for kind in types for name in self.types.get(kind, ()))

    def types_with(self, attribute: str) -> list[str]:
        return [kind for kind, names in self.types.items() if attribute in names and kind != ANY]


def joined(several: Iterable[Names]) -> Names:
    types: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    for names in several:
        counts.update(names.counts)
        for kind, attributes in names.types.items():
            types.setdefault(kind, Counter()).update(attributes)
    return Names(types, counts)


def names_in(path: str | PathLike[str], mapping: FieldMapping | None = None) -> Names:
    """Of a file of events (as `coincide run` reads it, or as `coincide guess` would), or of a JSON Schema. InputError, if it is
    neither."""
    schema = _schema(fspath(path))
    if schema is None:
        return _sampled(fspath(path), mapping)
    return joined(Names({kind: attributes}) for kind, attributes in _declared(schema, schema))


def _sampled(path: str, mapping: FieldMapping | None) -> Names:
    from coincide.adapters.read import open_events

    chosen = _fitting(path) if mapping is None else mapping
    types: dict[str, Counter[str]] = {}
    counts: Counter[str] = Counter()
    events = (event for batch in open_events([path], chosen, batch_size=LOOKED_AT) for event in batch.events)
    for event in islice(events, LOOKED_AT):
        counts[event.type] += 1
        types.setdefault(event.type, Counter()).update(event.attributes)
    return Names(types, counts)


def _fitting(path: str) -> FieldMapping:
    """The usual one, if the first record has a type and a time; else what a look at the records proposes."""
    try:
        first = next(records_of(path), None)
    except InputError:
        return DEFAULT
    if first is None or (DEFAULT.type in first and DEFAULT.time in first):
        return DEFAULT
    return guess(records_of(path)).mapping


def _schema(path: str) -> Any:
    """The content of a file, if it is a JSON Schema."""
    if not path.endswith(".json"):
        return None
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError):
            raise InputError(f"'{path}' cannot be read: {error.strerror or error}") from None
        return None
    is_schema = isinstance(content, dict) and any(
        word in content for word in ("$schema", "properties", "oneOf", "anyOf", "$defs")
    )
    return content if is_schema and "time" not in content else None


def _declared(schema: Any, root: Any, depth: int = 0) -> Iterator[tuple[str, dict[str, int]]]:
    """Each object that has properties is a type of events: the one that its property `type` is, or any."""
    if not isinstance(schema, dict) or depth > 20:
        return
    for part in ("oneOf", "anyOf", "allOf"):
        for inner in schema.get(part) or ():
            yield from _declared(_resolved(inner, root), root, depth + 1)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        attributes = {name: 0 for name in _dotted(properties) if name not in ENVELOPE}
        for kind in _types(properties.get("type")):
            yield kind, attributes


def _resolved(schema: Any, root: Any) -> Any:
    target = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(target, str) or not target.startswith("#/"):
        return schema
    found = root
    for part in target[2:].split("/"):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _dotted(properties: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Nested objects are dotted names."""
    for name, schema in properties.items():
        inner = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(inner, dict):
            yield from _dotted(inner, f"{prefix}{name}.")
        else:
            yield prefix + name


def _types(schema: Any) -> list[str]:
    if not isinstance(schema, dict):
        return [ANY]
    if isinstance(schema.get("const"), str):
        return [schema["const"]]
    return [kind for kind in schema.get("enum") or () if isinstance(kind, str)] or [ANY]
