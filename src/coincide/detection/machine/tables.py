"""Machines as tables, built as they are needed (lazy determinisation).

A program's configurations and letters get small numbers when they first occur. A cell (state, letter) holds the next state
and the number of what is pushed; cells are filled a row at a time, when a kernel meets a state that it does not know.
Nothing is ever renumbered: a state array stays valid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detection.columns.tables import longer
from coincide.detection.machine.program import Program
from coincide.detection.machine.transducer import ENDED

UNKNOWN = -1
OUT = 32  # a cell is out << OUT | state
IDLE = 0  # the number of the letter that changes nothing: no label holds
Cells = npt.NDArray[np.int64]


@dataclass
class Block:
    """One program's rows in the flat arrays: cell (state, letter) is at offset + state * width + letter."""

    number: int
    program: Program
    offset: int = 0
    height: int = 0
    width: int = 0
    states: dict[Any, int] = field(default_factory=dict)
    configurations: list[Any] = field(default_factory=list)
    letters: dict[int, int] = field(default_factory=dict)
    outs: dict[tuple[int, ...] | None, int] = field(default_factory=dict)  # None: the machine ends

    def state(self, configuration: Any) -> int:
        number = self.states.setdefault(configuration, len(self.states))
        if number == len(self.configurations):
            self.configurations.append(configuration)
        return number

    def letter(self, letter: int) -> int:
        return self.letters.setdefault(letter, len(self.letters))

    def out(self, emitted: tuple[int, ...] | None) -> int:
        return self.outs.setdefault(emitted, len(self.outs) + 1) if emitted != () else 0


class Tables:
    """The tables of all programs of a group, in one flat array."""

    def __init__(self, programs: tuple[Program, ...]) -> None:
        self.blocks = [Block(number, program) for number, program in enumerate(programs)]
        self.offsets, self.widths = np.zeros(len(programs), np.int64), np.zeros(len(programs), np.int64)
        self.cells: Cells = np.full(1024, UNKNOWN, np.int64)
        self._used = 0
        for block in self.blocks:
            block.state(block.program.transducer.start)  # number 0 in every program
            block.letter(0)  # IDLE
            self._place(block, 4, 4)

    def known(self, program: int, letter: int) -> int:
        """The number of a letter; there is room for it afterwards."""
        block = self.blocks[program]
        number = block.letter(letter)
        if number >= block.width:
            self._place(block, block.height, 2 * block.width)
        return number

    def size(self) -> int:
        """States of all programs together."""
        return sum(len(block.configurations) for block in self.blocks)

    def fill(self, program: int, state: int) -> None:
        """Find out what every known letter does in a state."""
        block = self.blocks[program]
        configuration = block.configurations[state]
        for letter, number in block.letters.items():
            after, emitted = block.program.transducer.step(configuration, letter)
            target = block.state(after)
            if max(target, state) >= block.height:
                self._place(block, 2 * max(target, state, block.height), block.width)
            out = block.out(None if after == ENDED and configuration != ENDED else emitted)
            self.cells[block.offset + state * block.width + number] = out << OUT | target

    def _place(self, block: Block, height: int, width: int) -> None:
        """Room for a block of this size at the end of the arrays; its cells are moved there."""
        offset, size = self._used, height * width
        self._used += size
        self.cells = longer(self.cells, self._used, UNKNOWN)
        old = self.cells[block.offset : block.offset + block.height * block.width].reshape(block.height, block.width)
        self.cells[offset : offset + size].reshape(height, width)[: block.height, : block.width] = old
        block.offset, block.height, block.width = offset, height, width
        self.offsets[block.number], self.widths[block.number] = offset, width
