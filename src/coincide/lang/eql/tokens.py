"""Tokens of EQL. The whole text is read before it is parsed: what is lexical comes first (section 8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from coincide.errors import Diagnostic, RuleError
from coincide.expr.tokens import AllTokens, Token, name_of
from coincide.source import SourceText, Span

WORDS = "and any by false in join like maxspan not null of or regex sample sequence true until where with in~ like~ regex~"
KEYWORDS = frozenset(WORDS.split())

_PART = r"[^\W\d]\w*+"
_QUOTED = r"`(?:[^`\n]|``)++`"
_SCANNER = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<remark>//[^\n]*|/\*(?s:.*?)\*/)"
    rf"|(?P<field>(?:@{_PART}|{_QUOTED}|{_PART}(?=\.(?:[^\W\d]|`)))(?:\.(?:{_PART}|{_QUOTED}))*+)"
    rf"|(?P<name>{_PART}~?)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r'|(?P<raw>"""[^\n]*?"""(?:"{0,2}))'
    r'|(?P<text>(?!""")"(?:[^"\\\n]|\\[^\n])*+")'
    r"|(?P<op>!\[|==|!=|<=|>=|/(?![*/])|[=<>+*%()\[\],:|;?-])"
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{2,8})\}|(.))")
DIRECTIVE = re.compile(r"//\s*@(name|fields)(?!\w)[ \t]*(.*?)\s*$")


@dataclass(frozen=True)
class Directive:
    """A comment that means something: `@name` or `@fields`, and what stands behind it."""

    word: str
    text: str
    span: Span


Spans = Callable[[int, int], Span]
"""From a stretch of the text that is read to the one of the file that an author sees."""


def pieces(text: str) -> Iterator[Token]:
    """All of a text, with space and remarks; a character that begins nothing is `bad`."""
    offset = 0
    while offset < len(text):
        match = None if _is_endgame_raw(text, offset) else _SCANNER.match(text, offset)
        kind, end = ("bad", offset + 1) if match is None else (str(match.lastgroup), match.end())
        yield Token(kind, text[offset:end], offset, end)
        offset = end


class EqlTokens(AllTokens):
    """All tokens of a text; directives with the number of the token that they stand before."""

    def __init__(self, text: str, spans: Spans) -> None:
        self._spans = spans
        self.directives: list[tuple[int, Directive]] = []
        super().__init__(SourceText("", text), list(self._tokens(text)))

    def span(self, token: Token) -> Span:
        return self._spans(token.start, token.end)

    def _tokens(self, text: str) -> Iterator[Token]:
        number = 0
        for piece in pieces(text):
            if piece.kind == "bad":
                raise _fault(text, piece.start, self._spans)
            if piece.kind == "text":
                _check_escapes(piece.text, piece.start, self._spans)
            if piece.kind == "remark" and (found := DIRECTIVE.match(piece.text)) is not None:
                self.directives.append((number, Directive(found[1], found[2], self.span(piece))))
            elif piece.kind not in ("space", "remark"):
                number += 1
                yield piece
        yield Token("end", "", len(text), len(text))


def field_name(token: Token) -> str:
    return name_of(token.text).text if "`" in token.text else token.text


def text_value(token: Token) -> str:
    """What a text means."""
    if token.kind == "raw":
        return token.text[3:-3]
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES[m[2]], token.text[1:-1])


def quoted(text: str) -> str:
    """A text as it is written."""
    names = {meant: written for written, meant in _ESCAPES.items() if written != "'"}
    return '"' + "".join(f"\\{names[c]}" if c in names else c if c.isprintable() else f"\\u{{{ord(c):04x}}}" for c in text) + '"'


def _check_escapes(written: str, offset: int, spans: Spans) -> None:
    for match in _ESCAPE.finditer(written, 1, len(written) - 1):
        known = int(match[1], 16) <= 0x10FFFF if match[1] else match[2] in _ESCAPES
        if not known:
            start = offset + match.start()
            shown = written[match.start() : match.start() + 2]
            raise RuleError(Diagnostic(f"unknown escape '{shown}'", spans(start, start + len(shown)), hint=_ESCAPE_HINT))


_ESCAPE_HINT = 'a back slash is written \\\\, or the text as it is: """C:\\Windows"""'


def _is_endgame_raw(text: str, offset: int) -> bool:
    return text.startswith(('?"', "?'"), offset)


def _fault(text: str, offset: int, spans: Spans) -> RuleError:
    character = text[offset]
    if _is_endgame_raw(text, offset):
        message = 'raw text is written """…""", not ?"…"'
    elif character == "'":
        message = "use double quotes for text, not single quotes"
    elif character == '"':
        message = "text is not closed"
    elif character == "`":
        message = "name is not closed"
    elif text.startswith("/*", offset):
        message = "comment is not closed"
    else:
        message = f"unexpected character '{character if character.isprintable() else ascii(character)[1:-1]}'"
    return RuleError(Diagnostic(message, spans(offset, offset + 1)))
