"""Rules of the English-like language as blocks, and blocks as text: what a drawing can say, both ways.

A block is plain data with a `kind`. What it cannot say (anything that has no block) stays text: such a rule is shown, not
changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from coincide.detection.automaton.starts import start_can_fail
from coincide.editing.languages.pretty import walk_of
from coincide.errors import CoincideError, InputError
from coincide.lang.opera.definition import (
    Alternation,
    Atom,
    Concatenation,
    Detect,
    Empty,
    EventSet,
    Expression,
    File,
    Group,
    Iteration,
    Named,
    Parallel,
    Timing,
    Union,
)
from coincide.lang.opera.definition import Sequence as Following
from coincide.lang.pretty.parse import parse
from coincide.lang.pretty.print import CHAIN as CHAINED
from coincide.lang.pretty.print import EITHER, PATTERN, STEP, UNIT, NotExpressible, event_text, sentence_parts
from coincide.lang.shared.times import At
from coincide.source import SourceText

ENDING = ".say"


class Block(msgspec.Struct, omit_defaults=True):
    """Kinds: event (type, where, called); sequence (parts, word, within); either, together (parts); times (part, count, least,
    within); repeat, optional (part); absent (part, events, within); without (part, events); wait (part, within)."""

    kind: str
    parts: list[Block] = []
    type: str = ""
    where: str = ""
    called: str = ""
    word: str = ""
    within: str = ""
    count: int = 0
    least: bool = False
    events: list[Block] = []


class Rule(msgspec.Struct, omit_defaults=True):
    """`pattern` is None where `why` says that blocks cannot say it."""

    name: str
    pattern: Block | None = None
    same: list[str] = []
    rest: str = ""
    manner: str = "Report"
    why: str = ""


# From text.


def drawn_rules(source: SourceText) -> list[Rule]:
    """All reports of a file, in order. Raises RuleError, and InputError for another language."""
    if not source.name.endswith(ENDING):
        raise InputError(f"blocks are for files that end in {ENDING}")
    if not source.text.strip():
        return []
    file = parse(source, start_can_fail)
    return [_rule(statement, file, source) for statement in file.statements if isinstance(statement, Detect)]


def _rule(statement: Detect, file: File, source: SourceText) -> Rule:
    try:
        name, same, rest = sentence_parts(statement, file)
        return Rule(name, _Reader(statement, file).block(statement.body), list(same), rest, _manner(statement, source))
    except CoincideError as error:
        return Rule(statement.name, why=str(error))


def _manner(statement: Detect, source: SourceText) -> str:
    start, end = _place(statement, source)
    first = source.text[start:end].split(None, 1)[0].lower()
    return {"always": "Always report", "once": "Once report"}.get(first, "Report")


class _Reader:
    def __init__(self, statement: Detect, file: File) -> None:
        self.statement, self.file = statement, file

    def block(self, node: Expression) -> Block:
        match node:
            case Atom():
                return self._atom(node)
            case Following(parts):
                return Block("sequence", [self.block(part) for part in parts], word="followed by")
            case Concatenation(parts):
                return Block("sequence", [self.block(part) for part in parts], word="then")
            case Alternation(parts) if parts[-1] == Empty() and len(parts) == 2:
                return Block("optional", [self.block(parts[0])])
            case Alternation(parts) if Empty() not in parts:
                return Block("either", [self.block(part) for part in parts])
            case Parallel(left, right):
                return Block("together", [self.block(left), self.block(right)])
            case Iteration(body):
                return Block("repeat", [self.block(body)])
            case Group(body, Union(members)):
                return Block("without", [self.block(body)], events=self._events(members))
            case Timing() if not isinstance(node.time, At):
                return self._timing(node)
        raise NotExpressible("there is no block for a part of this rule")

    def _atom(self, node: Atom) -> Block:
        if node.negated or node.domain is not None or (len(node.items) > 1 and node.items[0].alias):
            raise NotExpressible("there is no block for a part of this rule")
        events = self._events([item.events for item in node.items])
        if len(events) > 1:
            return Block("any", events)
        events[0].called = node.items[0].alias or ""
        return events[0]

    def _events(self, members: Sequence[EventSet]) -> list[Block]:
        found = []
        for member in members:
            name, test = event_text(member, self.statement, self.file)
            found.append(Block("event", type=name, where=test))
        return found

    def _timing(self, node: Timing) -> Block:
        within, second = node.time.text, node.second
        rest = list(second.parts) if isinstance(second, Concatenation) else [second]
        more = rest[-1] == Iteration(node.first)
        if all(part == node.first for part in rest[: -1 if more else None]) and (len(rest) > 1 or not more):
            count = len(rest) if more else 1 + len(rest)
            return Block("times", [self.block(node.first)], count=count, least=more, within=within)
        first = self.block(node.first)
        if isinstance(second, Atom) and [item.events for item in second.items] == [Named(node.timer)]:
            if second.domain is None:
                return Block("wait", [first], within=within)
            others = second.domain.members[1:] if isinstance(second.domain, Union) else ()
            return Block("absent", [first], events=self._events(others), within=within)
        if isinstance(second, Following) and second.parts[0] == Empty():
            return Block("sequence", [first, self.block(second.parts[-1])], word="followed by", within=within)
        return Block("sequence", [first, self.block(second)], word="then", within=within)


# To text.


def rule_text(rule: Rule) -> str:
    """As one report. Raises InputError for what cannot be said."""
    if rule.pattern is None:
        raise InputError(f"'{rule.name}' cannot be drawn: {rule.why}")
    same = f" for the same {' and '.join(rule.same)}" if rule.same else ""
    rest = f" {rule.rest}" if rule.rest else ""
    return f"{rule.manner} {rule.name} when {_at(rule.pattern, PATTERN)}{same}{rest}."


def _at(block: Block, level: int) -> str:
    text, own = _WRITERS[block.kind](block) if block.kind in _WRITERS else _unknown(block)
    return f"({text})" if own < level else text


def _unknown(block: Block) -> tuple[str, int]:
    raise InputError(f"there is no block '{block.kind}'")


def _event(block: Block) -> tuple[str, int]:
    if not block.type.strip():
        raise InputError("an event has no type yet")
    where = f" where {block.where}" if block.where.strip() else ""
    return f"{block.type}{where}{f' called {block.called}' if block.called.strip() else ''}", UNIT


def _sequence(block: Block) -> tuple[str, int]:
    _need(block, 2)
    first, *others = block.parts
    if block.within and others[1:]:  # the time is that of the last step
        before = Block("sequence", block.parts[:-1], word=block.word)
        return _sequence(Block("sequence", [before, others[-1]], word=block.word, within=block.within))
    steps = [_at(first, CHAINED), *(_at(part, STEP) for part in others)]
    within = f' within "{block.within}"' if block.within else ""
    return f" {block.word or 'followed by'} ".join(steps) + within, CHAINED


def _either(block: Block) -> tuple[str, int]:
    _need(block, 2)
    return " or ".join(_at(part, CHAINED) for part in block.parts), EITHER


def _together(block: Block) -> tuple[str, int]:
    _need(block, 2)
    first, *others = block.parts
    return " together with ".join([_at(first, PATTERN), *(_at(part, EITHER) for part in others)]), PATTERN


def _times(block: Block) -> tuple[str, int]:
    _need(block, 1)
    least = "at least " if block.least else ""
    return f'{_at(block.parts[0], UNIT)} {least}{max(2, block.count)} times within "{block.within or "1 min"}"', CHAINED


def _repeat(block: Block) -> tuple[str, int]:
    _need(block, 1)
    return f"{_at(block.parts[0], UNIT)} any number of times", STEP


def _optional(block: Block) -> tuple[str, int]:
    _need(block, 1)
    return f"optionally {_at(block.parts[0], STEP if block.parts[0].kind == 'repeat' else UNIT)}", STEP


def _absent(block: Block) -> tuple[str, int]:
    _need(block, 1)
    return f'{_at(block.parts[0], CHAINED)} not followed by {_listed(block.events)} within "{block.within or "1 min"}"', CHAINED


def _without(block: Block) -> tuple[str, int]:
    _need(block, 1)
    return f"{_at(block.parts[0], STEP)} without {_listed(block.events)}", STEP


def _wait(block: Block) -> tuple[str, int]:
    _need(block, 1)
    return f'{_at(block.parts[0], CHAINED)} then wait "{block.within or "1 min"}"', CHAINED


def _any(block: Block) -> tuple[str, int]:
    return _listed(block.parts), UNIT


def _listed(events: Sequence[Block]) -> str:
    if not events:
        raise InputError("an event is missing")
    texts = [_event(event)[0] for event in events]
    return texts[0] if len(texts) == 1 else f"any of {', '.join(texts)}"


def _need(block: Block, count: int) -> None:
    if len(block.parts) < count:
        raise InputError(f"'{block.kind}' needs {'two parts' if count == 2 else 'a part'}")


_WRITERS: dict[str, Callable[[Block], tuple[str, int]]] = {
    "event": _event,
    "sequence": _sequence,
    "either": _either,
    "together": _together,
    "times": _times,
    "repeat": _repeat,
    "optional": _optional,
    "absent": _absent,
    "without": _without,
    "wait": _wait,
    "any": _any,
}


# In a file.


def composed(source: SourceText, number: int, rule: Rule) -> str:
    """The text with a report in the place of the one that has this number, or behind all. Raises InputError and RuleError."""
    statements = [s for s in parse(source, start_can_fail).statements if isinstance(s, Detect)] if source.text.strip() else []
    text = rule_text(rule)
    if number >= len(statements):
        before = source.text.rstrip()
        made = f"{before}\n\n{text}\n" if before else f"{text}\n"
    else:
        start, end = _place(statements[number], source)
        made = source.text[:start] + text + source.text[end:]
    parse(SourceText(source.name, made), start_can_fail)
    return made


def _place(statement: Detect, source: SourceText) -> tuple[int, int]:
    walk = walk_of(source)
    assert statement.span is not None
    for first, end in pairwise([*sorted(set(walk.statements)), len(walk.tokens)]):
        start, stop = walk.tokens[first].start, walk.tokens[end - 1].end
        if start <= statement.span.start < stop:
            return start, stop
    raise InputError("the rule is not found in its text")
