"""A progress bar for long work at a terminal. Short work and pipes never see it, nor wait for its library."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from coincide.model.batch import EventBatch

PATIENCE = 1.0
"""Seconds before anything is shown."""


class Progress:
    """Counts what is read and found; shows it once the work has taken PATIENCE. `quiet`: detections go to the terminal too."""

    def __init__(self, quiet: bool) -> None:
        self._silent = not sys.stderr.isatty() or (quiet and sys.stdout.isatty())
        self._begun = time.monotonic()
        self._read = 0
        self._found = 0
        self._bar: Any = None
        self._task: Any = None

    def watch(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        for batch in batches:
            self.read(len(batch))
            yield batch

    def read(self, events: int) -> None:
        self._read += events
        self._show()

    def found(self, detections: int) -> None:
        self._found += detections
        self._show()

    def _show(self) -> None:
        if self._silent or time.monotonic() - self._begun < PATIENCE:
            return
        if self._bar is None:
            self._open()
        self._bar.update(self._task, description=f"{self._read:,} events read, {self._found:,} detections")

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        self._bar = Bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
