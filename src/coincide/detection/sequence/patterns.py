"""The patterns of all rules on one field, found in its distinct texts: by one search for what they are made of, then, where that
does not decide, by the patterns themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from coincide.expr.patterns import like

if TYPE_CHECKING:
    from coincide.detection.columns.search import Search

Numbers = npt.NDArray[np.int64]

CONTAINS, STARTS, ENDS = 1, 2, 4
FEW = 8
"""So many patterns are looked for one by one: that starts at once."""
WILD = re.compile(r"[*?]")


@dataclass(frozen=True)
class Needle:
    """A text without wildcards that must be in every text that matches; `decides`: and that suffices."""

    text: str
    place: int
    decides: bool

    def is_in(self, text: str) -> bool:
        if self.place == STARTS:
            return text.startswith(self.text)
        return text.endswith(self.text) if self.place == ENDS else self.text in text


def needles_of(pattern: str) -> list[Needle]:
    """One that decides, or all that must be there. None at all: any text may match."""
    pieces = [piece for piece in WILD.split(pattern) if piece]
    if len(pieces) == 1 and "?" not in pattern and "*" in pattern:
        place = STARTS if pattern[0] != "*" else ENDS if pattern[-1] != "*" else CONTAINS
        return [Needle(pieces[0], place, True)]
    return [Needle(piece, CONTAINS, False) for piece in pieces]


class Patterns:
    """In lower case, where case does not matter; so are then the texts."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.exact = [pattern for pattern in patterns if not WILD.search(pattern)]
        self.wild = {pattern: needles_of(pattern) for pattern in patterns if WILD.search(pattern)}

    @cached_property
    def _needles(self) -> list[Needle]:
        return list(dict.fromkeys(needle for needles in self.wild.values() for needle in needles))

    def found(self, texts: Sequence[str]) -> dict[str, Numbers]:
        """The numbers of the texts that match, by pattern."""
        numbers: dict[str, list[int]] = {}
        for number, text in enumerate(texts if self.exact else ()):
            numbers.setdefault(text, []).append(number)
        made = {pattern: np.array(numbers.get(pattern, ()), np.int64) for pattern in self.exact}
        hits = self._hits(texts)
        for pattern, needles in self.wild.items():
            some = min((hits[needle] for needle in needles), key=len, default=np.arange(len(texts)))
            made[pattern] = some if needles and needles[0].decides else _matching(pattern, texts, some)
        return made

    def _hits(self, texts: Sequence[str]) -> dict[Needle, Numbers]:
        if len(self._needles) <= FEW:
            return {n: np.array([k for k, text in enumerate(texts) if n.is_in(text)], np.int64) for n in self._needles}
        return self._searched(texts)

    def _searched(self, texts: Sequence[str]) -> dict[Needle, Numbers]:
        data = [text.encode("utf-8", "surrogatepass") for text in texts]
        offsets = np.concatenate(([0], np.cumsum([len(one) for one in data]))).astype(np.int64)
        pieces = list(self._search.find(np.frombuffer(b"".join(data), np.uint8), offsets))
        nothing = np.zeros(0, np.int32)
        values, needles, bits = (np.concatenate([nothing, *(piece[n] for piece in pieces)]) for n in range(3))
        order = np.argsort(needles, kind="stable")
        values, needles, bits = values[order], needles[order], bits[order]
        starts = np.searchsorted(needles, np.arange(len(self._kinds) + 1))
        found = {}
        for needle in self._needles:
            number = self._numbers[needle.text]
            here = slice(starts[number], starts[number + 1])
            found[needle] = values[here][bits[here] & needle.place > 0].astype(np.int64)
        return found

    @cached_property
    def _kinds(self) -> dict[str, int]:
        """What is looked for, and where."""
        kinds: dict[str, int] = {}
        for needle in self._needles:
            kinds[needle.text] = kinds.get(needle.text, 0) | needle.place
        return kinds

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(self._kinds)}

    @cached_property
    def _search(self) -> Search:
        from coincide.detection.columns.search import Search

        return Search([(text.encode("utf-8", "surrogatepass"), kind) for text, kind in self._kinds.items()])


def _matching(pattern: str, texts: Sequence[str], some: Numbers) -> Numbers:
    return np.array([n for n in some.tolist() if like(texts[n], pattern, "*", "?")], np.int64)
