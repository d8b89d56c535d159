"""A process that is there for a live run, and nothing else."""

from __future__ import annotations

import gc

UNCOLLECTED = 50_000
"""Objects that may have come to stay before anybody looks for garbage. What a batch of events is made of goes by itself; if it
is looked at meanwhile it counts as having come to stay, and every few seconds the whole state is looked through."""


def prepare() -> None:
    """For pauses that are short."""
    gc.set_threshold(UNCOLLECTED, *gc.get_threshold()[1:])
