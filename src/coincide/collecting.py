"""Python's search for garbage, where there is none to be found."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic, thread_time
from typing import Any

LONG = 0.05
"""Seconds of a search for garbage after which what it has left is kept out of those that follow, …"""
ANEW = 600.0
"""… until so many seconds have gone by: among what was kept out, too, something may have become garbage."""


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
            if not _sparing.keeps_out and gc.get_freeze_count() == 0:  # which goes through what is frozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class Sparing:
    """Has Python search what is new, where much is kept: Spark's workers search all there is after each task."""

    def __init__(self) -> None:
        self._begun = 0.0
        self._until: float | None = None  # nothing is kept out

    @property
    def keeps_out(self) -> bool:
        return self._until is not None

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        """As a callback of `gc`, which knows that what a search has left is used."""
        if info["generation"] < 2:
            return
        if phase == "start":
            self._begun = thread_time()
            if self._until is not None and monotonic() > self._until:
                gc.unfreeze()
                self._until = None
        elif thread_time() - self._begun > LONG:
            gc.freeze()
            self._until = self._until or monotonic() + ANEW


_sparing = Sparing()


def spare_what_is_kept() -> None:
    """For as long as this process lives."""
    if _sparing not in gc.callbacks:
        gc.callbacks.append(_sparing)
