"""The tests of all rules on one field, together: equality by hash, texts within texts by one search, the rest one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from coincide.detection.selection.search import CONTAINS, ENDS, STARTS, Search
from coincide.detection.selection.tests import folded, shape, spelling, tester, wild
from coincide.lang.sigma.definition import Number, Part, Regex, Test, Text, Truth, Wild
from coincide.model.compound import Single

Holds = Callable[[Single], bool]
Needles = dict[bytes, list[tuple[int, Test, Holds | None, Callable[[str], bool] | None]]]
"""Tests that a text found decides, or, with a second look at the value or at the text without case, may pass."""
BITS = {"contains": CONTAINS, "startswith": STARTS, "endswith": ENDS}
SHORTEST = 3
"""A text that every match must hold is looked for before a pattern is tried, if it is so long."""


class FieldTests:
    """Which tests hold for which values."""

    def __init__(self, tests: Iterable[Test]) -> None:
        self._equal: dict[str, list[tuple[Test, Holds | None]]] = {}
        self._rest: list[tuple[Test, Holds]] = []
        needles: Needles = {}
        for test in tests:
            self._sort(test, needles)
        self._needles = list(needles.values())
        kinds = [_united(bit for bit, *_ in uses) for uses in self._needles]
        self._search = Search(list(zip(needles, kinds, strict=True))) if needles else None

    def _sort(self, test: Test, needles: Needles) -> None:
        verify = tester(test)
        if isinstance(test, (Number, Truth)):
            self._equal.setdefault(folded(spelling(test.value)), []).append((test, verify))
            return
        if isinstance(test, Text):
            parts: tuple[Part, ...] = tuple(part if isinstance(part, Wild) else folded(part) for part in test.parts)
            needed = verify if test.cased else None
            if not any(isinstance(part, Wild) for part in parts):
                self._equal.setdefault("".join(map(str, parts)), []).append((test, needed))
                return
            kind = shape(parts)
            if kind is not None:
                needles.setdefault(_bytes(kind[1]), []).append((BITS[kind[0]], test, needed, None))
                return
        literal = _literal(test)
        if len(literal) >= SHORTEST:
            again = wild(parts) if isinstance(test, Text) and not test.cased else None
            needles.setdefault(_bytes(literal), []).append((CONTAINS, test, verify if again is None else None, again))
        else:
            self._rest.append((test, verify))

    def hits(self, values: Sequence[Single]) -> dict[Test, list[int]]:
        """For each test that holds for any value, the numbers of those values."""
        found: dict[Test, list[int]] = {}
        texts = [folded(spelling(value)) for value in values]
        for number, text in enumerate(texts) if self._equal else ():
            for test, verify in self._equal.get(text, ()):
                if verify is None or verify(values[number]):
                    found.setdefault(test, []).append(number)
        if self._search is not None:
            self._find(self._search, values, texts, found)
        for test, verify in self._rest:
            if holding := [number for number, value in enumerate(values) if verify(value)]:
                found[test] = holding
        return found

    def _find(self, search: Search, values: Sequence[Single], texts: Sequence[str], found: dict[Test, list[int]]) -> None:
        for numbers, needles, bits in search.find([_bytes(text) for text in texts]):
            for number, needle, counted in zip(numbers.tolist(), needles.tolist(), bits.tolist(), strict=True):
                for bit, test, verify, again in self._needles[needle]:
                    if not bit & counted or (again is not None and not again(texts[number])):
                        continue
                    if verify is None or verify(values[number]):
                        found.setdefault(test, []).append(number)


def _united(bits: Iterable[int]) -> int:
    whole = 0
    for bit in bits:
        whole |= bit
    return whole


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _literal(test: Test) -> str:
    """The longest text, without case, that whatever passes the test has in it."""
    if isinstance(test, Text):
        return max((folded(part) for part in test.parts if isinstance(part, str)), key=len, default="")
    return regex_literal(test.pattern) if isinstance(test, Regex) else ""


LONG_S = "sS"
"""In any case these match `ſ`, too, which has no case to us."""

NOT_PYTHON = ("[[:", "\\Q", "(?U", "(?-")
"""What RE2 reads otherwise than Python does."""


def regex_literal(pattern: str) -> str:
    """The longest text, without case, that whatever the pattern matches has in it; empty if that cannot be told."""
    from re import _parser  # type: ignore[attr-defined]

    if any(sign in pattern for sign in NOT_PYTHON):
        return ""
    try:
        tree = _parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return ""
    any_case = bool(tree.state.flags & re.IGNORECASE)
    runs, run = [""], ""
    for op, argument in tree:
        if op is _parser.LITERAL and argument < 128 and not (any_case and chr(argument) in LONG_S):
            run += chr(argument)
        else:
            runs.append(run)
            run = ""
    return folded(max([*runs, run], key=len))
