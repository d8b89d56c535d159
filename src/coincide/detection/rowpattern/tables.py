"""The automaton as arrays, for the compiled loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coincide.detection.rowpattern.automaton import MATCH, NOWHERE, Automaton, TooManyWays

MOST_STATES = 20_000
MOST_WAYS = 400_000

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

# Anchors on a way: which are met, and which first. `^` settles the matter where it fails before `$` asks.
NO_ANCHOR, BEGINNING, END, BEGINNING_END, END_BEGINNING = range(5)


class Tables(NamedTuple):
    """The ways from state s are those from offsets[s] to offsets[s + 1], most preferred first; those at the start come last."""

    variable: Small
    hidden: npt.NDArray[np.bool_]
    offsets: Numbers
    anchors: npt.NDArray[np.int8]
    targets: Small

    @property
    def states(self) -> int:
        return len(self.variable)


def tables_of(automaton: Automaton) -> Tables | None:
    """None if there are too many states to write them all out."""
    ways = []
    try:
        state = 0
        while state < len(automaton.states):
            ways.append(automaton.after(state))
            state += 1
            if state > MOST_STATES or sum(map(len, ways[-1:])) > MOST_WAYS:
                return None
    except TooManyWays:
        return None
    ways.append(automaton.first)
    flat = [way for some in ways for way in some]
    if len(flat) > MOST_WAYS:
        return None
    return Tables(
        np.array([s.variable for s in automaton.states], np.int32),
        np.array([s.hidden for s in automaton.states], np.bool_),
        np.concatenate(([0], np.cumsum([len(some) for some in ways]))).astype(np.int64),
        np.array([_code(way.anchors) for way in flat], np.int8),
        np.array([way.state for way in flat], np.int32),
    )


def _code(anchors: str) -> int:
    if not anchors:
        return NO_ANCHOR
    both = "^" in anchors and "$" in anchors
    if anchors[0] == "^":
        return BEGINNING_END if both else BEGINNING
    return END_BEGINNING if both else END


assert MATCH == -1
assert NOWHERE == -2
