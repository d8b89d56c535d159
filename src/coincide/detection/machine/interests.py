"""Which programs a class of rows matters to, and what letter each of them sees: found once a class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.machine.program import MonitorGroup, Program
from coincide.detection.machine.tables import Tables
from coincide.expr.classes import Classes
from coincide.expr.vector import Rows, holds

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

    def of(self, classes: Classes) -> Numbers:
        """The numbers of a batch's classes."""
        new = [n for n, key in enumerate(classes.keys) if key not in self.numbers]
        if new:
            self._learn(classes.representatives, classes.keys, new)
        return np.array([self.numbers[key] for key in classes.keys], np.int64)

    def _learn(self, rows: Rows, keys: list[tuple[int, ...]], new: list[int]) -> None:
        truths = np.array([holds(test, rows) for test in self.group.tests], np.bool_).reshape(-1, len(keys))[:, new]
        types = rows.column("type")
        hidden = [None if keys[n][0] == 0 or types is None else types.value(n) for n in new]
        pairs = [self._pairs(program, truths, hidden) for program in range(len(self.group.programs))]
        classes, programs, letters = (np.concatenate(p) for p in zip(*pairs, strict=True))
        order = np.argsort(classes, kind="stable")  # of one class: in the order of programs
        sizes = np.bincount(classes, minlength=len(new))
        self.starts = np.concatenate((self.starts, self.starts[-1] + np.cumsum(sizes)))
        self.programs = np.concatenate((self.programs, programs[order]))
        self.letters = np.concatenate((self.letters, letters[order]))
        self.numbers.update((keys[n], len(self.numbers)) for n in new)

    def _pairs(self, number: int, truths: npt.NDArray[np.bool_], detections: list[Any]) -> tuple[Numbers, Numbers, Numbers]:
        """The new classes of which a program satisfies some label, and its letters there."""
        program = self.group.programs[number]
        held = truths[list(program.tests)]
        where = np.flatnonzero(held.any(axis=0))
        if any(detections):
            where = np.array([c for c in where.tolist() if not detections[c] or detections[c] in program.mentions], np.int64)
        distinct, inverse = np.unique(_letters(program, held[:, where]), return_inverse=True)
        known = np.array([self.tables.known(number, int(letter)) for letter in distinct], np.int64)
        return where, np.full(len(where), number, np.int64), known[inverse]


def _letters(program: Program, held: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    if len(program.tests) <= WORD:
        return (1 << np.arange(len(program.tests), dtype=np.int64)) @ held
    return np.array([sum(1 << bit for bit in np.flatnonzero(column).tolist()) for column in held.T], object)
