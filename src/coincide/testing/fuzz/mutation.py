"""Random changes of texts, of bytes and of data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from coincide.detection.snapshots import SEAL, opened, sealed

NUMBERS = (
    "0", "1", "2", "7", "100", "100000", "1000000000", "0.5", "1e-9", "1e-320", "1e9", "1e19", "1e300", "1e308", "1e309", "1e400",
    "9" * 400, "0." + "0" * 400 + "1", "4611686018427387904", "9007199254740993", "9223372036854775807", "18446744073709551616",
    "-1", "-0", "00", "1.", ".5", "1e", "0x10", "nan", "inf", "١٢",
)  # fmt: skip
DURATIONS = (
    "1us",
    "5 mins",
    "5m",
    "1 hr",
    "1 hh",
    "300 secs",
    "2 days",
    "1w",
    "1e308s",
    "1e-9 s",
    "0ms",
    "1 h 30 min",
    "1 century",
)
SCRAPS = (
    "", " ", "\n", "\t", "\0", "'", '"', "''", "`", "#", "(", ")", "[", "]", "{", "}", "<", ">", "&", "&amp;", "<!--",
    "<![CDATA[", ";", ":", ",", ".", "..", "-", "--", "*", "**", "!", "=", "==", "|", "/", "\\", "%", "$x", "é", "😀", "\u2028",
    "\u0301", "\ufeff", "null", "true", "and", "or", "not", "in", "self", "__class__",
)  # fmt: skip
TOKEN = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\w+|\s+|\"[^\"\n]*\"|'[^'\n]*'|[^\w\s]")
LONGEST = 20_000
"""Characters of a mutant: larger ones only take longer."""

Tree = Any
"""Data as MessagePack and JSON know it."""


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text)


def mutate_text(text: str, random: Random, pool: Sequence[str]) -> str:
    """One to four changes; `pool` has words and stretches of other texts of the language."""
    parts = tokens(text)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        random.choice(_TEXT_CHANGES)(parts, random, pool)
    return "".join(parts)[:LONGEST]


def _somewhere(parts: list[str], random: Random) -> int:
    """A place in the parts, of a word rather than of white space."""
    place = random.randrange(len(parts)) if parts else 0
    return place if not parts or not parts[place].isspace() else random.randrange(len(parts))


def _delete(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    start = _somewhere(parts, random)
    del parts[start : start + random.choice((1, 1, 1, 2, 3, 8))]


def _repeat(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    start = _somewhere(parts, random)
    stretch = parts[start : start + random.choice((1, 1, 2, 4, 12))]
    parts[start:start] = stretch * random.choice((1, 1, 1, 2, 3, 50, 300))


def _swap(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    if parts:
        a, b = _somewhere(parts, random), _somewhere(parts, random)
        parts[a], parts[b] = parts[b], parts[a]


def _replace(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    if parts:
        parts[_somewhere(parts, random)] = random.choice(pool)


def _insert(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    parts.insert(_somewhere(parts, random), random.choice(pool))


def _borrow(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    """A word of the text itself, elsewhere: most likely to be accepted and still to mean something new."""
    if parts:
        parts[_somewhere(parts, random)] = parts[_somewhere(parts, random)]


def _scrap(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    parts.insert(_somewhere(parts, random), random.choice(SCRAPS))


def _number(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    places = [place for place, part in enumerate(parts) if part[:1].isdigit()] or [_somewhere(parts, random)]
    if parts:
        parts[random.choice(places)] = random.choice(NUMBERS if random.random() < 0.7 else DURATIONS)


def _cut(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    if random.random() < 0.3:
        del parts[_somewhere(parts, random) :]


def _letter(parts: list[str], random: Random, pool: Sequence[str]) -> None:
    if parts:
        place = _somewhere(parts, random)
        word, at = parts[place], random.randrange(len(parts[place]) + 1)
        parts[place] = word[:at] + random.choice((*SCRAPS, "x", "E", "_")) + word[at + random.choice((0, 1)) :]


_TEXT_CHANGES: tuple[Callable[[list[str], Random, Sequence[str]], None], ...] = (
    _delete, _repeat, _swap, _replace, _replace, _insert, _borrow, _borrow, _scrap, _number, _number, _cut, _letter,
)  # fmt: skip


AWKWARD: tuple[Tree, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 255, 65_536, 2**31, 2**40, 2**53 + 1, 2**62, 2**63 - 1, 2**64 - 1, -(2**31), -(2**63),
    0.0, -0.0, 0.5, 1e300, -1e300, 5e-324, float("inf"), float("nan"), "", "a", "x" * 300, "\0", "é😀", b"", b"\xff\xfe",
    b"\x00" * 64, [], [None], [0], [[]], {}, {"a": 1}, {"": None},
)  # fmt: skip


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """A few bytes flipped, left out, put in, or the end cut off."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        place = random.randrange(len(changed) + 1)
        way = random.random()
        if way < 0.5 and place < len(changed):
            changed[place] = random.choice(
                (0, 1, 0x7F, 0x80, 0xC0, 0xFF, random.randrange(256), changed[place] ^ 1 << random.randrange(8))
            )
        elif way < 0.7:
            del changed[place : place + random.choice((1, 2, 8))]
        elif way < 0.9:
            changed[place:place] = random.randbytes(random.choice((1, 2, 8)))
        else:
            del changed[place:]
    return bytes(changed)


def mutate_packed(data: bytes, random: Random) -> bytes:
    """MessagePack with one to three values changed, at any depth: also inside of bytes that are MessagePack again. One may become
    what stands elsewhere: of a right type, perhaps, but in a wrong place."""
    tree = unpacked(data)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        scion = _picked(tree, random) if random.random() < 0.3 else None
        tree = mutate_tree(tree, random, scion)
    return packed(tree)


def _picked(tree: Tree, random: Random) -> Tree:
    while _inner(tree) and random.random() > 1 / (1 + _size(tree)):
        items = list(tree.values()) if isinstance(tree, dict) else list(tree)
        tree = random.choices(items, [_size(item) for item in items])[0]
    return tree


class Packed(list[Tree]):
    """Bytes that hold MessagePack, with what is in them as the only item. `code`: of an extension. `seal`: it has one."""

    code: int | None = None
    seal: bool = False

    def like(self, other: Packed) -> Packed:
        self.code, self.seal = other.code, other.seal
        return self

    def content(self) -> bytes:
        inside = packed(self[0]) if self else b""
        return sealed(inside) if self.seal else inside


def unpacked(data: bytes) -> Tree:
    return _opened(msgspec.msgpack.decode(data))


def packed(tree: Tree) -> bytes:
    return msgspec.msgpack.encode(_closed(tree))


def _opened(tree: Tree) -> Tree:
    if isinstance(tree, list):
        return [_opened(item) for item in tree]
    if isinstance(tree, dict):
        return {key: _opened(value) for key, value in tree.items()}
    if isinstance(tree, msgspec.msgpack.Ext):
        extension = Packed([unpacked(bytes(tree.data))])
        extension.code = tree.code
        return extension
    return _opened_bytes(tree) if isinstance(tree, bytes) else tree


def _opened_bytes(data: bytes) -> Tree:
    try:
        inside = msgspec.msgpack.decode(opened(data))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return data
    if not isinstance(inside, (list, dict)):
        return data
    found = Packed([_opened(inside)])
    found.seal = data.startswith(SEAL)
    return found


def _closed(tree: Tree) -> Tree:
    if isinstance(tree, Packed):
        return tree.content() if tree.code is None else msgspec.msgpack.Ext(tree.code, tree.content())
    if isinstance(tree, list):
        return [_closed(item) for item in tree]
    return {key: _closed(value) for key, value in tree.items()} if isinstance(tree, dict) else tree


def mutate_tree(tree: Tree, random: Random, scion: Tree = None) -> Tree:
    """The same data with one value changed, to the scion if there is one. Every value inside is as likely as any other."""
    if not _inner(tree) or random.random() < 1 / (1 + _size(tree)):
        return _other(tree, random) if scion is None else scion
    if isinstance(tree, dict):
        key = random.choices(list(tree), [_size(value) for value in tree.values()])[0]
        return {name: mutate_tree(value, random, scion) if name == key else value for name, value in tree.items()}
    place = random.choices(range(len(tree)), [_size(item) for item in tree])[0]
    items = [mutate_tree(item, random, scion) if number == place else item for number, item in enumerate(tree)]
    return Packed(items).like(tree) if isinstance(tree, Packed) else items


def _inner(tree: Tree) -> bool:
    return isinstance(tree, (list, dict)) and bool(tree)


def _size(tree: Tree) -> int:
    if isinstance(tree, dict):
        return 1 + sum(map(_size, tree.values()))
    return 1 + sum(map(_size, tree)) if isinstance(tree, list) else 1


def _other(tree: Tree, random: Random) -> Tree:
    """Something else in its place: near to what it was, or awkward."""
    if not isinstance(tree, (int, float, str, bytes, list, dict)) or isinstance(tree, bool) or random.random() < 0.25:
        return random.choice(AWKWARD)
    if isinstance(tree, int):
        return max(
            -(2**63), min(2**64 - 1, random.choice((tree + 1, tree - 1, -tree, tree * 2, tree + 1000, tree ^ 1, -1, 2**31 - 1)))
        )
    if isinstance(tree, float):
        return random.choice((-tree, tree + 1, tree * 1e18, float("nan"), float("inf")))
    if isinstance(tree, str):
        return random.choice((tree + "x", tree[:-1], tree * 2, tree.swapcase()))
    if isinstance(tree, bytes):
        return mutate_bytes(tree, random)
    return _other_collection(tree, random)


def _other_collection(tree: Tree, random: Random) -> Tree:
    if isinstance(tree, Packed):
        return mutate_bytes(tree.content(), random)
    items = list(tree.items()) if isinstance(tree, dict) else list(tree)
    if items:
        place = random.randrange(len(items))
        changed = random.choice((items[:place], items[place:], [*items, items[place]], items[::-1], [*items, *items]))
    else:
        changed = [("a", 1)] if isinstance(tree, dict) else [random.choice(AWKWARD)]
    return dict(changed) if isinstance(tree, dict) else changed
