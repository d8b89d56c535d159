"""The JSON Schema of rules in YAML, made from the tables that the parser reads by. `python -m coincide.lang.amit.schema`
writes it to the file beside this one, which editors can be pointed at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from coincide.lang.amit.grammar import AFTER_CORRELATES, CHOICES, FLAGS, SHAPES, SYNONYMS
from coincide.lang.amit.operators import OPERAND_SYNONYMS, OPERATOR_SYNONYMS, OPERATORS, OperatorKind, elements
from coincide.lang.amit.yaml import SECTIONS
from coincide.lang.shared.schema import HEAD, TEXTS, Schema, keyed, listed, one_or_more, reference, schema_text

FILE = Path(__file__).with_name("amit.schema.json")


TEXT, PARAMETER, WHOLE, KEY_BY = map(reference, ("text", "parameter", "whole", "keyBy"))
KINDS = {"quantity": WHOLE, "weight": WHOLE}


def schema() -> Schema:
    head = {**HEAD, "title": "Amit rules in YAML"}
    return {**head, **one_or_more(reference("rules")), "$defs": {**_values(), **_definitions()}}


def _values() -> Schema:
    return {
        "text": TEXTS,
        "parameter": {"type": "string", "pattern": r"\$\{", "description": "of a template"},
        "whole": {"anyOf": [{"type": "integer"}, PARAMETER]},
        **{name: _one_of([True, False] if values == FLAGS else values) for name, values in CHOICES.items()},
        "quantifier": {"anyOf": [_one_of(CHOICES["quantifier"]), {"type": "string", "pattern": "^strict[ _-]"}]},
    }


def _definitions() -> Schema:
    shapes = {"event": _event(), "key": _key(), "lifespan": _lifespan(), "situation": _situation()}
    sections = {name: _mapping(reference(element)) for name, (element, _) in SECTIONS.items()}
    body = {**sections, "body": listed(keyed(sections))}
    uses = {"type": "object", "required": ["template"], "additionalProperties": TEXT}
    return {
        **shapes,
        **{f"operator-{kind}": _operator(form) for kind, form in OPERATORS.items()},
        "keyBy": one_or_more({"anyOf": [TEXT, keyed(_attributes(SHAPES["keyBy"]))]}),
        "template": keyed({"parameters": one_or_more(TEXT), **body}),
        "rules": keyed({**sections, "templates": _mapping(reference("template")), "use": one_or_more(uses)}),
    }


def _event() -> Schema:
    return {"anyOf": [{"type": "null"}, _mapping(reference("type"))]}


def _key() -> Schema:
    members: Schema = {"type": "object", "minProperties": 1, "additionalProperties": TEXT}
    return {"anyOf": [members, keyed({**_attributes(SHAPES["key"][1:]), "events": members}, ["events"])]}


def _lifespan() -> Schema:
    initiator = {"anyOf": [TEXT, _element("eventInitiator", ["event"])]}
    expiration = _attributes(SHAPES["expirationInterval"][1:], SYNONYMS["expirationInterval"])
    expires = keyed({"expirationInterval": TEXT, **expiration}, ["expirationInterval"])
    terminator = {"anyOf": [TEXT, _element("eventTerminator", ["event"]), expires]}
    parts = {"initiator": one_or_more(initiator), "terminator": one_or_more(terminator), "keyBy": KEY_BY}
    return keyed(parts, ["initiator", "terminator"])


def _situation() -> Schema:
    operators = {name: reference(f"operator-{kind.name}") for name, kind in elements().items()}
    whole = _attributes(SHAPES["situationAttribute"][1:])
    attributes = _mapping({"anyOf": [reference("type"), keyed(whole, ["type"])]})
    return {
        **keyed({**_attributes(SHAPES["situation"][1:]), **operators, "attributes": attributes}, ["lifespan"]),
        "oneOf": [{"required": [name]} for name in operators],
    }


def _operator(form: OperatorKind) -> Schema:
    choices = {"correlate": AFTER_CORRELATES, "detectionMode": form.modes}
    values = _attributes(form.attributes, OPERATOR_SYNONYMS, choices)
    if not form.operands:
        return {"anyOf": [TEXT, keyed(values)]}
    attributes = (*form.operand_attributes, *form.refused_attributes)
    operand = {"anyOf": [TEXT, keyed(_attributes(attributes, OPERAND_SYNONYMS), ["event"])]}
    operands = one_or_more(operand)
    keys = {"keyBy": KEY_BY} if form.keyed else {}
    return {"anyOf": [operands, keyed({**values, "operands": operands, **keys})]}


def _element(name: str, required: Sequence[str]) -> Schema:
    return keyed(_attributes(SHAPES[name], SYNONYMS.get(name, {})), required)


def _attributes(
    names: Iterable[str], synonyms: Mapping[str, str] | None = None, choices: Mapping[str, Sequence[str]] | None = None
) -> Schema:
    """`choices` are those that are peculiar to the place."""
    given = {name: _value(name, choices or {}) for name in dict.fromkeys(names)}
    return {**given, **{other: given[name] for other, name in (synonyms or {}).items() if name in given}}


def _value(name: str, choices: Mapping[str, Sequence[str]]) -> Schema:
    if name in choices:
        return _one_of([*choices[name], *(["differed"] if "deferred" in choices[name] else [])])
    return reference(name) if name in CHOICES else KINDS.get(name, TEXT)


def _one_of(values: Sequence[object]) -> Schema:
    return {"anyOf": [{"enum": list(values)}, PARAMETER]}


def _mapping(values: Schema) -> Schema:
    return {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": values}]}


if __name__ == "__main__":
    FILE.write_text(schema_text(schema()), encoding="utf-8")
