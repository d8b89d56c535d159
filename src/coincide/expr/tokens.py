"""A lazy stream of tokens. Lazy, so that a parser's limit on nesting stops it before a hostile file is read whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.quantities import QuantityError, number_of
from coincide.source import MAXIMUM_DEPTH, SourceText, Span

T = TypeVar("T")

EXPRESSION_OPERATORS = ("<=", ">=", "<>", "!=", "==", "=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",")
EXPRESSION_KEYWORDS = frozenset({"and", "or", "not", "in", "between", "like", "is", "null", "true", "false"})


PLAIN = r"[^\W\d]\w*(?:[.-]\w+)*"
"""A name that needs no quotes."""

_BACK_QUOTED = r"`(?:[^`\n]|``)++`"
_pieces = re.compile(rf"{_BACK_QUOTED}|\.|[^`.]+").findall
_is_plain = re.compile(PLAIN).fullmatch
_is_quoted = re.compile(_BACK_QUOTED).fullmatch


class Name(NamedTuple):
    """A name as it is meant. `splits` are the places of dots that stand outside back quotes: only there may an alias end."""

    text: str
    splits: tuple[int, ...]


def name_of(written: str) -> Name:
    """What a name, of which parts may stand in back quotes, means."""
    text, splits = "", []
    for piece in _pieces(written):
        if piece == ".":
            splits.append(len(text))
        text += unquoted(piece)
    return Name(text, tuple(splits))


def unquoted(written: str) -> str:
    """A name that may stand in back quotes as a whole, as in the attributes of XML."""
    return written[1:-1].replace("``", "`") if _is_quoted(written) else written


def name_text(name: str, reserved: Collection[str] = EXPRESSION_KEYWORDS) -> str:
    """A name as an author must write it: in back quotes if it is not a plain name, or a word of the language."""
    if _is_plain(name) and name not in reserved and not (name.isupper() and name.lower() in reserved):
        return name
    return back_quoted(name)


def back_quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


class Token(NamedTuple):
    kind: str  # name, quoted (a name with back quotes in it), number, text, op, end
    text: str  # as written
    start: int
    end: int

    @property
    def shown(self) -> str:
        return "end of file" if self.kind == "end" else f"'{self.text}'"

    @property
    def is_name(self) -> bool:
        return self.kind in ("name", "quoted")

    @property
    def named(self) -> Token:
        """Of a name: its text is what is meant, without back quotes. Its kind still tells that it had them."""
        return self._replace(text=name_of(self.text).text) if self.kind == "quoted" else self

    @property
    def value(self) -> str:
        """Of a text: without its quotes."""
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


@dataclass(frozen=True)
class Wording:
    """How a language says what it found wrong. A specification fixes these sentences."""

    unclosed: str = "text is not closed"
    unclosed_name: str = "name is not closed"
    bad_character: str = "unexpected character '{0}'"
    end: str = "end of file"


class Tokens:
    """Tokens of a text, one at a time, with as much look-ahead as is asked for."""

    scanner: ClassVar[re.Pattern[str] | None] = None
    """Of a language whose tokens are others."""

    def __init__(
        self, source: SourceText, operators: Iterable[str] = EXPRESSION_OPERATORS, wording: Wording = Wording(), offset: int = 0
    ) -> None:
        self.source = source
        self.wording = wording
        self._scanner = self.scanner or _scanner(tuple(operators))
        self._offset = offset
        self._ahead: list[Token] = []
        self.last: Token | None = None

    def peek(self, distance: int = 0) -> Token:
        while len(self._ahead) <= distance:
            self._ahead.append(self._scan())
        return self._ahead[distance]

    def next(self) -> Token:
        token = self.peek()
        del self._ahead[0]
        self.last = token
        return token

    def at(self, *texts: str) -> bool:
        """Is the next token one of these operators or (in lower or upper case) words?"""
        token = self.peek()
        return token.kind in ("op", "name") and (token.text in texts or (token.text.isupper() and token.text.lower() in texts))

    def take(self, *texts: str) -> Token | None:
        return self.next() if self.at(*texts) else None

    def span(self, token: Token) -> Span:
        return self.source.span(token.start, token.end)

    def fail(self, token: Token, message: str, hint: str | None = None) -> RuleError:
        return RuleError(Diagnostic(message, self.span(token), hint=hint))

    def number(self) -> float:
        """The next token, which is a number, as one."""
        token = self.next()
        with self.checked(token):
            return number_of(token.text)

    @contextmanager
    def checked(self, token: Token, hint: str | None = None) -> Iterator[None]:
        """What is wrong with a quantity inside is said at the token."""
        try:
            yield
        except QuantityError as error:
            raise self.fail(token, str(error), hint) from None

    def shown(self, token: Token) -> str:
        return self.wording.end if token.kind == "end" else token.shown

    def _scan(self) -> Token:
        text = self.source.text
        match = self._scanner.match(text, self._offset)
        assert match is not None  # the pattern accepts the empty text
        kind, self._offset = match.lastgroup, match.end()
        if kind is not None:
            return Token(kind, match[kind], match.start(kind), self._offset)
        start = self._offset
        if start == len(text):
            return Token("end", "", start, start)
        raise self.fail(Token("op", text[start], start, start + 1), self._wrong(text, start))

    def _scanned(self) -> Iterator[Token]:
        """All that are left."""
        while (token := self._scan()).kind != "end":
            yield token
        yield token

    def _wrong(self, text: str, start: int) -> str:
        """What is said of a place where no token begins."""
        if text[start] in "'\"":
            return self.wording.unclosed
        return self.wording.unclosed_name if text[start] == "`" else self.wording.bad_character.format(visible(text[start]))


class AllTokens(Tokens):
    """Those of a text that was read as a whole; the last is its end."""

    def __init__(self, source: SourceText, every: Sequence[Token] | None = None) -> None:
        super().__init__(source)
        self.every = list(self._scanned()) if every is None else every
        self.position = 0

    def peek(self, distance: int = 0) -> Token:
        return self.every[min(self.position + distance, len(self.every) - 1)]

    def next(self) -> Token:
        self.last = self.peek()
        self.position = min(self.position + 1, len(self.every) - 1)
        return self.last


class Parser:
    """What parsers that are written by hand have in common: taking tokens, saying what was expected instead, and how deep a text
    may be nested. Classes below it have one method a rule of the grammar."""

    tokens: Tokens
    depth = 0
    nested = "expression"
    quotes_types = True  # may a number be a type of events, in back quotes?

    def spelled(self, token: Token) -> str:
        """As the grammar spells a key word. Most languages know them in lower case only."""
        return token.text

    def at(self, *texts: str, distance: int = 0) -> bool:
        """Does one of these key words or signs stand here?"""
        token = self.tokens.peek(distance)
        return token.kind in ("name", "op") and (token.text in texts or self.spelled(token) in texts)

    def take(self, *texts: str) -> Token | None:
        return self.tokens.next() if self.at(*texts) else None

    def expect(self, *texts: str, after: str = "", hint: str | None = None) -> Token:
        token = self.take(*texts)
        if token is None:
            raise self.unexpected(" or ".join(f"'{text}'" for text in texts), after=after, known=texts, hint=hint)
        return token

    def unexpected(self, wanted: str, *, after: str = "", known: Iterable[str] = (), hint: str | None = None) -> RuleError:
        """What stands here is not what was wanted; it may be one of the words that are `known` here, misspelt."""
        token = self.tokens.peek()
        follows = f" after {after}" if after else ""
        message = f"expected {wanted}{follows}, found {self.tokens.shown(token)}"
        return self.tokens.fail(token, message, hint or nearest(self.spelled(token), known) or self._quoted(token, wanted))

    def listed(self, rule: Callable[[], T], separator: str = ",") -> list[T]:
        found = [rule()]
        while self.take(separator):
            found.append(rule())
        return found

    def since(self, start: Token) -> Span:
        """From a token to the last one that was taken."""
        assert self.tokens.last is not None
        return self.tokens.source.span(start.start, self.tokens.last.end)

    def enter(self, token: Token | None = None, what: str | None = None) -> None:
        """One level deeper; a long row of operators that associate to the left is a deep tree too."""
        self.depth += 1
        if self.depth > MAXIMUM_DEPTH:
            message = f"the {what or self.nested} is nested more than {MAXIMUM_DEPTH} deep"
            raise self.tokens.fail(token or self.tokens.peek(), message)

    @contextmanager
    def deeper(self, token: Token | None = None, what: str | None = None) -> Iterator[None]:
        depth = self.depth
        self.enter(token, what)
        yield
        self.depth = depth

    def _quoted(self, token: Token, wanted: str) -> str | None:
        """Numbers are types of events, too: of those of Windows, for instance."""
        number = self.quotes_types and token.kind == "number" and "event" in wanted
        return f"an event type that is a number stands in back quotes: `{token.text}`" if number else None


def visible(character: str) -> str:
    """Control characters and lone surrogates would spoil, or break, the message that shows them."""
    return character if character.isprintable() else ascii(character)[1:-1]


_scanners: dict[tuple[str, ...], re.Pattern[str]] = {}


def _scanner(operators: tuple[str, ...]) -> re.Pattern[str]:
    if operators not in _scanners:
        longest_first = sorted(operators, key=len, reverse=True)
        _scanners[operators] = re.compile(
            r"(?:\s+|\#[^\n]*)*+(?:"
            # Possessive, so that a long plain name is not tried again at every shorter length.
            rf"(?P<quoted>(?:[^\W\d]\w*+(?:[.-]\w++)*+\.)?{_BACK_QUOTED}(?:\.(?:{_BACK_QUOTED}|\w+(?:-\w+)*))*)"
            rf"|(?P<name>{PLAIN})"
            r"|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
            # Possessive: in 'it''s the doubled quote is no end of the text, also where no other one follows.
            r"|(?P<text>'(?:[^'\n]|'')*+'|\"(?:[^\"\n]|\"\")*+\")"
            rf"|(?P<op>{'|'.join(map(re.escape, longest_first))})"
            r")?"
        )
    return _scanners[operators]
