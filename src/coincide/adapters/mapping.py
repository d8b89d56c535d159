"""Which fields of foreign records are the envelope of an event."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from coincide.adapters.extraction import Extract
from coincide.errors import InputError
from coincide.model.event import ENVELOPE
from coincide.model.space import Space

COLUMN_TYPES = ("text", "number", "boolean")
TIMESTAMP = "@timestamp"
CATEGORY = "event.category"
UNTYPED = "event"

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
TYPE_NAME = r"^(?:[^\W\d][\w.-]*|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)$"
_NAME = re.compile(TYPE_NAME)


@lru_cache(maxsize=4096)
def is_type_name(name: str) -> bool:
    """A name, or a number as JSON spells it."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class FieldMapping:
    """Names of the fields that carry the envelope; every other field is an attribute.

    `unit` is that of plain numbers in the fields `time`, `end` and `arrival` (texts are ISO-8601, Arrow's timestamps know
    their own). With `end`, a record whose `end` field is filled occurred in `[time, end]`. With `constant_type`, every
    record is of that type. A field that has the name of an envelope field but does not serve as one (`type`, where
    another field is the type) is left out: rules could not refer to it.

    Names may be dotted: `event.code` is the field `code` of the object `event`. A record without a `time` has it in
    `@timestamp`. With `untyped`, a record without a type is of the first of its values of `event.category` that is a name,
    or else an `event`. `types` are those of columns of CSV (text, number, boolean) that are not to be guessed. `extracts` are
    attributes that stand in the text of another field."""

    type: str = "type"
    time: str = "time"
    id: str = "id"
    source: str = "source"
    space: str = "space"
    arrival: str = "arrival"
    end: str | None = None
    unit: str = "ms"
    constant_type: str | None = None
    untyped: bool = False
    types: tuple[tuple[str, str], ...] = ()
    extracts: tuple[Extract, ...] = ()

    def __post_init__(self) -> None:
        if self.unit not in PER_SECOND:
            raise InputError(f"unknown time unit '{self.unit}': one of {', '.join(PER_SECOND)}")
        for name, kind in self.types:
            if kind not in COLUMN_TYPES:
                raise InputError(f"unknown type '{kind}' of column '{name}': one of {', '.join(COLUMN_TYPES)}")
        if self.constant_type is not None and not is_type_name(self.constant_type):
            raise InputError(f"'{self.constant_type}' is not a name of an event type")

    @cached_property
    def column_types(self) -> dict[str, str]:
        return dict(self.types)

    @cached_property
    def envelope(self) -> frozenset[str]:
        """Fields that are no attributes. To rules that know records without a type, `from` is a field as any other."""
        used = {self.type, self.time, self.id, self.source, self.space, self.arrival, self.end}
        never = ENVELOPE - {"from"} if self.untyped else ENVELOPE
        return never | {name for name in used if name is not None}

    @cached_property
    def serves(self) -> dict[str, str]:
        """What fields of other names are to rules."""
        names = ("type", "time", "id", "source", "space", "arrival")
        return {field: name for name in names if (field := getattr(self, name)) != name}

    @property
    def other_time(self) -> str | None:
        """The field that has the time where `time` is not filled."""
        return TIMESTAMP if self.time == "time" else None

    @cached_property
    def per_unit(self) -> int:
        """Microseconds in a unit; 0 for nanoseconds, of which a microsecond has a thousand."""
        return 1_000_000 // PER_SECOND[self.unit]


def read_by(mapping: FieldMapping, attributes: frozenset[str]) -> frozenset[str]:
    """The fields that have to be read for these attributes."""
    ends = {f"{mapping.time}_lo", f"{mapping.time}_hi", TIMESTAMP}
    places = {f"{mapping.space}.{name}" for name in Space.__struct_fields__}
    return attributes | mapping.envelope | ends | places | {CATEGORY} | {extract.source for extract in mapping.extracts}


DEFAULT = FieldMapping()
