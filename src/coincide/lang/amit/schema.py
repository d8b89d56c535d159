"""The JSON Schema of rules in YAML, made from the tables that the parser reads by. `python -m coincide.lang.amit.schema`
writes it to the file beside this one, which editors can be pointed at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coincide.lang.amit.grammar import AFTER_CORRELATES, CHOICES, FLAGS, SHAPES, SYNONYMS
from coincide.lang.amit.operators import OPERAND_SYNONYMS, OPERATOR_SYNONYMS, OPERATORS, OperatorKind, elements
from coincide.lang.amit.yaml import SECTIONS

FILE = Path(__file__).with_name("amit.schema.json")
Schema = dict[str, Any]


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


TEXT, PARAMETER, WHOLE, KEY_BY = map(_reference, ("text", "parameter", "whole", "keyBy"))
KINDS = {"quantity": WHOLE, "weight": WHOLE}


def schema() -> Schema:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Amit rules in YAML"}
    return {**head, **_one_or_more(_reference("rules")), "$defs": {**_values(), **_definitions()}}


def _values() -> Schema:
    return {
        "text": {"type": ["string", "number", "boolean", "null"], "description": "read as the text that it is"},
        "parameter": {"type": "string", "pattern": r"\$\{", "description": "of a template"},
        "whole": {"anyOf": [{"type": "integer"}, PARAMETER]},
        **{name: _one_of([True, False] if values == FLAGS else values) for name, values in CHOICES.items()},
        "quantifier": {"anyOf": [_one_of(CHOICES["quantifier"]), {"type": "string", "pattern": "^strict[ _-]"}]},
    }


def _definitions() -> Schema:
    shapes = {"event": _event(), "key": _key(), "lifespan": _lifespan(), "situation": _situation()}
    sections = {name: _mapping(_reference(element)) for name, (element, _) in SECTIONS.items()}
    body = {**sections, "body": _listed(_object(sections))}
    uses = {"type": "object", "required": ["template"], "additionalProperties": TEXT}
    return {
        **shapes,
        **{f"operator-{kind}": _operator(form) for kind, form in OPERATORS.items()},
        "keyBy": _one_or_more({"anyOf": [TEXT, _object(_attributes(SHAPES["keyBy"]))]}),
        "template": _object({"parameters": _one_or_more(TEXT), **body}),
        "rules": _object({**sections, "templates": _mapping(_reference("template")), "use": _one_or_more(uses)}),
    }


def _event() -> Schema:
    return {"anyOf": [{"type": "null"}, _mapping(_reference("type"))]}


def _key() -> Schema:
    members: Schema = {"type": "object", "minProperties": 1, "additionalProperties": TEXT}
    return {"anyOf": [members, _object({**_attributes(SHAPES["key"][1:]), "events": members}, ["events"])]}


def _lifespan() -> Schema:
    initiator = {"anyOf": [TEXT, _element("eventInitiator", ["event"])]}
    expiration = _attributes(SHAPES["expirationInterval"][1:], SYNONYMS["expirationInterval"])
    expires = _object({"expirationInterval": TEXT, **expiration}, ["expirationInterval"])
    terminator = {"anyOf": [TEXT, _element("eventTerminator", ["event"]), expires]}
    parts = {"initiator": _one_or_more(initiator), "terminator": _one_or_more(terminator), "keyBy": KEY_BY}
    return _object(parts, ["initiator", "terminator"])


def _situation() -> Schema:
    operators = {name: _reference(f"operator-{kind.name}") for name, kind in elements().items()}
    whole = _attributes(SHAPES["situationAttribute"][1:])
    attributes = _mapping({"anyOf": [_reference("type"), _object(whole, ["type"])]})
    return {
        **_object({**_attributes(SHAPES["situation"][1:]), **operators, "attributes": attributes}, ["lifespan"]),
        "oneOf": [{"required": [name]} for name in operators],
    }


def _operator(form: OperatorKind) -> Schema:
    choices = {"correlate": AFTER_CORRELATES, "detectionMode": form.modes}
    values = _attributes(form.attributes, OPERATOR_SYNONYMS, choices)
    if not form.operands:
        return {"anyOf": [TEXT, _object(values)]}
    attributes = (*form.operand_attributes, *form.refused_attributes)
    operand = {"anyOf": [TEXT, _object(_attributes(attributes, OPERAND_SYNONYMS), ["event"])]}
    operands = _one_or_more(operand)
    keys = {"keyBy": KEY_BY} if form.keyed else {}
    return {"anyOf": [operands, _object({**values, "operands": operands, **keys})]}


def _element(name: str, required: Sequence[str]) -> Schema:
    return _object(_attributes(SHAPES[name], SYNONYMS.get(name, {})), required)


def _attributes(
    names: Iterable[str], synonyms: Mapping[str, str] | None = None, choices: Mapping[str, Sequence[str]] | None = None
) -> Schema:
    """`choices` are those that are peculiar to the place."""
    given = {name: _value(name, choices or {}) for name in dict.fromkeys(names)}
    return {**given, **{other: given[name] for other, name in (synonyms or {}).items() if name in given}}


def _value(name: str, choices: Mapping[str, Sequence[str]]) -> Schema:
    if name in choices:
        return _one_of([*choices[name], *(["differed"] if "deferred" in choices[name] else [])])
    return _reference(name) if name in CHOICES else KINDS.get(name, TEXT)


def _one_of(values: Sequence[object]) -> Schema:
    return {"anyOf": [{"enum": list(values)}, PARAMETER]}


def _object(properties: Schema, required: Sequence[str] = ()) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **needed}


def _mapping(values: Schema) -> Schema:
    return {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": values}]}


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
