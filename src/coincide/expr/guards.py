"""What an event must have for a test to hold: a text of some attribute. So many tests are found by hash, not tried one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from coincide.expr.tree import And, Compare, Expr, HasOne, In, Literal, Or, Reference
from coincide.model.compound import ValueSet, single
from coincide.model.event import Event

Guard = tuple[str, frozenset[str]]
"""An attribute, and the texts of which it has one wherever the test holds."""


def guards(test: Expr) -> dict[str, frozenset[str]]:
    """All of a test, by attribute."""
    match test:
        case Compare(op="=", left=Reference(alias=None) as ref, right=Literal(value=str() as text)):
            return {ref.name: frozenset((text,))}
        case Compare(op="=", left=Literal(value=str() as text), right=Reference(alias=None) as ref):
            return {ref.name: frozenset((text,))}
        case In(operand=Reference(alias=None) as ref, negated=False):
            texts = frozenset(o.value for o in test.options if isinstance(o, Literal) and isinstance(o.value, str))
            return {ref.name: texts} if len(texts) == len(test.options) else {}
        case And():
            return _of_all(test.operands)
        case Or():
            return _of_any(test.operands)
    return {}


def _of_all(tests: Sequence[Expr]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for name, texts in (guard for test in tests for guard in guards(test).items()):
        found[name] = found[name] & texts if name in found else texts
    return found


def _of_any(tests: Sequence[Expr]) -> dict[str, frozenset[str]]:
    each = [guards(test) for test in tests]
    shared = [name for name in each[0] if all(name in found for found in each)] if each else []
    return {name: frozenset().union(*(found[name] for found in each)) for name in shared}


def alternatives(test: Expr) -> dict[str, frozenset[str]]:
    """Attributes of which an event has, wherever the test holds, one of the texts of one at least. Empty: nothing can be said."""
    match test:
        case HasOne(field=name, texts=texts, numbers=()):
            return {name: frozenset(texts)}
        case And():
            return min(filter(None, map(alternatives, test.operands)), key=_size, default={})
        case Or():
            each = [*map(alternatives, test.operands)]
            names = {name for found in each for name in found}
            return {name: frozenset().union(*(found.get(name, ()) for found in each)) for name in names} if all(each) else {}
    return min(({name: texts} for name, texts in guards(test).items()), key=_size, default={})


def _size(found: Mapping[str, frozenset[str]]) -> int:
    return sum(map(len, found.values()))


def value_of(event: Event, name: str) -> object:
    return event.type if name == "type" else event.attributes.get(name)


def texts_of(value: object) -> Iterator[str]:
    """All texts that it has, of several values too."""
    return (one for one in (value.members if isinstance(value, ValueSet) else (value,)) if isinstance(one, str))


class Guarded:
    """Tests by the texts that they ask for, each under the attribute of which all of them together name the most."""

    def __init__(self, tests: Sequence[Expr | None], but: frozenset[str] = frozenset()) -> None:
        """`but` are attributes not to be looked up."""
        found = [
            {} if test is None else {name: texts for name, texts in guards(test).items() if name not in but} for test in tests
        ]
        named: dict[str, set[str]] = defaultdict(set)
        for name, texts in (guard for each in found for guard in each.items()):
            named[name] |= texts
        self.by_text: dict[str, dict[str, list[int]]] = {}
        self.others: list[int] = []
        for number, each in enumerate(found):
            self._enter(number, each, named)

    def candidates(self, event: Event) -> Iterator[int]:
        """The numbers of the tests that may hold for an event."""
        yield from self.others
        for name, by_text in self.by_text.items():
            if isinstance(text := single(value_of(event, name)), str):
                yield from by_text.get(text, ())

    def _enter(self, number: int, found: Mapping[str, frozenset[str]], named: Mapping[str, set[str]]) -> None:
        if not found:
            self.others.append(number)
            return
        name = max(found, key=lambda name: len(named[name]))
        by_text = self.by_text.setdefault(name, {})
        for text in found[name]:
            by_text.setdefault(text, []).append(number)
