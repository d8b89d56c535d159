"""Tokens of SQL. Other than the languages of our own, SQL has `--` comments, quoted names, and no dots in names; and the whole
file is read first, so that a character that cannot be is the first error told."""

from __future__ import annotations

import re

from coincide.expr.tokens import AllTokens, Token, Tokens, visible

OPERATORS = (
    "<=", ">=", "<>", "!=", "==", "||", "{-", "-}", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", ".", ";", "|", "{",
    "}", "^", "$", "?",
)  # fmt: skip

_SCANNER = re.compile(
    r"(?:\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/)*+(?:"
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<text>'(?:[^'\n]|'')*+')"
    r"|(?P<quoted>\"(?:[^\"\n]|\"\")*+\"|`(?:[^`\n]|``)*+`)"
    rf"|(?!/\*)(?P<op>{'|'.join(map(re.escape, OPERATORS))})"
    r")?",
    re.ASCII,
)


class SqlScanner(Tokens):
    """Tokens as they come."""

    scanner = _SCANNER

    def _wrong(self, text: str, start: int) -> str:
        if text[start] == "'":
            return "text is not closed"
        if text[start] in '"`':
            return "name is not closed"
        return "comment is not closed" if text.startswith("/*", start) else f"unexpected character '{visible(text[start])}'"


class SqlTokens(AllTokens, SqlScanner):
    """All tokens of a text."""

    def at(self, *texts: str) -> bool:
        """Is the next token one of these operators or (in any case) words?"""
        return self.is_one(self.peek(), *texts)

    def is_one(self, token: Token, *texts: str) -> bool:
        return (token.kind == "op" and token.text in texts) or (token.kind == "name" and token.text.lower() in texts)

    def at_words(self, *words: str) -> bool:
        """Do these words follow one another here?"""
        return all(self.is_one(self.peek(n), word) for n, word in enumerate(words))
