"""A mapping for records of unknown form, proposed by looking at some of them: names that people use, and values that fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, islice
from typing import Any

from coincide.adapters.mapping import DEFAULT, FieldMapping, is_type_name
from coincide.adapters.nested import flattened
from coincide.adapters.timeunits import unit_of
from coincide.errors import InputError
from coincide.model.stamp import parse_instant

LOOKED_AT = 2_000
"""Records."""

NAMES = {
    "type": "type event_name eventname event_type eventtype kind event_id eventid event_code code action category event name "
    "operation method level",
    "time": "time @timestamp timestamp ts datetime date_time event_time eventtime time_created systemtime timecreated created_at "
    "created date start started_at",
    "id": "id _id uuid guid event_uuid record_id recordid eventrecordid event_id eventid",
    "source": "source host hostname host.name computer computername device sensor node agent.name server",
}
"""Names of fields, the likeliest first; a nested field is known by its last part as well."""

OF_ANYTHING = frozenset((
    "type", "kind", "code", "action", "category", "name", "operation", "method", "level", "id", "uuid", "guid", "created",
    "created_at", "date", "start",
))  # fmt: skip
"""What such a word says inside an object, it says of that object (`userIdentity.type`), unless the object is the event."""

MANY_TYPES = 200


@dataclass
class Profile:
    """What is known of a field."""

    name: str
    values: list[object] = field(default_factory=list)

    @property
    def distinct(self) -> set[str]:
        return {str(value) for value in self.values}

    @property
    def examples(self) -> str:
        return ", ".join(str(value)[:40] for value in islice(dict.fromkeys(map(str, self.values)), 3))


@dataclass(frozen=True)
class Guess:
    """A mapping, and what speaks for it, by its fields."""

    mapping: FieldMapping
    records: int
    reasons: Mapping[str, str]

    def text(self, name: str) -> str:
        """As a mapping file."""
        said = {"type": self.mapping.type, "time": self.mapping.time, "id": self.mapping.id, "source": self.mapping.source}
        lines = [f"# proposed after a look at {self.records:,} records of {name}", "events:"]
        if self.mapping.constant_type is not None:
            lines.append(f"  constant-type: {self.mapping.constant_type}  # no field looks like a type")
            del said["type"]
        for part, value in said.items():
            if part in self.reasons:
                lines.append(f"  {part}: {_scalar(value)}  # {self.reasons[part]}")
        if "time" not in self.reasons:
            lines.append("  # no field looks like a time: add `time: FIELD`")
        elif self.mapping.unit != DEFAULT.unit:
            lines.append(f"  time-unit: {self.mapping.unit}")
        return "\n".join(lines) + "\n"


def guess(records: Iterable[Mapping[str, object]]) -> Guess:
    """Records as they were read, not yet flat."""
    looked = 0
    profiles: dict[str, Profile] = {}
    for record in islice(records, LOOKED_AT):
        looked += 1
        for name, value in flattened(record, DEFAULT).items():
            if value is not None and value != "":
                profiles.setdefault(name, Profile(name)).values.append(value)
    full = [profile for profile in profiles.values() if len(profile.values) >= 0.8 * looked]
    found: dict[str, Profile] = {}
    for part, fits in (("time", _is_time), ("type", _is_type), ("id", _is_id), ("source", _is_source)):
        free = [profile for profile in full if profile not in found.values()]
        if (best := _best(part, [p for p in free if fits(p)])) is not None:
            found[part] = best
    names: dict[str, Any] = {part: profile.name for part, profile in found.items()}
    unit = unit_of(_numbers(found["time"])) if "time" in found else None
    constant = None if "type" in found else "event"
    mapping = replace(DEFAULT, **names, unit=unit or DEFAULT.unit, constant_type=constant)
    return Guess(mapping, looked, {part: profile.examples for part, profile in found.items()})


def _best(part: str, profiles: list[Profile]) -> Profile | None:
    """The one with the likeliest name; a time may have any."""
    ranked = sorted((rank, p.name.count("."), p.name, p) for p in profiles if (rank := _rank(part, p.name)) is not None)
    if ranked:
        return ranked[0][-1]
    return profiles[0] if part == "time" and profiles else None


def _rank(part: str, name: str) -> int | None:
    """Below all others, but better than nothing: a word that may speak of another object than the event."""
    known = NAMES[part].split()
    whole = _plain(name)
    path, _, last = whole.rpartition(".")
    if whole in known:
        return known.index(whole)
    if last not in known:
        return None
    of_another = last in OF_ANYTHING and path.rpartition(".")[2] != "event"
    return known.index(last) + (len(known) if of_another else 0)


def _plain(name: str) -> str:
    """`TimeCreated`, `time-created` and `Time Created` are one name."""
    return re.sub(r"[\s-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)).lower()


def _is_time(profile: Profile) -> bool:
    """ISO-8601, datetimes, or numbers that would be plausible times; of a likely name, any number."""
    if all(isinstance(value, date) for value in profile.values):
        return True
    numbers = _numbers(profile)
    if numbers:
        likely = _rank("time", profile.name) is not None
        return len(numbers) == len(profile.values) and (unit_of(numbers) is not None or (likely and min(numbers) >= 0))
    return all(isinstance(value, str) and _is_instant(value) for value in profile.values)


def _numbers(profile: Profile) -> list[float]:
    return [float(v) for v in profile.values if isinstance(v, (int, float)) and not isinstance(v, bool)]


def _is_instant(text: str) -> bool:
    try:
        parse_instant(text)
    except (ValueError, OverflowError):
        return False
    return not text.isdecimal()


def _is_type(profile: Profile) -> bool:
    single = all(isinstance(v, (str, int, float)) and not isinstance(v, bool) for v in profile.values)
    return single and len(profile.distinct) <= MANY_TYPES and all(map(is_type_name, profile.distinct))


def _is_id(profile: Profile) -> bool:
    return all(isinstance(v, (str, int)) for v in profile.values) and len(profile.distinct) == len(profile.values)


def _is_source(profile: Profile) -> bool:
    return all(isinstance(v, str) for v in profile.values)


def _scalar(name: str) -> str:
    """Plain where YAML takes it for a text."""
    return name if re.fullmatch(r"[A-Za-z_][\w.]*", name) else json.dumps(name, ensure_ascii=False)


def records_of(path: str, format: str | None = None) -> Iterator[Mapping[str, object]]:
    """The raw records of a file; what is no record is passed over."""
    from coincide.adapters.files import open_bytes, readable
    from coincide.adapters.read import EVTX, LOGS, TEXTS, format_of

    ending = format_of(path, format)
    if ending in (*LOGS, EVTX):
        raise InputError(f"records of the format '{format or ending[1:]}' need no mapping")
    with readable(path):
        if ending not in TEXTS:
            yield from _arrow_records(path, ending == ".parquet")
            return
        with open_bytes(path) as stream:
            yield from _csv_records(stream) if ending == ".csv" else _json_records(stream)


def _json_records(stream: Iterable[bytes]) -> Iterator[Mapping[str, object]]:
    import msgspec

    from coincide.adapters.jsonlines import array_of, begins_array

    lines = iter(stream)
    first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")
    if begins_array(first) or first.strip() in (b"[", b"{"):
        yield from (record for record in array_of(first + b"".join(lines)) or [] if isinstance(record, dict))
        return
    for line in chain([first], lines):
        try:
            record = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(record, dict):
            yield record


def _csv_records(stream: Iterable[bytes]) -> Iterator[Mapping[str, object]]:
    import csv

    from coincide.adapters.csvfile import value_of

    for row in csv.DictReader(line.decode("utf-8-sig", "replace") for line in stream):
        yield {name: value_of(cell) for name, cell in row.items() if isinstance(cell, str) and name}


def _arrow_records(path: str, parquet: bool) -> Iterator[Mapping[str, object]]:
    from coincide.adapters.arrowfile import chunks_of

    for chunk in chunks_of(path, parquet, LOOKED_AT):
        yield from chunk.to_pylist()
