"""Versions of a description: a higher one replaces a lower one of the same id (CDL-01)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coincide.lang.cdl.definition import Description, File
from coincide.lang.cdl.shape import fail


def in_force(files: Sequence[File]) -> list[list[Description]]:
    """The descriptions of each file that no other replaces; each knows what it replaces."""
    best: dict[str, Description] = {}
    for cd in (cd for file in files for cd in file.descriptions):
        other = best.get(cd.id)
        if other is not None and _padded(other) == _padded(cd):
            fail(cd.span, f"cd '{cd.id}' is defined twice")
        if other is None or _padded(other) < _padded(cd):
            best[cd.id] = replace(cd, replaced=(*cd.replaced, *(() if other is None else (other, *other.replaced))))
        else:
            best[cd.id] = replace(other, replaced=(*other.replaced, cd))
    return [[best[cd.id] for cd in file.descriptions if cd == best[cd.id]] for file in files]


def _padded(cd: Description) -> tuple[int, ...]:
    """1 and 1.0 are one version."""
    version = list(cd.version)
    while len(version) > 1 and version[-1] == 0:
        version.pop()
    return tuple(version)
