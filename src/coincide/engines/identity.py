"""Keys of detections: ids that are the same on every engine, in every run and after a restart (conventions, "Detections").

A key is made of a detection's type, the digest of its definition, its time, `from`, its attributes, and its number among
detections that are equal in all of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec

from coincide.errors import Diagnostic, InputError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, plain
from coincide.rulebook import Rulebook

REMEMBERED = 100_000
"""The last detections that are remembered for equal ones to come. Equal ones are made by the same event or at the same instant,
so they come close to one another."""

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
    written, one entry after another, for runs that keep it every few seconds: entries come at one end and go at the other, so
    that none of these runs ever has to pause for it."""

    def __init__(self, digests: Digests) -> None:
        self._digests: Mapping[int, str] = dict(digests)
        self._met: dict[bytes, int] = {}
        self._written = bytearray()
        self._saved_size: int | None = None  # so much of it has been given out; None: all is to be

    def change_rules(self, digests: Digests) -> None:
        self._digests = dict(digests)

    def of(self, made: EventBatch) -> list[str]:
        return list(self._keys(self._contents(made)))

    def state(self) -> bytes:
        """What is remembered, oldest first."""
        return bytes(self._written)

    def changes(self, everything: bool = False) -> tuple[bytes, bool]:
        """What is to be added to the state since this was asked last, or all of it; and whether it is all."""
        whole = everything or self._saved_size is None
        data = bytes(self._written if whole else self._written[self._saved_size :])
        self._saved_size = len(self._written)
        return data, whole

    def restore(self, state: bytes) -> None:
        self._saved_size = None
        self._met = {}
        self._written = bytearray()
        for at in range(0, len(state) - ENTRY + 1, ENTRY):
            self._remember(state[at : at + DIGEST], int.from_bytes(state[at + DIGEST : at + ENTRY], "big"))

    def _remember(self, content: bytes, number: int) -> None:
        self._met[content] = number
        self._written += content + number.to_bytes(ENTRY - DIGEST, "big")
        if len(self._written) > REMEMBERED * ENTRY:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        oldest, number = bytes(self._written[:DIGEST]), int.from_bytes(self._written[DIGEST:ENTRY], "big")
        del self._written[:ENTRY]
        if self._met.get(oldest) == number:  # there was no equal one since
            del self._met[oldest]
        if self._saved_size is not None:
            self._saved_size = self._saved_size - ENTRY if self._saved_size else None

    def _keys(self, contents: Iterable[bytes]) -> Iterator[str]:
        for data in contents:
            content = blake2b(data, digest_size=DIGEST).digest()
            number = self._met.get(content, 0)
            self._remember(content, number + 1)
            yield blake2b(content + number.to_bytes(8, "big"), digest_size=8).hexdigest()

    def _contents(self, made: EventBatch) -> Iterator[bytes]:
        """What detections say, as their keys are made of it."""
        if made.has_table:
            from coincide.engines.tableidentity import contents

            yield from map(_encode, contents(made.table, self._digests))
            return
        for event in made.events:
            attributes = [(name, plain(value)) for name, value in sorted(event.attributes.items()) if value is not None]
            ids = [key[4] for key in event.origin]
            yield _encode((event.type, self._digests.get(maker(event), ""), event.lo, event.hi, ids, attributes))


def with_key(book: Rulebook, detections: Sequence[Event], key: str) -> Event:
    """The one of all detections of a run, in the order made, that has this key. Raises InputError."""
    keys = Keys(digests_of(book)).of(EventBatch(detections))
    found = next((detection for detection, own in zip(detections, keys, strict=True) if own == key), None)
    if found is None:
        hint = "keys are those of `detect(…, keys=True)` and `coincide run --keys`, of the same rules and events"
        raise InputError(Diagnostic(f"no detection has the key '{key}'", hint=hint))
    return found


def versions_of(digests: Digests, made: EventBatch) -> list[str | None]:
    """The digest of the definition that made each detection."""
    known = dict(digests)
    return [known.get(number) for number in makers(made)]


def makers(made: EventBatch) -> list[int]:
    """The numbers of the definitions that made the detections of a batch."""
    if made.has_table:
        from coincide.engines.tableidentity import table_makers

        return table_makers(made.table)
    return [maker(event) for event in made.events]


def maker(event: Event) -> int:
    """The number of the definition that made a detection: the last on the way that its place tells."""
    generation: int = event.place[3]
    number: int = event.place[2 + 2 * generation]
    return number
