"""The words of each language: what editors offer, colour and explain. They stand in a file beside the language, `words.md`; tests
hold it to the parser."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FUNCTION, EXPRESSION = "function", "expression"
ALONE = ("eql", "sigma")
"""Languages that do not have the expressions of all others."""

_ENTRY = re.compile(r"^(?P<level>##|###) (?P<head>.+)\n(?P<body>(?:(?!##+ ).*\n?)*)", re.MULTILINE)
_FENCE = re.compile(r"```(?P<form>\S+)\n(?P<text>.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Word:
    """A word, or several that belong together; `form` is the ending of a file that the example would be."""

    name: str
    group: str
    sentence: str
    example: str = ""
    form: str = ""


@lru_cache
def words_of(language: str) -> tuple[Word, ...]:
    """Of a language by its name (ecl, pretty …): its own first, then those of expressions that it has."""
    own = tuple(_read(ROOT / "lang" / language / "words.md"))
    if language in ALONE:
        return own
    known = {(word.name.lower(), word.group == FUNCTION) for word in own}
    functions = functions_of(language)
    shared = (word for word in _read(ROOT / "expr" / "words.md") if word.group != FUNCTION or word.name in functions)
    return (*own, *(word for word in shared if (word.name.lower(), word.group == FUNCTION) not in known))


@lru_cache
def parts_of(language: str) -> frozenset[str]:
    """Every single word that stands in one of its key words, in lower case; functions are none."""
    return frozenset(part.lower() for word in words_of(language) if word.group != FUNCTION for part in word.name.split())


def grouped(language: str, *groups: str) -> Iterator[Word]:
    return (word for word in words_of(language) if word.group in groups)


def functions_of(language: str) -> Collection[str]:
    """What its expressions can call, as the parser has it."""
    if language == "ecl":
        from coincide.lang.ecl.parse import ECL_FUNCTIONS

        return ECL_FUNCTIONS
    if language in ("opera", "pretty"):
        from coincide.lang.opera.functions import WITH_FUNCTIONS

        return WITH_FUNCTIONS
    if language == "matchrecognize":
        from coincide.lang.matchrecognize.functions import AGGREGATES, CALLABLE, FACTS, NAVIGATIONS

        return {*CALLABLE, *AGGREGATES, *NAVIGATIONS, *FACTS, "CLASSIFIER"}
    if language == "amit":
        from coincide.lang.amit.functions import expression_functions

        return expression_functions()
    if language == "cdl":
        from coincide.lang.cdl.functions import FUNCTIONS as CDL_FUNCTIONS

        return CDL_FUNCTIONS
    if language == "eql":
        from coincide.lang.eql.functions import SIGNATURES

        return {signature.name for signature in SIGNATURES.values()}
    from coincide.expr.functions import FUNCTIONS

    return FUNCTIONS if language != "sigma" else ()


def _read(path: Path) -> Iterator[Word]:
    text, group = path.read_text(encoding="utf-8"), ""
    for entry in _ENTRY.finditer(text):
        if entry["level"] == "##":
            group = entry["head"].strip()
            continue
        fence = _FENCE.search(entry["body"])
        sentence = " ".join(_FENCE.sub("", entry["body"]).split())
        for name in entry["head"].split(","):
            yield Word(name.strip(), group, sentence, fence["text"] if fence else "", fence["form"] if fence else "")
