"""Units of correlations: all that a group has at one event, and what that is made of (section 6)."""

from __future__ import annotations

import msgspec

from coincide.model.compound import Single
from coincide.model.event import united_origin
from coincide.model.stamp import OrderKey

Part = tuple[str, Single]
"""A value with its type, so that true is not 1."""


def part(value: Single) -> Part:
    return type(value).__name__, value


class Root(msgspec.Struct, gc=False, frozen=True):
    """An event: when it began, and the primitive events under it."""

    lo: int
    origin: tuple[OrderKey, ...]


class Unit(msgspec.Struct, gc=False, frozen=True):
    """The rules that match at an event (by position), what they bring, and the values that count."""

    hi: int
    rules: tuple[int, ...]
    made_of: tuple[Root | Stretch, ...]
    values: tuple[tuple[Part, ...], ...] = ()

    @property
    def lo(self) -> int:
        return min(below.lo for below in self.made_of)

    @property
    def origin(self) -> tuple[OrderKey, ...]:
        return self.made_of[0].origin if len(self.made_of) == 1 else united_origin(self.made_of)


class Stretch(msgspec.Struct, gc=False, frozen=True):
    """Units from one position up to another of a list that only grows: what a correlation held of. It may hold at every event,
    and hardly ever does anybody ask what it was made of, so that is worked out when it is asked for."""

    units: list[Unit]
    start: int
    end: int

    @property
    def lo(self) -> int:
        return min(unit.lo for unit in self._units)

    @property
    def origin(self) -> tuple[OrderKey, ...]:
        return united_origin(self._units)

    @property
    def _units(self) -> list[Unit]:
        return self.units[self.start : self.end]
