"""What the JSON Schemas of rules in YAML are made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]
HEAD = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
TEXTS = {"type": ["string", "number", "boolean", "null"], "description": "read as the text that it is"}


def reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def keyed(properties: Schema, required: Sequence[str] = ()) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **needed}


def listed(values: Schema) -> Schema:
    return {"type": "array", "items": values}


def one_or_more(values: Schema) -> Schema:
    return {"anyOf": [values, listed(values)]}


def schema_text(schema: Schema) -> str:
    """A definition a line."""
    definitions = ",\n".join(f"    {json.dumps(name)}: {json.dumps(shape)}" for name, shape in schema["$defs"].items())
    head = "".join(f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in schema.items() if name != "$defs")
    return f'{{\n{head}  "$defs": {{\n{definitions}\n  }}\n}}\n'
