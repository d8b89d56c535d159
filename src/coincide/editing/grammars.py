"""TextMate grammars of the languages that are texts of their own, made of their words: for editors that colour by these before,
or without, a language server. `python -m coincide.editing.grammars FOLDER` writes them."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coincide.editing.words import FUNCTION, words_of

STATEMENT = "statement"
NUMBER = r"\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:\s?(?:us|ms|s|min|m|h|d|w)\b)?"
SINGLE = {"name": "string.quoted.single", "begin": "'", "end": "'|$", "patterns": []}
DOUBLE = {"name": "string.quoted.double", "begin": '"', "end": '"|$', "patterns": []}
NAME = r"[^\W\d][\w.-]*|`[^`]*`"


@dataclass(frozen=True)
class Style:
    """How a language looks. `defines` are words that a defined name follows."""

    language: str
    title: str
    comment: str = "#"
    block: bool = False
    any_case: bool = False
    quoted: tuple[dict[str, Any], ...] = (SINGLE, DOUBLE)
    defines: tuple[str, ...] = ()


STYLES = {
    "ecl": Style("ecl", "ECL", defines=("monitor", "machine")),
    "ce": Style("opera", "Opera", defines=("detect", "expr", "set", "event", "limit")),
    "say": Style("pretty", "Opera in English", any_case=True, defines=("report",)),
    "ecco": Style("ecco", "ECCO", defines=("detect", "let", "space", "DETECT", "LET", "SPACE")),
    "eql": Style("eql", "EQL", comment="//", block=True, quoted=(DOUBLE,)),
    "mr.sql": Style("matchrecognize", "MATCH_RECOGNIZE", comment="--", block=True, any_case=True, defines=("view",)),
}
"""By the ending of files."""


def grammar(ending: str) -> dict[str, Any]:
    style = STYLES[ending]
    patterns = [*_comments(style), *_quoted(style), *_defined(style), _functions(style)]
    patterns += [_keywords(style, STATEMENT, "keyword.control"), _keywords(style, "", "keyword.other")]
    patterns += [{"name": "constant.numeric", "match": NUMBER}, {"name": "keyword.operator", "match": r"[-+*/%<>=!|&;^@?:\\]+"}]
    named = [{**pattern, "name": f"{pattern['name']}.{ending}"} if "name" in pattern else pattern for pattern in patterns]
    return {"name": style.title, "scopeName": scope_of(ending), "patterns": named}


def scope_of(ending: str) -> str:
    return f"source.{ending}"


def keywords(ending: str) -> dict[str, set[str]]:
    """The words of a grammar, by what they are: statements, functions, all others."""
    style = STYLES[ending]
    statements = _words(style, lambda group: group == STATEMENT)
    functions = _words(style, lambda group: group == FUNCTION)
    others = _words(style, lambda group: group not in (STATEMENT, FUNCTION))
    return {STATEMENT: statements, FUNCTION: functions, "": others - statements}


def _words(style: Style, wanted: Any) -> set[str]:
    found = {part for word in words_of(style.language) if wanted(word.group) for part in word.name.split()}
    return {word.lower() for word in found} if style.any_case else found


def _comments(style: Style) -> list[dict[str, Any]]:
    line = {"name": "comment.line", "match": f"{re.escape(style.comment)}.*$"}
    block = {"name": "comment.block", "begin": r"/\*", "end": r"\*/"}
    return [line, block] if style.block else [line]


def _quoted(style: Style) -> list[dict[str, Any]]:
    escapes = [{"name": "constant.character.escape", "match": r"\\."}] if style.language == "eql" else []
    return [{**quoted, "patterns": escapes} for quoted in style.quoted]


def _defined(style: Style) -> list[dict[str, Any]]:
    if not style.defines:
        return []
    words = "|".join(style.defines)
    captures = {"1": {"name": "keyword.control"}, "2": {"name": "entity.name.type"}}
    return [{"match": rf"{_case(style)}\b({words})\s+({NAME})", "captures": captures}]


def _functions(style: Style) -> dict[str, Any]:
    names = _listed(keywords_of(style, FUNCTION))
    return {"name": "support.function", "match": rf"{_case(style)}(?<![\w.-])(?:{names})~?(?=\s*\()"}


def keywords_of(style: Style, group: str) -> set[str]:
    ending = next(ending for ending, other in STYLES.items() if other is style)
    return keywords(ending)[group]


def _keywords(style: Style, group: str, scope: str) -> dict[str, Any]:
    words = keywords_of(style, group)
    shouted = {word.upper() for word in words} if style.language == "ecco" else set()
    return {"name": scope, "match": rf"{_case(style)}(?<![\w.-])(?:{_listed(words | shouted)})(?![\w.~-])"}


def _listed(words: set[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def _case(style: Style) -> str:
    return "(?i)" if style.any_case else ""


def grammar_text(ending: str) -> str:
    return json.dumps(grammar(ending), indent=2, ensure_ascii=False) + "\n"


def write_grammars(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for ending in STYLES:
        (folder / file_of(ending)).write_text(grammar_text(ending), encoding="utf-8")


def file_of(ending: str) -> str:
    return f"{ending.replace('.', '-')}.tmLanguage.json"


if __name__ == "__main__":
    write_grammars(Path(sys.argv[1]))
