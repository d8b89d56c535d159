"""Does a value pass a test? (section 4). Values are those of one attribute of an event, one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import ip_address, ip_network

from coincide.expr.patterns import searcher
from coincide.lang.sigma.definition import COMPARISONS, Compared, Network, Number, Part, Regex, Test, Text, TimePart, Truth, Wild
from coincide.model.compound import Single, ValueList, ValueSet
from coincide.model.event import Event, Value
from coincide.model.numbers import is_number, number_of_text, plain_number

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
TIMESTAMP = "@timestamp"
MILLISECOND = 1000


def values_of(event: Event, attribute: str) -> tuple[Single, ...]:
    """The values of an attribute; the envelope's where the name is one of its."""
    if attribute == "type":
        return (event.type,)
    if attribute == "id":
        return () if event.id is None else (event.id,)
    if attribute in ("time", TIMESTAMP):
        return (event.hi / MILLISECOND,)
    if attribute == "source" and event.source is not None:
        return (event.source,)
    return members(event.attributes.get(attribute))


def members(value: Value) -> tuple[Single, ...]:
    if isinstance(value, (float, int, str)):
        return (value,)
    if isinstance(value, ValueSet):
        return value.members
    if isinstance(value, ValueList):
        return tuple(member for member in value.members if isinstance(member, (float, int, str)))
    return ()


def folded(text: str) -> str:
    """Without case: each character by itself, by Unicode's simple mapping."""
    return text.lower() if text.isascii() else "".join(map(_lower, text))


def _lower(character: str) -> str:
    return character.lower()[0]


def spelling(value: Single) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(plain_number(value))


def number_of(value: Single) -> float | None:
    """A number, or what a text spells."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, str):
        return value
    if NUMBER.fullmatch(value) is None:
        return None
    number = number_of_text(value)
    return number if number - number == 0 else None


@lru_cache(maxsize=65536)
def tester(test: Test) -> Callable[[Single], bool]:
    """The test as a function of one value."""
    match test:
        case Text(parts, cased):
            return text_tester(parts, cased)
        case Number(value):
            text = spelling(value)
            return lambda v: (v == value if is_number(v) else v == text) and not isinstance(v, bool)
        case Truth(value):
            word = spelling(value)
            return lambda v: v is value or (isinstance(v, str) and folded(v) == word)
        case Regex(pattern):
            found = searcher(pattern)
            return lambda v: found(spelling(v))
        case Network(text):
            return _network(text)
        case Compared(op, value):
            compare = COMPARISONS[op]
            return lambda v: (number := number_of(v)) is not None and compare(number, value)
        case TimePart(part, value):
            return lambda v: time_part(v, part) == value
    raise TypeError(test)


def text_tester(parts: tuple[Part, ...], cased: bool) -> Callable[[Single], bool]:
    change = (lambda text: text) if cased else folded
    fold: tuple[Part, ...] = tuple(part if isinstance(part, Wild) else change(part) for part in parts)
    if not any(isinstance(part, Wild) for part in fold):
        whole = "".join(str(part) for part in fold)
        return lambda v: change(spelling(v)) == whole
    kind = shape(fold)
    if kind is not None:
        how, needle = kind
        if how == "contains":
            return lambda v: needle in change(spelling(v))
        if how == "startswith":
            return lambda v: change(spelling(v)).startswith(needle)
        return lambda v: change(spelling(v)).endswith(needle)
    matches = wild(fold)
    return lambda v: matches(change(spelling(v)))


def shape(parts: tuple[Part, ...]) -> tuple[str, str] | None:
    """A pattern that is one text with `*` on one side or on both."""
    match parts:
        case (Wild.ANY, str(text), Wild.ANY):
            return "contains", text
        case (str(text), Wild.ANY):
            return "startswith", text
        case (Wild.ANY, str(text)):
            return "endswith", text
    return None


def wild(parts: tuple[Part, ...]) -> Callable[[str], bool]:
    """In time linear in the text: each piece between `*` is looked for once, behind the one before."""
    first, *middle = _pieces(parts)
    if not middle:
        return lambda text: first.fullmatch(text) is not None
    last, length = middle.pop(), _length(parts)

    def matches(text: str) -> bool:
        found = first.match(text)
        for piece in middle:
            found = found and piece.search(text, found.end())
        if found is None:
            return False
        rest = len(text) - length
        return rest >= found.end() and last.match(text, rest) is not None

    return matches


def wild_pattern(parts: tuple[Part, ...]) -> str:
    """The same as a regular expression of RE2."""
    signs = {Wild.ANY: ".*", Wild.ONE: "."}
    return "(?s)^" + "".join(signs[part] if isinstance(part, Wild) else _quoted(part) for part in parts) + "$"


def _quoted(text: str) -> str:
    return re.sub(r"[^\w\s]", lambda sign: "\\" + sign[0] if sign[0].isascii() else sign[0], text)


def _pieces(parts: tuple[Part, ...]) -> tuple[re.Pattern[str], ...]:
    """What stands between the `*`, each of a fixed length."""
    pieces = [""]
    for part in parts:
        if part is Wild.ANY:
            pieces.append("")
        else:
            pieces[-1] += "." if isinstance(part, Wild) else re.escape(part)
    return tuple(re.compile(piece, re.DOTALL) for piece in pieces)


def _length(parts: tuple[Part, ...]) -> int:
    """Of what stands behind the last `*`."""
    last = max(n for n, part in enumerate(parts) if part is Wild.ANY)
    return sum(1 if isinstance(part, Wild) else len(part) for part in parts[last + 1 :])


def _network(text: str) -> Callable[[Single], bool]:
    network = ip_network(text, strict=False)

    def holds(value: Single) -> bool:
        if not isinstance(value, str):
            return False
        try:
            address = ip_address(value)
        except ValueError:
            return False
        return address.version == network.version and address in network

    return holds


def time_part(value: Single, part: str) -> float | None:
    moment = _moment(value)
    if moment is None:
        return None
    return float(moment.isocalendar().week if part == "week" else getattr(moment, part))


def _moment(value: Single) -> datetime | None:
    try:
        if isinstance(value, bool):
            return None
        if not isinstance(value, str):
            return datetime.fromtimestamp(value / MILLISECOND, UTC)
        return datetime.fromisoformat(value)
    except (ValueError, OverflowError, OSError):
        return None


def compared(left: Single, right: Single, how: str, cased: bool) -> bool:
    """Two fields, by their spelling."""
    a, b = (spelling(v) if cased else folded(spelling(v)) for v in (left, right))
    if how == "contains":
        return b in a
    return a.startswith(b) if how == "startswith" else a.endswith(b) if how == "endswith" else a == b
