"""Detection under stability policies while events come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from coincide.detection.snapshots import reading_state
from coincide.engines.deltas import StateWriter, WrittenState, read
from coincide.engines.instance import read_stage
from coincide.engines.policies import PolicyEngine, PolicyRun
from coincide.errors import Diagnostic
from coincide.model.batch import EventBatch
from coincide.model.event import Event
from coincide.rulebook import Rulebook
from coincide.stages import NEVER


class LivePolicies:
    """An engine of policies as a live run sees it. The clock is that of arrivals. `note` is shown what each step brings, and
    gives its detections. If the run `goes_on` later from a snapshot, what waits at its end waits on."""

    def __init__(
        self,
        engine: PolicyEngine,
        note: Callable[[PolicyRun], Sequence[Event]] = lambda run: run.detections,
        goes_on: bool = False,
    ) -> None:
        self.engine = engine
        self._note = note
        self._goes_on = goes_on
        self._late: list[Event] = []
        self._writer = StateWriter()

    @property
    def mark(self) -> int | None:
        clock = max((each.stage.clock for each in self.engine.instances), default=NEVER)
        return None if clock == NEVER else clock

    @property
    def refused(self) -> int:
        return max((each.stage.refused for each in self.engine.instances), default=0)

    @property
    def waiting(self) -> int:
        return max((len(each.stage.state().buffer) for each in self.engine.instances), default=0)

    def wakes_at(self) -> int | None:
        return min((at for each in self.engine.instances if (at := each.stage.wakes_at()) is not None), default=None)

    def arrive(self, batch: EventBatch) -> Iterator[EventBatch]:
        return self._detections_of(self.engine.process(batch))

    def pass_time(self, clock: int) -> Iterator[EventBatch]:
        return self._detections_of(self.engine.pass_time(clock))

    def flush(self) -> Iterator[EventBatch]:
        return self._detections_of(self.engine.settled() if self._goes_on else self.engine.end())

    def finish(self, until: float | None, closed: bool) -> Iterator[EventBatch]:
        return self._detections_of(self.engine.end(until))

    def latecomers(self) -> list[Event]:
        late, self._late = self._late, []
        return late

    def late_warnings(self, where: str = "") -> list[Diagnostic]:
        """They are counted policy by policy."""
        return []

    def change_rules(self, rules: Rulebook) -> None:
        self.engine.change_rules(rules)

    def changes(self, everything: bool = False) -> WrittenState:
        return self._writer.write({str(each.policy): each for each in self.engine.instances}, everything)

    def restore(self, whole: bytes, changes: Sequence[bytes] = ()) -> None:
        with reading_state():
            instances = read(whole, changes)
            own = [(each, instances[name]) for each in self.engine.instances if (name := str(each.policy)) in instances]
            found = [(each, each.checked(read_stage(stage), each.graph.restored(graph))) for each, (stage, graph) in own]
        for each, state in found:
            each.restore(*state)

    def _detections_of(self, runs: Iterable[PolicyRun]) -> Iterator[EventBatch]:
        for run in runs:
            self._late += [event for event, _ in run.latecomers()]
            if made := self._note(run):
                yield EventBatch(made)
