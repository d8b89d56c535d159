"""Events as they come, in total order: a stage puts them in order, an engine detects, time passes in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from coincide.adapters.outlook import late_warnings
from coincide.detection.snapshots import reading_state
from coincide.engines.deltas import StateWriter, WrittenState, read
from coincide.engines.embedded import PATIENCE, WORTH, Engine
from coincide.engines.graph import Graph, GraphState
from coincide.engines.instance import read_stage
from coincide.engines.livestage import LiveStage
from coincide.engines.stopping import up_to_a_stop
from coincide.errors import Diagnostic, RunError
from coincide.model.batch import EventBatch
from coincide.model.event import Event
from coincide.rulebook import Rulebook
from coincide.stages import Moment, Moments

TOTAL_ORDER = "delayed"
"""Under which the state of rules without a policy is kept, whether or not others have one."""


class Live(Protocol):
    """Whatever detects in events while they come. Each step gives what it has made; if the run has to stop in it, what was made
    before, then the error."""

    @property
    def mark(self) -> int | None:
        """The clock of the latest event."""

    @property
    def refused(self) -> int:
        """Events that came too late."""

    @property
    def waiting(self) -> int:
        """Events that have come and are not consumed yet."""

    def wakes_at(self) -> int | None:
        """The clock at which there is something to do even if nothing comes."""

    def arrive(self, batch: EventBatch) -> Iterator[EventBatch]: ...

    def pass_time(self, clock: int) -> Iterator[EventBatch]:
        """The clock has come to this instant, without an event."""

    def flush(self) -> Iterator[EventBatch]:
        """Nothing more comes in this part of the input."""

    def finish(self, until: float | None, closed: bool) -> Iterator[EventBatch]:
        """The end of input, at the latest event or at `until`."""

    def latecomers(self) -> list[Event]:
        """Events that came too late, since the last call."""

    def late_warnings(self, where: str = "") -> list[Diagnostic]:
        """What is to be said of latecomers in the end."""

    def change_rules(self, rules: Rulebook) -> None: ...

    def changes(self, everything: bool = False) -> WrittenState:
        """What has changed since this was asked last, or all."""

    def restore(self, whole: bytes, changes: Sequence[bytes] = ()) -> None:
        """Goes on from what `changes` has told, first all and then what had changed, also under other rules."""


class LiveEngine:
    """Detects in events that come in about the order of their times: up to `delay` microseconds later than later ones. Each step
    gives what it has made; if the run has to stop in it, what was made before, then the error."""

    def __init__(self, engine: Engine, delay: int = 0) -> None:
        self.engine = engine
        self.stage = LiveStage(self, delay=delay)
        self._writer = StateWriter()
        self._made: list[EventBatch] = []
        self._small = 0  # batches in a row that are not worth being columns

    @property
    def graph(self) -> Graph:
        return self.engine.graph

    @property
    def state(self) -> GraphState:
        return self.engine.state

    @property
    def mark(self) -> int | None:
        return self.stage.mark

    @property
    def refused(self) -> int:
        return self.stage.refused

    @property
    def waiting(self) -> int:
        return self.stage.waiting

    def wakes_at(self) -> int | None:
        return self.stage.wakes_at()

    def change_rules(self, rules: Rulebook) -> None:
        self.engine.change_rules(rules)

    def arrive(self, batch: EventBatch) -> Iterator[EventBatch]:
        return self._step(partial(self._arrive, batch))

    def pass_time(self, clock: int) -> Iterator[EventBatch]:
        return self._step(partial(self.stage.pass_time, clock))

    def flush(self) -> Iterator[EventBatch]:
        return self._step(self.stage.flush)

    def finish(self, until: float | None, closed: bool) -> Iterator[EventBatch]:
        yield from self.flush()
        ends = [end for end in (until, self.stage.mark) if end is not None]
        yield from up_to_a_stop(partial(self.engine.finish_at, max(ends, default=None), closed))

    def latecomers(self) -> list[Event]:
        late, self.stage.late = self.stage.late, []
        return late

    def late_warnings(self, where: str = "") -> list[Diagnostic]:
        return late_warnings(self.stage.refused, self.stage.sufficient, where)

    def changes(self, everything: bool = False) -> WrittenState:
        return self._writer.write({TOTAL_ORDER: self}, everything)

    def restore(self, whole: bytes, changes: Sequence[bytes] = ()) -> None:
        with reading_state():
            written = read(whole, changes).get(TOTAL_ORDER)
            if written is None:
                return  # all rules were under policies, which have a state of their own
            stage = read_stage(written[0])
        self.engine.restore_parts(written[1], changed=True)
        self.stage.restore(stage)

    def _arrive(self, batch: EventBatch) -> None:
        if self._suits_columns(batch) and self.stage.arrive_columns(batch.table):
            return
        for event in batch.events:
            self.stage.arrive(event)
        self.stage.settle()

    def _suits_columns(self, batch: EventBatch) -> bool:
        """A batch that is large enough does. Small ones in between follow what waits already, up to a point: to turn that from
        columns into objects and back costs more than it saves."""
        self._small = 0 if batch.has_table and len(batch) >= WORTH else self._small + 1
        return bool(len(batch)) and (not self._small or (bool(self.stage.columns) and self._small <= PATIENCE))

    def _step(self, act: Callable[[], None]) -> Iterator[EventBatch]:
        try:
            act()
        except RunError:
            yield from self._take_made()
            raise
        yield from self._take_made()

    def _take_made(self) -> list[EventBatch]:
        made, self._made = self._made, []
        return [batch for batch in made if len(batch)]

    # What the stage has it do.

    @property
    def timed(self) -> bool:
        return self.engine.timed

    def due(self) -> int | None:
        return self.engine.due()

    def finite(self) -> bool:
        return True

    def cross(self, last: float, moment: Moment) -> None:
        self.engine.graph.cross(self.engine.state, last)

    def consume(self, batch: EventBatch, moments: Moments) -> None:
        self._made.extend(up_to_a_stop(partial(self.engine.process, batch)))

    def fire(self, due: int, moment: Moment) -> None:
        self._made.extend(up_to_a_stop(partial(self.engine.advance_to, due + 1)))
