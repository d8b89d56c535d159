"""Opera's core language from text: recursive descent over the grammar of the specification's section 2.2."""

from __future__ import annotations

from collections.abc import Callable

from coincide.expr.tokens import Token, Tokens
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Attribute,
    Concatenation,
    Detect,
    Empty,
    EventDeclaration,
    Expression,
    ExpressionDefinition,
    File,
    Group,
    Inlined,
    Item,
    Iteration,
    Limit,
    Parallel,
    Policy,
    Sequence,
    SetDefinition,
    Sources,
    Statement,
    Timing,
    chained,
)
from coincide.lang.opera.resolve import resolve
from coincide.lang.opera.sets import OPERATORS, RESERVED, SetParser
from coincide.ordering import POLICIES, written_policies
from coincide.source import SourceText, room_for_recursion

TYPES = ("number", "string", "boolean", "timestamp")


def parse(source: SourceText) -> File:
    """The definitions of one file; RuleError at the first error."""
    with room_for_recursion():
        return resolve(Parser(Tokens(source, OPERATORS)).file())


class Parser(SetParser):
    """One method a rule of the grammar."""

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
                raise self.unexpected("a definition", known=rules)
            self.tokens.next()
            statements.append(rules[token.text]())
        return tuple(statements)

    def _sources(self) -> Sources:
        return Sources(tuple(t.text for t in self.listed(self._name)))

    def _event(self) -> EventDeclaration:
        name = self._name()
        self.expect("(")
        attributes = () if self.tokens.at(")") else tuple(self.listed(self._declared))
        self.expect(")")
        return EventDeclaration(name.text, attributes, span=self.tokens.span(name))

    def _declared(self) -> tuple[str, str]:
        name, kind = self._name("an attribute"), self.tokens.peek()
        if kind.text not in TYPES:
            raise self.unexpected("number, string, boolean or timestamp", known=TYPES)
        self.tokens.next()
        return name.text, kind.text

    def _limit(self) -> Limit:
        name = self._name()
        keys = self.listed(lambda: self._name("an attribute").text) if self.tokens.take("per") else []
        if not self.at("every", "until"):
            raise self.unexpected("'every' or 'until'")
        every = self._duration("a duration") if self.take("every") else None
        until = self._event_set() if self.take("until") else None
        return Limit(name.text, tuple(keys), every, until, span=self.tokens.span(name))

    def _set(self) -> SetDefinition:
        name = self._name()
        self.expect("=")
        return SetDefinition(name.text, self._event_set(), span=self.tokens.span(name))

    def _expr(self) -> ExpressionDefinition:
        name = self._name()
        self.expect("=")
        return ExpressionDefinition(name.text, self.expression(), span=self.tokens.span(name))

    def _detect(self) -> Detect:
        name = self._name()
        restart, policy = False, None
        while self.at("restart", "policy"):
            if self.tokens.next().text == "restart":
                restart = True
            else:
                policy = self._policy()
        self.expect("=")
        body = self.expression()
        condition = self._condition()
        attributes = tuple(self.listed(self._attribute)) if self.take("with") else ()
        return Detect(name.text, body, restart, policy, attributes, condition, span=self.tokens.span(name))

    def _condition(self) -> Attribute | None:
        word = self.take("where")
        return None if word is None else Attribute("where", self._free_of_parameters(self.withs), span=self.tokens.span(word))

    def _policy(self) -> Policy:
        token = self.tokens.peek()
        if token.text not in written_policies():
            raise self.unexpected("best-effort, guaranteed or probabilistic", known=written_policies())
        self.tokens.next()
        if not POLICIES[token.text].has_threshold:
            return Policy(token.text, span=self.tokens.span(token))
        number = self.tokens.peek()
        if number.kind != "number" or not 0 < float(number.text) <= 1:
            raise self.unexpected("a probability above 0 and not above 1")
        return Policy(token.text, self.tokens.number(), span=self.tokens.span(token))

    def _attribute(self) -> Attribute:
        name = self._name("an attribute")
        self.expect("=")
        return Attribute(name.text, self._free_of_parameters(self.withs), span=self.tokens.span(name))

    # Expressions, loosest operator first.

    def expression(self) -> Expression:
        with self.deeper():
            tree = self._alternation()
            while operator := self.tokens.take("||", "‖"):
                tree = Parallel(tree, self._alternation(), span=self.tokens.span(operator))
        return tree

    def _alternation(self) -> Expression:
        start = self.tokens.peek()
        tree = self._sequence()
        while self.tokens.take("|"):
            tree = chained(Alternation, tree, self._sequence(), self.since(start))
        return tree

    def _sequence(self) -> Expression:
        start = self.tokens.peek()
        tree = self._concatenation()
        while self.tokens.take(";"):
            tree = chained(Sequence, tree, self._concatenation(), self.since(start))
        return tree

    def _concatenation(self) -> Expression:
        start = self.tokens.peek()
        tree = self._iteration()
        while self._at_primary():
            tree = chained(Concatenation, tree, self._iteration(), self.since(start))
        return tree

    def _iteration(self) -> Expression:
        tree = self._primary()
        while star := self.tokens.take("*"):
            tree = Iteration(tree, span=self.tokens.span(star))
        return tree

    def _at_primary(self) -> bool:
        token = self.tokens.peek()
        if token.is_name:
            return token.text == "eps" or token.text not in RESERVED
        return self.tokens.at("(", "[")

    def _primary(self) -> Expression:
        token = self.tokens.peek()
        if not self._at_primary():
            raise self.unexpected("an expression")
        self.tokens.next()
        if token.text == "[":
            return self._bracketed(token)
        if token.text == "(":
            return self._parenthesised(token)
        if token.text in ("eps", "ε"):
            return Empty(span=self.tokens.span(token))
        return Inlined(token.named.text, span=self.tokens.span(token))

    def _parenthesised(self, start: Token) -> Expression:
        first = self.expression()
        if not self.tokens.take(","):
            self.expect(")")
            return first
        second = self.expression()
        self.expect(")")
        timer = self._name("the name of a timer")
        self.expect("=")
        time = self._time()
        return Timing(first, second, timer.text, time, span=self.since(start), timer_span=self.tokens.span(timer))

    def _bracketed(self, start: Token) -> Expression:
        if self.tokens.at("[", "("):
            body = self.expression()
            self.expect("in", "⊆")
            domain = self._event_set()
            self.expect("]")
            return Group(body, domain, span=self.since(start))
        if self.tokens.take("!", "¬"):
            return self._negation(start)
        items = tuple(self.listed(self._item))
        within = self._event_set() if self.take("in", "⊆") else None
        self.expect("]")
        return Atom(items, within, span=self.since(start))

    def _negation(self, start: Token) -> Expression:
        item = self._item()
        if self.tokens.at("]"):
            raise self.tokens.fail(self.tokens.peek(), "a negation needs an input domain: [!E in S]")
        self.expect("in", "⊆")
        domain = self._event_set()
        self.expect("]")
        return Atom((item,), domain, True, span=self.since(start))

    def _item(self) -> Item:
        start = self.tokens.peek()
        events = self._event_set()
        alias = self._name("an alias").text if self.take("as") else None
        return Item(events, alias, span=self.since(start))
