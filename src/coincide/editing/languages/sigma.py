"""Sigma: rules and correlations, as documents of YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from coincide.editing.fields import inner, yaml_comments, yaml_keys, yaml_values
from coincide.editing.marks import ATTRIBUTE, EVENT, KEYWORD, NUMBER, TEXT, Mark
from coincide.lang.shared.about import LEVELS, made_name
from coincide.lang.sigma.condition import QUANTIFIERS, TOKEN
from coincide.source import SourceText
from coincide.yaml import Entries, Node, Scalar

SELECTION = "selection"
LOGIC = frozenset({"and", "or", "not", "of", "them"})
Path = tuple[str, ...]
"""The number of the document, then keys."""


def marks(source: SourceText) -> Iterator[Mark]:
    keys = list(yaml_keys(source))
    named = {path[0] for path, key, _ in keys if len(path) == 1 and key.text == "name"}
    found = [mark for path, key, value in keys for mark in _marks(path, key, value, path[0] in named)]
    yield from found
    yield from yaml_comments(source.text, ((mark.start, mark.end) for mark in found))


def _marks(path: Path, key: Scalar, value: Node, named: bool) -> Iterator[Mark]:
    inside, scope = path[1:], f"document {path[0]}"
    if inside == ("detection",) and key.text != "condition":
        yield _name(key, SELECTION, True, scope)
        yield from _plain(value)
    elif inside[:1] == ("detection",) and inside:
        yield from _item(key) if len(inside) > 1 else [_word(key)]
        if inside == ("detection",):
            yield from _conditions(value, scope)
        else:
            yield from _names(value, ATTRIBUTE) if "fieldref" in key.text.split("|") else _plain(value)
    elif inside == ("correlation", "aliases"):
        yield _name(key, ATTRIBUTE, True)
    elif inside[:2] == ("correlation", "aliases") and len(inside) == 3:
        yield _name(key, EVENT)
        yield from _names(value, ATTRIBUTE)
    elif not inside and key.text == "title" and not named and isinstance(value, Scalar):
        yield _word(key)
        yield _name(value, EVENT, True)._replace(name=made_name(value.text))
    else:
        yield _word(key)
        yield from _marks_of_key(inside, key.text, value)


def _marks_of_key(inside: Sequence[str], key: str, value: Node) -> Iterator[Mark]:
    """Values of keys that have a meaning of their own."""
    place = (*inside, key)
    if place in (("name",), ("id",)):
        yield from (mark._replace(defines=True) for mark in _names(value, EVENT))
    elif place in (("fields",), ("correlation", "group-by"), ("correlation", "condition", "field")):
        yield from _names(value, ATTRIBUTE)
    elif place == ("correlation", "rules"):
        yield from _names(value, EVENT)
    elif place == ("correlation", "type") or (place == ("level",) and isinstance(value, Scalar) and value.text in LEVELS):
        yield from (_word(scalar) for scalar in yaml_values(value))
    elif not isinstance(value, Entries):
        yield from _plain(value)


def _item(key: Scalar) -> Iterator[Mark]:
    """`field|modifier|modifier`."""
    start, text = inner(key)
    for number, part in enumerate(re.finditer(r"[^|]+", text)):
        first = number == 0 and part.start() == 0
        kind, name = (ATTRIBUTE, part.group()) if first else (KEYWORD, "")
        yield Mark(start + part.start(), start + part.end(), kind, name)


def _conditions(value: Node, scope: str) -> Iterator[Mark]:
    for scalar in yaml_values(value):
        start, text = inner(scalar)
        found = list(TOKEN.finditer(text))
        for number, token in enumerate(found):
            follows = found[number + 1].group() if number + 1 < len(found) else ""
            place = (start + token.start(), start + token.end())
            if token.group() in LOGIC or (follows == "of" and token.group() in QUANTIFIERS):
                yield Mark(*place, KEYWORD)
            elif "*" not in token.group() and token.group() not in "()|":
                yield Mark(*place, SELECTION, token.group(), False, scope)


def _names(value: Node, kind: str) -> Iterator[Mark]:
    return (_name(scalar, kind) for scalar in yaml_values(value))


def _name(scalar: Scalar, kind: str, defines: bool = False, scope: str = "") -> Mark:
    start, text = inner(scalar)
    return Mark(start, start + len(text), kind, scalar.text, defines, scope)


def _word(scalar: Scalar) -> Mark:
    start, text = inner(scalar)
    return Mark(start, start + len(text), KEYWORD)


def _plain(value: Node) -> Iterator[Mark]:
    for scalar in yaml_values(value):
        start, text = inner(scalar)
        yield Mark(start, start + len(text), NUMBER if scalar.plain and text.replace(".", "").isdecimal() else TEXT)
