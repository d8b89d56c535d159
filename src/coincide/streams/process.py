"""A process that is there for a live run, and nothing else."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

UNCOLLECTED = 50_000
"""Objects that may have come to stay before anybody looks for garbage. What a batch of events is made of goes by itself; if it
is looked at meanwhile it counts as having come to stay, and every few seconds the whole state is looked through."""

LARGE, MMAP_THRESHOLD = 1 << 18, -3
"""Bytes of a block that is given back to the system as soon as it is free, and what the C library calls that. It would raise the
bound by itself, up to 32 MiB, and what states and checkpoints are written in would lie between what stays, as holes."""


def prepare() -> None:
    """For pauses that are short, and memory that stays what it is."""
    gc.set_threshold(UNCOLLECTED, *gc.get_threshold()[1:])
    with suppress(AttributeError, OSError):  # not every C library has it
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE)
