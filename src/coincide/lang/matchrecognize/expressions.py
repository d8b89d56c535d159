"""Expressions of SQL from tokens: the expression language of all languages, with SQL's spelling and what row patterns add."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from coincide.errors import RuleError, nearest
from coincide.expr.parse import ExpressionParser
from coincide.expr.quantities import UNITS, QuantityError, microseconds_of, unit_hint
from coincide.expr.tokens import EXPRESSION_KEYWORDS, Token
from coincide.expr.tree import Call, Expr, Literal, Reference
from coincide.lang.matchrecognize.definition import Aggregate, Case, Cast, Classifier, Foreign, MatchFact, Navigation
from coincide.lang.matchrecognize.functions import AGGREGATES, CALLABLE, CASTS, FACTS, NAVIGATIONS
from coincide.lang.matchrecognize.tokens import SqlTokens
from coincide.model.numbers import number_of_text
from coincide.model.stamp import MILLISECOND, parse_instant
from coincide.syntax import walk

RESERVED = EXPRESSION_KEYWORDS | {"case", "when", "then", "else", "end", "as", "select", "from", "where"}
LEFT_TO_SPARK = frozenset(
    ["group", "order", "having", "limit", "join", "union", "inner", "left", "right", "cross", "full", "qualify"]
)

LARGEST = 2**31 - 1

SCOPES = {"DEFINE", "MEASURES"}
"""Where pattern variables are known."""


class SqlExpressions(ExpressionParser):
    """Parses expressions. `scope` says which clause they stand in."""

    tokens: SqlTokens

    def __init__(self, tokens: SqlTokens) -> None:
        super().__init__(tokens, functions=CALLABLE, spaced_calls=True)
        self.scope = ""
        self.foreign = False  # are functions that are not ours left to the engine around us?

    @contextmanager
    def within_scope(self, scope: str) -> Iterator[None]:
        before, self.scope = self.scope, scope
        yield
        self.scope = before

    def scoped(self, scope: str) -> Expr:
        with self.within_scope(scope):
            return self.expression()

    # Names

    def is_name(self, token: Token) -> bool:
        return token.kind == "quoted" or (token.kind == "name" and token.text.lower() not in RESERVED)

    def name(self, wanted: str) -> tuple[str, Token]:
        token = self.tokens.peek()
        if not self.is_name(token):
            raise self.unexpected(wanted)
        self.tokens.next()
        return spelt(token), token

    def variable(self) -> tuple[str, Token]:
        """The name of a variable, in upper case unless it is quoted."""
        _, token = self.name("a pattern variable")
        return folded(token), token

    def at(self, *texts: str, distance: int = 0) -> bool:
        """Words are in any case."""
        return self.tokens.is_one(self.tokens.peek(distance), *map(str.lower, texts))

    # Levels of the grammar that are not those of the other languages

    def _sum(self) -> Expr:
        return self._left_associative(("+", "-", "||"), self._product)

    def _primary(self) -> Expr:
        token = self.tokens.peek()
        if token.kind == "number":
            self.tokens.next()
            value = number_of_text(token.text)
            if value - value != 0:
                raise self.tokens.fail(token, f"the number {token.text[:40]} is too large")
            return self._placed(Literal(value), token)
        if token.kind == "quoted":
            return self._named(token)
        return super()._primary()

    def _named(self, token: Token) -> Expr:
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self.tokens.take(word):
                return self._placed(Literal(value), token)
        if self.tokens.at("case"):
            return self._case(token)
        if self.tokens.at("select"):
            raise self._subquery(token)
        if not self.is_name(token):
            raise self._no_value(token)
        self.tokens.next()
        follows = self.tokens.peek()
        word = token.text.upper() if token.kind == "name" else ""
        if word in ("RUNNING", "FINAL") and self.is_name(follows):
            return self._with_semantics(token, word)
        if word == "INTERVAL" and follows.kind == "text":
            return self._placed(Literal(self._quoted_duration() / MILLISECOND), token)
        if word == "TIMESTAMP" and follows.kind == "text":
            return self._placed(Literal(self._timestamp()), token)
        if word and self.tokens.at("("):
            tree = self._call_of(token, word, "")
            self._no_window()
            return tree
        return self._column(token)

    def _column(self, first: Token) -> Expr:
        """`x`, or `v.x`, where x may have dots."""
        parts: list[str] = []
        while self.tokens.take("."):
            if self.tokens.at("*"):
                raise self.tokens.fail(self.tokens.peek(), "'.*' can only stand in count")
            parts.append(self.name("a column")[0])
        if not parts:
            return self._placed(Reference(spelt(first)), first)
        owner = folded(first) if self.scope in SCOPES else spelt(first)
        return self._placed(Reference(".".join(parts), owner), first)

    # Calls

    def _call_of(self, name: Token, word: str, semantics: str) -> Expr:
        if word == "EXISTS" and self.tokens.is_one(self.tokens.peek(1), "select"):
            raise self._subquery(name)
        if word == "CAST":
            return self._cast(name)
        if self.scope in SCOPES:
            if word in NAVIGATIONS:
                return self._navigation(name, word, semantics)
            if word.lower() in AGGREGATES:
                return self._aggregate(name, word, semantics)
            if word == "CLASSIFIER":
                return self._classifier(name)
            if word in FACTS:
                if self._arguments(name):
                    raise self._arity(name)
                return self._placed(MatchFact(word), name)
        return self._plain_call(name)

    def _plain_call(self, name: Token) -> Expr:
        function = self.functions.get(name.text.lower())
        if function is None:
            hint = nearest(name.text.lower(), self.functions)
            if name.text.lower() in AGGREGATES or name.text.upper() in (*NAVIGATIONS, *FACTS, "CLASSIFIER"):
                hint = "it belongs to MEASURES and DEFINE"
            elif self.foreign and self.scope in SCOPES:
                return self._foreign_call(name)
            raise self.tokens.fail(name, f"unknown function '{name.text}'", hint)
        arguments = self._arguments(name)
        if not function.accepts(len(arguments)):
            raise self._arity(name)
        return self._placed(Call(function.name, tuple(arguments)), name)

    def _foreign_call(self, name: Token) -> Expr:
        """A function that is not ours: of one row, which is all that whoever has it can see."""
        arguments = tuple(self._arguments(name))
        for node in (node for argument in arguments for node in walk(argument)):
            if isinstance(node, (Navigation, Aggregate, Classifier, MatchFact)):
                message = f"'{name.text}' is computed for each row: it cannot see other rows of the match"
                raise self.tokens.fail(self._start_of(node), message, f"such as LAST({name.text}(x)) instead")
        self._check_variable(name.text, arguments)
        return self._placed(Foreign(name.text, arguments), name)

    def _arguments(self, name: Token) -> list[Expr]:
        self.expect("(")
        arguments: list[Expr] = []
        while not self.tokens.at(")"):
            arguments.append(self.expression())
            if not self.tokens.take(","):
                break
            if self.tokens.at(")"):
                raise self._no_value(self.tokens.peek())
        self._close()
        return arguments

    def _close(self) -> None:
        if not self.tokens.take(")"):
            raise self.unexpected("',' or ')'")

    def _arity(self, name: Token) -> RuleError:
        return self.tokens.fail(name, f"wrong number of arguments of '{name.text}'")

    def _with_semantics(self, word: Token, semantics: str) -> Expr:
        if semantics == "FINAL" and self.scope == "DEFINE":
            raise self.tokens.fail(word, "FINAL is not allowed in DEFINE")
        name = self.tokens.peek()
        function = name.text.upper() if name.kind == "name" else ""
        known = function in ("FIRST", "LAST") or function.lower() in AGGREGATES
        if self.scope not in SCOPES or not known or not self.tokens.is_one(self.tokens.peek(1), "("):
            raise self.tokens.fail(word, f"{semantics} belongs to FIRST, LAST and aggregates in MEASURES")
        self.tokens.next()
        tree = self._placed(self._call_of(name, function, semantics), word)
        self._no_window()
        return tree

    def _navigation(self, name: Token, word: str, semantics: str) -> Expr:
        self.expect("(")
        if self.tokens.at(")"):
            raise self._arity(name)
        operand = self.expression()
        offset = self._offset(word) if self.tokens.take(",") else int(word in ("PREV", "NEXT"))
        if self.tokens.at(","):
            raise self._arity(name)
        self._close()
        self._check_nesting(word, [operand])
        if not any(isinstance(node, (Reference, Classifier)) for node in walk(operand)):
            raise self.tokens.fail(name, f"'{word}' needs a column or CLASSIFIER() in its first argument")
        self._check_variable(word, [operand])
        return self._placed(Navigation(word, operand, offset, semantics), name)

    def _offset(self, word: str) -> int:
        token = self.tokens.peek()
        if token.kind != "number" or not token.text.isdecimal() or not self.tokens.is_one(self.tokens.peek(1), ")", ","):
            raise self.tokens.fail(token, f"the offset of '{word}' must be a whole number from 0")
        return self.whole_number()

    def whole_number(self) -> int:
        token = self.tokens.peek()
        if token.kind != "number" or not token.text.isdecimal():
            raise self.unexpected("a whole number")
        self.tokens.next()
        if len(token.text) > 20 or int(token.text) > LARGEST:
            raise self.tokens.fail(token, f"the number {token.text[:40]} is too large")
        return int(token.text)

    def _aggregate(self, name: Token, word: str, semantics: str) -> Expr:
        follows, beyond = self.tokens.peek(1), self.tokens.peek(2)
        if self.tokens.is_one(follows, "distinct") and (
            beyond.kind in ("name", "quoted", "number", "text") or beyond.text == "("
        ):
            raise self.tokens.fail(follows, "DISTINCT is not allowed in an aggregate of a row pattern")
        function = word.lower()
        if function == "count" and (counted := self._counted_rows()) is not None:
            return self._placed(Aggregate(function, counted, semantics), name)
        arguments = self._arguments(name)
        least, most = AGGREGATES[function]
        if not least <= len(arguments) <= most:
            raise self._arity(name)
        self._check_nesting(word, arguments)
        self._check_variable(word, arguments)
        return self._placed(Aggregate(function, tuple(arguments), semantics), name)

    def _counted_rows(self) -> tuple[Expr, ...] | None:
        """`(*)` and `(v.*)`; None if neither stands here."""
        ahead = [self.tokens.peek(n) for n in range(5)]
        if [t.text for t in ahead[1:3]] == ["*", ")"]:
            self._pass(3)
            return ()
        if self.is_name(ahead[1]) and [t.text for t in ahead[2:5]] == [".", "*", ")"]:
            self._pass(5)
            return (Classifier(folded(ahead[1]), span=self.tokens.span(ahead[1])),)
        return None

    def _pass(self, count: int) -> None:
        for _ in range(count):
            self.tokens.next()

    def _classifier(self, name: Token) -> Expr:
        self.expect("(")
        if self.tokens.take(")"):
            return self._placed(Classifier(), name)
        variable, token = self.variable()
        if not self.tokens.take(")"):
            raise self.unexpected("')'")
        return Classifier(variable, span=self.tokens.span(token))

    # What may stand inside what

    def _check_nesting(self, word: str, arguments: Sequence[Expr]) -> None:
        if word in ("PREV", "NEXT") and isinstance(arguments[0], Navigation) and arguments[0].function in ("FIRST", "LAST"):
            return
        for node in (node for argument in arguments for node in walk(argument)):
            if not isinstance(node, (Navigation, Aggregate)):
                continue
            inner = node.function.upper()
            whole = word in ("PREV", "NEXT") and inner in ("FIRST", "LAST")
            message = f"'{inner}' must be the whole first argument of '{word}'" if whole else None
            assert node.span is not None
            token = self._start_of(node)
            raise self.tokens.fail(token, message or f"'{inner}' cannot stand inside '{word}'")

    def _start_of(self, node: Expr) -> Token:
        assert node.span is not None
        return Token("name", "", node.span.start, node.span.end)

    def _check_variable(self, word: str, arguments: Sequence[Expr]) -> None:
        """All columns and classifiers speak of one variable."""
        found: list[str] = []
        for node in (node for argument in arguments for node in walk(argument)):
            if isinstance(node, (Reference, Classifier)):
                variable = node.alias if isinstance(node, Reference) else node.variable
                found.append("all variables" if variable is None else f"'{variable}'")
                if found[0] != found[-1]:
                    raise self.tokens.fail(self._start_of(node), f"'{word}' mixes rows of {found[0]} and of {found[-1]}")

    # CASE, CAST, intervals

    def _case(self, start: Token) -> Expr:
        self.tokens.next()
        subject = None if self.tokens.at("when") else self.expression()
        tests, values = [], []
        self.expect("WHEN")
        while True:
            tests.append(self.expression())
            self.expect("THEN")
            values.append(self.expression())
            if not self.tokens.take("when"):
                break
        otherwise = self.expression() if self.tokens.take("else") else None
        self.expect("END")
        return self._placed(Case(subject, tuple(tests), tuple(values), otherwise), start)

    def _cast(self, name: Token) -> Expr:
        self.expect("(")
        operand = self.expression()
        self.expect("AS")
        _, token = self.name("a type")
        kind = token.text.lower()
        if kind not in CASTS:
            raise self.tokens.fail(token, f"unknown type '{token.text}'", nearest(kind, CASTS))
        if self.tokens.take("("):
            self.whole_number()
            while self.tokens.take(","):
                self.whole_number()
            self._close()
        if not self.tokens.take(")"):
            raise self.unexpected("')'")
        return self._placed(Cast(operand, kind), name)

    def interval(self) -> int:
        """`INTERVAL '10' MINUTE` or `10 minutes`, in microseconds."""
        if self.tokens.at("interval") and self.tokens.peek(1).kind == "text":
            self.tokens.next()
            return self._quoted_duration()
        number = self.tokens.peek()
        if number.kind != "number":
            raise self.unexpected("an interval, such as INTERVAL '10' MINUTE")
        self.tokens.next()
        return self._duration(number, number.text)

    def _quoted_duration(self) -> int:
        number = self.tokens.next()
        if not _is_number(number.value):
            message = f"expected a number in quotes, such as '10', found {self.tokens.shown(number)}"
            raise self.tokens.fail(number, message)
        return self._duration(number, number.value)

    def _duration(self, number: Token, text: str) -> int:
        unit = self.tokens.peek()
        if unit.kind != "name":
            raise self.unexpected("a unit of time")
        word = unit.text.lower()
        if word not in UNITS:
            raise self.tokens.fail(unit, f"'{unit.text}' is not a unit of time", unit_hint(word))
        self.tokens.next()
        try:
            return microseconds_of(float(text) * UNITS[word])
        except QuantityError as error:
            raise self.tokens.fail(number, str(error)) from None

    def _timestamp(self) -> float:
        token = self.tokens.next()
        try:
            return parse_instant(token.value) / MILLISECOND
        except (ValueError, OverflowError):
            raise self.tokens.fail(
                token, f"{token.text} is not a timestamp", "ISO-8601, such as '2026-01-01T00:00:00Z'"
            ) from None

    # What SQL has and row patterns have not

    def _no_window(self) -> None:
        token = self.tokens.peek()
        if self.tokens.at("over", "filter") and self.tokens.is_one(self.tokens.peek(1), "("):
            raise self.tokens.fail(token, "window functions and FILTER are not allowed in a row pattern query")

    def _subquery(self, token: Token) -> RuleError:
        return self.tokens.fail(token, "subqueries are not allowed in a row pattern query")


def spelt(token: Token) -> str:
    return token.value if token.kind == "quoted" else token.text


def folded(token: Token) -> str:
    return token.value if token.kind == "quoted" else token.text.upper()


def _is_number(text: str) -> bool:
    whole, _, fraction = text.partition(".")
    return (
        whole.isdecimal()
        and whole.isascii()
        and (not fraction or (fraction.isdecimal() and fraction.isascii()))
        and not text.endswith(".")
    )
