"""From syntax to definitions: names resolved, everything checked that one file can tell."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from coincide.errors import nearest
from coincide.expr.tokens import Token, back_quoted
from coincide.lang.ecl.definition import (
    Accumulate,
    Correlation,
    DoUnless,
    Fail,
    File,
    Loop,
    Machine,
    Mode,
    Modes,
    Monitor,
    Output,
    Parallel,
    Persist,
    Predicate,
    Push,
    Repeat,
    Select,
    SelectStar,
    Sequential,
    Transition,
)
from coincide.lang.ecl.expand import FIELDS, Expansion
from coincide.lang.ecl.syntax import FileSyntax, MachineSyntax, MonitorSyntax, Node, Phrase, PushSyntax, TransitionSyntax
from coincide.source import SourceText, Span

NO_KEYS = FIELDS - {"source"}

LISTS: dict[str, Callable[..., Correlation]] = {
    "accumulate": Accumulate,
    "select": Select,
    "select*": SelectStar,
    "sequential": Sequential,
    "parallel": Parallel,
}
REPETITIONS: dict[str, Callable[..., Correlation]] = {"persist": Persist, "repeat": Repeat, "loop": Loop}


def resolve(file: FileSyntax, defined: Collection[str] = ()) -> File:
    """Predicates first, then monitors and machines in order: so the first error is the one that the specification wants."""
    expansion = Expansion(file.source, file.predicates)
    expansion.expand_all()
    seen: dict[str, int | None] = dict.fromkeys(defined)
    detectors: list[Monitor | Machine] = []
    for syntax in file.detectors:
        _check_new(expansion, syntax.name, seen)
        resolver = _Resolver(expansion, syntax.name, syntax.keys)
        detectors.append(resolver.monitor(syntax) if isinstance(syntax, MonitorSyntax) else resolver.machine(syntax))
    predicates = tuple((p.name.text, p.phrase.tree) for p in file.predicates)
    return File(predicates, tuple(detectors))


def _check_new(expansion: Expansion, name: Token, seen: dict[str, int | None]) -> None:
    if name.text in seen:
        line = seen[name.text]
        hint = "in a file loaded before" if line is None else f"on line {line}"
        raise expansion.error(name, f"monitor '{name.text}' is already defined", f"it is defined {hint}")
    seen[name.text] = expansion.source.place(name.start)[0]


class _Resolver:
    """Builds one monitor or machine."""

    def __init__(self, expansion: Expansion, name: Token, keys: tuple[Token, ...]) -> None:
        self.expansion = expansion
        self.source: SourceText = expansion.source
        self.name = name
        self.keys = self._checked_keys(keys)

    def monitor(self, syntax: MonitorSyntax) -> Monitor:
        body = self.correlation(syntax.body)
        return Monitor(self.name.text, self.keys, body, self._token_digest(syntax.tokens), span=self._span(self.name))

    def machine(self, syntax: MachineSyntax) -> Machine:
        states = _states(syntax)
        names: set[str] = set()
        transitions = tuple(self._transition(t, states, names) for t in syntax.transitions)
        self._check_order(syntax, names)
        if not syntax.initial:
            hint = "add an item 'initial STATE;'"
            raise self.expansion.error(self.name, f"machine '{self.name.text}' has no initial state", hint)
        order = tuple(tuple(token.text for token in chain) for chain in syntax.order)
        digest = self._token_digest(syntax.tokens)
        return Machine(self.name.text, self.keys, syntax.initial, transitions, order, digest, span=self._span(self.name))

    # Expressions.

    def correlation(self, node: Node) -> Correlation:
        """In the order of the text, so that of several errors the first is found."""
        if node.leaf is not None:
            return self._predicate(node.leaf, node.span)
        if node.push is not None:
            output = self._output(node.push)
            return Push(output, self.correlation(node.parts[0]), span=node.span)
        parts = tuple(self.correlation(part) for part in node.parts)
        if node.operator in LISTS:
            return LISTS[node.operator](parts, span=node.span)
        if node.operator in REPETITIONS:
            return REPETITIONS[node.operator](parts[0], node.maximum, span=node.span)
        if node.operator == "do":
            return DoUnless(*parts, span=node.span)
        if node.operator == "fail":
            return Fail(*parts, span=node.span)
        return Modes(tuple(_mode(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)), span=node.span)

    def _predicate(self, phrase: Phrase, span: Span) -> Predicate:
        return Predicate(self.expansion.predicate(phrase).tree, phrase.label, phrase.tree, span=span)

    def _output(self, push: PushSyntax) -> Output:
        forbidden = FIELDS | set(self.keys)
        values = []
        for name, phrase in push.attributes:
            if name.text in forbidden:
                raise self.expansion.error(name, f"'{name.text}' cannot be an attribute of '{push.token}'")
            forbidden |= {name.text}
            values.append(self.expansion.value(phrase))
        attributes = tuple((name.text, v.tree) for (name, _), v in zip(push.attributes, values, strict=True))
        written = tuple(phrase.tree for _, phrase in push.attributes)
        return Output(push.token, attributes, written, tuple("\n".join(v.tokens) for v in values), span=push.span)

    # Machines.

    def _transition(self, syntax: TransitionSyntax, states: frozenset[str], names: set[str]) -> Transition:
        if syntax.name.text in names:
            raise self.expansion.error(syntax.name, f"transition '{syntax.name.text}' is already defined")
        names.add(syntax.name.text)
        test = None if syntax.test is None else self._predicate(syntax.test, self._phrase_span(syntax.test))
        output = None if syntax.push is None else self._output(syntax.push)
        clear = tuple(sorted(_cleared(syntax, states)))
        return Transition(syntax.name.text, syntax.enabling, test, clear, syntax.target, output, span=syntax.span)

    def _check_order(self, syntax: MachineSyntax, names: set[str]) -> None:
        before: TopologicalSorter[str] = TopologicalSorter()
        for chain in syntax.order:
            for token in chain:
                if token.text not in names:
                    raise self.expansion.error(token, f"unknown transition '{token.text}'", nearest(token.text, names))
            for urgent, other in pairwise(chain):
                before.add(other.text, urgent.text)
        try:
            before.prepare()
        except CycleError as error:
            circle = " < ".join(error.args[1])
            raise self.expansion.error(self.name, f"the order of machine '{self.name.text}' has a cycle", circle) from None

    # Keys, places, digests.

    def _checked_keys(self, keys: tuple[Token, ...]) -> tuple[str, ...]:
        names: list[str] = []
        for key in keys:
            dotted = "." in key.text and key.kind == "name"
            if key.text in NO_KEYS or dotted or key.text in names:
                hint = f"a nested attribute is written {back_quoted(key.text)}" if dotted else None
                raise self.expansion.error(key, f"'{key.text}' cannot be a key of '{self.name.text}'", hint)
            names.append(key.text)
        return tuple(names)

    def _span(self, token: Token) -> Span:
        return self.source.span(token.start, token.end)

    def _phrase_span(self, phrase: Phrase) -> Span:
        return self.source.span(phrase.tokens[0].start, phrase.tokens[-1].end)

    def _token_digest(self, tokens: Iterable[Token]) -> str:
        """No token has a line break in it, so the text that is hashed stands for one sequence only."""
        text = "\n".join(self.expansion.flat(tokens))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _mode(guard: Correlation, body: Correlation) -> Mode:
    assert isinstance(guard, Predicate)
    assert guard.span is not None
    end = (body.span or guard.span).end
    return Mode(guard, body, span=guard.span.source.span(guard.span.start, end))


def _states(syntax: MachineSyntax) -> frozenset[str]:
    """Those that occur."""
    states = set(syntax.initial)
    for transition in syntax.transitions:
        states |= transition.enabling_states | set(transition.target) | set(transition.clear or ())
    return frozenset(states)


def _cleared(syntax: TransitionSyntax, states: frozenset[str]) -> Iterable[str]:
    if syntax.clears_all:
        return states
    return syntax.enabling_states if syntax.clear is None else syntax.clear
