"""Keys of detections: ids that are the same on every engine, in every run and after a restart (conventions, "Detections").

A key is made of a detection's type, the digest of its definition, its time, `from`, its attributes, and its number among
detections that are equal in all of these."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec

from coincide.model.batch import EventBatch
from coincide.model.event import Event, plain
from coincide.rulebook import Rulebook

REMEMBERED = 100_000
"""So many detections are remembered for equal ones to come. Equal ones are made by the same event or at the same instant, so
they come close to one another."""

DIGEST, ENTRY = 16, 24
"""Bytes of the digest of what a detection says, and of an entry: that and a number."""

_encode = msgspec.msgpack.Encoder().encode

Digests = tuple[tuple[int, str], ...]
"""Of definitions, by their numbers."""


def digests_of(book: Rulebook) -> Digests:
    languages = book.compiled.languages
    return tuple((d.order, languages[d.language].printed_digest(d)) for d in book.detectors)


class Keys:
    """Tells the keys of detections that come in the order in which they are made. What is remembered is also held as it is
    written, one entry after another, for runs that keep it every few seconds."""

    def __init__(self, digests: Digests) -> None:
        self._digests: Mapping[int, str] = dict(digests)
        self._met: OrderedDict[bytes, int] = OrderedDict()
        self._written = bytearray()
        self._told: int | None = None  # so much of it; None: of what was written before it was written anew

    def of(self, made: EventBatch) -> list[str]:
        return list(self._keys(made.events))

    def state(self) -> bytes:
        """What is remembered, oldest first: of what stands there twice the second counts."""
        return bytes(self._written)

    def changes(self, everything: bool = False) -> tuple[bytes, bool]:
        """What is to be added to the state since this was asked last, or all of it; and whether it is all."""
        anew = everything or self._told is None
        data = bytes(self._written if anew else self._written[self._told :])
        self._told = len(self._written)
        return data, anew

    def restore(self, state: bytes) -> None:
        self._told = None
        self._met = OrderedDict()
        self._written = bytearray(state)
        for at in range(0, len(state) - ENTRY + 1, ENTRY):
            content, number = state[at : at + DIGEST], int.from_bytes(state[at + DIGEST : at + ENTRY], "big")
            self._remember(content, number)

    def _remember(self, content: bytes, number: int) -> None:
        self._met.pop(content, None)
        self._met[content] = number
        if len(self._met) > REMEMBERED:
            self._met.popitem(last=False)

    def _keys(self, events: Sequence[Event]) -> Iterator[str]:
        for event in events:
            content = blake2b(self._content(event), digest_size=DIGEST).digest()
            number = self._met.get(content, 0)
            self._remember(content, number + 1)
            self._written += content + (number + 1).to_bytes(8, "big")
            if len(self._written) > 2 * REMEMBERED * ENTRY:
                self._told = None
                self._written = bytearray().join(met + count.to_bytes(8, "big") for met, count in self._met.items())
            yield blake2b(content + number.to_bytes(8, "big"), digest_size=8).hexdigest()

    def _content(self, event: Event) -> bytes:
        attributes = [(name, plain(value)) for name, value in sorted(event.attributes.items()) if value is not None]
        ids = [key[4] for key in event.origin]
        return _encode((event.type, self._digests.get(maker(event), ""), event.lo, event.hi, ids, attributes))


def versions_of(digests: Digests, made: EventBatch) -> list[str | None]:
    """The digest of the definition that made each detection."""
    known = dict(digests)
    return [known.get(maker(event)) for event in made.events]


def maker(event: Event) -> int:
    """The number of the definition that made a detection: the last on the way that its place tells."""
    generation: int = event.place[3]
    number: int = event.place[2 + 2 * generation]
    return number
