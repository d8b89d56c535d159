"""The tests of all rules on one field, together: equality by hash, texts within texts by one search, and what else must be
tried only where all the texts that it needs were found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial, reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coincide.detection.columns.search import CONTAINS, ENDS, STARTS, Search
from coincide.detection.selection.tests import folded, shape, spelling, tester, wild_pattern
from coincide.lang.sigma.definition import Number, Part, Regex, Test, Text, Truth, Wild
from coincide.model.compound import Single

Holds = Callable[[Single], bool]
Codes = npt.NDArray[np.int64]
"""Numbers of values."""
Uses = list[tuple[int, Test]]
"""Tests that a text found at a place (a bit) decides, or, where case matters, may pass."""

BITS = {"contains": CONTAINS, "startswith": STARTS, "endswith": ENDS}
SHORTEST = 3
"""A text that every match must hold is looked for before a pattern is tried, if it is so long."""


class FieldTests:
    """Which tests hold for which values."""

    def __init__(self, tests: Iterable[Test]) -> None:
        self._equal: dict[str, list[tuple[Test, Holds | None]]] = {}
        self._rest: list[Test] = []
        self._patterns: list[tuple[Test, list[bytes]]] = []
        needles: dict[bytes, Uses] = {}
        for test in tests:
            self._sort(test, needles)
        self._numbers = {needle: number for number, needle in enumerate(needles)}
        self._uses = list(needles.values())
        needed = {needle for _, texts in self._patterns for needle in texts}
        kinds = [_united(bit for bit, *_ in uses) | CONTAINS * (needle in needed) for needle, uses in needles.items()]
        self._search = Search(list(zip(needles, kinds, strict=True))) if needles else None

    def _sort(self, test: Test, needles: dict[bytes, Uses]) -> None:
        if isinstance(test, (Number, Truth)):
            self._equal.setdefault(folded(spelling(test.value)), []).append((test, tester(test)))
            return
        if isinstance(test, Text):
            parts: tuple[Part, ...] = tuple([part if isinstance(part, Wild) else folded(part) for part in test.parts])
            kind = shape(parts)
            if kind is not None:
                needles.setdefault(_bytes(kind[1]), []).append((BITS[kind[0]], test))
                return
            if not any(isinstance(part, Wild) for part in parts):
                self._equal.setdefault("".join(map(str, parts)), []).append((test, tester(test) if test.cased else None))
                return
        literals = [_bytes(text) for text in _literals(test) if len(text) >= SHORTEST]
        if literals:
            self._patterns.append((test, literals))
            for literal in literals:
                needles.setdefault(literal, [])
        else:
            self._rest.append(test)

    def hits(self, values: Sequence[Single]) -> dict[Test, Codes]:
        """For each test that holds for any value, the numbers of those values, in order."""
        found: dict[Test, Codes] = {}
        tried = _Tried(values)
        if self._equal:
            self._compare(values, tried.texts, found)
        if self._search is not None:
            self._find(self._search, tried, found)
        for test in self._rest:
            _note(test, tried.passing(test), found)
        return found

    def _compare(self, values: Sequence[Single], texts: Sequence[str], found: dict[Test, Codes]) -> None:
        equal: dict[Test, list[int]] = {}
        for number, text in enumerate(texts):
            for test, verify in self._equal.get(text, ()):
                if verify is None or verify(values[number]):
                    equal.setdefault(test, []).append(number)
        for test, numbers in equal.items():
            _note(test, numbers, found)

    def _find(self, search: Search, tried: _Tried, found: dict[Test, Codes]) -> None:
        within = _Within(search, tried)
        for number, uses in enumerate(self._uses):
            for bit, test in uses:
                codes = within.codes(number, bit)
                _note(test, tried.passing(test, codes) if isinstance(test, Text) and test.cased else codes, found)
        for test, literals in self._patterns:
            having = [within.codes(self._numbers[literal], CONTAINS) for literal in literals]
            _note(test, tried.passing(test, reduce(partial(np.intersect1d, assume_unique=True), having)), found)


class _Tried:
    """Values that tests are tried with: by RE2 over many at once where that is possible."""

    def __init__(self, values: Sequence[Single]) -> None:
        self.values = values
        self.texts = [v.lower() if type(v) is str and v.isascii() else folded(spelling(v)) for v in values]

    def passing(self, test: Test, codes: Codes | None = None) -> Codes:
        """Those that pass the test, of these or of all."""
        if codes is None:
            codes = np.arange(len(self.values))
        if not len(codes):
            return codes
        pattern = test.pattern if isinstance(test, Regex) else None
        if isinstance(test, Text):
            pattern = wild_pattern(tuple(p if isinstance(p, Wild) or test.cased else folded(p) for p in test.parts))
        texts = self._folded if isinstance(test, Text) and not test.cased else self._spelt
        if pattern is None or texts is None:
            holds = tester(test)
            return np.array([code for code in codes.tolist() if holds(self.values[code])], np.int64)
        some = texts if len(codes) == len(texts) else texts.take(pa.array(codes))
        found: Codes = codes[pc.match_substring_regex(some, pattern).to_numpy(zero_copy_only=False)]
        return found

    @cached_property
    def _folded(self) -> pa.Array | None:
        return _strings(self.texts)

    @cached_property
    def _spelt(self) -> pa.Array | None:
        return _strings([value if type(value) is str else spelling(value) for value in self.values])

    @property
    def bytes(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The texts without case one behind the other, and where each begins."""
        if self._folded is not None and len(self.values):
            _, offsets, data = self._folded.buffers()
            starts = np.frombuffer(offsets, np.int64, len(self.values) + 1)
            return (np.frombuffer(data, np.uint8) if starts[-1] else _NO_BYTES), starts
        texts = [_bytes(text) for text in self.texts]
        joined = b"".join(texts)
        starts = np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int64)
        return np.frombuffer(joined, np.uint8) if joined else _NO_BYTES, starts


def _strings(texts: Sequence[str]) -> pa.Array | None:
    """None: some are no Unicode, which JSON may bring."""
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        return None


class _Within:
    """Where the needles of a search were found."""

    def __init__(self, search: Search, tried: _Tried) -> None:
        pieces = list(search.find(*tried.bytes))
        values, needles, self._bits = (np.concatenate([piece[n] for piece in pieces]) if pieces else _NONE for n in range(3))
        order = pc.array_sort_indices(pa.array(needles)).to_numpy()  # by counting, where they are many
        self._values, self._bits = values[order].astype(np.int64), self._bits[order]
        self._starts = np.searchsorted(needles[order], np.arange(len(search.kinds) + 1))

    def codes(self, needle: int, bit: int) -> Codes:
        """Values that have a needle at such a place."""
        start, end = self._starts[needle], self._starts[needle + 1]
        values: Codes = self._values[start:end][self._bits[start:end] & bit != 0]
        return values


_NONE = np.empty(0, np.int32)
_NO_BYTES = np.zeros(1, np.uint8)


def _note(test: Test, codes: Sequence[int] | Codes, found: dict[Test, Codes]) -> None:
    if len(codes):
        found[test] = np.asarray(codes, np.int64)


def _united(bits: Iterable[int]) -> int:
    whole = 0
    for bit in bits:
        whole |= bit
    return whole


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _literals(test: Test) -> list[str]:
    """Texts, without case, that whatever passes the test has in it."""
    if isinstance(test, Text):
        return [folded(part) for part in test.parts if isinstance(part, str)]
    return [regex_literal(test.pattern)] if isinstance(test, Regex) else []


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
