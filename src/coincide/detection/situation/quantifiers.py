"""Quantifiers: which of several candidates, or of several open lifespans, are meant. Both stand oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Quantifier:
    one: bool  # is one meant, or are all?
    backwards: bool  # is the newest one tried first?
    kernel: str  # its name in kernel/layout.py

    def ordered(self, found: Sequence[T]) -> Sequence[T]:
        """In the order in which they are tried."""
        return found[::-1] if self.backwards else found

    def meant(self, found: Sequence[T]) -> Sequence[T]:
        """Of those there are, whether they fit or not."""
        if not self.one:
            return found
        return found[-1:] if self.backwards else found[:1]

    def covers(self, one: T, found: Sequence[T]) -> bool:
        return not self.one or one is found[-1 if self.backwards else 0]


QUANTIFIERS = {
    "each": Quantifier(one=False, backwards=False, kernel="EACH"),
    "first": Quantifier(one=True, backwards=False, kernel="FIRST"),
    "last": Quantifier(one=True, backwards=True, kernel="LAST"),
}
