"""How many detections a run may make: where each event goes with each other, they can be more than anybody wants or can hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from coincide.errors import Diagnostic, RunError
from coincide.model.batch import EventBatch
from coincide.rulebook import Rulebook

FEW, MORE = 16, 256
"""So many rows at a time, of objects or of columns: an event may go with each that came before it."""
HINT = "bound the rule in time, give it a key or let it select, or allow more detections"


class Allowance:
    """What is left of it. Events are taken in small pieces, so that not much more is made than may be."""

    def __init__(self, most: int, book: Rulebook) -> None:
        self.most = most
        self._book = book
        self._made: Counter[str] = Counter()

    def pieces(self, batch: EventBatch) -> Iterator[EventBatch]:
        size = MORE if batch.has_table and not batch.has_events else FEW
        return (batch.rows(row, min(row + size, len(batch))) for row in range(0, len(batch), size))

    def use(self, made: EventBatch) -> None:
        """These were made. Raises RunError that names the rule which makes the most."""
        self._made.update(_types(made))
        if self._made.total() > self.most:
            raise RunError(self._diagnostic())

    def _diagnostic(self) -> Diagnostic:
        type, count = self._made.most_common(1)[0]
        rule = next(detector for detector in self._book.detectors if type in detector.outputs)
        return Diagnostic(f"more than {self.most:,} detections, {count:,} of them by '{rule.name}'", rule.span, hint=HINT)


def _types(made: EventBatch) -> Counter[str]:
    if made.has_events or not made.has_table:
        return Counter(event.type for event in made.events)
    return Counter({text: len(rows) for text, rows in made.table.column("type").by_text().items()})
