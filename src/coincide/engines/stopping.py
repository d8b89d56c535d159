"""A run that has to stop: what was detected before is still given out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from coincide.errors import RunError
from coincide.model.batch import EventBatch, merged
from coincide.model.event import Place


def before(batch: EventBatch, place: Place) -> EventBatch:
    """The rows that stand before a place."""
    return EventBatch([event for event in batch.events if event.place < place])


class Stop:
    """The first place, over all plans of a graph, at which one of them could not go on. Those that were stepped already have
    gone too far, and those that follow see only what comes before."""

    def __init__(self) -> None:
        self.error: RunError | None = None

    def take(self, error: RunError) -> EventBatch:
        """Note an error; gives the detections that its plan has made. An error without a place cannot be told apart."""
        if error.place is None or error.detections is None:
            raise error
        if self.error is None or self.error.place is None or error.place < self.error.place:
            self.error = error
        return error.detections

    def cut(self, batch: EventBatch) -> EventBatch:
        return batch if self.error is None or self.error.place is None else before(batch, self.error.place)

    def raise_with(self, made: Sequence[EventBatch]) -> None:
        """Stop, if the run has to."""
        if self.error is not None:
            self.error.detections = merged([self.cut(detections) for detections in made])
            raise self.error


def up_to_a_stop(step: Callable[[], EventBatch]) -> Iterator[EventBatch]:
    """What a step detects; if the run has to stop in it, what was detected before, then the error."""
    try:
        made = step()
    except RunError as error:
        if error.detections is not None:
            yield error.detections
        raise
    yield made
