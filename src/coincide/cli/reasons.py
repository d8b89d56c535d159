"""`coincide run --why`: what led to each detection."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from coincide.cli.command import Given

if TYPE_CHECKING:
    from coincide.causes import Cause
    from coincide.model.batch import EventBatch
    from coincide.rulebook import Rulebook

Batches = Iterable["EventBatch"]


class Observer(Protocol):
    def reading(self, batches: Batches) -> Batches: ...

    def making(self, batches: Batches) -> Batches: ...


class _Nobody:
    """Lets everything pass."""

    def reading(self, batches: Batches) -> Batches:
        return batches

    def making(self, batches: Batches) -> Batches:
        return batches


@contextmanager
def explaining(book: Rulebook, given: Given, whole: bool) -> Iterator[Observer]:
    """Observes a run, if that is wanted, and at its end, also if it has to stop, tells why detections were made."""
    from coincide.errors import RunError

    if not given.why:
        yield _Nobody()
        return
    from coincide.causes import Observed

    observed = Observed()
    try:
        yield observed
    except RunError:
        show_causes(observed.causes(book, whole=whole).all())
        raise
    show_causes(observed.causes(book, whole=whole).all())


def show_causes(causes: Iterable[Cause]) -> int:
    """One tree below the other; in colours on a terminal. A command has then done what it was asked."""
    for cause in causes:
        if sys.stdout.isatty():
            _show_coloured(cause)
        else:
            print(cause)
        print()
    return 0


def _show_coloured(cause: Cause) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in cause.lines():
        console.print(Text.assemble(*line))
