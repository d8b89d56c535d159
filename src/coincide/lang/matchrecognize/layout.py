"""A file of queries in its regular layout: a clause a line, and an item a line where a clause is long. Comments stay where they
were. Nothing else changes but white space and the case of key words; where that would say something else, nothing does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from coincide.expr.tokens import Token
from coincide.lang.matchrecognize.expressions import RESERVED
from coincide.lang.matchrecognize.parse import parse
from coincide.lang.matchrecognize.tokens import SqlTokens
from coincide.source import SourceText

WIDTH = 100
COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
CLAUSES = tuple(
    tuple(phrase.split())
    for phrase in (
        *("partition by", "order by", "measures", "one row per match", "all rows per match", "after match skip"),
        *("pattern (", "subset", "define"),
    )
)
LISTS = ("select", "measures", "subset", "define")
"""Clauses whose items may have a line each."""
LOUD = ("one", "all", "after")
"""Clauses that have no names of columns in them."""
ENDINGS = ("asc", "desc", "nulls", "first", "last", "within")
"""Words that stand behind a key of ORDER BY, or behind a pattern."""
SPACED = frozenset({"=", "<>", "!=", "==", "<", ">", "<=", ">=", "|", "||"})


@dataclass
class Word:
    """A token; comments that stand on lines before it, and those that follow it on its own line."""

    token: Token
    apart: bool  # from the one before
    text: str = ""
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        reserved = self.token.kind == "name" and self.token.text.lower() in RESERVED
        self.text = self.token.text.upper() if reserved else self.token.text

    def is_one(self, *texts: str) -> bool:
        return self.token.kind in ("name", "op") and self.token.text.lower() in texts


@dataclass
class Line:
    """The words from `first` on, up to the next line."""

    first: int
    indent: int
    apart: bool = False  # a statement begins, with an empty line before it


def layout(source: SourceText) -> str:
    """Raises RuleError where the text does not hold rules."""
    parsed = parse(source)
    words, rest = _words(source)
    made = "\n".join([*_laid_out(words), *rest]) + "\n"
    return made if parse(SourceText(source.name, made)) == parsed else source.text


def _words(source: SourceText) -> tuple[list[Word], list[str]]:
    """All tokens with their comments, and the comments at the end."""
    tokens, words, at = SqlTokens(source), list[Word](), 0
    while True:
        token = tokens.next()
        gap, before = source.text[at : token.start], list[str]()
        for comment in COMMENT.finditer(gap):
            same_line = words and "\n" not in gap[: comment.start()]
            (words[-1].after if same_line else before).append(comment.group().rstrip())
        if token.kind == "end":
            return words, before
        words.append(Word(token, bool(gap), before=before))
        at = token.end


def _laid_out(words: Sequence[Word]) -> Iterator[str]:
    lines = list(_lines(words))
    for line, following in pairwise([*lines, Line(len(words), 0)]):
        if line.apart and line.first:
            yield ""
        part = words[line.first : following.first]
        whole = list(_written(part, line.indent, frozenset()))
        many = len(whole) > 1 or any(len(text) > WIDTH for text in whole)
        yield from _written(part, line.indent, _items(part)) if many else whole


def _lines(words: Sequence[Word]) -> Iterator[Line]:
    """Where lines begin. Words of the clause are names elsewhere: which they are is told by what stands around them."""
    depth, inside = 0, -1  # brackets that are open, and how many are within MATCH_RECOGNIZE
    no_clause_until = -1  # the word behind MEASURES is an item, whatever it says
    for at, word in enumerate(words):
        if at == 0 or (depth == 0 and words[at - 1].is_one(";")):
            yield Line(at, 0, apart=True)
        elif depth == 0 and word.is_one("select", "from", "where"):
            yield Line(at, 0)
        elif inside > 0 and depth == inside:
            if word.is_one(")"):
                inside = -1
                yield Line(at, 0)
            elif at > no_clause_until and not words[at - 1].is_one(",", ".", "as", "by"):
                phrase = next((p for p in CLAUSES if _follows(words, at, p)), None)
                if phrase is not None:
                    no_clause_until = at + (phrase[0] in LISTS)
                    _raise(words[at : at + len(phrase)])
                    yield Line(at, 2)
        if word.is_one("(") and inside < 0 and words[at - 1].is_one("match_recognize"):
            inside = depth + 1
            words[at - 1].text = words[at - 1].text.upper()
        depth += word.is_one("(") - word.is_one(")")


def _follows(words: Sequence[Word], at: int, phrase: tuple[str, ...]) -> bool:
    part = words[at : at + len(phrase)]
    return len(part) == len(phrase) and all(word.is_one(text) for word, text in zip(part, phrase, strict=True))


def _raise(words: Sequence[Word]) -> None:
    for word in words:
        word.text = word.text.upper()


def _items(part: Sequence[Word]) -> frozenset[int]:
    """Which words of a clause begin an item."""
    if not part[0].is_one(*LISTS):
        return frozenset()
    depth, found = 0, {1}
    for at, word in enumerate(part):
        depth += word.is_one("(") - word.is_one(")")
        if depth == 0 and word.is_one(","):
            found.add(at + 1)
    return frozenset(found)


def _written(part: Sequence[Word], indent: int, items: frozenset[int]) -> Iterator[str]:
    if part[0].is_one(*LOUD):
        _raise([word for word in part if word.token.kind == "name"])
    elif part[0].is_one("create"):
        _raise(part[: 1 + next(at for at, word in enumerate(part) if word.is_one("view"))])
    elif part[0].is_one("order", "pattern"):
        _raise([word for left, word in pairwise(part) if word.is_one(*ENDINGS) and not left.is_one("by", ",", ".")])
    line, ended = "", False
    for at, word in enumerate(part):
        if at == 0 or ended or word.before or at in items:
            yield from [line] if line else []
            begin = " " * (indent if at == 0 else indent + 2)
            yield from (begin + comment for comment in word.before)
            line = begin + word.text
        else:
            line += " " * _is_spaced(part[at - 1], word) + word.text
        line += "".join(f"  {comment}" for comment in word.after)
        ended = any(comment.startswith("--") for comment in word.after)
    yield line


def _is_spaced(left: Word, right: Word) -> bool:
    if right.is_one(",", ";", ")", ".") or left.is_one("(", "."):
        return False
    return right.apart or left.is_one(",", *SPACED) or right.is_one(*SPACED)
