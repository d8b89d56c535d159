"""What both halves of the ECCO parser share: names, numbers, durations, lists and the errors about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from coincide.expr.parse import ExpressionParser
from coincide.expr.quantities import count_of
from coincide.expr.tokens import Parser, Token, Tokens
from coincide.expr.tree import Expr
from coincide.lang.ecco.consumption import CONSUMPTIONS
from coincide.lang.ecco.definition import Place, Policy
from coincide.lang.ecco.words import EXPRESSION_RESERVED, KEYWORDS, OPERATORS, is_reserved
from coincide.model.area import Area
from coincide.model.numbers import number_of_text
from coincide.source import SourceText, Span

ASPECTS = ("nodes", "data", "interval", "report")
LEVELS = ("high", "default", "low")
NUMBERS = {"box": (4, 6), "circle": (3,), "sphere": (4,)}

T = TypeVar("T")


class Reader(Parser):
    """Takes the small things from the tokens."""

    def __init__(self, source: SourceText) -> None:
        self.tokens = Tokens(source, OPERATORS)
        self.expressions = ExpressionParser(self.tokens, EXPRESSION_RESERVED)
        self.zones: dict[str, Area] = {}  # complete when the whole file has been read

    def spelled(self, token: Token) -> str:
        """Key words may be in upper case, too."""
        return token.text.lower() if token.text.isupper() else token.text

    def span(self, token: Token) -> Span:
        return self.tokens.span(token)

    # Names.

    def at_name(self) -> bool:
        token = self.tokens.peek()
        return token.kind == "quoted" or (token.kind == "name" and not is_reserved(token.text))

    def name(self, wanted: str = "a name") -> Token:
        """The token of a name; its text is without back quotes."""
        if not self.at_name():
            found = self.tokens.peek()
            hint = f"'{found.text}' is a key word: write `{found.text}`" if found.text.lower() in KEYWORDS else None
            raise self.unexpected(wanted, hint=hint)
        return self.tokens.next().named

    def names(self) -> tuple[str, ...]:
        return tuple(token.text for token in self.listed(self.name))

    # Conditions and values.

    def expression(self) -> Expr:
        return self.expressions.expression()

    def condition(self) -> Expr:
        """`{ EXPRESSION }`."""
        self.expect("{")
        tree = self.expression()
        self.expect("}")
        return tree

    # Numbers and durations.

    def number(self) -> float:
        minus = self.tokens.take("-") is not None
        token = self.tokens.peek()
        if token.kind != "number":
            raise self.unexpected("a number")
        self.tokens.number()  # says what is wrong with it
        number = number_of_text(token.text)
        return -number if minus else number

    def whole(self, wanted: str = "a whole number") -> int:
        token = self.tokens.peek()
        if token.kind != "number" or not token.text.isdecimal():
            raise self.unexpected(wanted)
        with self.tokens.checked(token):
            return count_of(self.tokens.next().text)

    def duration(self, least: str | None = "positive", then: Sequence[str] = ()) -> float:
        """Milliseconds. `least`: 'positive', 'zero' (or more), or None (any). `then`: words that may follow it."""
        start = self.tokens.peek()
        sign = -1.0 if self.tokens.take("-") else 1.0
        value = self.expressions.duration(then=then)
        if value is None:
            raise self.unexpected("a duration")
        value *= sign
        if value < 0 < len(least or "") or (least == "positive" and value == 0):
            raise self.tokens.fail(start, "must be positive")
        return value

    # Policies and places.

    def policies(self) -> tuple[Policy, ...]:
        first: Token | None = None
        found: list[Policy] = []
        for token, policy in self.listed(self._policy):
            if policy.name in CONSUMPTIONS:
                if first is not None and first.text != token.text:
                    message = f"'{first.text.lower()}' and '{policy.name}' exclude each other"
                    raise self.tokens.fail(token, message)
                first = token
            found.append(policy)
        return tuple(found)

    def _policy(self) -> tuple[Token, Policy]:
        token = self.tokens.peek()
        if self.tokens.take(*CONSUMPTIONS, "subset"):
            return token, Policy(token.text.lower())
        if not self.tokens.take("precision"):
            known = (*CONSUMPTIONS, "subset", "precision")
            raise self.unexpected("a policy", known=known)
        self.expect("(")
        aspect = self.expect(*ASPECTS).text.lower()
        self.expect(",")
        policy = self._level(Policy("precision", aspect))
        self.expect(")")
        return token, policy

    def _level(self, policy: Policy) -> Policy:
        word = self.tokens.take(*LEVELS)
        if word is not None:
            return replace(policy, level=word.text.lower())
        if self.tokens.peek().kind != "number":
            raise self.unexpected("high, default, low, a percentage or a duration")
        if self.tokens.peek(1).text == "%":
            percent = self.tokens.number()
            self.tokens.next()
            return replace(policy, percent=percent)
        return replace(policy, interval=self.duration())

    def place(self) -> Place:
        token = self.tokens.peek()
        if token.kind == "text":
            self.tokens.next()
            return Place("zone", (token.value,), zones=self.zones, span=self.span(token))
        if token.text in ("zone", "group", *NUMBERS) and self.tokens.peek(1).text == "(":
            return self._written_place(token)
        return Place("space", (self.name("a place").text,), span=self.span(token))

    def _written_place(self, token: Token) -> Place:
        self.tokens.next()
        self.expect("(")
        if token.text in NUMBERS:
            place = Place(token.text, (), tuple(self.listed(self.number)), span=self.span(token))
            if len(place.numbers) not in NUMBERS[token.text]:
                counts = " or ".join(map(str, NUMBERS[token.text]))
                raise self.tokens.fail(token, f"expected {counts} numbers, found '{len(place.numbers)}'")
        else:
            place = Place(token.text, tuple(self.listed(self.text)), zones=self.zones, span=self.span(token))
        self.expect(")")
        return place

    def text(self) -> str:
        if self.tokens.peek().kind != "text":
            raise self.unexpected("a text")
        return self.tokens.next().value
