"""Rules of elastic/detection-rules: the query inside a `.toml` file, and where its characters stand there (section 2)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coincide.errors import Diagnostic, RuleError
from coincide.lang.eql.tokens import Spans
from coincide.lang.shared.about import About
from coincide.source import SourceText, Span

_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_ASSIGNED = re.compile(r"""\bquery["']?[ \t]*=[ \t]*(?P<quote>'''|\"\"\"|'|")""")
_PIECE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([btnfr"\\])|[ \t]*\n\s*)|(?s:.)')
_PLACE = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)")


@dataclass(frozen=True)
class TomlRule:
    """`spans` gives the places of the query's text in the file."""

    name: str
    query: str
    spans: Spans
    skipped: str | None = None
    about: About | None = None


def is_toml(path: str) -> bool:
    return path.endswith(".toml")


def rule_of(source: SourceText) -> TomlRule:
    rule = _loaded(source).get("rule")
    table: dict[str, Any] = rule if isinstance(rule, dict) else {}
    language, name, query = (table.get(word) for word in ("language", "name", "query"))
    if language != "eql":
        skipped = "a rule without 'language' is skipped" if language is None else f"language '{language}' is skipped"
        return TomlRule("", "", source.span, skipped)
    if not isinstance(name, str) or not isinstance(query, str):
        raise RuleError(Diagnostic("a rule needs 'name' and 'query'", source.span(0, 0)))
    return TomlRule(name, query, _spans(source, query), about=_about(name, table))


def _about(name: str, table: dict[str, Any]) -> About:
    """What means nothing to detection: nothing of it can be wrong."""
    return About(
        name,
        _one(table, "rule_id") or None,
        _one(table, "severity").lower() or None,
        _one(table, "description").strip(),
        tuple(dict.fromkeys(_attack(table.get("threat")))),
        _texts(table, "references"),
        _texts(table, "false_positives"),
        ", ".join(_texts(table, "author")),
    )


def _one(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    return value if isinstance(value, str) else ""


def _texts(table: dict[str, Any], name: str) -> tuple[str, ...]:
    value = table.get(name)
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


def _attack(threats: object) -> Iterator[str]:
    """Tactics and techniques of MITRE ATT&CK, as tags."""
    for threat in _tables(threats):
        tactic = threat.get("tactic")
        if isinstance(tactic, dict) and (name := _one(tactic, "name")):
            yield f"attack.{name.lower().replace(' ', '-')}"
        for technique in _tables(threat.get("technique")):
            for each in (technique, *_tables(technique.get("subtechnique"))):
                if identity := _one(each, "id"):
                    yield f"attack.{identity.lower()}"


def _tables(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _loaded(source: SourceText) -> dict[str, Any]:
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        offset = len(source.text) if place is None or place[1] is None else _offset(source.text, int(place[1]), int(place[2]))
        reason = _PLACE.sub("", str(error)).strip()
        raise RuleError(Diagnostic(f"invalid TOML: {reason}", source.span(offset, offset))) from None
    except (ValueError, RecursionError) as error:  # a number that Python does not read, or a thousand brackets
        raise RuleError(Diagnostic(f"invalid TOML: {error}", source.span(0, 0))) from None


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    return start + column - 1


def _spans(source: SourceText, query: str) -> Spans:
    """By the first assignment of exactly this text; a query that is written in no such way is all at the file's beginning."""
    places = next(_assigned(source.text, query), None)

    def span(start: int, end: int) -> Span:
        if places is None:
            return source.span(0, 0)
        return source.span(places[start], places[max(start, end - 1)] + (end > start))

    return span


def _assigned(text: str, query: str) -> Iterator[list[int]]:
    """For each character of the query, and its end, where it stands in the file."""
    for match in _ASSIGNED.finditer(text):
        quote, start = match["quote"], match.end()
        if len(quote) == 3 and text.startswith("\n", start):
            start += 1  # a newline right behind the quotes does not count
        offsets: list[int] = []
        decoded = ""
        for character, offset in _characters(text, start, quote[0] == "'"):
            if len(decoded) >= len(query):
                break
            decoded += character
            offsets += [offset] * len(character)
        if decoded == query:
            offsets.append(offsets[-1] + 1 if offsets else start)
            yield offsets


def _characters(text: str, start: int, literal: bool) -> Iterator[tuple[str, int]]:
    if literal:
        yield from ((text[offset], offset) for offset in range(start, len(text)))
        return
    for match in _PIECE.finditer(text, start):
        code = match[1] or match[2]
        if code or match[3]:
            yield chr(int(code, 16)) if code else _ESCAPES[match[3]], match.start()
        elif len(match.group()) == 1:
            yield match.group(), match.start()
