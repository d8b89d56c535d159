"""ECCO from text: recursive descent over the grammar of the specification's section 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import comb

from coincide.errors import nearest
from coincide.expr.tokens import Token, name_of
from coincide.expr.tree import Reference
from coincide.lang.ecco.aggregates import AGGREGATES
from coincide.lang.ecco.check import check_file
from coincide.lang.ecco.definition import (
    CONCATENATION,
    CONCURRENCY,
    CONJUNCTION,
    RELATIONS,
    SEQUENCE,
    Alt,
    As,
    At,
    Chain,
    Definition,
    Delay,
    Expression,
    File,
    Filter,
    Item,
    Iter,
    Neg,
    Not,
    Null,
    Ref,
    Sel,
    Valid,
    With,
    Within,
)
from coincide.lang.ecco.selections import SELECTIONS, selection_of
from coincide.lang.ecco.statements import StatementReader
from coincide.lang.ecco.words import KEYWORDS, STATEMENTS
from coincide.source import SourceText, room_for_recursion

MOST_WAYS = 200


MOST_WINDOWS = 10_000
"""That an event may be in at once: each of them gives a result."""


def parse(source: SourceText) -> File:
    """The definitions of one file; what concerns other files too is checked when all are linked."""
    with room_for_recursion():
        file = _Parser(source).file()
        check_file(file)
    return file


class _Parser(StatementReader):
    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self.definitions: list[Definition] = []

    def file(self) -> File:
        while self.tokens.peek().kind != "end":
            self._statement()
        statements = (tuple(self.stamps), tuple(self.duplicates), tuple(self.spaces), tuple(self.definitions))
        return File(self.options, *statements, tuple(self.zone_files))

    # Statements.

    def _statement(self) -> None:
        word = self.tokens.take(*STATEMENTS)
        if word is None:
            last = self.tokens.last
            if last is None:
                raise self.unexpected("'detect', 'let' or another statement")
            raise self.unexpected("an operator or a new statement", hint=self._hint(last))
        if word.text.lower() in ("detect", "let"):
            self.definitions.append(self._definition(word.text.lower() == "let"))
            return
        self.take_statement(word)

    def _hint(self, last: Token) -> str | None:
        """What was most likely meant where a statement goes on in a way that it cannot."""
        if self.tokens.peek().text.lower() == "per":
            return "keys stand before the '=': detect NAME per KEY = …"
        near = nearest(last.text.lower(), KEYWORDS) if last.kind == "name" and len(last.text) > 2 else None
        return near and f"'{last.text}' was read as an event: {near}"

    def _definition(self, hidden: bool) -> Definition:
        word = self.tokens.last
        assert word is not None
        name = self.name().text
        keys = self.names() if self.tokens.take("per") else ()
        self.expect("=")
        body = self._expr()
        give = tuple(self.listed(self._item)) if self.tokens.take("give") else None
        return Definition(name, hidden, keys, body, give, span=self.span(word))

    def _item(self) -> Item:
        """`name = value`, or a reference: `x.attr` gives attr."""
        token = self.tokens.peek()
        if self.tokens.peek(1).text == "=" and self.at_name():
            name = self.name().text
            self.tokens.next()
            return Item(name, self.expression(), span=self.span(token))
        self.name("an attribute")
        text, splits = name_of(token.text)
        given = text[splits[-1] + 1 :] if splits else text
        reference = Reference(text, splits=splits if token.kind == "quoted" else None, span=self.span(token))
        return Item(given, reference, span=self.span(token))

    # Event expressions, one method a level of the grammar, loosest first.

    def _expr(self) -> Expression:
        depth = self.depth
        self.enter()
        tree = self._alt()
        if word := self.tokens.take("where"):
            tree = Filter(tree, self.expression(), span=self.span(word))
        if word := self.tokens.take("with"):
            tree = With(tree, self.policies(), span=self.span(word))
            self._check_closed()
        self.depth = depth
        return tree

    def _check_closed(self) -> None:
        token = self.tokens.peek()
        if token.kind != "end" and not self.tokens.at(")", "give", *STATEMENTS):
            raise self.tokens.fail(token, "'with' closes an expression; put it inside the parentheses")

    def _alt(self) -> Expression:
        start = self.tokens.peek()
        parts = [self._conj()]
        while self.tokens.take("|"):
            parts.append(self._conj())
        return parts[0] if len(parts) == 1 else Alt(tuple(parts), span=self.span(start))

    def _conj(self) -> Expression:
        start = self.tokens.peek()
        parts = [self._par()]
        while plus := self.tokens.take("+"):
            if self.tokens.peek().kind == "number":
                self.enter()
                operand = _chain(CONJUNCTION, parts)
                parts = [Delay(replace(operand, span=self.span(start)), self.duration("zero"), span=self.span(plus))]
            else:
                parts.append(self._par())
        return _chain(CONJUNCTION, parts)

    def _par(self) -> Expression:
        tree = self._seq()
        while word := self.tokens.take(CONCURRENCY, *RELATIONS):
            self.enter()
            tree = Chain(word.text.lower(), (tree, self._seq()), span=self.span(word))
        return tree

    def _seq(self) -> Expression:
        starts = [self.tokens.peek()]
        parts = [self._element()]
        while self.tokens.take(SEQUENCE):
            starts.append(self.tokens.peek())
            parts.append(self._element())
        tree = _chain(SEQUENCE, parts)
        if len(parts) > 1 and isinstance(tree, Chain):
            return replace(tree, starts=tuple(map(self.span, starts)))
        return tree

    def _element(self) -> Expression:
        word = self.tokens.take("null")
        if word is None:
            return self._neg()
        return Null(self.condition() if self.tokens.at("{") else None, span=self.span(word))

    def _neg(self) -> Expression:
        tree = self._cat()
        while word := self.tokens.take("-"):
            self.enter()
            tree = Neg(tree, self._cat(), span=self.span(word))
        return tree

    def _cat(self) -> Expression:
        tree = self._unit()
        while self.at_name() or self.tokens.at("not", "¬", "any", "("):
            start = self.tokens.peek()
            self.enter()
            tree = Chain(CONCATENATION, (tree, self._unit()), span=self.span(start))
        return tree

    def _unit(self) -> Expression:
        word = self.tokens.take("not", "¬")
        if word is None:
            return self._postfix()
        operand = self._postfix()
        over = self.duration() if self.tokens.take("over") else None
        return Not(operand, over, span=self.span(word))

    def _postfix(self) -> Expression:
        tree = self._operand()
        while (suffix := self._suffixes().get(self._word())) is not None:
            self.enter()
            tree = suffix(tree)
        return tree

    def _operand(self) -> Expression:
        token = self.tokens.peek()
        if self.tokens.take("any"):
            return Ref(None, span=self.span(token))
        if self.tokens.take("("):
            tree = self._expr()
            self.expect(")")
            return tree
        if token.kind == "number" and self.tokens.peek(1).text.lower() == "of":
            return self._some_of()
        if token.text.lower() == "null":
            raise self.tokens.fail(token, "NULL must stand between two operands of ';'")
        self._check_call(token)
        return Ref(self.name("an event expression").text, span=self.span(token))

    def _check_call(self, token: Token) -> None:
        """`FIRST(a)` would be something of the type FIRST that is followed by a: nobody means that."""
        behind = self.tokens.peek(1)
        if token.kind == "name" and token.text.lower() in _selections() and (behind.text, behind.start) == ("(", token.end):
            word = token.text.upper()
            hint = f"write (…)^{word}; an event type of this name stands in back quotes"
            raise self.tokens.fail(token, f"{word} stands behind what it selects from", hint)

    def _some_of(self) -> Expression:
        """`2 of (A, B, C) within T`: any two of them, each pair a conjunction within T."""
        start = self.tokens.peek()
        count = self.whole()
        self.tokens.next()
        self.expect("(")
        parts = self.listed(self._expr)
        self.expect(")")
        if not 0 < count <= len(parts):
            raise self.tokens.fail(start, f"there are only {len(parts)} to take {count} of" if count else "must be positive")
        if comb(len(parts), count) > MOST_WAYS:
            raise self.tokens.fail(start, f"there are more than {MOST_WAYS} ways to take {count} of {len(parts)}")
        ways = [_chain(CONJUNCTION, list(some)) for some in combinations(parts, count)]
        if count > 1 and (word := self.tokens.take("within")):
            length = self.duration("zero")
            ways = [Within(way, length, span=self.span(word)) for way in ways]
        return ways[0] if len(ways) == 1 else Alt(tuple(ways), span=self.span(start))

    def _word(self) -> str:
        token = self.tokens.peek()
        return token.text.lower() if token.kind == "op" or (token.kind == "name" and self.tokens.at(token.text.lower())) else ""

    def _suffixes(self) -> dict[str, Callable[[Expression], Expression]]:
        return {
            "{": self._filter,
            "*": self._iteration,
            "^": self._selection,
            "@": self._at,
            "within": self._within,
            "valid": self._valid,
            "as": self._alias,
        }

    def _filter(self, operand: Expression) -> Expression:
        start = self.tokens.peek()
        return Filter(operand, self.condition(), span=self.span(start))

    def _iteration(self, operand: Expression) -> Expression:
        star = self.tokens.next()
        if not (self.tokens.at("{") and self._bounds_follow()):
            return Iter(operand, span=self.span(star))
        start = self.tokens.next()
        least = self.whole() if self.tokens.peek().kind == "number" else None
        comma = self.tokens.take(",")
        most = self.whole() if comma and self.tokens.peek().kind == "number" else None if comma else least
        by = self.expression() if self.tokens.take("by") else None
        self.expect("}")
        if most is not None and (most == 0 or (least or 0) > most):
            raise self.tokens.fail(start, "empty bounds")
        return Iter(operand, least, most, by, span=self.span(star))

    def _bounds_follow(self) -> bool:
        """Only numbers and a comma in the braces, and maybe `by`; anything else is a filter on the run."""
        distance = 1
        while (token := self.tokens.peek(distance)).text != "}":
            if token.text.lower() == "by" and distance > 1:
                return True
            if token.kind != "number" and token.text != ",":
                return False
            distance += 1
        return distance > 1

    def _selection(self, operand: Expression) -> Expression:
        caret = self.tokens.next()
        tree = self._select(operand)
        once = tree.selection.lapses
        if once and not self.tokens.at("over", "until"):
            raise self.unexpected("'over' or 'until'")
        if self.tokens.take("over"):
            tree = replace(tree, over=self.duration(then=("until",)) if once else self.duration())
            if not once and self.tokens.take("every"):
                tree = replace(tree, every=self._step(tree.over or 0.0))
        if once and self.tokens.take("until"):
            tree = replace(tree, until=self._postfix())
        return replace(tree, span=self.span(caret))

    def _step(self, length: float) -> float:
        start = self.tokens.peek()
        step = self.duration()
        if length / step > MOST_WINDOWS:
            raise self.tokens.fail(
                start, f"an event would be in more than {MOST_WINDOWS:,} windows: 'every' is too short for 'over'"
            )
        return step

    def _select(self, operand: Expression) -> Sel:
        token = self.tokens.peek()
        span = self.span(token)
        if token.kind == "number":
            number = self.whole()
            if number == 0:
                raise self.tokens.fail(token, "must be positive")
            return Sel(operand, "NTH", number=float(number), word=span)
        word = self.expect(*_selections()).text.upper()
        compares = selection_of(word).compares
        if word in SELECTIONS and not compares:
            return Sel(operand, word, word=span)
        argument = None
        if word in AGGREGATES and AGGREGATES[word].needs_argument:
            self.expect("(")
            argument = self.expression()
            self.expect(")")
        elif self.tokens.take("("):
            argument = self.expression()
            self.expect(")")
        limit = self.number() if compares else None
        return Sel(operand, word, argument, limit, word=span)

    def _at(self, operand: Expression) -> Expression:
        word = self.tokens.next()
        return At(operand, self.place(), span=self.span(word))

    def _within(self, operand: Expression) -> Expression:
        word = self.tokens.next()
        return Within(operand, self.duration("zero"), span=self.span(word))

    def _valid(self, operand: Expression) -> Expression:
        word = self.tokens.next()
        return Valid(operand, self.duration(), span=self.span(word))

    def _alias(self, operand: Expression) -> Expression:
        self.tokens.next()
        name = self.name()
        return As(operand, name.text, span=self.span(name))


def _selections() -> tuple[str, ...]:
    """What may stand behind `^`."""
    worded = [one for one in SELECTIONS.values() if not one.by_number]
    plain, comparing = ([one.name for one in worded if one.compares is compares] for compares in (False, True))
    return tuple(map(str.lower, (*plain, *AGGREGATES, *comparing)))


def _chain(operator: str, parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Chain(operator, tuple(parts), span=parts[0].span)
