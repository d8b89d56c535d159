"""Conditions of EQL from tokens (section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from coincide.errors import Diagnostic, RuleError, nearest
from coincide.expr.patterns import regular_expression_fault
from coincide.expr.quantities import QuantityError, number_of
from coincide.expr.tokens import Parser, Token
from coincide.expr.tree import And, Arithmetic, Call, Compare, Expr, Literal, Negate, Not, Or, Reference
from coincide.lang.eql.definition import TIMESTAMP, Among, Matching
from coincide.lang.eql.functions import SIGNATURES, network_of, spelled
from coincide.lang.eql.tokens import KEYWORDS, EqlTokens, field_name, text_value
from coincide.model.numbers import number_of_text
from coincide.model.stamp import parse_instant

COMPARISONS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
MATCHES = (":", "like", "like~", "regex", "regex~")
CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
LINEAGE = ("child", "descendant", "event")


class Conditions(Parser):
    """One method a rule of the grammar, over tokens that have been read."""

    tokens: EqlTokens
    quotes_types = False

    def __init__(self, tokens: EqlTokens) -> None:
        self.tokens = tokens
        self.peek, self.next, self.span, self.fail = tokens.peek, tokens.next, tokens.span, tokens.fail

    def unexpected(self, wanted: str, *, after: str = "", known: Iterable[str] = (), hint: str | None = None) -> RuleError:
        word = self.peek().text
        shouted = word.isupper() and word.lower() in KEYWORDS
        hint = f"key words are in lower case: '{word.lower()}'" if shouted else hint
        return super().unexpected(wanted, after=after, known=known, hint=hint)

    # From the loosest operator to the tightest.

    def condition(self) -> Expr:
        with self.deeper():
            return self._chain("or", self._and, Or)

    def _and(self) -> Expr:
        return self._chain("and", self._not, And)

    def _chain(self, word: str, operand: Callable[[], Expr], join: Callable[[tuple[Expr, ...]], Expr]) -> Expr:
        operands = self.listed(operand, word)
        return operands[0] if len(operands) == 1 else join(tuple(operands))

    def _not(self) -> Expr:
        if not self.take("not"):
            return self._comparison()
        with self.deeper():
            return Not(self._not())

    def _comparison(self) -> Expr:
        left = self.value()
        if not self.at(*COMPARISONS):
            if self.at("="):
                raise self.fail(self.peek(), "'=' is not a comparison: use '==' or ':'")
            return left
        operator = self.next()
        right = self.value()
        if self.at(*COMPARISONS):
            raise self.fail(self.peek(), "comparisons do not chain: use 'and'")
        self._check_instant(operator, left, right)
        return Compare(COMPARISONS[operator.text], left, right, span=self.span(operator))

    def _check_instant(self, operator: Token, left: Expr, right: Expr) -> None:
        for one, other in ((left, right), (right, left)):
            text = instant_text(one, other)
            if text is not None and instant_value(text) is None:
                raise self.fail(operator, f"'{text}' is not an instant")

    def value(self) -> Expr:
        return self._left_associative(("+", "-"), self._term)

    def _term(self) -> Expr:
        return self._left_associative(("*", "/", "%"), self._unary)

    def _left_associative(self, operators: tuple[str, ...], operand: Callable[[], Expr]) -> Expr:
        depth = self.depth
        left = operand()
        while self.at(*operators):
            operator = self.next()
            self.enter(operator)
            left = Arithmetic(operator.text, left, operand(), span=self.span(operator))
        self.depth = depth
        return left

    def _unary(self) -> Expr:
        sign = self.take("-", "+")
        if sign is None:
            return self._tested()
        with self.deeper():
            operand = self._unary()
        negated = Negate(operand, span=self.span(sign))
        return negated if sign.text == "-" else Negate(negated, span=self.span(sign))

    def _tested(self) -> Expr:
        """A primary expression, and the test right behind it."""
        operand = self._primary()
        if self.at(*MATCHES):
            return self._matching(operand)
        negated = self.at("not") and self.peek(1).kind == "name" and self.peek(1).text in ("in", "in~")
        if negated:
            self.next()
        word = self.take("in", "in~")
        if word is None:
            return operand
        self.expect("(")
        return Among(operand, tuple(self._list()), word.text == "in~", negated, span=self.span(word))

    def _list(self) -> list[Expr]:
        """Up to the parenthesis that closes it."""
        found = self.listed(self.condition)
        self.expect(")")
        return found

    def _matching(self, operand: Expr) -> Expr:
        operator = self.next()
        in_list = self.take("(")
        patterns = self.listed(lambda: self._pattern(operator)) if in_list else [self._pattern(operator)]
        if in_list:
            self.expect(")")
        return Matching(operator.text, operand, tuple(patterns), span=self.span(operator))

    def _pattern(self, operator: Token) -> Literal:
        token = self.peek()
        constant = self._constant()
        if constant is None:
            raise self.unexpected(f"a constant after '{operator.text}'")
        if operator.text.startswith("regex") and constant.value is not None:
            pattern = spelled(constant.value) or ""
            fault = _extension(pattern) or regular_expression_fault(pattern)
            if fault is not None:
                raise self.fail(token, f"invalid regular expression: {fault}")
        return constant

    def _constant(self) -> Literal | None:
        token = self.peek()
        if token.kind in ("text", "raw"):
            self.next()
            return Literal(text_value(token), span=self.span(token))
        if token.kind == "number":
            self.next()
            return Literal(self._number(token), span=self.span(token))
        if token.kind == "name" and token.text in CONSTANTS:
            self.next()
            return Literal(CONSTANTS[token.text], span=self.span(token))
        return None

    def _number(self, token: Token) -> float:
        """A whole one is an integer, unless it has a point or an exponent."""
        try:
            number = number_of(token.text)
        except QuantityError as error:
            raise self.fail(token, str(error)) from None
        return int(number_of_text(token.text)) if token.text.isdecimal() else number

    def _primary(self) -> Expr:
        constant = self._constant()
        if constant is not None:
            return constant
        if self.take("("):
            inner = self.condition()
            self.expect(")")
            return inner
        token = self.peek()
        if token.kind == "name" and self.peek(1).kind == "op" and self.peek(1).text == "(" and token.text not in KEYWORDS:
            return self._call()
        self.take("?")
        return self._field()

    def _field(self) -> Expr:
        token = self.peek()
        if token.kind == "name" and token.text in LINEAGE and self.peek(1).text == "of":
            raise self.fail(token, f"'{token.text} of' is not supported")
        if token.kind not in ("name", "field") or token.text in KEYWORDS or token.text.endswith("~"):
            raise self.unexpected("a value or a condition")
        self.next()
        if self.at("[") and self.peek(1).kind == "number":
            raise self.fail(self.peek(), "an array index is not supported")
        return Reference(field_name(token), span=self.span(token))

    def _call(self) -> Expr:
        token = self.next()
        written = token.text.removesuffix("~")
        signature = SIGNATURES.get(written.lower())
        if signature is None:
            raise self.fail(token, f"unknown function '{written}'", nearest(written, [s.name for s in SIGNATURES.values()]))
        if token.text.endswith("~") and not signature.any_case:
            raise self.fail(token, f"'{written}' has no form with '~'")
        self.expect("(")
        arguments = tuple(self._list()) if not self.take(")") else ()
        if not signature.accepts(len(arguments)):
            raise self.fail(token, f"wrong number of arguments of '{written}'")
        if signature.name == "cidrMatch":
            self._check_networks(arguments[1:], token)
        return Call(signature.name + ("~" if token.text.endswith("~") else ""), arguments, span=self.span(token))

    def _check_networks(self, networks: Sequence[Expr], function: Token) -> None:
        for network in networks:
            span = network.span or self.span(function)
            if not isinstance(network, Literal) or not isinstance(network.value, str):
                raise RuleError(Diagnostic("a network must be a constant text", span))
            if network_of(network.value) is None:
                raise RuleError(Diagnostic(f"invalid network '{network.value}'", span))


def instant_text(one: Expr, other: Expr) -> str | None:
    """The text that is compared with the event's time, and so means an instant."""
    if isinstance(one, Reference) and one.name == TIMESTAMP and isinstance(other, Literal) and isinstance(other.value, str):
        return other.value
    return None


def instant_value(text: str) -> int | None:
    """Microseconds."""
    try:
        return parse_instant(text)
    except (ValueError, OverflowError):
        return None


def _extension(pattern: str) -> str | None:
    """What RE2 knows and the portable subset does not: `(?…)`."""
    inside, escaped = False, False
    for place, character in enumerate(pattern):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif inside:
            inside = character != "]"
        elif character == "[":
            inside = True
        elif pattern.startswith("(?", place):
            return f"'{pattern[place : place + 3]}' is not supported"
    return None
