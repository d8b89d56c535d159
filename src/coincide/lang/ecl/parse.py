"""ECL from text: recursive descent over the grammar of the specification's section 2."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import ClassVar

from coincide.errors import nearest
from coincide.expr.functions import FUNCTIONS
from coincide.expr.parse import ExpressionParser, ExpressionWording
from coincide.expr.quantities import QuantityError, count_of
from coincide.expr.tokens import EXPRESSION_KEYWORDS, EXPRESSION_OPERATORS, Parser, Token, Tokens
from coincide.lang.ecl.definition import File
from coincide.lang.ecl.names import mentions, outputs
from coincide.lang.ecl.resolve import resolve
from coincide.lang.ecl.syntax import (
    FileSyntax,
    MachineSyntax,
    MonitorSyntax,
    Node,
    Phrase,
    PredicateSyntax,
    PushSyntax,
    TransitionSyntax,
)
from coincide.source import SourceText, room_for_recursion

__all__ = ["RESERVED", "is_reserved", "mentions", "outputs", "parse"]

LISTS = ("accumulate", "select", "sequential", "parallel")
REPETITIONS = ("persist", "repeat", "loop")
EXPRESSION_WORDS = (*LISTS, "do", "unless", "fail", "push", *REPETITIONS, "in")
RESERVED = frozenset({*EXPRESSION_WORDS, "monitor", "machine", "by"}) | EXPRESSION_KEYWORDS
OPERATORS = (*EXPRESSION_OPERATORS, "{", "}", ";", ":", "|", "&", "->")
WORDING = ExpressionWording(expected_value="expected a predicate or a value, found {found}", says_after=True)

# A predicate sees one event only: functions of events are written without an alias, and `distance` has no second event.
ECL_FUNCTIONS = {
    name: replace(function, least=function.most - 1, most=function.most - 1)
    if function.aliases and function.most is not None
    else function
    for name, function in FUNCTIONS.items()
    if name != "distance"
}


def parse(source: SourceText, defined: Collection[str] = ()) -> File:
    """The definitions of one file. `defined`: the names of monitors that files loaded before it define."""
    with room_for_recursion():
        return resolve(_Parser(source).file(), defined)


def is_reserved(name: str) -> bool:
    """The words of expressions may be written in upper case; those of ECL may not, so `PUSH` is an event type."""
    return name in RESERVED or (name.isupper() and name.lower() in EXPRESSION_KEYWORDS)


class _RecordedTokens(Tokens):
    """Keeps the tokens that were taken: labels and digests are made of them."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source, OPERATORS)
        self.taken: list[Token] = []

    def next(self) -> Token:
        token = super().next()
        self.taken.append(token)
        return token

    def since(self, mark: int) -> tuple[Token, ...]:
        return tuple(self.taken[mark:])


class _Parser(Parser):
    tokens: _RecordedTokens

    def __init__(self, source: SourceText) -> None:
        self.tokens = _RecordedTokens(source)
        self.expressions = ExpressionParser(self.tokens, RESERVED, ECL_FUNCTIONS, WORDING, spaced_calls=True)

    # Definitions.

    def file(self) -> FileSyntax:
        predicates: list[PredicateSyntax] = []
        detectors: list[MonitorSyntax | MachineSyntax] = []
        while self.tokens.peek().kind != "end":
            if self.at("monitor"):
                detectors.append(self._monitor())
            elif self.at("machine"):
                detectors.append(self._machine())
            else:
                predicates.append(self._predicate_definition())
            self.tokens.take(";")
        return FileSyntax(self.tokens.source, tuple(predicates), tuple(detectors))

    def _predicate_definition(self) -> PredicateSyntax:
        if not self._at_name():
            last = self.tokens.last
            hint = nearest(last.text, EXPRESSION_WORDS) if last and self.tokens.at("{", "(") else None
            raise self.unexpected("a definition", after=f"'{last.text}'" if last else "", hint=hint)
        name = self.tokens.next().named
        self.expect("=", after=f"'{name.text}'", hint=nearest(name.text, ("monitor", "machine", *EXPRESSION_KEYWORDS)))
        return PredicateSyntax(name, self._phrase())

    def _monitor(self) -> MonitorSyntax:
        mark = len(self.tokens.taken)
        name, keys = self._head()
        self.expect("=", after="the keys" if keys else f"'{name.text}'")
        body = self._expression()
        return MonitorSyntax(name, keys, body, self.tokens.since(mark))

    def _head(self) -> tuple[Token, tuple[Token, ...]]:
        """`monitor NAME [ keys ]`, `machine NAME [ keys ]`."""
        name = self._name(f"'{self.tokens.next().text}'")
        return name, self._names("'by'") if self.take("by") else ()

    # Expressions.

    def _expression(self) -> Node:
        token = self.tokens.peek()
        with self.deeper():
            node = self._rules.get(token.text, _Parser._leaf)(self)
        assert self.tokens.last is not None
        return replace(node, span=self.tokens.source.span(token.start, self.tokens.last.end))

    def _node(self, operator: str, *parts: Node) -> Node:
        """`_expression` gives it its whole span, once its last token is known."""
        return Node(operator, self.tokens.source.span(0, 0), parts)

    def _leaf(self) -> Node:
        return replace(self._node("predicate"), leaf=self._phrase())

    def _list(self) -> Node:
        operator = self.tokens.next().text
        if operator == "select" and self.tokens.take("*"):
            operator = "select*"
        self.expect("{", after=f"'{operator}'")
        parts = [self._expression()]
        while self.tokens.take(","):
            parts.append(self._expression())
        self._close()
        return self._node(operator, *parts)

    def _do(self) -> Node:
        self.tokens.next()
        body = self._block("do")
        self.expect("unless", after="the block of 'do'")
        return self._node("do", body, self._block("unless"))

    def _fail(self) -> Node:
        self.tokens.next()
        return self._node("fail", self._block("fail"))

    def _pushing(self) -> Node:
        push = self._push()
        return replace(self._node("push", self._block("push(…)")), push=push)

    def _repetition(self) -> Node:
        word = self.tokens.next().text
        maximum = self._maximum(word) if self.tokens.take("(") else None
        body = self._block(word, f"'{word}'" if maximum is None else f"'{word}(…)'")
        return replace(self._node(word, body), maximum=maximum)

    def _maximum(self, word: str) -> int:
        token = self.tokens.peek()
        try:
            maximum = count_of(token.text, 1)
        except QuantityError:
            message = f"the maximum of '{word}' must be a whole number from 1, found {self.tokens.shown(token)}"
            raise self.tokens.fail(token, message, f"without a maximum, write '{word} {{'") from None
        self.tokens.next()
        self.expect(")", after=f"the maximum of '{word}'")
        return maximum

    def _modes(self) -> Node:
        parts: list[Node] = []
        while self.take("in"):
            self.expect("(", after="'in'")
            start = self.tokens.peek()
            guard = self._leaf()
            parts.append(replace(guard, span=self.since(start)))
            self.expect(")", after="the guard")
            self.expect("do", after="the guard")
            parts.append(self._block("do"))
        return self._node("in", *parts)

    def _block(self, owner: str, after: str | None = None) -> Node:
        """`{ expr }`, one expression only."""
        self.expect("{", after=after or f"'{owner}'")
        node = self._expression()
        if self.tokens.at(","):
            hint = f"'{owner} {{ sequential {{ …, … }} }}' takes them one after the other, 'accumulate' in any order"
            raise self.tokens.fail(self.tokens.peek(), f"'{owner}' takes one expression", hint)
        self._close()
        return node

    def _close(self) -> None:
        hint = nearest(self.tokens.last.text, EXPRESSION_WORDS) if self.tokens.last and self.tokens.at("{", "(") else None
        self.expect("}", after="the expression", hint=hint)

    def _push(self) -> PushSyntax:
        start = self.tokens.next()
        self.expect("(", after="'push'")
        token = self._name("'push('").text
        attributes: list[tuple[Token, Phrase]] = []
        while self.tokens.take(","):
            name = self._name("','")
            self.expect(":", after=f"'{name.text}'")
            attributes.append((name, self._phrase()))
        self.expect(")", after="the value" if attributes else f"'{token}'")
        return PushSyntax(token, tuple(attributes), self.since(start))

    def _phrase(self) -> Phrase:
        mark = len(self.tokens.taken)
        tree = self.expressions.expression()
        return Phrase(tree, self.tokens.since(mark))

    # Machines.

    def _machine(self) -> MachineSyntax:
        mark = len(self.tokens.taken)
        name, keys = self._head()
        self.expect("{", after="the keys" if keys else f"'{name.text}'")
        initial: list[Token] = []
        transitions: list[TransitionSyntax] = []
        order: list[tuple[Token, ...]] = []
        while not self.tokens.take("}"):
            if self._at_item("initial"):
                initial += self._names(f"'{self.tokens.next().text}'")
            elif self._at_item("order"):
                order.append(self._chain())
            else:
                transitions.append(self._transition())
            self.expect(";", after="the item")
        states = tuple(dict.fromkeys(token.text for token in initial))
        return MachineSyntax(name, keys, states, tuple(transitions), tuple(order), self.tokens.since(mark))

    def _at_item(self, word: str) -> bool:
        """These words are ordinary names elsewhere: a transition may have such a name."""
        return self.at(word) and self.tokens.peek(1).text != ":"

    def _chain(self) -> tuple[Token, ...]:
        names = [self._name(f"'{self.tokens.next().text}'")]
        self.expect("<", after=f"'{names[0].text}'")
        names.append(self._name("'<'"))
        while self.tokens.take("<"):
            names.append(self._name("'<'"))
        return tuple(names)

    def _transition(self) -> TransitionSyntax:
        last = self.tokens.last
        assert last is not None
        name = self._name(f"'{last.text}'", wanted="'}' or an item")
        self.expect(":", after=f"'{name.text}'", hint=nearest(name.text, ("initial", "order")))
        enabling = [self._clause("':'")]
        while self.tokens.take("&"):
            enabling.append(self._clause("'&'"))
        test = self._phrase() if self.take("on") else None
        clear, clears_all = self._clear() if self.take("clear") else (None, False)
        self.expect("->", after=f"'{self.tokens.taken[-1].text}'")
        target = self._states("'->'") if self._at_name() else ()
        push = self._push() if self.at("push") else None
        span = self.since(name)
        return TransitionSyntax(name, tuple(enabling), test, clear, clears_all, target, push, span)

    def _clause(self, after: str) -> tuple[str, ...]:
        states = [self._name(after).text]
        while self.tokens.take("|"):
            states.append(self._name("'|'").text)
        return tuple(dict.fromkeys(states))

    def _clear(self) -> tuple[tuple[str, ...], bool]:
        if self.tokens.take("*"):
            return (), True
        if self.take("none"):
            return (), False
        return self._states("'clear'"), False

    def _states(self, after: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(token.text for token in self._names(after)))

    # Tokens.

    def _at_name(self) -> bool:
        token = self.tokens.peek()
        return token.kind == "quoted" or (token.kind == "name" and not is_reserved(token.text))

    def _name(self, after: str, wanted: str = "a name") -> Token:
        if self._at_name():
            return self.tokens.next().named
        found = self.tokens.peek()
        hint = f"'{found.text}' is a word of the language and cannot be a name" if found.kind == "name" else None
        raise self.unexpected(wanted, after=after, hint=hint)

    def _names(self, after: str) -> tuple[Token, ...]:
        names = [self._name(after)]
        while self.tokens.take(","):
            names.append(self._name("','"))
        return tuple(names)

    _rules: ClassVar[dict[str, Callable[[_Parser], Node]]] = {
        **dict.fromkeys(LISTS, _list),
        **dict.fromkeys(REPETITIONS, _repetition),
        "do": _do,
        "fail": _fail,
        "push": _pushing,
        "in": _modes,
    }
