"""What stands where in a rule text: names with what they name, key words, and the rest. All that an editor asks is answered from
these marks; they are made of texts that are half written, too."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import NamedTuple

from coincide.editing.files import may_be_rules
from coincide.languages.registry import language_name
from coincide.source import SourceText

COMMENT, KEYWORD, FUNCTION, OPERATOR, NUMBER, TEXT = "comment", "keyword", "function", "operator", "number", "text"
EVENT, ATTRIBUTE, DETECTOR = "event", "attribute", "detector"
"""Names that all files share. A detector is a definition whose own name no event has, such as a monitor."""
FILE = "file"
"""The scope of names that belong to their file."""

PLAIN = frozenset({COMMENT, KEYWORD, FUNCTION, OPERATOR, NUMBER, TEXT})
"""Kinds that are not names. Names that are of one language only (state, alias, lifespan …) have the kind that they are called."""


class Mark(NamedTuple):
    """A stretch of a text. Of a name: what it means without quotes, whether it is defined here, and where it is known: everywhere
    (''), in its file, or in a part of it."""

    start: int
    end: int
    kind: str
    name: str = ""
    defines: bool = False
    scope: str = ""

    @property
    def is_name(self) -> bool:
        return self.kind not in PLAIN

    def means(self, other: Mark) -> bool:
        """Do both name the same thing? (Where scopes are no matter of other files.)"""
        return (self.kind, self.name, self.scope) == (other.kind, other.name, other.scope)


@lru_cache(maxsize=2048)
def marks_of(source: SourceText) -> tuple[Mark, ...]:
    """In the order of the text; none overlaps another. A file that is not one of ours has none."""
    if not may_be_rules(source):
        return ()
    marker: Callable[[SourceText], Iterable[Mark]] = import_module(
        f"coincide.editing.languages.{language_name(source.name)}"
    ).marks
    return apart(marker(source))


def apart(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """In order; of two that overlap, the one that was told first."""
    found: list[Mark] = []
    for mark in marks:
        at = bisect_left(found, mark)
        free = (at == 0 or found[at - 1].end <= mark.start) and (at == len(found) or mark.end <= found[at].start)
        if free and mark.end > mark.start:
            found.insert(at, mark)
    return tuple(found)


def mark_at(source: SourceText, offset: int) -> Mark | None:
    """The mark that a place is in, or that ends there."""
    near = [mark for mark in marks_of(source) if mark.start <= offset <= mark.end]
    return max(near, key=lambda m: (m.is_name, m.start), default=None)
