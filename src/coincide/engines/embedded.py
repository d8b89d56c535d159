"""The engine in one process: the default, and the yardstick of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from coincide.detection.base import LARGE
from coincide.engines.graph import Graph
from coincide.engines.stopping import up_to_a_stop
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Event
from coincide.rulebook import Rulebook, RuleSource, rulebook


def chosen_tier(tier: str, size: int) -> str:
    return ("kernel" if size >= LARGE else "interpreter") if tier == "auto" else tier


class Engine:
    """Detects in a stream that is fed to it piece by piece.

    `process` takes events that are not older than those before; older ones are *late*: counted and not consumed. State can
    be taken (`snapshot`) and given back (`restore`) between any two calls, also under changed rules. With the tier `auto`
    each plan is in the tier that is faster for inputs of `size` events."""

    def __init__(self, rules: Rulebook | RuleSource | Sequence[RuleSource], tier: str = "interpreter", size: int = 0) -> None:
        self.tier = tier
        self.size = size
        self.late = 0
        self._graph = Graph(rulebook(rules).plans(tier, size))
        self._state = self._graph.initial()
        self._last: object = None

    def process(self, events: EventBatch | Iterable[Event | Mapping[str, Any]]) -> EventBatch:
        """The detections that these events (objects or records) make. Raises BadRecord for a record that is no event."""
        from coincide.adapters.order import sort_batch

        batch = sort_batch(events if isinstance(events, EventBatch) else EventBatch(self._events(events)))
        return self._graph.advance(self._state, self._timely(batch)) if len(batch) else EMPTY

    def finish(self, until: float | None = None) -> EventBatch:
        """The end of input; `until` (microseconds, or inf) moves the clock on."""
        return self._graph.finish(self._state, until)

    def statistics(self) -> dict[str, Any]:
        """Counts of the run so far, as `--stats` writes them."""
        return self._graph.statistics(self._state)

    def snapshot(self) -> bytes:
        return self._graph.encode(self._state)

    def restore(self, snapshot: bytes) -> None:
        self._state = self._graph.decode(snapshot)

    def change_rules(self, rules: Rulebook | RuleSource | Sequence[RuleSource]) -> None:
        """New rules from the next event on. Definitions whose text is unchanged keep their state."""
        graph = Graph(rulebook(rules).plans(self.tier, self.size))
        self._state = graph.decode(self._graph.encode(self._state))
        self._graph = graph

    def _events(self, items: Iterable[Event | Mapping[str, Any]]) -> list[Event]:
        from coincide.adapters.mapping import DEFAULT
        from coincide.adapters.records import event_of

        numbered = enumerate(items, self._state.consumed + self.late + 1)
        return [item if isinstance(item, Event) else event_of(item, DEFAULT, position) for position, item in numbered]

    def _timely(self, batch: EventBatch) -> EventBatch:
        first = batch.table.hi[0] if batch.has_table else batch.events[0].hi
        if first >= self._state.hi:
            return batch
        timely = [event for event in batch.events if event.hi >= self._state.hi]
        self.late += len(batch) - len(timely)
        return EventBatch(timely)


def run(
    rules: Rulebook | RuleSource | Sequence[RuleSource],
    batches: Iterable[EventBatch],
    until: float | None = None,
    tier: str = "auto",
) -> Iterator[EventBatch]:
    """Detections of a whole input, batch by batch. The batches must be in total order, one after another."""
    engine: Engine | None = None
    book = rulebook(rules)
    for batch in batches:
        engine = engine or Engine(book, tier, len(batch))
        yield from up_to_a_stop(partial(engine.process, batch))
    if engine is not None:
        yield from up_to_a_stop(partial(engine.finish, until))
