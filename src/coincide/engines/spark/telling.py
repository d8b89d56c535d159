"""What a batch without a report did not have, told after the first action on its detections.

The types of the rows that the rules let through are noted while these go by, behind the filters that the source was given, and
without a job of our own. Spark tells no Python program when an action is done: a thread looks whether the notes are there."""

from __future__ import annotations

import atexit
import warnings
from collections import deque
from contextlib import suppress
from threading import Lock, Thread
from time import sleep
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from coincide.errors import DataWarning, calling_line
from coincide.lang.shared.reads import TYPE
from coincide.unmet import Unmet

FRAMES, TYPES = 8, 100
"""Of so many frames, the last ones, an action is waited for; rules that read more types are not watched."""
PAUSE, PATIENCE = 0.5, 5.0
"""Seconds between two looks; and for which the end of a program waits for one that is under way."""

_waiting: deque[Watch] = deque(maxlen=FRAMES)
_lock, _turn = Lock(), Lock()
_told: dict[Any, Any] = {}
_threads: list[Thread] = []
"""The one that looks, while anything is waited for."""


class Watch:
    """Of one batch: which of the types that its rules read have come."""

    def __init__(self, unmet: Unmet) -> None:
        self._unmet = unmet
        self._names = sorted(unmet.names(TYPE))
        self._line = calling_line()

    def on(self, rows: DataFrame, kind: Column) -> DataFrame:
        """The rows, whose types are looked at when they go by: after all that is made of them, since Spark compiles what comes
        before an observation, and what follows, each by itself."""
        # Spark Connect notes nothing that another thread could ask for.
        if not 0 < len(self._names) <= TYPES or not hasattr(rows, "_jdf"):
            return rows
        noted = [F.max(kind == name).alias(f"n{number}") for number, name in enumerate(self._names)]
        self._observation = Observation()  # where ranges of time were tried in vain, rows are looked at once more
        observed = rows.observe(self._observation, *noted)
        _wait_for(self)
        return observed

    @property
    def is_over(self) -> bool:
        over: bool = self._observation._jo.future().isCompleted()
        return over

    def tell(self) -> None:
        none = not self._observation._jo.getRow().length()  # Spark saw that no row came, and forgot what had looked at them
        noted = {} if none else self._observation.get
        missing = [name for number, name in enumerate(self._names) if not noted.get(f"n{number}")]
        for diagnostic in self._unmet.unused(missing):
            text = diagnostic.render().removeprefix("warning: ")
            warnings.warn_explicit(text, DataWarning, *self._line, registry=_told)


def _wait_for(watch: Watch) -> None:
    with _lock:
        if watch not in _waiting:
            _waiting.append(watch)
        if not _threads:
            _threads.append(Thread(target=_look, name="coincide-telling", daemon=True))
            _threads[0].start()


def _look() -> None:
    while True:
        tell_what_is_over()
        with _lock:
            if not _waiting:
                _threads.clear()
                return
        sleep(PAUSE)


def tell_what_is_over() -> None:
    """Of the frames that are waited for. Nothing here may disturb the program, be the session stopped or the action failed."""
    if not _turn.acquire(timeout=PATIENCE):
        return
    try:
        with _lock:
            watched = list(_waiting)
        for watch in watched:
            with suppress(Exception):
                if not watch.is_over:
                    continue
                watch.tell()
            with _lock, suppress(ValueError):  # what has waited for too long was dropped
                _waiting.remove(watch)
    finally:
        _turn.release()


atexit.register(tell_what_is_over)
