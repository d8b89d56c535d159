"""The state of correlations: the groups of each, as they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from coincide.detection.selection.correlating import Groups
from coincide.detection.selection.program import Program
from coincide.detection.selection.windows import Part, Unit
from coincide.errors import InputError

VERSION = 1


@dataclass
class SelectionState:
    """Groups by correlation, and at how many groups those that are over are looked for."""

    groups: list[Groups]
    swept: list[int]


class Kept(msgspec.Struct, array_like=True):
    """A correlation's groups: key, units, last firing."""

    version: int
    groups: list[tuple[tuple[Part, ...], list[Unit], int | None]]


def fresh(program: Program, swept: int) -> SelectionState:
    return SelectionState([{} for _ in program.correlations], [swept] * len(program.correlations))


def encode(program: Program, state: SelectionState) -> dict[str, bytes]:
    """Only what there is: a correlation without groups starts afresh anyway."""
    return {
        digest: msgspec.msgpack.encode(Kept(VERSION, [(key, list(g.units), g.fired) for key, g in groups.items()]))
        for digest, groups in zip(program.digests, state.groups, strict=True)
    }


def decode(program: Program, parts: Mapping[str, bytes], swept: int) -> SelectionState:
    state = fresh(program, swept)
    for number, (digest, correlation) in enumerate(zip(program.digests, program.correlations, strict=True)):
        if digest not in parts:
            continue
        kept = msgspec.msgpack.decode(parts[digest], type=Kept)
        if kept.version != VERSION:
            raise InputError(f"the state of '{correlation.name}' is of version {kept.version}; this release reads {VERSION}")
        for key, units, fired in kept.groups:
            if units:
                state.groups[number][key] = correlation.window.restored(units, fired)
    return state
