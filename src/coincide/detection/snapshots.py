"""What is stored and read again: states of engines, of detectors, of Spark's buckets.

A seal around the bytes tells accidents (a file cut off, a bit turned over) from what was written. It stops nobody who means
harm. So what is inside is decoded to types that bound their numbers (model/bounds.py), and whatever refers to something else is
read by the readers below before anything relies on it: a number is that of an item, a stamp does not end before it begins, a
place is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NoReturn, TypeVar

import msgspec

from coincide.detection.keys import Key, key_part
from coincide.errors import CoincideError, InputError
from coincide.model.bounds import FURTHEST
from coincide.model.event import LEVELS, NAMED, Event, Place, Value, carries_key
from coincide.model.stamp import OrderKey, order_key

SEAL = b"coincide\x01"
"""What earlier releases wrote has none: it begins with the head of an array, which is not a letter."""
DIGEST = 16

KINDS = range(4)
"""The second part of places: an event, a timer, the end of an instant, the end of the input."""
NEVER = -(2**63)

Item = TypeVar("Item")
Structure = TypeVar("Structure")


class Damaged(ValueError):
    """What is wrong with something stored."""


def damaged(reason: str) -> NoReturn:
    raise Damaged(reason)


# The seal


def sealed(data: bytes) -> bytes:
    return SEAL + blake2b(data, digest_size=DIGEST).digest() + data


def seal_size(data: bytes) -> int:
    """How much of it is the seal."""
    return len(SEAL) + DIGEST if data.startswith(SEAL) else 0


def opened(data: bytes) -> bytes:
    if not seal_size(data):
        return data
    content = data[seal_size(data) :]
    if blake2b(content, digest_size=DIGEST).digest() != data[len(SEAL) : seal_size(data)]:
        damaged("it is not complete, or was changed after it was written")
    return content


@contextmanager
def reading_state(otherwise: str = "not a snapshot") -> Iterator[None]:
    """Whatever is wrong with stored data is an InputError. Readers say what they look for; what does not fit together otherwise
    shows as errors of any kind while a state is put together."""
    try:
        yield
    except CoincideError:
        raise
    except (ValueError, msgspec.DecodeError) as error:
        raise InputError(f"{otherwise}: {error}") from error
    except Exception as error:
        raise InputError(f"{otherwise}: what is in it does not fit together ({type(error).__name__})") from error


def decoded(data: bytes, kind: type[Structure], *versions: int) -> Structure:
    """A struct that begins with its version, which is said if it is another one."""
    first, *_ = msgspec.msgpack.decode(data, type=list[Any])
    check_version(first, *versions)
    return msgspec.msgpack.decode(data, type=kind)


def check_version(found: object, *known: int) -> None:
    if type(found) is not int or found not in known:
        numbers = f"version {known[0]}" if len(known) == 1 else f"versions {', '.join(map(str, known))}"
        damaged(f"it is of version {found}; this release reads {numbers}")


# Readers


def item(table: Sequence[Item], number: int) -> Item:
    """What a reference refers to."""
    if not 0 <= number < len(table):
        damaged(f"it refers to number {number} of {len(table)}")
    return table[number]


def items(table: Sequence[Item], numbers: Iterable[int]) -> list[Item]:
    return [item(table, number) for number in numbers]


def check_numbers(numbers: Sequence[int], following: int) -> None:
    """Numbers were given in order, each once; `following` is the next."""
    if any(a >= b for a, b in pairwise([*numbers, following])):
        damaged("its parts are not numbered one after another")


def check_stamp(lo: int, hi: int) -> None:
    if lo > hi:
        damaged(f"a stamp ends before it begins: [{lo}, {hi}]")


def stored_key(key: OrderKey) -> OrderKey:
    """A key of the total order as it is written: its number follows from the id, and may be larger than any format holds."""
    return key if -(2**63) <= key[3] < 2**63 else (*key[:3], 0, key[4])


def key_of_order(stored: OrderKey) -> OrderKey:
    return order_key(_instant(stored[1]), _instant(stored[0]), stored[4])


def stored_event(event: Event) -> Event:
    if all(-(2**63) <= key[3] < 2**63 for key in event.origin):
        return event
    return msgspec.structs.replace(event, origin=tuple(map(stored_key, event.origin)))


def event_of(stored: Event) -> Event:
    """An event as it was, with a place that can be compared with any other."""
    check_stamp(stored.lo, stored.hi)
    return msgspec.structs.replace(stored, origin=tuple(map(key_of_order, stored.origin)), place=place_of(stored.place))


def external_event_of(stored: Event) -> Event:
    """An external event that has yet to get its place: in the total order it stands where its stamp and id say; a detection of
    another node where its order key does."""
    check_stamp(stored.lo, stored.hi)
    if carries_key(stored):
        return msgspec.structs.replace(stored, origin=tuple(map(key_of_order, stored.origin)), place=carried_key_of(stored.place))
    own = (order_key(stored.lo, stored.hi, stored.id or ""),)
    if tuple(map(key_of_order, stored.origin)) != own:
        damaged("an event that waits is not an external one")
    return msgspec.structs.replace(stored, origin=own, place=())


def events_of(stored: Iterable[Event]) -> list[Event]:
    return [event_of(event) for event in stored]


def key_of(values: Sequence[Value], size: int) -> Key:
    """A key of so many single values."""
    if len(values) != size:
        damaged(f"a key has {len(values)} values, not {size}")
    for value in values:
        if not isinstance(value, (float, int, str)):
            damaged("a part of a key is not a single value")
    return tuple(map(key_part, values))


def place_of(value: Any) -> Place:
    """A place of an event, a timer or a detection (model/event.py)."""
    time, kind, number, generation, *causes = _parts(value, 4)
    if _whole(generation) * 2 != len(causes):
        damaged("a place is not one")
    inner = _setting(number, LEVELS + 1) if _is_set(kind) else _whole(number)
    return (_instant(time), kind, inner, generation, *map(_whole, causes))


def carried_key_of(value: Sequence[Any]) -> Place:
    """An order key as a detection of another node carries it: five parts of an item's, then names and numbers take turns."""
    item, names, numbers = value[: NAMED + 1], value[NAMED + 1 :: 2], value[NAMED + 2 :: 2]
    if not names or len(names) != len(numbers) or not all(isinstance(name, str) for name in (item[NAMED], *names)):
        damaged("an order key is not one")
    time, *rest, text = item
    clipped = text.removeprefix("-").isdecimal()  # an id whose number was too large to be written
    whole = key_of_order((time, *rest, text)) if clipped else (_instant(time), *map(_whole, rest), text)
    return (*whole, *(part for name, number in zip(names, numbers, strict=True) for part in (name, _whole(number))))


def timer_place_of(value: Any) -> Place:
    place = place_of(value)
    if place[1] == 0 or place[3] != 0:
        damaged("a place is not that of a timer")
    return place


def _setting(value: Any, levels: int) -> Place:
    """Where a timer was set: a place, and who set it."""
    time, kind, number, *rest = _parts(value, 4)
    inner: Any = _whole(number) if not _is_set(kind) else _setting(number, levels - 1) if levels > 1 else _mark(number)
    return (_instant(time), kind, inner, *map(_whole, rest))


def _mark(value: Any) -> Place:
    """What is left of settings further back."""
    return tuple(map(_whole, _parts(value, 1)))


def _is_set(kind: Any) -> bool:
    """Is it a place of something that was set: a timer, the end of an instant or of the input? Not of an event."""
    if _whole(kind) not in KINDS:
        damaged("a place is not one")
    return bool(kind)


def _parts(value: Any, least: int) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)) or len(value) < least:
        damaged("a place is not one")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        damaged("a place has a part that is not a whole number")
    return value


def _instant(value: Any) -> int:
    if not NEVER <= _whole(value) <= FURTHEST:
        damaged("an instant is out of range")
    whole: int = value
    return whole
