"""Standard input and output."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from coincide.adapters.read import read_as_it_comes
from coincide.streams.base import Delivery, Made, Position, Sink, Source


class StandardInput(Source):
    """JSON Lines, or CSV with `--format csv`, as they come. It cannot be read again."""

    repeatable = False

    def deliveries(self, position: Position) -> Iterator[Delivery]:
        for batch in read_as_it_comes("-", self.reading.mapping, self.reading.intake, self.reading.format):
            yield self.delivery(batch, None)


class StandardOutput(Sink):
    """A line is there when the detection is made. After a restart, detections since the last checkpoint come again."""

    def write(self, made: Sequence[Made]) -> None:
        left = memoryview(b"".join(each.line for each in made))
        while left:  # an unbuffered standard output (PYTHONUNBUFFERED) may take a part only
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.buffer.flush()

    def close(self) -> None:
        sys.stdout.buffer.flush()
