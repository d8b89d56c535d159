"""Prefixes of chains: what their steps have joined so far (5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from coincide.detection.algebra.occurrence import Occurrence
from coincide.model.bounds import Instant


class Prefix(msgspec.Struct, frozen=True, array_like=True, eq=False):
    """Operands 1..k joined. `last` is the last operand's occurrence. The stamps are those of all parts, in point semantics
    too; `expires` is the least of the parts'."""

    occurrence: Occurrence
    last: Occurrence
    lo: Instant
    hi: Instant
    latest_start: Instant
    earliest_end: Instant
    expires: Instant | None

    def alive(self, instant: int) -> bool:
        return self.expires is None or self.expires >= instant


def first_prefix(operand: Occurrence) -> Prefix:
    o = operand
    return Prefix(o, o, o.lo, o.hi, o.latest_start, o.earliest_end, o.expires)


def joined(parts: Sequence[Prefix | Occurrence], last: Occurrence, whole: Occurrence) -> Prefix:
    """The prefix after a step that made `whole` of these parts."""
    return Prefix(
        whole,
        last,
        min(p.lo for p in parts),
        max(p.hi for p in parts),
        min(p.latest_start for p in parts),
        max(p.earliest_end for p in parts),
        min((p.expires for p in parts if p.expires is not None), default=None),
    )
