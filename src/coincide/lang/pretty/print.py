"""Core definitions in the English-like language, as far as it can say them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from coincide.errors import CoincideError, RuleError
from coincide.expr.functions import number_text
from coincide.expr.print import expression_text
from coincide.expr.tokens import back_quoted, name_text
from coincide.expr.tree import Expr, Or
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Bind,
    Concatenation,
    Condition,
    Detect,
    Empty,
    EventSet,
    Expression,
    File,
    Group,
    Iteration,
    Limit,
    Named,
    Parallel,
    Policy,
    Sequence,
    SetDefinition,
    Statement,
    Timing,
    Union,
)
from coincide.lang.pretty.parse import CanFail, parse
from coincide.lang.pretty.phrases import KEYWORDS, spoken
from coincide.lang.shared.times import At, TimeSpec
from coincide.ordering import POLICIES
from coincide.source import SourceText, room_for_recursion
from coincide.syntax import walk

# How tightly a pattern binds, loosest first.
PATTERN, EITHER, CHAIN, STEP, UNIT = range(5)


class NotExpressible(CoincideError):
    """The core definition has no sentence in the English-like language."""


def print_file(file: File, start_can_fail: CanFail) -> str:
    """Text that parses back to equal statements; NotExpressible if there is none."""
    with room_for_recursion():
        definitions = {d.name: d for d in file.definitions}
        plain = {name for name, d in definitions.items() if start_can_fail(d.body) == d.restart}
        text = "".join(line + "\n" for statement in file.statements for line in _lines(statement, plain, file))
    try:
        same = parse(SourceText("printed", text), start_can_fail).statements == file.statements
    except RuleError:
        same = False
    if not same:
        raise NotExpressible("these definitions cannot be said in the English-like language")
    return text


def _lines(statement: Statement, plain: set[str], file: File) -> Iterable[str]:
    if isinstance(statement, SetDefinition):
        return _means(statement)
    if isinstance(statement, Limit):
        return ()  # said with what it limits
    if isinstance(statement, Detect):
        return [_report(statement, statement.name in plain, _Printer(statement, file))]
    raise NotExpressible(f"the English-like language has no '{type(statement).__name__.lower()}'")


def _name(name: str) -> str:
    """Key words may be in any case."""
    return back_quoted(name) if name.lower() in KEYWORDS else name_text(name)


def _means(statement: SetDefinition) -> Iterable[str]:
    members = statement.events.members if isinstance(statement.events, Union) else ()
    for number, member in enumerate(members):
        if not isinstance(member, Named):
            raise NotExpressible(f"set '{statement.name}' is more than a list of event types")
        conditions = [expression_text(term.test) for term in member.terms if isinstance(term, Condition)]
        where = f" where {' and '.join(conditions)}" if conditions else ""
        yield f"{spoken(statement.name)} {'also means' if number else 'means'} {_name(member.name)}{where}."


def _report(statement: Detect, plain: bool, printer: _Printer) -> str:
    manner = "Report" if plain else "Always report" if statement.restart else "Once report"
    text = f"{manner} {_name(statement.name)} when {printer.at(statement.body, PATTERN)}"
    if printer.parameters:
        text += f" for the same {' and '.join(_name(bind.attribute) for bind in printer.parameters)}"
    return f"{text}{_rest(statement, printer)}."


def _rest(statement: Detect, printer: _Printer) -> str:
    """What stands behind the pattern and its keys."""
    text = "" if statement.condition is None else f" if {expression_text(statement.condition.value)}"
    if statement.attributes:
        text += f" with {', '.join(f'{_name(a.name)} = {expression_text(a.value)}' for a in statement.attributes)}"
    return f"{text}{printer.limit(statement.name)}{_policy(statement.policy)}"


class Said(NamedTuple):
    """A report in its parts, but for the pattern: its name, the attributes that must be the same, and what stands behind them."""

    name: str
    same: tuple[str, ...]
    rest: str


def sentence_parts(statement: Detect, file: File) -> Said:
    """Raises NotExpressible."""
    printer = _Printer(statement, file)
    same = tuple(_name(bind.attribute) for bind in printer.parameters)
    return Said(_name(statement.name), same, _rest(statement, printer).strip())


def event_text(events: EventSet, statement: Detect, file: File) -> tuple[str, str]:
    """What an event is called, and the condition behind `where`. Raises NotExpressible."""
    name, _, test = _Printer(statement, file)._one(events).partition(" where ")
    return name, test


def _policy(policy: Policy | None) -> str:
    if policy is None:
        return ""
    threshold = f" {number_text(policy.threshold)}" if POLICIES[policy.kind].has_threshold else ""
    return f" using {policy.kind.replace('-', ' ')}{threshold} detection"


def _test(test: Expr) -> str:
    """Behind `where` in a pattern, whose own `or` it must not be taken for."""
    return f"({expression_text(test)})" if isinstance(test, Or) else expression_text(test)


def _time(word: str, time: TimeSpec) -> str:
    return f'{"by" if word == "within" and isinstance(time, At) else word} "{time.text}"'


def _times(node: Timing) -> str | None:
    """How often the first part comes, if the second is nothing else."""
    rest = list(node.second.parts) if isinstance(node.second, Concatenation) else [node.second]
    more = rest[-1] == Iteration(node.first)
    if any(part != node.first for part in rest[: -1 if more else None]) or isinstance(node.time, At):
        return None
    return f"at least {len(rest)} times" if more else f"{1 + len(rest)} times"


class _Printer:
    """Writes the pattern of one report."""

    def __init__(self, statement: Detect, file: File) -> None:
        self.phrases = {s.name for s in file.statements if isinstance(s, SetDefinition)}
        binds = [node for node in walk(statement.body) if isinstance(node, Bind)]
        self.parameters = list(dict.fromkeys(binds))
        self.limits = [s for s in file.statements if isinstance(s, Limit)]

    def limit(self, name: str) -> str:
        for limit in self.limits:
            if limit.type == name:
                every = "" if limit.every is None else f" {_time('every', limit.every)}"
                until = limit.until.members if isinstance(limit.until, Union) else [limit.until] if limit.until else []
                return f" at most once{every}{f' until {self._events(until)}' if until else ''}"
        return ""

    def at(self, node: Expression, level: int) -> str:
        text, own = self._written(node)
        return f"({text})" if own < level else text

    def _written(self, node: Expression) -> tuple[str, int]:
        if isinstance(node, Atom):
            return self._atom(node), UNIT
        if isinstance(node, Parallel):
            return f"{self.at(node.left, PATTERN)} together with {self.at(node.right, EITHER)}", PATTERN
        if isinstance(node, Alternation):
            return self._alternation(node)
        if isinstance(node, Concatenation | Sequence):
            return self._succession(node), CHAIN
        if isinstance(node, Iteration):
            return f"{self.at(node.body, UNIT)} any number of times", STEP
        if isinstance(node, Timing):
            return self._timing(node), CHAIN
        raise NotExpressible("the English-like language cannot say this pattern")

    def _alternation(self, node: Alternation) -> tuple[str, int]:
        if node.parts[-1] != Empty():
            return " or ".join(self.at(part, CHAIN) for part in node.parts), EITHER
        rest = node.parts[0] if len(node.parts) == 2 else Alternation(node.parts[:-1])
        return f"optionally {self.at(rest, STEP if isinstance(rest, Iteration) else UNIT)}", STEP

    def _succession(self, node: Concatenation | Sequence) -> str:
        word = " then " if isinstance(node, Concatenation) else " followed by "
        return word.join([self.at(node.parts[0], CHAIN), *map(self._step, node.parts[1:])])

    def _step(self, node: Expression) -> str:
        if isinstance(node, Group) and isinstance(node.domain, Union):
            return f"{self._step(node.body)} without {self._events(node.domain.members)}"
        return self.at(node, STEP)

    def _timing(self, node: Timing) -> str:
        if (times := _times(node)) is not None:
            return f"{self.at(node.first, UNIT)} {times} {_time('within', node.time)}"
        first, second, timer = self.at(node.first, CHAIN), node.second, Named(node.timer)
        if isinstance(second, Atom) and [item.events for item in second.items] == [timer]:
            if second.domain is None:
                return f"{first} then {_time('wait', node.time)}"
            others = second.domain.members[1:] if isinstance(second.domain, Union) else ()
            return f"{first} not followed by {self._events(others)} {_time('within', node.time)}"
        if isinstance(second, Sequence) and second.parts[0] == Empty():
            return f"{first} followed by {self._step(second.parts[-1])} {_time('within', node.time)}"
        return f"{first} then {self._step(second)} {_time('within', node.time)}"

    def _atom(self, node: Atom) -> str:
        called = f" called {_name(node.items[0].alias)}" if node.items[0].alias else ""
        items = [item.events for item in node.items]
        if node.negated:
            assert node.domain is not None
            return f"anything in {self._one(node.domain)} except {self._one(items[0])}{called}"
        text = self._events(items) + called
        if node.domain is None:
            return text
        domain = node.domain.members if isinstance(node.domain, Union) else ()
        return f"{text} before {self._events(domain[len(items) :])}"

    def _events(self, sets: Iterable[EventSet]) -> str:
        texts = [self._one(events) for events in sets]
        if not texts:
            raise NotExpressible("an event or a phrase is wanted")
        return texts[0] if len(texts) == 1 else f"any of {', '.join(texts)}"

    def _one(self, events: EventSet) -> str:
        if not isinstance(events, Named):
            raise NotExpressible("only event types and phrases can be said")
        tests = [term.test for term in events.terms if isinstance(term, Condition)]
        name = spoken(events.name) if events.name in self.phrases else _name(events.name)
        return " where ".join([name, *map(_test, tests)])
