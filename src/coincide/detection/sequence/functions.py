"""What the functions of EQL mean on single values (section 4). Null for a null or wrongly typed argument."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

from coincide.expr.patterns import lowered
from coincide.lang.eql.functions import network_of, spelled
from coincide.model.numbers import number_of_text

Plain = int | float | str | bool | None

_decimal = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?").fullmatch
_based = re.compile(r"([+-]?)(0[xX])?([0-9a-zA-Z]+)").fullmatch
MOST_DIGITS = 1100
"""A number with more digits, in whatever base, is no finite double."""


def _texts(function: Callable[..., Plain], any_case: bool) -> Callable[..., Plain]:
    """Of two texts, and more; without case: both lower-cased, which keeps every position."""

    def evaluate(*arguments: Plain) -> Plain:
        if not isinstance(arguments[0], str) or not isinstance(arguments[1], str):
            return None
        first, second = (lowered(text) if any_case else text for text in (arguments[0], arguments[1]))
        return function(first, second, *arguments[2:])

    return evaluate


def _whole(value: Plain) -> int | None:
    """A position."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == int(value) else None


def _index_of(text: str, part: str, *start: Plain) -> Plain:
    first = _whole(start[0]) if start else 0
    if first is None or first > len(text):
        return None
    place = text.find(part, max(first, 0))
    return None if place < 0 else place


def _between(any_case: bool) -> Callable[..., Plain]:
    def evaluate(text: Plain, left: Plain, right: Plain, greedy: Plain = False) -> Plain:
        if not (isinstance(text, str) and isinstance(left, str) and isinstance(right, str) and isinstance(greedy, bool)):
            return None
        searched = text
        if any_case:
            searched, left, right = lowered(text), lowered(left), lowered(right)
        start = searched.find(left)
        if start < 0:
            return ""
        start += len(left)
        end = searched.rfind(right, start) if greedy else searched.find(right, start)
        return "" if end < 0 else text[start:end]

    return evaluate


def _length(text: Plain) -> Plain:
    return len(text) if isinstance(text, str) else None


def _concat(*parts: Plain) -> Plain:
    texts = [spelled(part) for part in parts]
    return None if None in texts else "".join(text for text in texts if text is not None)


def _substring(text: Plain, start: Plain, *end: Plain) -> Plain:
    first, last = _whole(start), _whole(end[0]) if end else None
    if not isinstance(text, str) or first is None or (end and last is None):
        return None
    return text[first:last] if end else text[first:]


def _number(text: Plain, base: Plain = None) -> Plain:
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return text
    radix = None if base is None else _whole(base)
    if not isinstance(text, str) or (base is not None and (radix is None or not 2 <= radix <= 36)):
        return None
    text = text.strip()
    if radix in (None, 10) and _decimal(text):
        number = float(text)
        if not math.isfinite(number):
            return None
        return number if re.search("[.eE]", text) else int(number_of_text(text))
    return _based_number(text, radix)


def _based_number(text: str, radix: int | None) -> Plain:
    found = _based(text)
    if found is None:
        return None
    sign, prefix, digits = found.groups()
    if prefix and radix not in (None, 16):
        digits = f"{prefix}{digits}"  # in a base beyond 32, x is a digit
    radix = 16 if prefix and radix is None else radix or 10
    try:
        digits = digits.lstrip("0") or "0"
        number = int(digits, radix) if len(digits) <= MOST_DIGITS else None
        return None if number is None else int(float(-number if sign == "-" else number))
    except (ValueError, OverflowError):
        return None


def network_test(networks: Sequence[str]) -> Callable[[Plain], bool | None]:
    """Is the address in one of the networks? Null if it is no address."""
    known = [network for text in networks if (network := network_of(text)) is not None]

    def test(value: Plain) -> bool | None:
        try:
            address = ip_address(value) if isinstance(value, str) else None
        except ValueError:
            return None
        return None if address is None else any(address.version == n.version and address in n for n in known)

    return test


def _with_forms(name: str, function: Callable[..., Any]) -> dict[str, Callable[..., Plain]]:
    return {name: _texts(function, False), f"{name}~": _texts(function, True)}


FUNCTIONS: dict[str, Callable[..., Plain]] = {
    "between": _between(False),
    "between~": _between(True),
    "concat": _concat,
    **_with_forms("startsWith", str.startswith),
    **_with_forms("endsWith", str.endswith),
    **_with_forms("stringContains", lambda text, part: bool(part) and part in text),
    **_with_forms("indexOf", _index_of),
    "length": _length,
    "number": _number,
    "string": spelled,
    "substring": _substring,
}
