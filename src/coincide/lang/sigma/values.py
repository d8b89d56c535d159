"""A value with its modifiers, as tests (section 4)."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from itertools import product
from math import prod

from coincide.errors import nearest
from coincide.expr.patterns import pattern_fault
from coincide.lang.sigma.definition import (
    Absent,
    Compared,
    Exists,
    Network,
    Number,
    Part,
    Regex,
    SameAs,
    Test,
    Text,
    TimePart,
    Truth,
    Wild,
)  # fmt: skip
from coincide.lang.sigma.nodes import Value, fail
from coincide.model.numbers import is_number, plain_number
from coincide.source import Span

FLAGS = {"i": "i", "ignorecase": "i", "m": "m", "multiline": "m", "s": "s", "dotall": "s"}
AFFIXES = ("contains", "startswith", "endswith")
COMPARING = ("gt", "gte", "lt", "lte")
TIME_PARTS = ("minute", "hour", "day", "week", "month", "year")
ENCODINGS = {"wide": "utf-16-le", "utf16le": "utf-16-le", "utf16be": "utf-16-be", "utf16": "utf-16-le"}
WHOLE_ITEM = ("all", "neq")
KNOWN = (
    *AFFIXES, *WHOLE_ITEM, "cased", "exists", "re", *FLAGS, "cidr", *COMPARING, *TIME_PARTS, "fieldref", *ENCODINGS,
    "base64", "base64offset", "windash", "expand",
)  # fmt: skip
TEXTUAL = frozenset({*AFFIXES, "cased", "re", "cidr", "fieldref", *ENCODINGS, "base64", "base64offset", "windash", "expand"})

DASH = re.compile(r"(?<!\w)[-/](?=\w)")
DASHES = ("-", "/", "–", "—", "―")
MOST_ALTERNATIVES = 10_000

Parts = Sequence[Part | bytes]


def check_modifiers(modifiers: Sequence[str], key: Span) -> None:
    for number, name in enumerate(modifiers):
        if name not in KNOWN:
            fail(f"unknown modifier '{name}'", key, nearest(name, KNOWN))
        if name == "re" and number:
            fail("'re' goes first", key)
        if name in FLAGS and "re" not in modifiers[:number]:
            fail(f"'{name}' goes after 're'", key)


@dataclass(frozen=True)
class Meaning:
    """What a value needs beside itself."""

    placeholders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)


def tests_of(value: Value, modifiers: Sequence[str], place: Span, meaning: Meaning, keyword: bool) -> tuple[Test, ...]:
    """The alternatives that one value stands for."""
    names = [name for name in modifiers if name not in WHOLE_ITEM]
    textual = next((name for name in names if name in TEXTUAL), None)
    if textual is not None and not isinstance(value, str) and not (keyword and is_number(value)):
        fail(f"'{textual}' needs text", place)
    if keyword and (isinstance(value, bool) or value is None):
        fail("a keyword must be a text or a number", place)
    if names and (special := _special(value, names, place, meaning)) is not None:
        return (special,)
    if not names and not keyword:
        if value is None:
            return (Absent(),)
        if isinstance(value, bool):
            return (Truth(value),)
        if is_number(value):
            return (Number(value),)
    text = value if isinstance(value, str) else spelt(value)
    return _texts(text, ["contains", *names] if keyword else names, place, meaning)


def spelt(value: Value) -> str:
    """As JSON spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(plain_number(value)) if is_number(value) else str(value)


def _special(value: Value, names: Sequence[str], place: Span, meaning: Meaning) -> Test | None:
    """Tests of other kinds than texts with wildcards."""
    first = names[0]
    if "exists" in names:
        if not isinstance(value, bool):
            fail("'exists' needs true or false", place)
        return Exists(value)
    if first == "re":
        return _regex(str(value), names[1:], place)
    if "cidr" in names:
        return _network(str(value), place)
    if "fieldref" in names:
        how = next((name for name in names if name in AFFIXES), "equal")
        return SameAs(meaning.attributes.get(str(value), str(value)), how, "cased" in names)
    number = next((name for name in names if name in COMPARING or name in TIME_PARTS), None)
    if number is None:
        return None
    if not is_number(value):
        fail(f"'{number}' needs a number", place)
    return Compared(number, value) if number in COMPARING else TimePart(number, value)


def _regex(pattern: str, flags: Sequence[str], place: Span) -> Regex:
    letters = "".join(sorted({FLAGS[name] for name in flags if name in FLAGS}))
    whole = f"(?{letters}){pattern}" if letters else pattern
    fault = pattern_fault(whole)
    if fault is not None:
        hint = "what must not be there is a selection of its own, with 'not'" if "(?!" in pattern or "(?<!" in pattern else None
        fail(f"invalid regular expression: {fault.partition(': ')[2] or fault}", place, hint)
    return Regex(whole)


def _network(text: str, place: Span) -> Network:
    try:
        ip_network(text, strict=False)
    except ValueError:
        fail(f"invalid network '{text}'", place)
    return Network(text)


def _texts(text: str, names: Sequence[str], place: Span, meaning: Meaning) -> tuple[Test, ...]:
    alternatives: Sequence[Parts] = (_joined(_tokens(text, "expand" in names)),)
    for name in names:
        if (change := _change(name, place, meaning)) is not None:
            alternatives = [_joined(made) for parts in alternatives for made in change(parts)]
            _check_number(len(alternatives), place)
    front = [Wild.ANY] if "contains" in names or "endswith" in names else []
    behind = [Wild.ANY] if "contains" in names or "startswith" in names else []
    cased = "cased" in names
    found = (Text(_whole([*front, *parts, *behind]), cased) for parts in alternatives)
    return (next(found),) if len(alternatives) == 1 else tuple(dict.fromkeys(found))


def _check_number(alternatives: int, place: Span) -> None:
    if alternatives > MOST_ALTERNATIVES:
        fail(f"more than {MOST_ALTERNATIVES:,} alternatives", place)


PIECE = re.compile(r"[^*?\\]+|\\[*?\\]|[*?\\]")
EXPANDING = re.compile(r"[^*?\\%]+|\\[*?\\%]|%[^%\\]+%|[*?\\%]")


def _tokens(text: str, expanding: bool) -> Iterator[Part]:
    """Texts and wildcards; where placeholders are expanded, they are texts still, between their percent signs (`\\0`)."""
    for piece in (EXPANDING if expanding else PIECE).findall(text):
        if piece in "*?":
            yield Wild(piece)
        elif piece[0] == "\\" and len(piece) == 2:
            yield piece[1]
        elif expanding and piece[0] == "%" and len(piece) > 1:
            yield f"\0{piece[1:-1]}\0"
        else:
            yield piece


def _change(name: str, place: Span, meaning: Meaning) -> Callable[[Parts], Sequence[Parts]] | None:
    """What a modifier makes of a text: alternatives. Those that only say where it stands change nothing of it."""
    if name in ENCODINGS:
        mark = b"\xff\xfe" if name == "utf16" else b""
        return lambda parts: [_encoded(parts, ENCODINGS[name], mark)]
    if name == "base64":
        return lambda parts: [(b64encode(_bytes(parts, name, place)).decode(),)]
    if name == "base64offset":
        return lambda parts: [(text,) for text in _offsets(_bytes(parts, name, place))]
    if name == "windash":
        return lambda parts: _dashed(parts, place)
    return (lambda parts: _expanded(parts, place, meaning)) if name == "expand" else None


def _joined(parts: Iterable[Part | bytes]) -> tuple[Part | bytes, ...]:
    """Texts side by side are one, but for placeholders."""
    out: list[Part | bytes] = []
    for part in parts:
        if out and isinstance(part, str) and isinstance(out[-1], str) and "\0" not in (part[:1], out[-1][:1]):
            out[-1] += part
        elif not isinstance(part, str) or part:
            out.append(part)
    return tuple(out)


def _whole(parts: Parts) -> tuple[Part, ...]:
    out: list[Part] = []
    for each in parts:
        part = each.decode("utf-8", "replace") if isinstance(each, bytes) else each
        if part == "" or (part is Wild.ANY and out and out[-1] is Wild.ANY):
            continue
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        else:
            out.append(part)
    return tuple(out)


def _encoded(parts: Parts, encoding: str, mark: bytes) -> tuple[Part | bytes, ...]:
    out: list[Part | bytes] = [part.encode(encoding, "surrogatepass") if isinstance(part, str) else part for part in parts]
    if mark:
        out = [mark + out[0], *out[1:]] if out and isinstance(out[0], bytes) else [mark, *out]
    return tuple(out)


def _bytes(parts: Parts, name: str, place: Span) -> bytes:
    if any(isinstance(part, Wild) for part in parts):
        fail(f"'{name}' takes no wildcards", place)
    return b"".join(p if isinstance(p, bytes) else str(p).encode("utf-8", "surrogatepass") for p in parts)


def _offsets(data: bytes) -> list[str]:
    """At each offset, the characters that do not depend on what stands before or behind."""
    first, last = (0, 2, 3), (None, -3, -2)
    texts = []
    for offset in range(3):
        encoded = b64encode(b"\0" * offset + data).decode()
        texts.append(encoded[first[offset] : last[(len(data) + offset) % 3]])
    return texts


def _dashed(parts: Parts, place: Span) -> list[Parts]:
    """Each dash is any dash. What stands at the border of a part has a wildcard, which is not a letter, as its neighbour."""
    choices: list[list[Part | bytes]] = []
    for part in parts:
        if not isinstance(part, str):
            choices.append([part])
            continue
        at = 0
        for found in DASH.finditer(part):
            choices += [[part[at : found.start()]], [*DASHES]]
            at = found.end()
        choices.append([part[at:]])
    _check_number(prod(map(len, choices)), place)
    return [tuple(chosen) for chosen in product(*choices)]


def _expanded(parts: Parts, place: Span, meaning: Meaning) -> list[Parts]:
    choices: list[list[tuple[Part | bytes, ...]]] = []
    for part in parts:
        if not (isinstance(part, str) and part.startswith("\0")):
            choices.append([(part,)])
            continue
        name = part[1:-1]
        if not meaning.placeholders.get(name):
            fail(f"placeholder '%{name}%' has no values", place, nearest(name, meaning.placeholders))
        choices.append([tuple(_tokens(text, False)) for text in meaning.placeholders[name]])
    _check_number(prod(map(len, choices)), place)
    return [tuple(p for piece in chosen for p in piece) for chosen in product(*choices)]
