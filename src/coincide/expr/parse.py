"""Expressions from tokens: recursive descent, with the place of whatever is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from math import isinf
from typing import NoReturn

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.functions import FUNCTIONS, Function
from coincide.expr.quantities import UNITS, QuantityError, microseconds_of, shortened, unit_hint, unit_of
from coincide.expr.tokens import EXPRESSION_KEYWORDS, Parser, Token, Tokens, name_of
from coincide.expr.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Expr,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Reference,
)
from coincide.model.numbers import is_number, number_of_text
from coincide.source import SourceText, room_for_recursion

COMPARISONS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(frozen=True)
class ExpressionWording:
    """The sentences of a language's specification for errors inside expressions."""

    expected_value: str = "expected a value, found {found}"
    says_after: bool = False  # what something else was expected after
    chained: str = "comparisons do not chain: use 'and'"
    unknown_function: str = "unknown function '{name}'"
    arity: str = "wrong number of arguments of '{name}'"


class ExpressionParser(Parser):
    """Parses one expression after another from a token stream that a language's parser may share."""

    def __init__(
        self,
        tokens: Tokens,
        reserved: Collection[str] = EXPRESSION_KEYWORDS,
        functions: dict[str, Function] | None = None,
        wording: ExpressionWording = ExpressionWording(),
        spaced_calls: bool = False,
    ) -> None:
        self.tokens = tokens
        self.reserved = reserved
        self.functions = FUNCTIONS if functions is None else functions
        self.wording = wording
        self.spaced_calls = spaced_calls  # is `f (x)` a call too? Not where a parenthesis may follow an expression

    def expression(self) -> Expr:
        with self.deeper():
            return self._or()

    def conjunction(self) -> Expr:
        """Where a bare `or` belongs to the language around: an expression that has one only in parentheses."""
        with self.deeper():
            return self._and()

    def spelled(self, token: Token) -> str:
        return token.text.lower() if token.text.isupper() else token.text

    def unexpected(self, wanted: str, *, after: str = "", known: Iterable[str] = (), hint: str | None = None) -> RuleError:
        return super().unexpected(wanted, after=after if self.wording.says_after else "", known=known, hint=hint)

    def duration(self, zero: bool = True, then: Collection[str] = ()) -> float | None:
        """`NUMBER UNIT {NUMBER UNIT}` or a bare number, in milliseconds; None if no number stands here. A word behind a bare
        number is meant as its unit, unless it is a reserved one or in `then`. `zero`: may it be none?"""
        start = self.tokens.peek()
        if start.kind != "number":
            return None
        total = self._quantity()
        word = self.tokens.peek()
        if self.tokens.last is start and word.kind == "name" and word.text not in self.reserved and word.text not in then:
            self._no_unit(word)
        with self.tokens.checked(start):
            microseconds_of(total, zero)
        return total

    def _quantity(self) -> float:
        """A number, or a duration in milliseconds."""
        start = self.tokens.peek()
        total = self.tokens.number()
        word = self.tokens.peek()
        if word.kind != "name" or word.text not in UNITS:
            if word.kind == "name" and word.start == start.end:
                self._no_unit(word)
            return total
        total *= UNITS[self.tokens.next().text]
        while self.tokens.peek().kind == "number" and self.tokens.peek(1).text in UNITS:
            total += self.tokens.number() * UNITS[self.tokens.next().text]
        if isinf(total):
            raise self.tokens.fail(start, "the duration is too long")
        return total

    def _no_unit(self, word: Token) -> NoReturn:
        with self.tokens.checked(word, unit_hint(word.text)):
            unit_of(word.text)
        raise AssertionError(word.text)

    # One method a level of the grammar, loosest first.

    def _or(self) -> Expr:
        return self._chain("or", Or, self._and)

    def _and(self) -> Expr:
        return self._chain("and", And, self._not)

    def _chain(self, word: str, node: type[And] | type[Or], operand: Callable[[], Expr]) -> Expr:
        start = self.tokens.peek()
        operands = [operand()]
        while self.tokens.take(word):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else self._placed(node(tuple(operands)), start)

    def _not(self) -> Expr:
        start = self.tokens.take("not")
        if start is None:
            return self._comparison()
        with self.deeper():
            return self._placed(Not(self._not()), start)

    def _comparison(self) -> Expr:
        start = self.tokens.peek()
        left = self._sum()
        tree = self._test(left)
        if tree is left:
            return left
        if self.tokens.peek().text in COMPARISONS:
            raise self.tokens.fail(self.tokens.peek(), self.wording.chained.format(found=self.tokens.shown(self.tokens.peek())))
        return self._placed(tree, start)

    def _test(self, left: Expr) -> Expr:
        token = self.tokens.peek()
        if token.kind == "op" and token.text in COMPARISONS:
            self.tokens.next()
            return Compare(COMPARISONS[token.text], left, self._sum())
        if self.tokens.take("is"):
            negated = self.tokens.take("not") is not None
            self.expect("null", after="'is not'" if negated else "'is'")
            return IsNull(left, negated)
        negated = self._not_before("in", "between", "like")
        if self.tokens.take("in"):
            return In(left, self._list("'in'"), negated)
        if self.tokens.take("between"):
            low = self._sum()
            self.expect("and", after="the lower bound of 'between'")
            return Between(left, low, self._sum(), negated)
        if self.tokens.take("like"):
            return Like(left, self._sum(), negated)
        return left

    def _not_before(self, *words: str) -> bool:
        if self.tokens.at("not") and self.tokens.peek(1).text.lower() in words:
            self.tokens.next()
            return True
        return False

    def _sum(self) -> Expr:
        return self._left_associative(("+", "-"), self._product)

    def _product(self) -> Expr:
        return self._left_associative(("*", "/", "%"), self._unary)

    def _left_associative(self, operators: tuple[str, ...], operand: Callable[[], Expr]) -> Expr:
        start = self.tokens.peek()
        depth = self.depth
        tree = operand()
        while (token := self.tokens.peek()).kind == "op" and token.text in operators:
            self.tokens.next()
            self.enter(token)
            tree = self._placed(Arithmetic(token.text, tree, operand()), start)
        self.depth = depth
        return tree

    def _unary(self) -> Expr:
        start = self.tokens.take("-")
        if start is None:
            return self._primary()
        with self.deeper():
            operand = self._unary()
        if isinstance(operand, Literal) and is_number(operand.value):
            return self._placed(Literal(-operand.value), start)
        return self._placed(Negate(operand), start)

    def _primary(self) -> Expr:
        token = self.tokens.peek()
        if token.kind == "number":
            quantity = self._quantity()
            alone = self.tokens.last is token  # no unit follows
            return self._placed(Literal(number_of_text(token.text) if alone else quantity), token)
        if token.kind == "text":
            self.tokens.next()
            return self._placed(Literal(token.value), token)
        if self.tokens.take("("):
            tree = self.expression()
            self.expect(")", after="the expression")
            return tree
        if token.kind == "name":
            return self._named(token)
        if token.kind == "quoted":
            self.tokens.next()
            name = name_of(token.text)
            return self._placed(Reference(name.text, splits=name.splits), token)
        raise self._no_value(token)

    def _named(self, token: Token) -> Expr:
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self.tokens.take(word):
                return self._placed(Literal(value), token)
        if token.text in self.reserved or (token.text.isupper() and token.text.lower() in EXPRESSION_KEYWORDS):
            raise self._no_value(token)
        self.tokens.next()
        if self.tokens.at("(") and (self.spaced_calls or self.tokens.peek().start == token.end):
            return self._call(token)
        return self._placed(Reference(token.text), token)

    def _call(self, name: Token) -> Expr:
        function = self.functions.get(name.text)
        if function is None:
            message = self.wording.unknown_function.format(name=name.text)
            raise self.tokens.fail(name, message, nearest(name.text, self.functions) or nearest(name.text, self.reserved))
        arguments = self._list(f"'{name.text}'", empty=True)
        if not function.accepts(len(arguments)):
            raise self.tokens.fail(name, self.wording.arity.format(name=name.text))
        if bad := function.bad_constant(arguments):
            argument, reason = bad
            raise RuleError(Diagnostic(f"'{name.text}': {reason}", argument.span))
        return self._placed(Call(name.text, arguments), name)

    def _list(self, after: str, empty: bool = False) -> tuple[Expr, ...]:
        self.expect("(", after=after)
        if empty and self.tokens.take(")"):
            return ()
        items = [self.expression()]
        while self.tokens.take(","):
            items.append(self.expression())
        self.expect(")", after="the list")
        return tuple(items)

    # Places, limits, errors.

    def _placed(self, tree: Expr, start: Token) -> Expr:
        return replace(tree, span=self.since(start))

    def _no_value(self, token: Token) -> RuleError:
        return self.tokens.fail(token, self.wording.expected_value.format(found=self.tokens.shown(token)))


def parse_duration(text: str, zero: bool = True) -> int:
    """A text that is a duration and nothing else, in microseconds. QuantityError says what is wrong with it."""
    parser = ExpressionParser(Tokens(SourceText("duration", text)))
    try:
        found = parser.duration(zero)
        if found is None or parser.tokens.peek().kind != "end":
            raise QuantityError(f"'{shortened(text)}' is not a duration")
    except RuleError as error:
        raise QuantityError(error.diagnostics[0].message) from None
    return microseconds_of(found, zero)


def parse_expression(text: str, name: str = "expression", functions: dict[str, Function] | None = None) -> Expr:
    """One whole expression."""
    parser = ExpressionParser(Tokens(SourceText(name, text)), functions=functions)
    with room_for_recursion():
        tree = parser.expression()
    end = parser.tokens.peek()
    if end.kind != "end":
        unit = end.kind == "name" and parser.tokens.last is not None and parser.tokens.last.kind == "number"
        hint = unit_hint(end.text) if unit else None
        raise parser.tokens.fail(end, f"expected an operator, found {parser.tokens.shown(end)}", hint)
    return tree
