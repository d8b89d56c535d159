"""Opera's core language from text: recursive descent over the grammar of the specification's section 2.2."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from coincide.errors import RuleError
from coincide.expr.parse import MAXIMUM_DEPTH, ExpressionParser
from coincide.expr.tokens import EXPRESSION_KEYWORDS, EXPRESSION_OPERATORS, Token, Tokens
from coincide.expr.tree import Expr
from coincide.lang.opera.definition import (
    All,
    Alternation,
    Atom,
    Attribute,
    Bind,
    Concatenation,
    Detect,
    Difference,
    Empty,
    EventDeclaration,
    EventSet,
    Expression,
    ExpressionDefinition,
    File,
    Group,
    Inlined,
    Intersection,
    Item,
    Iteration,
    Limit,
    Named,
    Parallel,
    Policy,
    Sequence,
    SetDefinition,
    Sources,
    Statement,
    Terms,
    Test,
    Timing,
    Union,
    chained,
)
from coincide.lang.opera.functions import FILTER_FUNCTIONS, WITH_FUNCTIONS
from coincide.lang.opera.resolve import resolve
from coincide.lang.opera.times import At, Duration, TimeSpec
from coincide.model.event import ENVELOPE
from coincide.source import SourceText, Span, room_for_recursion

RESERVED = frozenset(
    {"event", "set", "expr", "detect", "sources", "limit", "with", "as", "in", "all", "eps", "at", "restart", "policy"}
)
OPERATORS = (*EXPRESSION_OPERATORS, "[", "]", "{", "}", ";", "|", "||", "&", "\\", "!", "?", "⊆", "¬", "‖")
TYPES = ("number", "string", "boolean", "timestamp")
POLICIES = ("best-effort", "guaranteed", "probabilistic")

T = TypeVar("T")


def parse(source: SourceText) -> File:
    """The definitions of one file; RuleError at the first error."""
    with room_for_recursion():
        return resolve(Parser(Tokens(source, OPERATORS)).file())


class Parser:
    """One method a rule of the grammar."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.filters = ExpressionParser(tokens, EXPRESSION_KEYWORDS, FILTER_FUNCTIONS)
        self.withs = ExpressionParser(tokens, EXPRESSION_KEYWORDS, WITH_FUNCTIONS)
        self.depth = 0

    # Statements.

    def file(self) -> tuple[Statement, ...]:
        rules: dict[str, Callable[[], Statement]] = {
            "sources": self._sources,
            "event": self._event,
            "limit": self._limit,
            "set": self._set,
            "expr": self._expr,
            "detect": self._detect,
        }
        statements: list[Statement] = []
        while (token := self.tokens.peek()).kind != "end":
            if token.kind != "name" or token.text not in rules:
                raise self._unexpected("a definition")
            self.tokens.next()
            statements.append(rules[token.text]())
        return tuple(statements)

    def _sources(self) -> Sources:
        return Sources(tuple(t.text for t in self._list(self._name)))

    def _event(self) -> EventDeclaration:
        name = self._name()
        self._expect("(")
        attributes = () if self.tokens.at(")") else tuple(self._list(self._declared))
        self._expect(")")
        return EventDeclaration(name.text, attributes, span=self.tokens.span(name))

    def _declared(self) -> tuple[str, str]:
        name, kind = self._name("an attribute"), self.tokens.peek()
        if kind.text not in TYPES:
            raise self._unexpected("number, string, boolean or timestamp")
        self.tokens.next()
        return name.text, kind.text

    def _limit(self) -> Limit:
        name = self._name()
        keys = self._list(lambda: self._name("an attribute").text) if self.tokens.take("per") else []
        self._expect("every")
        every = self._duration("a duration")
        return Limit(name.text, tuple(keys), every, span=self.tokens.span(name))

    def _set(self) -> SetDefinition:
        name = self._name()
        self._expect("=")
        return SetDefinition(name.text, self.event_set(), span=self.tokens.span(name))

    def _expr(self) -> ExpressionDefinition:
        name = self._name()
        self._expect("=")
        return ExpressionDefinition(name.text, self.expression(), span=self.tokens.span(name))

    def _detect(self) -> Detect:
        name = self._name()
        restart, policy = False, None
        while self._at("restart", "policy"):
            if self.tokens.next().text == "restart":
                restart = True
            else:
                policy = self.policy()
        self._expect("=")
        body = self.expression()
        attributes = tuple(self._list(self._attribute)) if self._take("with") else ()
        return Detect(name.text, body, restart, policy, attributes, span=self.tokens.span(name))

    def policy(self) -> Policy:
        token = self.tokens.peek()
        if token.text not in POLICIES:
            raise self._unexpected("best-effort, guaranteed or probabilistic")
        self.tokens.next()
        if token.text != "probabilistic":
            return Policy(token.text, span=self.tokens.span(token))
        number = self.tokens.peek()
        if number.kind != "number" or not 0 < float(number.text) <= 1:
            raise self._unexpected("a probability above 0 and not above 1")
        self.tokens.next()
        return Policy(token.text, float(number.text), span=self.tokens.span(token))

    def _attribute(self) -> Attribute:
        name = self._name("an attribute")
        self._expect("=")
        return Attribute(name.text, self._free_of_parameters(self.withs), span=self.tokens.span(name))

    # Expressions, loosest operator first.

    def expression(self) -> Expression:
        self.depth += 1
        if self.depth > MAXIMUM_DEPTH:
            raise self.tokens.fail(self.tokens.peek(), f"the expression is nested more than {MAXIMUM_DEPTH} deep")
        tree = self._alternation()
        while operator := self.tokens.take("||", "‖"):
            tree = Parallel(tree, self._alternation(), span=self.tokens.span(operator))
        self.depth -= 1
        return tree

    def _alternation(self) -> Expression:
        start = self.tokens.peek()
        tree = self._sequence()
        while self.tokens.take("|"):
            tree = chained(Alternation, tree, self._sequence(), self._since(start))
        return tree

    def _sequence(self) -> Expression:
        start = self.tokens.peek()
        tree = self._concatenation()
        while self.tokens.take(";"):
            tree = chained(Sequence, tree, self._concatenation(), self._since(start))
        return tree

    def _concatenation(self) -> Expression:
        start = self.tokens.peek()
        tree = self._iteration()
        while self._at_primary():
            tree = chained(Concatenation, tree, self._iteration(), self._since(start))
        return tree

    def _iteration(self) -> Expression:
        tree = self._primary()
        while star := self.tokens.take("*"):
            tree = Iteration(tree, span=self.tokens.span(star))
        return tree

    def _at_primary(self) -> bool:
        token = self.tokens.peek()
        if token.kind == "name":
            return token.text == "eps" or token.text not in RESERVED
        return self.tokens.at("(", "[")

    def _primary(self) -> Expression:
        token = self.tokens.peek()
        if not self._at_primary():
            raise self._unexpected("an expression")
        self.tokens.next()
        if token.text == "[":
            return self._bracketed(token)
        if token.text == "(":
            return self._parenthesised(token)
        if token.text in ("eps", "ε"):
            return Empty(span=self.tokens.span(token))
        return Inlined(token.text, span=self.tokens.span(token))

    def _parenthesised(self, start: Token) -> Expression:
        first = self.expression()
        if not self.tokens.take(","):
            self._expect(")")
            return first
        second = self.expression()
        self._expect(")")
        timer = self._name("the name of a timer")
        self._expect("=")
        time = self._time()
        return Timing(first, second, timer.text, time, span=self._since(start), timer_span=self.tokens.span(timer))

    def _bracketed(self, start: Token) -> Expression:
        if self.tokens.at("[", "("):
            body = self.expression()
            self._expect("in", "⊆")
            domain = self.event_set()
            self._expect("]")
            return Group(body, domain, span=self._since(start))
        if self.tokens.take("!", "¬"):
            return self._negation(start)
        items = tuple(self._list(self._item))
        within = self.event_set() if self._take("in", "⊆") else None
        self._expect("]")
        return Atom(items, within, span=self._since(start))

    def _negation(self, start: Token) -> Expression:
        item = self._item()
        if self.tokens.at("]"):
            raise self.tokens.fail(self.tokens.peek(), "a negation needs an input domain: [!E in S]")
        self._expect("in", "⊆")
        domain = self.event_set()
        self._expect("]")
        return Atom((item,), domain, True, span=self._since(start))

    def _item(self) -> Item:
        start = self.tokens.peek()
        events = self.event_set()
        alias = self._name("an alias").text if self._take("as") else None
        return Item(events, alias, span=self._since(start))

    # Event sets.

    def event_set(self) -> EventSet:
        start = self.tokens.peek()
        tree = self._set_term()
        while operator := self.tokens.take("\\", "&"):
            kind = Difference if operator.text == "\\" else Intersection
            tree = kind(tree, self._set_term(), span=self._since(start))
        return tree

    def _set_term(self) -> EventSet:
        start = self.tokens.peek()
        if self.tokens.take("{"):
            members = () if self.tokens.at("}") else tuple(self._list(self.event_set))
            self._expect("}")
            return Union(members, span=self._since(start))
        name = self.tokens.next() if self._at("all") else self._name("an event type")
        terms = self._terms() if self.tokens.at("(") else ()
        span = self._since(start)
        return All(terms, span=span) if name.text == "all" else Named(name.text, terms, span=span)

    def _terms(self) -> Terms:
        self._expect("(")
        terms = tuple(self._list(self._term))
        self._expect(")")
        return terms

    def _term(self) -> Bind | Test:
        ahead = [self.tokens.peek(n) for n in range(2)]
        if ahead[0].kind == "name" and ahead[1].text in ("=", "==") and self.tokens.peek(2).text == "?":
            return self._binding()
        start = self.tokens.peek()
        return Test(self._free_of_parameters(self.filters), span=self.tokens.span(start))

    def _binding(self) -> Bind:
        attribute, _, mark = (self.tokens.next() for _ in range(3))
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
        if not self._take("at"):
            return self._duration("a duration or 'at' and a time")
        token = self.tokens.peek()
        if token.kind != "text":
            raise self._unexpected("a time in quotes")
        self.tokens.next()
        return self.absolute(token.value, token)

    def absolute(self, text: str, token: Token) -> At:
        time = At(text)
        try:
            time.check()
        except KeyError as unknown:
            raise self.tokens.fail(token, f"unknown time zone '{unknown.args[0]}'") from None
        except (ValueError, OverflowError):
            raise self.tokens.fail(token, "expected an ISO-8601 instant or 'HH:MM[:SS] [ZONE]'") from None
        return time

    def _duration(self, wanted: str) -> Duration:
        start = self.tokens.peek()
        milliseconds = self.filters.duration()
        if milliseconds is None:
            raise self._unexpected(wanted)
        text = re.sub(r"(\d) (?=[a-z])", r"\1", " ".join(self._since(start).text.split()))
        return Duration(round(milliseconds * 1000), text)

    # Tokens.

    def _at(self, *texts: str) -> bool:
        """Key words of Opera are lower case; only those of expressions may be upper case."""
        return self.tokens.peek().text in texts and self.tokens.peek().kind in ("name", "op")

    def _take(self, *texts: str) -> Token | None:
        return self.tokens.next() if self._at(*texts) else None

    def _list(self, rule: Callable[[], T]) -> list[T]:
        found = [rule()]
        while self.tokens.take(","):
            found.append(rule())
        return found

    def _name(self, wanted: str = "a name") -> Token:
        token = self.tokens.peek()
        if token.kind != "name" or token.text in RESERVED:
            raise self._unexpected(wanted)
        return self.tokens.next()

    def _expect(self, *texts: str) -> Token:
        token = self._take(*texts)
        if token is None:
            raise self._unexpected(f"'{texts[0]}'")
        return token

    def _unexpected(self, wanted: str) -> RuleError:
        token = self.tokens.peek()
        return self.tokens.fail(token, f"expected {wanted}, found {self.tokens.shown(token)}")

    def _since(self, start: Token) -> Span:
        assert self.tokens.last is not None
        return self.tokens.source.span(start.start, self.tokens.last.end)


def parse_set(text: str) -> EventSet:
    """One event set, as the fluent binding writes them."""
    with room_for_recursion():
        return Parser(Tokens(SourceText("set", text), OPERATORS)).event_set()


