"""The JSON Schema of descriptions in YAML, made from the tables that the parser reads by. `python -m coincide.lang.cdl.schema`
writes it to the file beside this one, which editors can be pointed at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from coincide.lang.cdl.definition import TYPES
from coincide.lang.cdl.functions import BUILT_IN, OPERATORS
from coincide.lang.cdl.parse import DUPLICATES, OF
from coincide.lang.cdl.shape import SHAPES
from coincide.lang.cdl.yaml import LOGIC, NESTED, SECTIONS, WHEN
from coincide.lang.shared.schema import HEAD, TEXTS, Schema, keyed, listed, one_or_more, reference, schema_text

FILE = Path(__file__).with_name("cdl.schema.json")


TEXT, VALUE, VALUES, EXPRESSION = map(reference, ("text", "value", "values", "logic"))
CHOICES: dict[str, Schema] = {
    "type": {"enum": list(TYPES)},
    "duplicates": {"enum": list(DUPLICATES)},
    "of": {"enum": list(OF)},
    **{name: {"type": "boolean"} for name in ("disjoint", "optional", "reuse")},
}
"""Attributes that have one of a few values; all others are texts."""


def schema() -> Schema:
    head = {**HEAD, "title": "CDL correlation descriptions in YAML"}
    file = keyed({"providers": reference("providers"), "cds": one_or_more(reference("cd"))}, ["cds"])
    return {**head, "anyOf": [reference("cd"), file], "$defs": {**_values(), **_definitions()}}


def _values() -> Schema:
    nested = [_nested(name, others) for name, (_, others) in NESTED.items()]
    logic = [keyed({name: one_or_more(EXPRESSION)}, [name]) for name in LOGIC]
    return {
        "text": TEXTS,
        "value": {"anyOf": [TEXT, *nested], "description": "an expression, or an element of the nested form"},
        "values": one_or_more(VALUE),
        "logic": {"anyOf": [TEXT, *logic, keyed({"ref": TEXT}, ["ref"])]},
    }


def _nested(name: str, others: Sequence[str]) -> Schema:
    own = TEXT if NESTED[name][0] or name == "value" else VALUES
    more = {other: VALUES if other == "arguments" else CHOICES.get(other, TEXT) for other in others}
    needed = [other for other in others if other in SHAPES[name].needed]
    return keyed({name: own, **more}, [name, *needed])


def _definitions() -> Schema:
    event = {**_attributes(SHAPES["event"].optional), "attributes": _named(_typed())}
    entries = {
        "providers": _element("provider"),
        "sources": {"anyOf": [TEXT, _source("source", "class"), _source("collection", "collection"), _time()]},
        "computations": _typed(SHAPES["computation"].optional),
        "predicates": {"anyOf": [TEXT, _predicate()]},
        "expressions": one_or_more(EXPRESSION),
        "events": {"anyOf": [{"type": "null"}, keyed(event)]},
    }
    sections = {name: _named(entries[name]) for name in SECTIONS}
    preference = keyed(dict.fromkeys(SHAPES["preference"].children or (), TEXT))
    cd = {"cd": TEXT, **_attributes(SHAPES["cd"].optional), **{name: reference(name) for name in sections}}
    cd["preferences"] = one_or_more(preference)
    return {
        **sections,
        "attribute": _attribute(),
        "filter": _filter(),
        "cd": keyed(cd, ["cd", "sources", "expressions", "events"]),
    }


def _source(element: str, own: str) -> Schema:
    given = _attributes(name for name in SHAPES[element].optional if name != "anchor")
    return keyed({own: TEXT, **given, "attributes": _named(reference("attribute"))}, [own])


def _time() -> Schema:
    return {**keyed({"trigger": TEXT, **dict.fromkeys(WHEN, VALUE)}, ["trigger"]), "oneOf": [{"required": [w]} for w in WHEN]}


def _attribute() -> Schema:
    lookup = keyed({"provider": TEXT, "column": TEXT, "key": VALUE}, ["provider", "column", "key"])
    given = _attributes(("type", "anchor", "optional"))
    filters = one_or_more({"anyOf": [TEXT, reference("filter")]})
    return {"anyOf": [CHOICES["type"], keyed({**given, "lookup": lookup, "filter": filters}, ["type"])]}


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
    return {**keyed({**dict.fromkeys(TYPES, VALUE), **_attributes(others)}), "oneOf": [{"required": [kind]} for kind in TYPES]}


def _element(name: str) -> Schema:
    return keyed(_attributes((*SHAPES[name].needed, *SHAPES[name].optional)), [n for n in SHAPES[name].needed if n != "name"])


def _attributes(names: Iterable[str]) -> Schema:
    return {name: CHOICES.get(name, TEXT) for name in names}


def _named(entry: Schema) -> Schema:
    """By name; in a list the entries hold their names, which only the parser checks."""
    return {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": entry}, listed({"type": "object"})]}


if __name__ == "__main__":
    FILE.write_text(schema_text(schema()), encoding="utf-8")
