"""Opera's English-like language (section 5 of its specification): each construct becomes an expression of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial, reduce
from math import perm
from typing import TypeVar

from coincide.errors import RuleError
from coincide.expr.parse import COMPARISONS, ExpressionParser
from coincide.expr.quantities import MOST, UNIT_HINT, QuantityError, count_of, microseconds_of
from coincide.expr.tokens import EXPRESSION_KEYWORDS, EXPRESSION_OPERATORS, Parser, Token, Tokens
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Attribute,
    Bind,
    Concatenation,
    Condition,
    Detect,
    Empty,
    EventSet,
    Expression,
    File,
    Group,
    Item,
    Iteration,
    Limit,
    Named,
    Parallel,
    Policy,
    Sequence,
    SetDefinition,
    Timing,
    Union,
    chained,
    most_times,
)
from coincide.lang.opera.functions import WITH_FUNCTIONS
from coincide.lang.opera.resolve import resolve
from coincide.lang.pretty.parameters import with_parameters
from coincide.lang.pretty.phrases import KEYWORDS, Phrases, is_name
from coincide.lang.shared.eventsets import FILTER_FUNCTIONS
from coincide.lang.shared.times import Duration, TimeSpec, time_of, written
from coincide.model.event import ENVELOPE
from coincide.ordering import POLICIES, written_policies
from coincide.source import SourceText, room_for_recursion

T = TypeVar("T")

MOST_WAYS = 500
WORDS = frozenset(change(word) for word in KEYWORDS for change in (str.lower, str.upper, str.capitalize))
"""What may follow a bare number, and is not a unit of time."""
OPERATORS = (*EXPRESSION_OPERATORS, ".", "?")


CanFail = Callable[[Expression], bool]
"""Can the start of a pattern fail? Only its automaton tells; then a plain `report` means that it starts again."""


def parse(source: SourceText, start_can_fail: CanFail) -> File:
    """The definitions of one file, in the core language."""
    with room_for_recursion():
        return _Parser(source).file(start_can_fail)


class _Parser(Parser):
    """One method a rule of the grammar."""

    nested = "pattern"

    def __init__(self, source: SourceText) -> None:
        self.tokens = Tokens(source, OPERATORS)
        self.filters = ExpressionParser(self.tokens, EXPRESSION_KEYWORDS, FILTER_FUNCTIONS)
        self.withs = ExpressionParser(self.tokens, EXPRESSION_KEYWORDS, WITH_FUNCTIONS)
        self.phrases = Phrases()
        self.timers = 0

    def file(self, start_can_fail: CanFail) -> File:
        statements: list[SetDefinition | Detect | Limit] = []
        undecided: set[str] = set()  # `report` alone: `restart` if the start can fail
        while self.tokens.peek().kind != "end":
            if self._at_phrase():
                self._means(statements)
            else:
                detect, limit, decided = self._report()
                statements += [detect] if limit is None else [detect, limit]
                undecided |= set() if decided else {detect.name}
            self.expect(".")
        file = resolve(statements)
        restart = {d.name for d in file.definitions if d.name in undecided and start_can_fail(d.body)}
        return File(
            tuple(replace(s, restart=True) if isinstance(s, Detect) and s.name in restart else s for s in statements),
            tuple(replace(d, restart=True) if d.name in restart else d for d in file.definitions),
            file.limits,
        )

    def _means(self, statements: list[SetDefinition | Detect | Limit]) -> None:
        phrase = self.tokens.next()
        also = self.take("also") is not None
        self.expect("means")
        kind = self._name("an event type")
        terms = (Condition(self.filters.expression()),) if self.take("where") else ()
        member = Named(kind.text, terms, span=self.tokens.span(kind))
        known = self.phrases.name(phrase.value)
        if known is None:
            name = self.phrases.define(phrase.value)
            statements.append(SetDefinition(name, Union((member,)), span=self.tokens.span(phrase)))
            return
        if not also:
            hint = "'also means' adds to a phrase"
            raise self.tokens.fail(phrase, f"'{phrase.value}' is already defined", hint)
        index = next(n for n, s in enumerate(statements) if isinstance(s, SetDefinition) and s.name == known)
        old = statements[index]
        assert isinstance(old, SetDefinition)
        assert isinstance(old.events, Union)
        statements[index] = replace(old, events=Union((*old.events.members, member)))

    def _report(self) -> tuple[Detect, Limit | None, bool]:
        manner = self.take("always", "once")
        self.expect("report")
        name = self._name("a name")
        self.expect("when")
        body = self._pattern()
        same = self.listed(self._parameter, "and") if self._take_words("for", "the", "same") else []
        same = list(dict.fromkeys(same))
        body = with_parameters(body, same)
        condition = self._condition()
        attributes = tuple(self.listed(self._attribute, ",")) if self.take("with") else ()
        limit = self._limit(name, [bind.attribute for bind in same]) if self._take_words("at", "most", "once") else None
        policy = self._policy() if self.take("using") else None
        restart = manner is not None and manner.text.lower() == "always"
        detect = Detect(name.text, body, restart, policy, attributes, condition, span=self.tokens.span(name))
        return detect, limit, manner is not None

    def _limit(self, name: Token, keys: list[str]) -> Limit:
        """`at most once every "1h"`, `at most once until A`: for each value of what is the same."""
        if not self.at("every", "until"):
            raise self.unexpected("'every' or 'until'")
        every = self._duration() if self.take("every") else None
        until = self._events() if self.take("until") else []
        events = Union(tuple(until)) if len(until) > 1 else until[0] if until else None
        return Limit(name.text, tuple(keys), every, events, span=self.tokens.span(name))

    def _duration(self) -> Duration:
        token, time = self.tokens.peek(), self._time()
        if not isinstance(time, Duration):
            raise self.tokens.fail(token, "expected a duration")
        return time

    def _condition(self) -> Attribute | None:
        word = self.take("if")
        return None if word is None else Attribute("where", self.withs.expression(), span=self.tokens.span(word))

    def _parameter(self) -> Bind:
        token = self._name("an attribute")
        if token.text in ENVELOPE:
            raise self.tokens.fail(token, f"'{token.text}' cannot be a parameter name")
        return Bind(token.text, token.text, span=self.tokens.span(token))

    def _attribute(self) -> Attribute:
        name = self._name("an attribute")
        self.expect("=")
        return Attribute(name.text, self.withs.expression(), span=self.tokens.span(name))

    def _policy(self) -> Policy:
        start = self.tokens.peek()
        kind = next((name for name in written_policies() if self._take_words(*name.split("-"))), None)
        if kind is None:
            raise self.unexpected("best effort, guaranteed or probabilistic")
        threshold = self._probability() if POLICIES[kind].has_threshold else 1.0
        self.expect("detection")
        return Policy(kind, threshold, span=self.tokens.span(start))

    def _probability(self) -> float:
        number = self.tokens.peek()
        if number.kind != "number" or not 0 < float(number.text) <= 1:
            raise self.unexpected("a probability above 0 and not above 1")
        return self.tokens.number()

    # Patterns, loosest first.

    def _pattern(self) -> Expression:
        with self.deeper():
            tree = self._either()
            while operator := self._take_words("together", "with"):
                tree = Parallel(tree, self._either(), span=self.tokens.span(operator))
            return tree

    def _either(self) -> Expression:
        tree = self._chain()
        while self.take("or"):
            tree = chained(Alternation, tree, self._chain())
        return tree

    def _chain(self) -> Expression:
        start = self.tokens.peek()
        tree = self._step(timed=True)
        self._check_open_end(tree)
        while (link := self._link(tree, start)) is not None:
            tree = link
        return tree

    def _check_open_end(self, tree: Expression) -> None:
        """In the core a loop in a timing and what follows it have one time: not what these words say."""
        rest = tree.second if isinstance(tree, Timing) else None
        loop = rest.parts[-1] if isinstance(rest, Concatenation) else rest
        if isinstance(tree, Timing) and loop == Iteration(tree.first) and any(map(self.at, ("followed", "then", "not", "after"))):
            hint = "leave out 'at least': more of them are further matches"
            raise self.tokens.fail(self.tokens.peek(), "'at least … times within' can only end a pattern", hint)

    def _link(self, chain: Expression, start: Token) -> Expression | None:
        """What follows all of the chain so far."""
        if self._take_words("then", "wait"):
            return self._timed(chain, lambda timer: Atom((Item(timer),)), self._time(), start)
        if self._take_words("followed", "by"):
            return self._succession(Sequence, chain, start)
        if self.take("then"):
            return self._succession(Concatenation, chain, start)
        if self._take_words("not", "followed", "by"):
            return self._not_followed(chain, start)
        if self.take("after"):
            return chained(Sequence, self._step(timed=True), chain)
        return None

    def _succession(self, kind: type[Sequence] | type[Concatenation], chain: Expression, start: Token) -> Expression:
        step = self._step()
        time: TimeSpec | None = None
        while word := self.take("within", "by", "without"):
            if word.text.lower() == "without":
                step = Group(step, Union(tuple(self._events())), span=self.tokens.span(word))
            elif time is not None:
                raise self.tokens.fail(word, "only one 'within' or 'by' is possible here")
            else:
                time = self._time()
        if time is None:
            return chained(kind, chain, step)
        second = chained(Sequence, Empty(), step) if kind is Sequence else step
        return self._timed(chain, lambda _: second, time, start)

    def _not_followed(self, chain: Expression, start: Token) -> Expression:
        events = self._events()
        if not self.take("within", "by"):
            raise self.unexpected("'within' or 'by'")
        time = self._time()
        return self._timed(chain, lambda timer: Atom((Item(timer),), Union((timer, *events))), time, start)

    def _timed(self, first: Expression, second: Callable[[Named], Expression], time: TimeSpec, start: Token) -> Timing:
        self.timers += 1
        timer = f"T-{self.timers}"
        span = self.since(start)
        return Timing(first, second(Named(timer, span=span)), timer, time, span=span, timer_span=span)

    def _step(self, timed: bool = False) -> Expression:
        """With a time of its own (`3 times within "5 min"`) where no link has one: at the start of a chain and after `after`."""
        optional = self.take("optionally")
        start = self.tokens.peek()
        some_of = start.kind == "number" and self.at("of", distance=1)
        tree = self._some_of(timed) if some_of else self._repeated(self._unit(), start, timed)
        return chained(Alternation, tree, Empty()) if optional else tree

    def _repeated(self, unit: Expression, start: Token, timed: bool) -> Expression:
        if self._take_words("any", "number", "of", "times"):
            return self._iteration(unit)
        more = self._take_words("at", "least")
        if more is None and self.tokens.peek().kind != "number":
            return unit
        rest = [unit] * (self._count(most_times(unit)) - 1) + ([self._iteration(unit)] if more else [])
        if timed and self.at("within"):
            return self._repeated_within(unit, rest, start)
        return reduce(partial(chained, Concatenation), rest, unit)

    def _repeated_within(self, unit: Expression, rest: list[Expression], start: Token) -> Expression:
        """The first one sets the timer; the others must come in its time."""
        word = self.tokens.next()
        if not rest:
            raise self.tokens.fail(word, "'within' wants something that comes at least 2 times")
        return self._timed(unit, lambda _: reduce(partial(chained, Concatenation), rest), self._time(), start)

    def _some_of(self, timed: bool) -> Expression:
        """`2 of A, B, C`: so many of them, in any order; with `within`, each may be the one that sets the timer."""
        start = self.tokens.peek()
        count = self._whole()
        self.expect("of")
        events = self.listed(self._one, ",")
        alias = self._called()
        if count > len(events):
            raise self.tokens.fail(start, f"there are only {len(events)} to take {count} of")
        if perm(len(events), count - 1) > MOST_WAYS:
            raise self.tokens.fail(start, f"there are more than {MOST_WAYS} ways to take {count} of {len(events)}")
        atoms = [Atom((Item(e, alias, span=e.span),), span=e.span) for e in events]
        if not (timed and count > 1 and self.take("within")):
            return _in_any_order(atoms, count)
        time = self._time()
        ways: list[Expression] = []
        for number, first in enumerate(atoms):
            rest = _in_any_order(_without(atoms, number), count - 1)
            ways.append(self._timed(first, lambda _, rest=rest: rest, time, start))  # type: ignore[misc]
        return reduce(partial(chained, Alternation), ways)

    def _iteration(self, unit: Expression) -> Iteration:
        assert self.tokens.last is not None
        return Iteration(unit, span=self.tokens.span(self.tokens.last))

    def _count(self, most: int) -> int:
        count = self._whole(most)
        self.expect("times")
        return count

    def _whole(self, most: int = MOST) -> int:
        token = self.tokens.peek()
        if token.kind != "number" or not token.text.isdecimal() or not token.text.strip("0"):
            raise self.unexpected("a whole number above 0")
        with self.tokens.checked(self.tokens.next()):
            return count_of(token.text, 1, most)

    def _unit(self) -> Expression:
        start = self.tokens.peek()
        if self.tokens.take("("):
            tree = self._pattern()
            self.expect(")")
            return tree
        if self._take_words("anything", "in"):
            among = self._one()
            self.expect("except")
            excluded = self._one()
            return Atom((Item(excluded, self._called()),), among, True, span=self.since(start))
        events = self._events()
        alias = self._called()
        domain = Union((*events, *self._events())) if self.take("before") else None
        return Atom(tuple(Item(e, alias, span=e.span) for e in events), domain, span=self.since(start))

    def _called(self) -> str | None:
        return self._name("an alias").text if self.take("called") else None

    def _events(self) -> list[EventSet]:
        return self.listed(self._one, ",") if self._take_words("any", "of") else [self._one()]

    def _one(self) -> EventSet:
        if not self._at_phrase():
            token = self._name("an event type or a phrase")
            return Named(token.text, self._where(), span=self.tokens.span(token))
        token = self.tokens.next()
        name = self.phrases.name(token.value) or (token.value if is_name(token.value) else None)
        if name is None:
            raise self.tokens.fail(token, f'unknown phrase "{token.value}"', self.phrases.hint(token.value))
        return Named(name, self._where(), span=self.tokens.span(token))

    def _where(self) -> tuple[Condition, ...]:
        """`or` goes on with the pattern: a condition with `or` stands in parentheses."""
        return (Condition(self.filters.conjunction()),) if self.take("where") else ()

    def _time(self) -> TimeSpec:
        token = self.tokens.peek()
        if (milliseconds := self.filters.duration(then=WORDS)) is not None:
            return Duration(microseconds_of(milliseconds), written(self.since(token).text))
        if token.kind != "text":
            raise self.unexpected("a duration or a time in quotes")
        self.tokens.next()
        try:
            return time_of(token.value)
        except KeyError as unknown:
            raise self.tokens.fail(token, f"unknown time zone '{unknown.args[0]}'") from None
        except QuantityError as error:
            raise self.tokens.fail(token, str(error), UNIT_HINT) from None
        except (ValueError, OverflowError):
            raise self.tokens.fail(token, "expected a duration, an ISO-8601 instant or 'HH:MM[:SS] [ZONE]'") from None

    # Tokens. Key words may be in any case.

    def spelled(self, token: Token) -> str:
        return token.text.lower()

    def _at_phrase(self) -> bool:
        token = self.tokens.peek()
        return token.kind == "text" and token.text[0] == '"'

    def _take_words(self, *words: str) -> Token | None:
        """Several words that are one key word together."""
        if not all(self.at(word, distance=distance) for distance, word in enumerate(words)):
            return None
        first, *_ = [self.tokens.next() for _ in words]
        return first

    def _name(self, wanted: str) -> Token:
        token = self.tokens.peek()
        if not token.is_name or token.text.lower() in KEYWORDS:
            raise self.unexpected(wanted)
        return self.tokens.next().named

    def unexpected(self, wanted: str, *, after: str = "", known: Iterable[str] = (), hint: str | None = None) -> RuleError:
        token = self.tokens.peek()
        if token.text in COMPARISONS and token.kind == "op":
            hint = "a condition with 'or' stands in parentheses"
        known = KEYWORDS if token.kind == "name" and token.text.lower() not in KEYWORDS else ()
        return super().unexpected(wanted, after=after, known=known, hint=hint)


def _in_any_order(atoms: list[Atom], count: int) -> Expression:
    """So many of the atoms. The last one is whichever comes: one atom."""
    if count == 1:
        return Atom(tuple(item for atom in atoms for item in atom.items), span=atoms[0].span)
    ways = [chained(Concatenation, atom, _in_any_order(_without(atoms, n), count - 1)) for n, atom in enumerate(atoms)]
    return reduce(partial(chained, Alternation), ways)


def _without(atoms: list[Atom], number: int) -> list[Atom]:
    return atoms[:number] + atoms[number + 1 :]
