"""A live run from end to end: sources, an engine, sinks, and checkpoints from which it goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import inf
from pathlib import Path

from coincide.engines.ahead import DAY, Guard
from coincide.engines.identity import makers
from coincide.engines.live import Live
from coincide.errors import CoincideError, Diagnostic
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.rulebook import Rulebook
from coincide.streams.arrivals import Arrival, Threads
from coincide.streams.base import Position, Sink, Source
from coincide.streams.checkpoints import Checkpoint, Checkpoints
from coincide.streams.encode import Encoder
from coincide.streams.future import FarFuture
from coincide.streams.loop import SECOND, LiveLoop


@dataclass(frozen=True)
class Pace:
    """When things happen, in seconds. The clock is that of the sources unless it is said."""

    clock: str | None = None
    latency: float = 0.005
    checkpoint_every: float = 2.0
    ahead: float | None = None  # what is so far in the future is rejected; None: a day, if the clock is the wall's


class LiveRun:
    """Each detection is written to all sinks, and then given out. With a folder for checkpoints a run that was ended in any way
    goes on where it was: state and positions are kept together, and a source is told only after that."""

    def __init__(
        self,
        live: Live,
        sources: Sequence[Source],
        sinks: Sequence[Sink],
        encoder: Encoder,
        pace: Pace = Pace(),
        folder: Path | None = None,
    ) -> None:
        self.live = live
        self.sources, self.sinks, self.encoder, self.pace = sources, sinks, encoder, pace
        self.silent: frozenset[int] = frozenset()
        self._anew = False  # has the state been told to somebody else than checkpoints?
        self._writer = ThreadPoolExecutor(1, "checkpoints")
        self._keeping: tuple[Future[None], dict[int, tuple[Position, int]]] | None = None
        self._checkpoints = None if folder is None else Checkpoints(folder)
        checkpoint = None if self._checkpoints is None else self._checkpoints.last()
        self.goes_on = checkpoint is not None
        self._restore(checkpoint)
        positions = [None if checkpoint is None else checkpoint.sources.get(source.url, (None, 0))[0] for source in sources]
        for source in sources:
            source.awaits_checkpoints = self._checkpoints is not None
        self.arrivals = Threads(sources, positions, pace.latency)
        clock = pace.clock or ("wall" if any(source.clock == "wall" for source in sources) else "event")
        self.loop = LiveLoop(self.live, clock, self.arrivals.now, self._future(clock))
        self.kept_at = self.arrivals.now()  # what is read again after a restart should be so once
        if self._checkpoints is not None and checkpoint is None:
            self.keep()  # what sinks hold now is what they held before the run

    def _future(self, clock: str) -> FarFuture | None:
        ahead = (DAY if clock == "wall" else inf) if self.pace.ahead is None else self.pace.ahead * SECOND
        return None if ahead == inf else FarFuture(Guard(round(ahead)), self._reject)

    def _reject(self, source: int, event: Event, reason: str) -> None:
        given = self.sources[source]
        given.reading.intake.reject(given.name, f"event {event.origin[0][4]}: {reason}", record(event))

    def detections(
        self, watch: Callable[[Arrival], object] = lambda arrival: None, between: Callable[[], object] = lambda: None
    ) -> Iterator[EventBatch]:
        """Everything up to the end of the sources, or until it is stopped. `watch` is shown what is read, `between` is called
        when all of it is dealt with: then rules may be changed."""

        def after_turn() -> None:
            between()
            self._keep_if_due()

        for batch in self.loop.detections(self.arrivals, watch, after_turn):
            yield from self._written(batch)

    def rest(self, until: float | None = None, *, ended: bool = True, closed: bool = True) -> Iterator[EventBatch]:
        """What the end of the input brings. A run that will go on from a checkpoint is not `ended`: what waits, waits on."""
        if ended:
            for batch in self.live.finish(until, closed) if closed or until is not None else self.live.flush():
                yield from self._written(batch)
        self.keep()

    def change_rules(self, rules: Rulebook, silent: Collection[int] = (), live: Live | None = None) -> None:
        """Go on with other rules: unchanged definitions keep their state. What the `silent` ones among them (by their numbers)
        make is for the others only. Where these rules need another `live` than those before, it takes their place."""
        if live is None:
            self.live.change_rules(rules)
        else:
            self._anew = True
            live.restore(self.live.changes(everything=True).data)
            self.live = self.loop.live = live
        self.encoder.change_rules(rules)
        self.silent = frozenset(silent)
        for source in self.sources:
            source.reading.mapping = rules.fields(source.reading.mapping)

    def stop(self) -> None:
        """Come to an end soon. May be called at any time."""
        self.arrivals.stop()

    def keep(self) -> None:
        """A checkpoint, if any are kept: it is there when this returns."""
        if self._checkpoints is not None:
            self._end_keeping()
            self._begin_keeping(self._checkpoints)
            self._end_keeping()

    @property
    def kept_size(self) -> int | None:
        """Bytes of what a run would go on from; None: no checkpoints are kept."""
        return None if self._checkpoints is None else self._checkpoints.size

    def _begin_keeping(self, checkpoints: Checkpoints) -> None:
        """What belongs together is taken together, at once; a thread writes it, and the run goes on meanwhile."""
        sinks = {sink.url: sink.commit() for sink in self.sinks}
        positions = dict(self.loop.positions)
        sources = {**self._positions, **{self.sources[number].url: position for number, position in positions.items()}}
        state, whole = self.live.changes(checkpoints.wants_whole or self._anew)
        self._anew = False
        keys, all_keys = (b"", whole) if self.encoder.keys is None else self.encoder.keys.changes(whole)
        self.kept_at = self.arrivals.now()

        def write() -> None:
            for sink in self.sinks:
                sink.make_safe()
            checkpoints.keep(state, sources, sinks, keys, whole=whole, all_keys=all_keys)

        self._keeping = self._writer.submit(write), positions

    def _end_keeping(self) -> None:
        """Sources are told what need not be given again, once it is written."""
        if self._keeping is not None:
            (written, positions), self._keeping = self._keeping, None
            written.result()
            for number, (position, _) in positions.items():
                self.sources[number].acknowledge(position)

    def close(self) -> None:
        self.arrivals.stop()
        self._writer.shutdown()
        for sink in self.sinks:
            sink.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def _written(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The detections that are shown, once all sinks have them."""
        if self.silent:
            shown = [event for event, made_by in zip(batch.events, makers(batch), strict=True) if made_by not in self.silent]
            batch = EventBatch(shown)
        if len(batch):
            made = self.encoder.made(batch) if self.sinks else []
            for sink in self.sinks:
                sink.take(batch, made)
            yield batch

    def _keep_if_due(self) -> None:
        if self._checkpoints is None:
            return
        now = self.arrivals.now()
        if self._keeping is not None and self._keeping[0].done():
            self._end_keeping()
        if self._keeping is None and now - self.kept_at >= self.pace.checkpoint_every:
            self._begin_keeping(self._checkpoints)

    def _restore(self, checkpoint: Checkpoint | None) -> None:
        self._positions = {} if checkpoint is None else dict(checkpoint.sources)
        if self._checkpoints is not None:
            self._check(self._positions)
        if checkpoint is not None:
            self.live.restore(checkpoint.state, checkpoint.changes)
            if self.encoder.keys is not None:
                self.encoder.keys.restore(checkpoint.keys)
            for source in self.sources:
                source.reading.intake.report.read = checkpoint.sources.get(source.url, (None, 0))[1]
        for sink in self.sinks:
            sink.open(None if checkpoint is None else checkpoint.sinks.get(sink.url))

    def _check(self, positions: Mapping[str, object]) -> None:
        once = next((source.name for source in self.sources if not source.repeatable), None)
        if once is not None:
            raise CoincideError(f"'{once}' cannot be read again, so checkpoints are of no use")
        missing = sorted(positions.keys() - {source.url for source in self.sources})
        if missing:
            hint = "give the same sources, or another folder to begin anew"
            raise CoincideError(Diagnostic(f"the checkpoint is of a run that read '{missing[0]}', too", hint=hint))
