"""Rules in colour: lexers for Pygments, which IPython, Sphinx, MkDocs and rich find by themselves once the package is installed.

Key words are those that editors know (`words.md` beside each language). Amit, CDL and Sigma are XML and
YAML, for which there are lexers already."""

from __future__ import annotations

from typing import Any

from pygments.lexer import RegexLexer, words
from pygments.lexers.sql import SqlLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from coincide.editing.words import parts_of
from coincide.expr.tokens import PLAIN

__all__ = ["EccoLexer", "EclLexer", "EqlLexer", "MatchRecognizeLexer", "OperaLexer", "SayLexer"]

CONSTANTS = ("true", "false", "null")
REMARK = r"\#[^\n]*"
TEXT = r"'(?:[^'\n]|'')*+'|\"(?:[^\"\n]|\"\")*+\""
QUANTITY = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:[^\W\d]+\b)?"
"""A number, or a duration: `10min`."""


def _rules(language: str, remark: str = REMARK, text: str = TEXT) -> dict[str, list[Any]]:
    """What texts of a language are made of."""
    known = parts_of(language) - {*CONSTANTS}
    return {
        "root": [
            (r"\s+", Text),
            (remark, Comment),
            (text, String),
            (r"`(?:[^`\n]|``)++`", Name),
            (words(CONSTANTS, prefix="(?i)", suffix=r"(?![\w.-])"), Keyword.Constant),
            (words(known, prefix="(?i)", suffix=r"(?![\w.-])"), Keyword),
            (rf"{PLAIN}(?=\()", Name.Function),
            (r"[?@]\w+", Name.Variable),
            (PLAIN, Name),
            (QUANTITY, Number),
            (r"[\[\](){},.:]", Punctuation),
            (r"[^\w\s]", Operator),
        ]
    }


class EclLexer(RegexLexer):
    """Correlation expressions. Pygments itself calls another language `ecl`."""

    name, aliases, filenames = "Correlation expressions", ["correlation"], ["*.ecl"]
    tokens = _rules("ecl")


class OperaLexer(RegexLexer):
    """Composite event expressions."""

    name, aliases, filenames = "Opera", ["ce", "opera"], ["*.ce"]
    tokens = _rules("opera")


class SayLexer(RegexLexer):
    """The English-like language."""

    name, aliases, filenames = "Opera in English", ["say"], ["*.say"]
    tokens = _rules("pretty")


class EccoLexer(RegexLexer):
    """The algebra of intervals."""

    name, aliases, filenames = "ECCO", ["ecco"], ["*.ecco"]
    tokens = _rules("ecco")


class EqlLexer(RegexLexer):
    """Event queries of Elastic."""

    name, aliases, filenames = "EQL", ["eql"], ["*.eql"]
    tokens = _rules("eql", r"//[^\n]*|/\*(?s:.*?)\*/", r'"""[^\n]*?"""|"(?:[^"\\\n]|\\[^\n])*+"')


class MatchRecognizeLexer(SqlLexer):
    """Row patterns in SQL."""

    name, aliases, filenames = "MATCH_RECOGNIZE", ["match_recognize"], ["*.mr.sql"]
    tokens = {  # noqa: RUF012
        **SqlLexer.tokens,
        "root": [
            (words(parts_of("matchrecognize"), prefix=r"(?i)\b", suffix=r"\b"), Keyword),
            (r"[{}^$|?]", Operator),
            *SqlLexer.tokens["root"],
        ],
    }
