"""The words that editors offer are those that the parsers know, each with an example that parses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coincide.editing.hovering import example_of
from coincide.editing.words import EXPRESSION, FUNCTION, Word, functions_of, grouped, parts_of, words_of
from coincide.expr.functions import FUNCTIONS
from coincide.expr.parse import parse_expression
from coincide.expr.tokens import EXPRESSION_KEYWORDS
from coincide.lang.amit.functions import expression_functions
from coincide.lang.amit.grammar import CHILDREN, CHOICES, SHAPES, SYNONYMS
from coincide.lang.amit.operators import MODES, OPERATORS, elements
from coincide.lang.cdl.definition import TYPES as CDL_TYPES
from coincide.lang.cdl.functions import BUILT_IN
from coincide.lang.cdl.parse import DUPLICATES
from coincide.lang.cdl.shape import SHAPES as CDL_SHAPES
from coincide.lang.shared.about import LEVELS
from coincide.lang.sigma.correlation import ATTRIBUTES
from coincide.lang.sigma.definition import COMPARISONS, TYPES
from coincide.lang.sigma.mapping import PARTS
from coincide.lang.sigma.parse import KEPT
from coincide.lang.sigma.values import KNOWN
from coincide.languages.registry import MODULES, ending_of, language_of
from coincide.source import SourceText

LANG = Path(__file__).parents[3] / "src" / "coincide" / "lang"
LANGUAGES = sorted({module.rpartition(".")[2] for module in MODULES.values()})
TEXT_LANGUAGES = ("ecl", "opera", "pretty", "ecco", "eql", "matchrecognize")
TAKING = {"at", "take", "expect", "wanted", "at_words", "_take_words", "_words_of", "_at_item", "_refuse", "is_one"}
"""Methods by which the parsers ask for words."""
NO_WORDS = {
    "fork",
    "filter",
    "over",
    "seek",
    "initial",
    "match",
    "to",
    "out",
    "row",
    "rows",
    "per",
    "select",
    "distinct",
    "or",
    "and",
}
"""What parsers look for to refuse it, or that belongs to a longer phrase."""


def asked_for(language: str) -> Iterator[str]:
    """Every word that a call in the parser's modules asks for."""
    for file in (LANG / language).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKING:
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield from re.findall(r"[A-Za-z_~]{2,}", argument.value)


@pytest.mark.parametrize("language", TEXT_LANGUAGES)
def test_every_word_that_a_parser_asks_for_is_there(language: str) -> None:
    asked = {word.lower() for word in asked_for(language)} - NO_WORDS
    assert len(asked) > 5
    assert not asked - parts_of(language) - {name.lower() for name in functions_of(language)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_functions_are_those_of_the_parser(language: str) -> None:
    written = {word.name.lower() for word in words_of(language) if word.group == FUNCTION}
    assert written == {name.lower() for name in functions_of(language)}


def examples() -> Iterator[tuple[str, Word]]:
    for language in LANGUAGES:
        yield from ((language, word) for word in words_of(language))


@pytest.mark.parametrize(("language", "word"), [pytest.param(*e, id=f"{e[0]}-{e[1].group}-{e[1].name}") for e in examples()])
def test_word_has_a_sentence_and_an_example_that_parses(language: str, word: Word) -> None:
    assert word.sentence.endswith((".", "?")), word
    text, form = example_of(word, language)
    if not text:  # the tables below hold the words of elements
        assert language in ("amit", "cdl", "sigma") or word.name in ("of", "from"), word
        return
    name = word.name.removesuffix("s") if word.group == "element" else word.name  # in YAML there are several of them
    assert re.search(re.escape(name).replace(r"\ ", r"\s+"), text, re.IGNORECASE), word
    if form == EXPRESSION:
        parse_expression(text)
    else:
        language_of(f"example.{form}").parse(SourceText(f"example.{form}", text))


def named(language: str, *groups: str) -> set[str]:
    return {word.name for word in grouped(language, *groups)}


def test_expressions() -> None:
    assert {word.name for word in grouped("ecco", EXPRESSION)} >= EXPRESSION_KEYWORDS - {"in", "not", "null"}
    assert {word.name for word in grouped("ecco", FUNCTION)} == set(FUNCTIONS)


def test_elements_of_amit() -> None:
    children = {name for names in CHILDREN.values() for name in names}
    operands = {name for kind in OPERATORS.values() for name in kind.operands}
    assert named("amit", "element", "operator") >= {*SHAPES, *children, *elements(), *operands, "amit", "use", "operator"}
    attributes = {name for names in (*SHAPES.values(), *(k.attributes for k in OPERATORS.values())) for name in names}
    attributes |= {name for kind in OPERATORS.values() for name in (*kind.operand_attributes, *kind.refused_attributes)}
    assert named("amit", "attribute") >= attributes | {name for names in SYNONYMS.values() for name in names} - {"type"}
    assert named("amit", "value") >= {value for values in CHOICES.values() for value in values} | set(MODES)
    assert named("amit", FUNCTION) >= set(expression_functions()) - set(FUNCTIONS)


def test_elements_of_cdl() -> None:
    assert named("cdl", "element") >= set(CDL_SHAPES) - {"event attribute"}
    attributes = {name for shape in CDL_SHAPES.values() for name in (*shape.needed, *shape.optional)}
    assert named("cdl", "attribute") >= attributes
    assert named("cdl", "predicate", "value") >= {kind.name for kind in BUILT_IN.values()}
    assert named("cdl", "value") >= {*CDL_TYPES, *DUPLICATES}


def test_keys_of_sigma() -> None:
    assert named("sigma", "rule") >= set(KEPT)
    assert named("sigma", "logsource") == set(PARTS)
    assert named("sigma", "correlation") | {"generate"} == set(ATTRIBUTES)
    assert named("sigma", "bound") >= set(COMPARISONS)
    assert named("sigma", "kind") == set(TYPES)
    assert named("sigma", "level") == set(LEVELS)
    assert named("sigma", "modifier") == set(KNOWN)


def test_every_language_has_words() -> None:
    assert all(len(words_of(language)) > 20 and ending_of(language) in MODULES for language in LANGUAGES)
