"""Rules as YAML that reads as the same rules."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Any

from coincide.lang.sigma.definition import File, Rule


def print_file(file: File) -> str:
    return "---\n".join(print_rule(rule) for rule in file.rules)


def print_rule(rule: Rule) -> str:
    return "".join(f"{_text(key)}: {written(value)}\n" for key, value in rule.head.data[1])


def written(data: Any) -> str:
    """Data in the flow style of YAML."""
    kind, value = data
    if kind == "map":
        return "{" + ", ".join(f"{_text(key)}: {written(inner)}" for key, inner in value) + "}"
    if kind == "list":
        return "[" + ", ".join(written(inner) for inner in value) + "]"
    return _text(value) if kind == "text" else value


def _text(text: str) -> str:
    """In double quotes, as JSON; what YAML does not let stand in a file is escaped."""
    quoted: str = encode_basestring(text)
    return quoted if quoted.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in quoted)


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}"
