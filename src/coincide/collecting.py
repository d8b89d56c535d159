"""Python's search for garbage, where there is none to be found."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Nearly all that is made in here stays: to look for what does not would take a third of the time, or more. Afterwards it is
    old at once, so that nobody looks through it generation by generation."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_freeze_count() == 0:  # others have frozen nothing
                gc.freeze()
                gc.unfreeze()
            gc.enable()
