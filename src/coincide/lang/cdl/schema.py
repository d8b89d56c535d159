"""The JSON Schema of descriptions in YAML, made from the tables that the parser reads by. `python -m coincide.lang.cdl.schema`
writes it to the file beside this one, which editors can be pointed at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from coincide.lang.cdl.definition import TYPES
from coincide.lang.cdl.functions import BUILT_IN, OPERATORS
from coincide.lang.cdl.parse import DUPLICATES, OF
from coincide.lang.cdl.shape import SHAPES
from coincide.lang.cdl.yaml import LOGIC, NESTED, SECTIONS, WHEN

FILE = Path(__file__).with_name("cdl.schema.json")
Schema = dict[str, Any]


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


TEXT, VALUE, VALUES, EXPRESSION = map(_reference, ("text", "value", "values", "logic"))
CHOICES: dict[str, Schema] = {
    "type": {"enum": list(TYPES)},
    "duplicates": {"enum": list(DUPLICATES)},
    "of": {"enum": list(OF)},
    **{name: {"type": "boolean"} for name in ("disjoint", "optional", "reuse")},
}
"""Attributes that have one of a few values; all others are texts."""


def schema() -> Schema:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "CDL correlation descriptions in YAML"}
    file = _object({"providers": _reference("providers"), "cds": _one_or_more(_reference("cd"))}, ["cds"])
    return {**head, "anyOf": [_reference("cd"), file], "$defs": {**_values(), **_definitions()}}


def _values() -> Schema:
    nested = [_nested(name, others) for name, (_, others) in NESTED.items()]
    logic = [_object({name: _one_or_more(EXPRESSION)}, [name]) for name in LOGIC]
    return {
        "text": {"type": ["string", "number", "boolean", "null"], "description": "read as the text that it is"},
        "value": {"anyOf": [TEXT, *nested], "description": "an expression, or an element of the nested form"},
        "values": _one_or_more(VALUE),
        "logic": {"anyOf": [TEXT, *logic, _object({"ref": TEXT}, ["ref"])]},
    }


def _nested(name: str, others: Sequence[str]) -> Schema:
    own = TEXT if NESTED[name][0] or name == "value" else VALUES
    more = {other: VALUES if other == "arguments" else CHOICES.get(other, TEXT) for other in others}
    needed = [other for other in others if other in SHAPES[name].needed]
    return _object({name: own, **more}, [name, *needed])


def _definitions() -> Schema:
    event = {**_attributes(SHAPES["event"].optional), "attributes": _named(_typed())}
    entries = {
        "providers": _element("provider"),
        "sources": {"anyOf": [TEXT, _source("source", "class"), _source("collection", "collection"), _time()]},
        "computations": _typed(SHAPES["computation"].optional),
        "predicates": {"anyOf": [TEXT, _predicate()]},
        "expressions": _one_or_more(EXPRESSION),
        "events": {"anyOf": [{"type": "null"}, _object(event)]},
    }
    sections = {name: _named(entries[name]) for name in SECTIONS}
    preference = _object(dict.fromkeys(SHAPES["preference"].children or (), TEXT))
    cd = {"cd": TEXT, **_attributes(SHAPES["cd"].optional), **{name: _reference(name) for name in sections}}
    cd["preferences"] = _one_or_more(preference)
    return {
        **sections,
        "attribute": _attribute(),
        "filter": _filter(),
        "cd": _object(cd, ["cd", "sources", "expressions", "events"]),
    }


def _source(element: str, own: str) -> Schema:
    given = _attributes(name for name in SHAPES[element].optional if name != "anchor")
    return _object({own: TEXT, **given, "attributes": _named(_reference("attribute"))}, [own])


def _time() -> Schema:
    return {**_object({"trigger": TEXT, **dict.fromkeys(WHEN, VALUE)}, ["trigger"]), "oneOf": [{"required": [w]} for w in WHEN]}


def _attribute() -> Schema:
    lookup = _object({"provider": TEXT, "column": TEXT, "key": VALUE}, ["provider", "column", "key"])
    given = _attributes(("type", "anchor", "optional"))
    filters = _one_or_more({"anyOf": [TEXT, _reference("filter")]})
    return {"anyOf": [CHOICES["type"], _object({**given, "lookup": lookup, "filter": filters}, ["type"])]}


def _filter() -> Schema:
    operators = [*OPERATORS, *(kind.name for kind in BUILT_IN.values() if not kind.preference and kind.most != 0), "condition"]
    return {"type": "object", "properties": dict.fromkeys(operators, VALUES), "additionalProperties": VALUES}


def _predicate() -> Schema:
    """Other names may be those of predicates that an installation registers."""
    names = [*(kind.name for kind in BUILT_IN.values()), "condition"]
    properties = {**dict.fromkeys(names, VALUES), **_attributes(("of", "selectivity"))}
    shape = {"type": "object", "minProperties": 1, "maxProperties": 3}
    return {**shape, "properties": properties, "additionalProperties": VALUES}


def _typed(others: Iterable[str] = ()) -> Schema:
    return {**_object({**dict.fromkeys(TYPES, VALUE), **_attributes(others)}), "oneOf": [{"required": [kind]} for kind in TYPES]}


def _element(name: str) -> Schema:
    return _object(_attributes((*SHAPES[name].needed, *SHAPES[name].optional)), [n for n in SHAPES[name].needed if n != "name"])


def _attributes(names: Iterable[str]) -> Schema:
    return {name: CHOICES.get(name, TEXT) for name in names}


def _object(properties: Schema, required: Sequence[str] = ()) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **needed}


def _named(entry: Schema) -> Schema:
    """By name; in a list the entries hold their names, which only the parser checks."""
    return {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": entry}, _listed({"type": "object"})]}


def _listed(values: Schema) -> Schema:
    return {"type": "array", "items": values}


def _one_or_more(values: Schema) -> Schema:
    return {"anyOf": [values, _listed(values)]}


def schema_text() -> str:
    """A definition a line."""
    made = schema()
    definitions = ",\n".join(f"    {json.dumps(name)}: {json.dumps(shape)}" for name, shape in made.pop("$defs").items())
    head = "".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in made.items())
    return f'{{\n{head}  "$defs": {{\n{definitions}\n  }}\n}}\n'


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")
