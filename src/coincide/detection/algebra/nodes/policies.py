"""Consumption policies: which of the partners that fit are taken, and which of them are used up (ECCO-27, ECCO-28)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Partner = TypeVar("Partner")


@dataclass(frozen=True)
class Choice(Generic[Partner]):
    """`groups`: each makes one occurrence with the arriving one. `used`: these leave the store."""

    groups: Sequence[Sequence[Partner]] = ()
    used: Sequence[Partner] = ()


def unrestricted(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([[partner] for partner in fitting])


def recent(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([fitting[-1:]])


def chronicle(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([fitting[:1]], fitting[:1])


def continuous(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([[partner] for partner in fitting], fitting)


def cumulative(fitting: Sequence[Partner]) -> Choice[Partner]:
    return Choice([fitting], fitting)


CONSUMING = frozenset({"chronicle", "continuous", "cumulative"})


def choose(policy: str, fitting: Sequence[Partner]) -> Choice[Partner]:
    """`fitting` stands in ascending order."""
    if not fitting:
        return Choice()
    if policy == "unrestricted":
        return unrestricted(fitting)
    if policy == "recent":
        return recent(fitting)
    if policy == "chronicle":
        return chronicle(fitting)
    return continuous(fitting) if policy == "continuous" else cumulative(fitting)
