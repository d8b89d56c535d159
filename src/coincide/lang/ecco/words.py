"""The words of ECCO: what is reserved."""

from __future__ import annotations

from coincide.expr.tokens import EXPRESSION_KEYWORDS, EXPRESSION_OPERATORS, name_text
from coincide.lang.ecco.definition import RELATIONS

STATEMENTS = ("detect", "let", "option", "stamp", "duplicates", "space")
KEYWORDS = frozenset(
    {*STATEMENTS, "per", "give", "where", "with", "as", "within", "valid", "over", "every", "not", "null", "any", *RELATIONS}
)
OPERATORS = (*EXPRESSION_OPERATORS, "{", "}", ";", "|", "||", "^", "@", "¬")
EXPRESSION_RESERVED = frozenset(
    {*KEYWORDS, *EXPRESSION_KEYWORDS, *(word.upper() for word in KEYWORDS), *(word.upper() for word in EXPRESSION_KEYWORDS)}
)


def is_reserved(name: str) -> bool:
    """Key words are reserved in lower or upper case."""
    return name in KEYWORDS or (name.isupper() and name.lower() in KEYWORDS)


def quoted(name: str) -> str:
    """A name as the author must write it."""
    return name_text(name, KEYWORDS)
