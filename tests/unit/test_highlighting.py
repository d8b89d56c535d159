"""Lexers: nothing of a rule is lost or unknown, and words of a language have its colour."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pygments.token import Comment, Error, Keyword, Number, String, Token

from coincide import highlighting
from coincide.lang.ecco.words import KEYWORDS as ECCO
from coincide.lang.ecl.parse import RESERVED as ECL
from coincide.lang.eql.tokens import KEYWORDS as EQL
from coincide.lang.opera.sets import RESERVED as OPERA
from coincide.lang.pretty.phrases import KEYWORDS as SAY

ROOT = Path(__file__).parents[2]
LEXERS = [getattr(highlighting, name) for name in highlighting.__all__]


@pytest.mark.parametrize("lexer", LEXERS, ids=lambda lexer: lexer.name)
def test_rules_of_all_cases(lexer: Any) -> None:
    (pattern,) = lexer.filenames
    files = [path for path in (ROOT / "tests" / "conformance" / "cases").rglob(pattern) if "-errors" not in path.parts[-3]]
    assert len(files) > 10
    for file in files:
        text = file.read_text(encoding="utf-8")
        tokens = list(lexer(stripnl=False, ensurenl=False).get_tokens(text))
        assert "".join(value for _, value in tokens) == text, file
        assert not [value for kind, value in tokens if kind in Error], file


@pytest.mark.parametrize(
    ("lexer", "keywords"),
    [
        (highlighting.EclLexer, ECL),
        (highlighting.OperaLexer, OPERA),
        (highlighting.SayLexer, SAY),
        (highlighting.EccoLexer, ECCO),
        (highlighting.EqlLexer, {word for word in EQL if word.isalpha()}),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_key_words(lexer: Any, keywords: frozenset[str]) -> None:
    for word in keywords:
        assert [kind in Keyword for kind, value in lexer().get_tokens(word) if value == word] == [True], word
        assert [kind in Keyword for kind, value in lexer().get_tokens(f"{word}s-{word}") if value.strip()] == [False]


def test_parts_of_a_rule() -> None:
    text = 'Report hot when reading where v > 10min or name = "a b" # hot'
    kinds = {value: kind for kind, value in highlighting.SayLexer().get_tokens(text)}
    assert kinds["10min"] in Number
    assert kinds['"a b"'] in String
    assert kinds["# hot"] in Comment
    assert kinds["reading"] is Token.Name


def test_tools_find_them() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pygments.lexers"]
    assert sorted(declared.values()) == [f"coincide.highlighting:{name}" for name in sorted(highlighting.__all__)]
