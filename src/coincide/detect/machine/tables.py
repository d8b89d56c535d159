"""Machines as tables, built as they are needed (lazy determinisation).

A program's configurations and letters get small numbers when they first occur; `delta` and `outs` are filled a row at a
time, when a kernel meets a state that it does not know. Nothing is ever renumbered: a state array stays valid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from coincide.detect.machine.program import Program
from coincide.detect.machine.transducer import ENDED

UNKNOWN = -1
Numbers = npt.NDArray[np.int32]


@dataclass
class Block:
    """One program's rows in the flat arrays: cell (state, letter) is at offset + state * width + letter."""

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
    """The tables of all programs of a group, in two flat arrays."""

    def __init__(self, programs: tuple[Program, ...]) -> None:
        self.blocks = [Block(program) for program in programs]
        self.delta: Numbers = np.full(1024, UNKNOWN, np.int32)
        self.outs: Numbers = np.zeros(1024, np.int32)
        self._used = 0
        for block in self.blocks:
            block.state(block.program.transducer.start)  # number 0 in every program
            self._place(block, 4, 4)

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return np.array([block.offset for block in self.blocks], np.int64)

    @property
    def widths(self) -> npt.NDArray[np.int64]:
        return np.array([block.width for block in self.blocks], np.int64)

    def known(self, program: int, letter: int) -> int:
        """The number of a letter; there is room for it afterwards."""
        block = self.blocks[program]
        number = block.letter(letter)
        if number >= block.width:
            self._place(block, block.height, 2 * block.width)
        return number

    def fill(self, program: int, state: int) -> None:
        """Find out what every known letter does in a state."""
        block = self.blocks[program]
        configuration = block.configurations[state]
        for letter, number in block.letters.items():
            after, emitted = block.program.transducer.step(configuration, letter)
            target = block.state(after)
            if max(target, state) >= block.height:
                self._place(block, 2 * max(target, state, block.height), block.width)
            cell = block.offset + state * block.width + number
            self.delta[cell] = target
            self.outs[cell] = block.out(None if after == ENDED and configuration != ENDED else emitted)

    def _place(self, block: Block, height: int, width: int) -> None:
        """Room for a block of this size at the end of the arrays; its cells are moved there."""
        offset, size = self._used, height * width
        self._used += size
        if self._used > len(self.delta):
            grown = max(self._used, 2 * len(self.delta)) - len(self.delta)
            self.delta = np.concatenate((self.delta, np.full(grown, UNKNOWN, np.int32)))
            self.outs = np.concatenate((self.outs, np.zeros(grown, np.int32)))
        for array in (self.delta, self.outs):
            old = array[block.offset : block.offset + block.height * block.width].reshape(block.height, block.width)
            array[offset : offset + size].reshape(height, width)[: block.height, : block.width] = old
        block.offset, block.height, block.width = offset, height, width
