"""Which programs a class of rows matters to, and what letter each of them sees: found once a class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.machine.program import MonitorGroup
from coincide.detection.machine.tables import Tables
from coincide.expr.classes import Classes
from coincide.expr.guards import Guarded
from coincide.expr.vector import Picked, Rows, holds

Numbers = npt.NDArray[np.int64]
WORD = 62  # labels whose letters fit a machine integer


class Interests:
    """Class number c: the pairs (programs[i], letters[i]) for i from starts[c] to starts[c + 1]."""

    def __init__(self, group: MonitorGroup, tables: Tables) -> None:
        self.group = group
        self.tables = tables
        self.numbers: dict[tuple[int, ...], int] = {}
        self.starts: Numbers = np.zeros(1, np.int64)
        self.programs: Numbers = np.zeros(0, np.int64)
        self.letters: Numbers = np.zeros(0, np.int64)

    @cached_property
    def _guarded(self) -> Guarded:
        return Guarded(self.group.tests)

    @cached_property
    def _users(self) -> Users:
        return Users(self.group)

    def of(self, classes: Classes) -> Numbers:
        """The numbers of a batch's classes."""
        new = [n for n, key in enumerate(classes.keys) if key not in self.numbers]
        if new:
            self._learn(Picked(classes.representatives, np.array(new)), [classes.keys[n] for n in new])
        return np.array([self.numbers[key] for key in classes.keys], np.int64)

    def _learn(self, rows: Rows, keys: list[tuple[int, ...]]) -> None:
        classes, programs, letters = self._users.letters(*self._held(rows))
        types = rows.column("type")
        detections = [None if key[0] == 0 or types is None else types.value(n) for n, key in enumerate(keys)]
        if any(detections):
            pairs = zip(classes.tolist(), programs.tolist(), strict=True)
            seen = [not detections[c] or detections[c] in self.group.programs[p].mentions for c, p in pairs]
            classes, programs, letters = classes[seen], programs[seen], letters[seen]
        self.starts = np.concatenate((self.starts, self.starts[-1] + np.cumsum(np.bincount(classes, minlength=len(keys)))))
        self.programs = np.concatenate((self.programs, programs))
        self.letters = np.concatenate((self.letters, self._known(programs, letters)))
        self.numbers.update((key, len(self.numbers)) for key in keys)

    def _held(self, rows: Rows) -> tuple[Numbers, Numbers]:
        """Pairs of a row and a test that holds there. A test that asks for a text is tried where that is."""
        found: list[tuple[Numbers, Numbers]] = []

        def attempt(tests: Iterable[int], where: Numbers) -> None:
            picked = Picked(rows, where)
            for test in tests:
                held = where[holds(self.group.tests[test], picked)]
                found.append((held, np.full(len(held), test, np.int64)))

        attempt(self._guarded.others, np.arange(rows.length))
        for name, by_text in self._guarded.by_text.items():
            column = rows.column(name)
            for text, where in column.by_text().items() if column is not None else ():
                attempt(by_text.get(text, ()), where)
        return _joined([rows for rows, _ in found]), _joined([tests for _, tests in found])

    def _known(self, programs: Numbers, letters: npt.NDArray[Any]) -> Numbers:
        """The numbers of letters in the tables."""
        distinct, codes = np.unique(letters, return_inverse=True)
        _, first, inverse = np.unique(programs * len(distinct) + codes, return_index=True, return_inverse=True)
        pairs = zip(programs[first].tolist(), letters[first].tolist(), strict=True)
        return np.array([self.tables.known(program, letter) for program, letter in pairs], np.int64)[inverse]


class Users:
    """Which programs use a test, and for which bit of their letters: those of test t from starts[t] to starts[t + 1]."""

    def __init__(self, group: MonitorGroup) -> None:
        uses = [(test, n, bit) for n, program in enumerate(group.programs) for bit, test in enumerate(program.tests)]
        tests, programs, bits = np.array(uses, np.int64).reshape(-1, 3).T
        order = np.argsort(tests, kind="stable")
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(tests, minlength=len(group.tests)))))
        self._programs, self._bits = programs[order], bits[order]
        most = int(bits.max(initial=0)) + 1
        self._weights = np.array([1 << bit for bit in range(most)], np.int64 if most <= WORD else object)

    def letters(self, rows: Numbers, tests: Numbers) -> tuple[Numbers, Numbers, npt.NDArray[Any]]:
        """Of pairs of a row and a test that holds there: rows, programs and their letters, by row and program."""
        starts, sizes = self._starts[tests], self._starts[tests + 1] - self._starts[tests]
        uses = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        rows, programs = np.repeat(rows, sizes), self._programs[uses]
        order = np.lexsort((programs, rows))
        rows, programs, weights = rows[order], programs[order], self._weights[self._bits[uses[order]]]
        first = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]) | (programs[1:] != programs[:-1]))[: len(rows)])
        return rows[first], programs[first], np.bitwise_or.reduceat(weights, first) if len(first) else weights


def _joined(arrays: Sequence[Numbers]) -> Numbers:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
