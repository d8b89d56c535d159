"""Values that are not single: one value, known only to be among these (CDL, section 2.2).

Only CDL reads them so. An array of an event is a set, too: EQL, Sigma and row patterns see what is in it, every other
language sees its value if it has one only (`single`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from coincide.model.bounds import Finite, Whole
from coincide.model.numbers import is_number, number_of, plain_number

Single = float | int | str | bool
StoredSingle = Finite | Whole | str | bool
"""As decoders check it."""


COMPOUND_MAKERS = frozenset({"set", "range"})
"""Functions (of CDL) whose value is a set or a range."""


class ValueSet(msgspec.Struct, frozen=True, array_like=True, tag="set"):
    """One of the members, which stand without repeats in the order of their first appearance."""

    members: tuple[StoredSingle, ...] = ()


class ValueRange(msgspec.Struct, frozen=True, array_like=True, tag="range"):
    """Somewhere from `lo` to `hi`, both included; None: open on that side."""

    lo: StoredSingle | None = None
    hi: StoredSingle | None = None


class ValueList(msgspec.Struct, frozen=True, array_like=True, tag="list"):
    """Several values, in order, nulls and repeats among them: what row patterns make (`array_agg`)."""

    members: tuple[ValueList | ValueSet | ValueRange | Finite | Whole | str | bool | None, ...] = ()


Compound = ValueSet | ValueRange
Several = Compound | ValueList
"""Whatever is not single."""


def single(value: object) -> Single | None:
    """What a language sees that knows nothing of several values: of one value, it; of more, and of ranges, null."""
    if isinstance(value, ValueSet) and len(value.members) == 1:
        return value.members[0]
    return value if isinstance(value, (float, str, int)) else None


def distinct(members: list[Single]) -> tuple[Single, ...]:
    """Without repeats; true is not 1."""
    return tuple({(type(m), m): m for m in members}.values())


def is_compound(raw: object) -> bool:
    """Is this meant as a set or range? An object with other fields is neither."""
    return isinstance(raw, (list, tuple)) or (isinstance(raw, Mapping) and (not raw or "lo" in raw or "hi" in raw))


def compound_of(raw: Any) -> Compound | None:
    """The set or range that a foreign record (JSON, Python) holds; None where a member or bound is not a single value."""
    try:
        if isinstance(raw, (list, tuple)):
            return ValueSet(distinct([_single(m) for m in raw if m is not None]))
        if raw.keys() <= {"lo", "hi"}:
            return ValueRange(*(None if (bound := raw.get(side)) is None else _single(bound) for side in ("lo", "hi")))
    except (TypeError, OverflowError):
        pass
    return None


def _single(raw: object) -> Single:
    if isinstance(raw, (bool, str)):
        return raw
    if isinstance(raw, int):
        return number_of(raw)
    if not isinstance(raw, float) or raw - raw != 0:
        raise TypeError(raw)
    return float(raw)


def plain_compound(value: Several) -> list[Any] | dict[str, Any]:
    """As JSON writes it; an open bound is left out."""
    if isinstance(value, ValueList):
        return [plain_compound(member) if isinstance(member, Several) else _plain(member) for member in value.members]
    if isinstance(value, ValueSet):
        return [_plain(member) for member in value.members]
    bounds = {"lo": value.lo, "hi": value.hi}
    return {side: _plain(bound) for side, bound in bounds.items() if bound is not None}


def _plain(value: Any) -> Any:
    return plain_number(value) if is_number(value) else value
