"""Hashes of keys, by which those of a state that events touch are found without a look at the rest.

Equal keys have equal hashes, in whatever order and form their parts are written: what is neither a text nor a number, case and
the digits of long numbers do not count. Different keys may have equal ones, too: then more is found than was looked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.int64]


def key_hashes(keys: Sequence[Sequence[object]]) -> Hashes:
    return np.fromiter(map(_hash, keys), np.int64, len(keys)) - (1 << 31)  # signed: narrower when they are written


def are_among(hashes: Hashes, some: Hashes) -> npt.NDArray[np.bool_]:
    """Which of these are among some that ascend."""
    if not len(some):
        return np.zeros(len(hashes), np.bool_)
    found: npt.NDArray[np.bool_] = some[np.minimum(np.searchsorted(some, hashes), len(some) - 1)] == hashes
    return found


def _hash(key: Sequence[object]) -> int:
    if len(key) == 1 and type(key[0]) is str:
        return crc32(key[0].casefold().encode("utf-8", "surrogatepass"))
    return crc32("\0".join(sorted(_spelled(key))).encode("utf-8", "surrogatepass"))


def _spelled(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part.casefold()
    elif isinstance(part, list | tuple):
        for each in part:
            yield from _spelled(each)
    elif isinstance(part, int | float) and not isinstance(part, bool):
        yield repr(float(part) + 0.0)


def is_open(key: Sequence[object], parts: int) -> bool:
    """Is it other than a key of so many parts, none of which is null?"""
    if parts == 1 and len(key) == 1 and type(key[0]) is str:
        return False
    return len(key) != parts or _has_null(key)


def _has_null(part: object) -> bool:
    return part is None or (isinstance(part, list | tuple) and any(map(_has_null, part)))
