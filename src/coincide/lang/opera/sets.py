"""Event sets, times and tokens: what expressions and statements of Opera are made of."""

from __future__ import annotations

from typing import TypeVar

from coincide.errors import RuleError
from coincide.expr.parse import ExpressionParser
from coincide.expr.quantities import microseconds_of
from coincide.expr.tokens import EXPRESSION_KEYWORDS, EXPRESSION_OPERATORS, Parser, Token, Tokens
from coincide.expr.tree import Expr
from coincide.lang.opera.definition import All, Bind, Condition, Difference, EventSet, Intersection, Named, Terms, Union
from coincide.lang.opera.functions import WITH_FUNCTIONS
from coincide.lang.shared.eventsets import FILTER_FUNCTIONS
from coincide.lang.shared.times import At, Duration, TimeSpec, written
from coincide.model.event import ENVELOPE

RESERVED = frozenset(
    {"event", "set", "expr", "detect", "sources", "limit", "with", "as", "in", "all", "eps", "at", "restart", "policy", "where"}
)
OPERATORS = (*EXPRESSION_OPERATORS, "[", "]", "{", "}", ";", "|", "||", "&", "\\", "!", "?", "⊆", "¬", "‖")

T = TypeVar("T")


class SetParser(Parser):
    """One method a rule of the grammar."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.filters = ExpressionParser(tokens, EXPRESSION_KEYWORDS, FILTER_FUNCTIONS)
        self.withs = ExpressionParser(tokens, EXPRESSION_KEYWORDS, WITH_FUNCTIONS)

    def _event_set(self) -> EventSet:
        start = self.tokens.peek()
        tree = self._set_term()
        while operator := self.tokens.take("\\", "&"):
            kind = Difference if operator.text == "\\" else Intersection
            tree = kind(tree, self._set_term(), span=self.since(start))
        return tree

    def _set_term(self) -> EventSet:
        start = self.tokens.peek()
        if self.tokens.take("{"):
            members = () if self.tokens.at("}") else tuple(self.listed(self._event_set))
            self.expect("}")
            return Union(members, span=self.since(start))
        name = self.tokens.next() if self.at("all") else self._name("an event type")
        terms = self._terms() if self.tokens.at("(") else ()
        span = self.since(start)
        return All(terms, span=span) if name.text == "all" else Named(name.text, terms, span=span)

    def _terms(self) -> Terms:
        self.expect("(")
        terms = tuple(self.listed(self._term))
        self.expect(")")
        return terms

    def _term(self) -> Bind | Condition:
        ahead = [self.tokens.peek(n) for n in range(2)]
        if ahead[0].is_name and ahead[1].text in ("=", "==") and self.tokens.peek(2).text == "?":
            return self._binding()
        start = self.tokens.peek()
        return Condition(self._free_of_parameters(self.filters), span=self.tokens.span(start))

    def _binding(self) -> Bind:
        attribute, _, mark = (self.tokens.next().named for _ in range(3))
        parameter = self._name("a parameter")
        if not self.tokens.at(",", ")"):
            raise self._misplaced(mark)
        if parameter.text in ENVELOPE:
            raise self.tokens.fail(mark, f"'{parameter.text}' cannot be a parameter name")
        return Bind(attribute.text, parameter.text, span=self.tokens.span(mark))

    def _free_of_parameters(self, parser: ExpressionParser) -> Expr:
        try:
            return parser.expression()
        except RuleError:
            if (token := self.tokens.peek()).text == "?":
                raise self._misplaced(token) from None
            raise

    def _misplaced(self, mark: Token) -> RuleError:
        return self.tokens.fail(mark, "a free parameter stands only as 'attribute = ?name', set off by commas")

    # Times.

    def _time(self) -> TimeSpec:
        if not self.take("at"):
            return self._duration("a duration or 'at' and a time")
        token = self.tokens.peek()
        if token.kind != "text":
            raise self.unexpected("a time in quotes")
        self.tokens.next()
        return self._absolute(token)

    def _absolute(self, token: Token) -> At:
        time = At(token.value)
        try:
            time.check()
        except KeyError as unknown:
            raise self.tokens.fail(token, f"unknown time zone '{unknown.args[0]}'") from None
        except (ValueError, OverflowError):
            raise self.tokens.fail(token, "expected an ISO-8601 instant or 'HH:MM[:SS] [ZONE]'") from None
        return time

    def _duration(self, wanted: str) -> Duration:
        start = self.tokens.peek()
        milliseconds = self.filters.duration(then=RESERVED)
        if milliseconds is None:
            raise self.unexpected(wanted)
        return Duration(microseconds_of(milliseconds), written(self.since(start).text))

    # Tokens.

    def _name(self, wanted: str = "a name") -> Token:
        token = self.tokens.peek()
        if not token.is_name or token.text in RESERVED:
            raise self.unexpected(wanted)
        return self.tokens.next().named
