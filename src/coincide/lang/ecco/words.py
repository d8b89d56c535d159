"""The words of ECCO: what is reserved, and tokens with names in back quotes."""

from __future__ import annotations

import re

from coincide.expr.tokens import EXPRESSION_KEYWORDS, EXPRESSION_OPERATORS, Token, Tokens
from coincide.lang.ecco.definition import RELATIONS
from coincide.source import SourceText

STATEMENTS = ("detect", "let", "option", "stamp", "duplicates", "space")
KEYWORDS = frozenset(
    {*STATEMENTS, "per", "give", "where", "with", "as", "within", "valid", "over", "every", "not", "null", "any", *RELATIONS}
)
OPERATORS = (*EXPRESSION_OPERATORS, "{", "}", ";", "|", "||", "^", "@", "¬")
EXPRESSION_RESERVED = frozenset(
    {*KEYWORDS, *EXPRESSION_KEYWORDS, *(word.upper() for word in KEYWORDS), *(word.upper() for word in EXPRESSION_KEYWORDS)}
)

_QUOTED = re.compile(r"(?:\s+|\#[^\n]*)*+(?P<name>`[^\W\d][\w.-]*`(?:\.\w+)*)")


class EccoTokens(Tokens):
    """A name that is a key word stands in back quotes; they stay in the token's text, so that it is no key word."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source, OPERATORS)

    def _scan(self) -> Token:
        quoted = _QUOTED.match(self.source.text, self._offset)
        if quoted is None:
            return super()._scan()
        self._offset = quoted.end()
        return Token("name", quoted["name"], quoted.start("name"), quoted.end("name"))


def is_reserved(name: str) -> bool:
    """Key words are reserved in lower or upper case."""
    return name in KEYWORDS or (name.isupper() and name.lower() in KEYWORDS)


def unquoted(name: str) -> str:
    return name.replace("`", "")


def quoted(name: str) -> str:
    """A name as the author must write it."""
    return f"`{name}`" if is_reserved(name) else name


def quoted_in_expression(name: str) -> str:
    """A name, dotted or not, inside a condition, where the words of expressions are reserved too."""
    return f"`{name}`" if name in EXPRESSION_RESERVED else name
