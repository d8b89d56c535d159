"""Elements, attributes, keys and choices that fit at a place of XML or YAML, by the tables that the parsers read by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from coincide.editing.fields import TAG, Field, xml_fields, yaml_keys
from coincide.editing.words import grouped
from coincide.languages.registry import language_name
from coincide.source import SourceText
from coincide.yaml import Scalar

LANGUAGES = ("amit", "cdl", "sigma")
ELEMENT = re.compile(r"<(?P<close>/?)(?P<name>[\w:.-]*)\Z")
VALUE = re.compile(r"[\w:.-]+\s*=\s*(?:\"[^\"<]*|'[^'<]*)\Z")
KEY = re.compile(r"^(?P<lead>[ \t]*(?:- +)*)(?P<key>[\w.-]*)\Z")
MODIFIER = re.compile(r"^[ \t]*(?:- +)*[\"']?[\w.@ -]*(?:\|[\w]+)*\|(?P<word>\w*)\Z")
HERE = "zzq"

Schema = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """Names that may stand from `start` on, and what is written around them."""

    start: int
    names: Sequence[str]
    before: str = ""
    behind: str = ""

    def written(self, name: str) -> str:
        return f"{self.before}{name}{self.behind}"


def asked(source: SourceText, offset: int) -> Asked | None:
    """What is asked for at a place of XML or YAML; None: a value."""
    language = language_name(source.name)
    if language not in LANGUAGES:
        return None
    return _in_xml(source, offset, language) if source.name.endswith(".xml") else _in_yaml(source, offset, language)


# XML


def _in_xml(source: SourceText, offset: int, language: str) -> Asked | None:
    before = source.text[:offset]
    opened = before.rfind("<")
    tag = TAG.match(before, opened) if opened >= 0 else None
    if tag is None or tag["end"] or tag["name"] is None:
        return None
    path = _open(before[:opened])
    if (element := ELEMENT.match(before, opened)) is not None:
        start = offset - len(element["name"])
        return Asked(start, path[-1:], "", ">") if element["close"] else Asked(start, _children(language, path))
    if VALUE.search(before, opened):
        return None
    word = re.search(r"[\w:.-]*\Z", before)
    start = offset if word is None else word.start()
    given = {item.attribute for item in xml_fields(before[opened:]) if isinstance(item, Field)}
    names = [name for name in _attributes(language, path, tag["name"]) if name not in given]
    return Asked(start, names, "", '=""')


def _open(text: str) -> list[str]:
    """Elements whose end has not come."""
    found: list[str] = []
    for tag in TAG.finditer(text):
        if tag["close"]:
            while found and found.pop() != tag["name"]:
                pass
        elif tag["name"] and not tag["given"].endswith("/"):
            found.append(tag["name"])
    return found


def _children(language: str, path: Sequence[str]) -> list[str]:
    if language == "amit":
        return list(_amit_children(path[-1] if path else ""))
    from coincide.lang.cdl.shape import SHAPES
    from coincide.lang.cdl.values import LOGIC, VALUES

    if not path:
        return ["cd", "cds"]
    shape = SHAPES.get(_shape(path))
    nested = LOGIC if path[-1] in ("expression", "and", "or", "not") else VALUES
    return [] if shape is None else list(nested if shape.children is None else shape.children)


def _shape(path: Sequence[str]) -> str:
    return "event attribute" if list(path[-2:]) == ["event", "attribute"] else path[-1]


def _amit_children(parent: str) -> Iterable[str]:
    from coincide.lang.amit.grammar import CHILDREN
    from coincide.lang.amit.operators import elements
    from coincide.lang.amit.parse import DEFINITIONS, ITEMS

    kinds = elements()
    if parent in kinds:
        return dict.fromkeys((*kinds[parent].operands, *(["keyBy"] if kinds[parent].keyed else [])))
    apart = {
        "": ("amit",),
        "amit": ITEMS,
        "template": DEFINITIONS,
        "operator": kinds,
        "situation": (*kinds, "situationAttribute"),
    }
    return CHILDREN.get(parent) or apart.get(parent, ())


def _attributes(language: str, path: Sequence[str], element: str) -> Iterable[str]:
    if language == "cdl":
        from coincide.lang.cdl.shape import SHAPES as CDL

        shape = CDL.get(_shape([*path, element]))
        return () if shape is None else (*shape.needed, *shape.optional)
    from coincide.lang.amit.grammar import SHAPES
    from coincide.lang.amit.operators import elements

    kinds = elements()
    if element in kinds:
        return kinds[element].attributes
    if path and path[-1] in kinds and element.startswith("operand"):
        return dict.fromkeys((*kinds[path[-1]].operand_attributes, *kinds[path[-1]].refused_attributes))
    return ("template",) if element == "use" else SHAPES.get(element, ())


# YAML


def _in_yaml(source: SourceText, offset: int, language: str) -> Asked | None:
    line = source.text[source.text.rfind("\n", 0, offset) + 1 : offset]
    if language == "sigma" and (modified := MODIFIER.match(line)) is not None:
        return Asked(offset - len(modified["word"]), [word.name for word in grouped("sigma", "modifier")])
    key = KEY.match(line)
    if key is None:
        return None
    path = _path(source, offset)
    if path is None:
        return None
    names = _sigma_keys(path) if language == "sigma" else sorted(properties(_schema(language), path))
    return Asked(offset - len(key["key"]), names, "", ": ") if names else None


def with_value(source: SourceText, offset: int, name: str) -> SourceText:
    """With a name at the place, as a value or, where a line begins, as a key that has none."""
    line = source.text[source.text.rfind("\n", 0, offset) + 1 : offset]
    as_key = KEY.match(line) is not None and not re.match(r"[ \t]*- ", line)
    behind = ":" if as_key and not source.text.startswith(":", offset) else ""
    return SourceText(source.name, source.text[:offset] + name + behind + source.text[offset:])


def _path(source: SourceText, offset: int) -> tuple[str, ...] | None:
    """The keys that lead to a key that would begin at the place, without the document's number."""
    behind = "" if source.text[offset:].lstrip(" \t").startswith(":") else ":"
    marked = SourceText(source.name, source.text[:offset] + HERE + behind + source.text[offset:])
    found = (path for path, key, _ in yaml_keys(marked) if key.span.start <= offset <= key.span.end and HERE in key.text)
    path = next(found, None)
    return None if path is None else path[1:]


def _sigma_keys(path: Sequence[str]) -> list[str]:
    groups = {
        (): "rule",
        ("logsource",): "logsource",
        ("detection",): "detection",
        ("correlation",): "correlation",
        ("correlation", "condition"): "bound",
    }
    group = groups.get(tuple(path))
    return [] if group is None else [word.name for word in grouped("sigma", group)]


def choices(source: SourceText, offset: int, name: str) -> Iterable[str]:
    """The few values that an attribute or a key can have at a place."""
    language = language_name(source.name)
    if source.name.endswith(".xml"):
        marked = source.text[:offset] + name + source.text[offset:]
        fields = (item for item in xml_fields(marked) if isinstance(item, Field))
        field = next((f for f in fields if f.attribute and f.start <= offset <= f.end), None)
        return () if field is None else _xml_choices(language, field)
    marked_text = with_value(source, offset, name)
    for path, key, value in yaml_keys(marked_text):
        if isinstance(value, Scalar) and name in value.text and value.span.start <= offset <= value.span.end:
            return _yaml_choices(language, (*path[1:], key.text))
    return ()


def _xml_choices(language: str, field: Field) -> Iterable[str]:
    if language == "amit":
        from coincide.lang.amit.grammar import AFTER_CORRELATES, CHOICES
        from coincide.lang.amit.operators import elements

        kind = elements().get(field.element)
        if kind is not None and field.attribute == "detectionMode":
            return kind.modes
        return (
            AFTER_CORRELATES if (field.element, field.attribute) == ("after", "correlate") else CHOICES.get(field.attribute, ())
        )
    from coincide.lang.cdl.functions import predicate_names
    from coincide.lang.cdl.schema import CHOICES as CDL

    if field.attribute in ("operators", "operator") or (field.element, field.attribute) == ("predicate", "name"):
        return predicate_names()
    return _enumerated(CDL.get(field.attribute, {}))


def _yaml_choices(language: str, path: Sequence[str]) -> Iterable[str]:
    if language == "sigma":
        groups = {("level",): "level", ("correlation", "type"): "kind", ("detection", "condition"): "word"}
        group = groups.get(tuple(path))
        return () if group is None else (word.name for word in grouped("sigma", group))
    schema = _schema(language)
    return dict.fromkeys(value for shape in _shapes(schema, schema, path) for value in _enumerated(shape))


def _enumerated(schema: Schema) -> Iterator[str]:
    yield from (str(value).lower() if isinstance(value, bool) else str(value) for value in schema.get("enum") or ())
    if schema.get("type") == "boolean":
        yield from ("true", "false")


# Schemas


@lru_cache
def _schema(language: str) -> Schema:
    if language == "amit":
        from coincide.lang.amit.schema import schema
    else:
        from coincide.lang.cdl.schema import schema
    return schema()


def properties(schema: Schema, path: Sequence[str]) -> set[str]:
    """Keys that a mapping may have behind these keys; lists count as what stands in them."""
    return {name for shape in _shapes(schema, schema, path) for name in shape.get("properties", {})}


def _shapes(shape: Schema, root: Schema, path: Sequence[str]) -> Iterator[Schema]:
    """All that a value behind these keys may be."""
    for option in _options(shape, root):
        if not path:
            yield option
            continue
        step = option.get("properties", {}).get(path[0], option.get("additionalProperties"))
        if isinstance(step, dict):
            yield from _shapes(step, root, path[1:])


def _options(shape: Schema, root: Schema) -> Iterator[Schema]:
    if "$ref" in shape:
        yield from _options(root["$defs"][shape["$ref"].rpartition("/")[2]], root)
        return
    for option in shape.get("anyOf", ()):
        yield from _options(option, root)
    if shape.get("type") == "array":
        yield from _options(shape.get("items", {}), root)
    elif "anyOf" not in shape or "properties" in shape:
        yield shape
