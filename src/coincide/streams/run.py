"""A live run from end to end: sources, an engine, sinks, and checkpoints from which it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from coincide.engines.embedded import Engine
from coincide.engines.live import LiveEngine
from coincide.errors import CoincideError, Diagnostic
from coincide.model.batch import EventBatch
from coincide.streams.arrivals import Threads
from coincide.streams.base import Sink, Source
from coincide.streams.checkpoints import Checkpoint, Checkpoints
from coincide.streams.encode import Encoder
from coincide.streams.loop import LiveLoop


@dataclass(frozen=True)
class Pace:
    """When things happen: the delay in microseconds, the rest in seconds. The clock is that of the sources unless it is said."""

    delay: int = 0
    clock: str | None = None
    latency: float = 0.005
    checkpoint_every: float = 2.0


class LiveRun:
    """Each detection is written to all sinks, and then given out. With a folder for checkpoints a run that was ended in any way
    goes on where it was: state and positions are kept together, and a source is told only after that."""

    def __init__(
        self,
        engine: Engine,
        sources: Sequence[Source],
        sinks: Sequence[Sink],
        encoder: Encoder,
        pace: Pace = Pace(),
        folder: Path | None = None,
    ) -> None:
        self.live = LiveEngine(engine, pace.delay)
        self.sources, self.sinks, self.encoder, self.pace = sources, sinks, encoder, pace
        self._checkpoints = None if folder is None else Checkpoints(folder)
        kept = None if self._checkpoints is None else self._checkpoints.last()
        self.goes_on = kept is not None
        self._restore(kept)
        positions = [None if kept is None else kept.sources.get(source.url, (None, 0))[0] for source in sources]
        self.arrivals = Threads(sources, positions, pace.latency)
        clock = pace.clock or ("wall" if any(source.clock == "wall" for source in sources) else "event")
        self.loop = LiveLoop(self.live, clock, self.arrivals.now)
        self._kept_at = self.arrivals.now()
        if self._checkpoints is not None and kept is None:
            self.keep()  # what sinks hold now is what they held before the run

    def detections(self, watch: Callable[[EventBatch], object] = lambda batch: None) -> Iterator[EventBatch]:
        """Everything up to the end of the sources, or until it is stopped."""
        for batch in self.loop.detections(self.arrivals, watch, self._keep_if_due):
            self._write(batch)
            yield batch

    def rest(self, until: float | None = None, *, ended: bool = True, closed: bool = True) -> Iterator[EventBatch]:
        """What the end of the input brings. A run that will go on from a checkpoint is not `ended`: what waits, waits on."""
        if ended:
            for batch in self.live.finish(until, closed) if closed or until is not None else self.live.flush():
                self._write(batch)
                yield batch
        self.keep()

    def stop(self) -> None:
        """Come to an end soon. May be called at any time."""
        self.arrivals.stop()

    def keep(self) -> None:
        """A checkpoint, if any are kept."""
        if self._checkpoints is None:
            return
        sinks = {sink.url: sink.commit() for sink in self.sinks}
        positions = self.loop.positions
        sources = {self.sources[number].url: position for number, position in positions.items()}
        keys = self.encoder.keys.state() if self.encoder.keys is not None else ()
        self._checkpoints.keep(self.live.snapshot(), {**self._positions, **sources}, sinks, keys)
        self._kept_at = self.arrivals.now()
        for number, (position, _) in positions.items():
            self.sources[number].acknowledge(position)

    def close(self) -> None:
        self.arrivals.stop()
        for sink in self.sinks:
            sink.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def _write(self, batch: EventBatch) -> None:
        if self.sinks and (made := self.encoder.made(batch)):
            for sink in self.sinks:
                sink.write(made)

    def _keep_if_due(self) -> None:
        if self._checkpoints is not None and self.arrivals.now() - self._kept_at >= self.pace.checkpoint_every:
            self.keep()

    def _restore(self, kept: Checkpoint | None) -> None:
        self._positions = {} if kept is None else dict(kept.sources)
        if self._checkpoints is not None:
            self._check(self._positions)
        if kept is not None:
            self.live.restore(kept.state)
            if self.encoder.keys is not None:
                self.encoder.keys.restore(kept.keys)
            for source in self.sources:
                source.reading.intake.report.read = kept.sources.get(source.url, (None, 0))[1]
        for sink in self.sinks:
            sink.open(None if kept is None else kept.sinks.get(sink.url))

    def _check(self, positions: Mapping[str, object]) -> None:
        once = next((source.url for source in self.sources if not source.repeatable), None)
        if once is not None:
            raise CoincideError(f"'{once}' cannot be read again, so checkpoints are of no use")
        missing = sorted(positions.keys() - {source.url for source in self.sources})
        if missing:
            hint = "give the same sources, or another folder to begin anew"
            raise CoincideError(Diagnostic(f"the checkpoint is of a run that read '{missing[0]}', too", hint=hint))
