"""What a definition reads of events, with the places where it says so: for warnings about what no event has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coincide.expr.tree import Compare, Expr, In, Literal, Reference
from coincide.model.event import ENVELOPE
from coincide.source import Span
from coincide.syntax import walk

TYPE, KEY, ATTRIBUTE = "type", "key", "attribute"


@dataclass(frozen=True)
class Mention:
    """A name of something that events have: `what` is TYPE, KEY or ATTRIBUTE; `kind` the type that its values are declared to be
    of, if they are. `refused` is what a definition waits for in vain where all goes well (`unless`, `not`); `elsewhere` an
    attribute that may say instead what is looked for."""

    what: str
    name: str
    span: Span | None = None
    kind: str | None = None
    refused: bool = False
    elsewhere: str | None = None


@dataclass(frozen=True)
class Reads:
    """All that one definition mentions. `tests` are expressions over attributes alone, whose types follow from theirs. `gives`
    are the attributes of its own detections: who reads those does not miss them in events."""

    mentions: tuple[Mention, ...]
    tests: tuple[Expr, ...] = ()
    gives: frozenset[str] = frozenset()

    def names(self, *what: str) -> frozenset[str]:
        return frozenset(mention.name for mention in self.mentions if mention.what in what)


def mentions_of(tree: Expr, refused: bool = False) -> Iterator[Mention]:
    """Types that a tree tests for, and attributes that it reads."""
    for node in walk(tree):
        if isinstance(node, Reference) and is_attribute(node.name):
            yield Mention(ATTRIBUTE, node.name, node.span, None, refused)
        elif isinstance(node, Compare) and node.op == "=":
            yield from (*_types(node.left, (node.right,), refused), *_types(node.right, (node.left,), refused))
        elif isinstance(node, In):
            yield from _types(node.operand, node.options, refused)


def is_attribute(name: str) -> bool:
    """Of the envelope, only the source may be absent."""
    return name not in ENVELOPE or name == "source"


def _types(tested: Expr, options: Iterable[Expr], refused: bool) -> Iterator[Mention]:
    if isinstance(tested, Reference) and tested.name == "type":
        for option in options:
            if isinstance(option, Literal) and isinstance(option.value, str):
                yield Mention(TYPE, option.value, option.span, None, refused)


def keys_of(names: Iterable[str], definition: Span | None) -> Iterator[Mention]:
    """Keys, which stand behind the place that a definition is known by."""
    for name in names:
        if is_attribute(name):
            yield Mention(KEY, name, _first_behind(definition, name))


def _first_behind(place: Span | None, name: str) -> Span | None:
    if place is None:
        return None
    word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])").search(place.source.text, place.start)
    return place if word is None else place.source.span(*word.span())
