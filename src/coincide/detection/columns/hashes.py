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
    texts = [key[0].casefold() if len(key) == 1 and type(key[0]) is str else "\0".join(sorted(_spelled(key))) for key in keys]
    hashes = [crc32(text.encode("utf-8", "surrogatepass")) for text in texts]
    return np.array(hashes, np.int64) - (1 << 31)  # signed: narrower when they are written


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
