"""What a live run reads from and writes to: sources give events with positions, sinks take detections with keys."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coincide.adapters.jsonlines import Messages
from coincide.adapters.mapping import DEFAULT, FieldMapping
from coincide.adapters.report import Intake
from coincide.model.batch import EventBatch

Position = Any
"""How far a source has been read, or a sink written: anything that JSON can say. None: it cannot be gone back to."""


class Delivery(NamedTuple):
    """Events, and the position of the source after them. `records` are those read from the source so far, the bad ones too."""

    batch: EventBatch
    position: Position
    records: int


@dataclass
class Reading:
    """How the records of one source become events."""

    mapping: FieldMapping = DEFAULT
    intake: Intake = field(default_factory=Intake)
    format: str | None = None


class Source(ABC):
    """Where events come from. `deliveries` blocks until there are more, so it runs in a thread of its own; it ends when the
    source does, or soon after `close`. Nothing is read ahead of what is asked for but what the source itself buffers."""

    clock = "event"
    """Does time go on when nothing comes? `wall`, or `event`: no."""

    repeatable = True
    """Can it be read again from a position?"""

    awaits_checkpoints = False
    """Will `acknowledge` be called? If not, what was given out is taken to be dealt with."""

    gathers = False
    """Does it wait for the `latency`, too, after the first event, for others to give with it? Else whoever reads it does."""

    latency = 0.0
    """Seconds."""

    behind: Callable[[], bool] = staticmethod(lambda: False)
    """Has the run not yet come to what was given before? Then a source that gathers loses nothing by going on with it."""

    def __init__(self, url: str, reading: Reading) -> None:
        self.url = url
        self.name = url  # for people: without what may be a secret
        self.reading = reading
        self.closed = threading.Event()
        self._messages = Messages(url)

    @abstractmethod
    def deliveries(self, position: Position) -> Iterator[Delivery]:
        """What comes after a position; None: from where such a source begins."""

    def acknowledge(self, position: Position) -> None:  # noqa: B027 - most sources need not be told
        """Everything up to this position is safe: it need not be given again."""

    def more(self) -> bool:
        """Is there something that it has not given out yet, as far as it knows? Then nothing is absent because it has not come.
        Called by another thread than that of `deliveries`."""
        return False

    def close(self) -> None:
        """Nothing more is wanted. Called by another thread than that of `deliveries`."""
        self.closed.set()

    def events(self, messages: Sequence[bytes], name: str) -> EventBatch:
        """Of messages, each a record, or several, one a line. `name` is where they come from, for those that are none."""
        self._messages.name = name
        return self._messages.batch(messages, self.reading.mapping, self.reading.intake)

    def delivery(self, batch: EventBatch, position: Position) -> Delivery:
        return Delivery(batch, position, self.reading.intake.report.read)


class Made(NamedTuple):
    """A detection as sinks see it: its key, its type, its record as a line of JSON, with the line break, and the name of the rule
    that made it, where anybody asks for that."""

    key: str
    type: str
    line: bytes
    rule: str = ""


class Sink(ABC):
    """Where detections go. A slow sink slows the run: `write` returns when it can take more."""

    once = False
    """Does it see to it that a detection which is written again after a restart is there once?"""

    keyed = False
    """Does it need keys even where nothing is ever written again?"""

    def __init__(self, url: str) -> None:
        self.url = url

    def open(self, position: Position) -> None:  # noqa: B027 - some have nothing to open
        """Go on from a position that `commit` gave; None: from the beginning. Raises CoincideError if it cannot be reached."""

    @abstractmethod
    def write(self, made: Sequence[Made]) -> None: ...

    def take(self, batch: EventBatch, made: Sequence[Made]) -> None:
        """The same detections as a batch and as they are `made`: what a run calls. Most sinks write the latter."""
        self.write(made)

    def commit(self) -> Position:
        """Has all that was written come through; then tells the position to go on from after a restart. Called before a
        checkpoint, so what was written after it is written again."""
        return None

    def make_safe(self) -> None:  # noqa: B027 - most have nothing to do
        """What was committed outlasts a failure of the machine, too. Called by another thread, before the next `commit`."""

    @abstractmethod
    def close(self) -> None:
        """Have everything come through, and end."""
