"""The service without its HTTP: a live run in a thread of its own, rules that change between two turns, and what is counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from coincide.engines.embedded import Engine
from coincide.engines.identity import makers
from coincide.engines.instance import StabilityPolicy
from coincide.engines.live import Live, LiveEngine
from coincide.engines.livepolicies import LivePolicies
from coincide.engines.policies import PolicyEngine
from coincide.errors import CoincideError
from coincide.model.batch import EventBatch
from coincide.serve.history import History
from coincide.serve.logs import log
from coincide.serve.metrics import Metrics
from coincide.serve.posted import Posted
from coincide.serve.rules import RuleFiles, RuleSet
from coincide.streams.arrivals import Arrival
from coincide.streams.base import Reading, Sink, Source
from coincide.streams.encode import Encoder, names_of
from coincide.streams.run import LiveRun, Pace
from coincide.streams.spool import Spool

LOOK = 1.0
"""Seconds between two looks at the files of rules."""
SPARED = 50
"""Of thousands of files a look takes a while: the pause after it is so many times as long."""
MEASURED = 15.0
"""Seconds between two measurements of the state, where no checkpoints tell its size."""

T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """What a service is made of. The reading is that of posted events."""

    files: RuleFiles
    reading: Reading
    sources: Sequence[Source]
    sinks: Sequence[Sink]
    pace: Pace = field(default_factory=Pace)
    delay: int = 0
    folder: Path | None = None
    spool: Path = Path()
    keys: bool = False
    kept: int = 10_000
    tier: str = "auto"
    late: Callable[[LiveRun], None] = lambda run: None


class Service:
    """Made, it has restored its state and opened its sinks; started, it detects until it is stopped or fails."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.files = setup, setup.files
        self.metrics = Metrics()
        self.failure: BaseException | None = None
        self.ended = self.stopping = False
        self.on_end: Callable[[], object] = lambda: None
        self.posted = Posted(setup.reading, Spool(setup.spool, safe=setup.folder is not None))
        self.history = History(setup.folder, setup.kept)
        rules = self.files.rules
        self._names = names_of(rules.running)
        self._sources = [*setup.sources, self.posted]
        encoder = Encoder(rules.running, shown=setup.keys, kept=True, named=True)
        live = live_engine(rules, setup)
        self.run = LiveRun(live, self._sources, [*setup.sinks, self.history], encoder, setup.pace, setup.folder)
        self.run.silent = rules.silent
        self._tasks: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._changing = Lock()
        self._came = 0.0  # the first arrival of this turn
        self._state_size, self._measured_at = 0, -MEASURED
        self._thread = Thread(target=self._work, name="run", daemon=True)
        self._watcher = Thread(target=self._watch_files, name="rules", daemon=True)

    # The run.

    def start(self) -> None:
        self._thread.start()
        self._watcher.start()

    def stop(self) -> None:
        """Come to an end with a last checkpoint, soon."""
        self.stopping = True
        self.run.stop()

    def join(self) -> None:
        self._thread.join()

    @property
    def ready(self) -> bool:
        return self._thread.is_alive() and not self.stopping

    def _work(self) -> None:
        try:
            for batch in self.run.detections(self._arrived, self._between):
                self._count_made(batch)
            for batch in self.run.rest(ended=self.setup.folder is None, closed=False):
                self._count_made(batch)
            self.setup.late(self.run)
        except BaseException as error:  # whoever waits is told
            self.failure = error
        finally:
            self.ended = True
            self._close()
            self._refuse_tasks()
            self.on_end()

    def _close(self) -> None:
        try:
            self.run.close()
        except Exception as error:
            self.failure = self.failure or error
        self.posted.spool.close()

    def _arrived(self, arrival: Arrival) -> None:
        self._came = min(self._came or arrival.came, arrival.came)
        self.metrics.events[self._sources[arrival.source].name] += len(arrival.delivery.batch)

    def _count_made(self, batch: EventBatch) -> None:
        for number, count in Counter(makers(batch)).items():
            self.metrics.detections[self._names[number]] += count
        if self._came:  # else time alone has made them
            self.metrics.latency.add(self.run.arrivals.now() - self._came, len(batch))

    def _between(self) -> None:
        self._came = 0.0
        self.setup.late(self.run)
        while True:
            try:
                act, answer = self._tasks.get_nowait()
            except Empty:
                return
            try:
                answer.set_result(act())
            except Exception as error:
                answer.set_exception(error)

    def _do(self, act: Callable[[], T]) -> T:
        """Have the thread of the run do something between two turns."""
        answer: Future[T] = Future()
        self._tasks.put((act, answer))
        if self.ended:
            self._refuse_tasks()
        self.posted.wake()
        return answer.result(timeout=60)

    def _refuse_tasks(self) -> None:
        while not self._tasks.empty():
            self._tasks.get()[1].set_exception(CoincideError("the service has ended"))

    # Rules.

    def replace_file(self, name: str, text: str) -> RuleSet:
        """A file of rules replaced or added. Raises RuleError, and then nothing has changed."""
        with self._changing:
            source = self.files.named(name, text)
            rules = self.files.rules.with_text(source)
            self.files.write(source)
            return self._change(rules)

    def validated(self, name: str, text: str) -> RuleSet:
        """The rules as they would be with this file. Raises RuleError."""
        return self.files.rules.with_text(self.files.named(name, text))

    def enable(self, name: str, enabled: bool) -> RuleSet:
        with self._changing:
            rules = self.files.rules
            return self._change(rules.with_disabled(rules.disabled - {name} if enabled else rules.disabled | {name}))

    def _change(self, rules: RuleSet) -> RuleSet:
        before = {detector.digest for detector in self.files.rules.running.detectors}
        running = rules.running  # made here: the run must not wait for it
        self._do(lambda: self._take(rules))
        self.files.take(rules)
        unchanged = [detector.name for detector in running.detectors if detector.digest in before]
        log("rules changed", rules=len(rules.names), disabled=sorted(rules.disabled), with_state=len(unchanged))
        return rules

    def _take(self, rules: RuleSet) -> None:
        other = rules.under_policies != self.files.rules.under_policies
        self.run.change_rules(rules.running, rules.silent, live_engine(rules, self.setup) if other else None)
        self._names = names_of(rules.running)

    def _watch_files(self) -> None:
        pause = LOOK
        while not self.ended:
            self.posted.closed.wait(pause)
            started = time.thread_time()
            try:
                with self._changing:
                    rules = None if self.stopping else self.files.changed()
                    if rules is not None:
                        self._change(rules)
            except CoincideError as error:
                log("rules refused", level="error", message=str(error))
            pause = max(LOOK, SPARED * (time.thread_time() - started))

    # What there is to see.

    @property
    def mapping(self) -> Any:
        """How posted records are read."""
        return self.setup.reading.mapping

    def numbers(self) -> tuple[dict[str, tuple[str, float]], dict[str, tuple[str, float]]]:
        """Gauges and counters that others keep."""
        live = self.run.live
        mark = live.mark
        rejected = sum(source.reading.intake.report.rejected for source in self._sources)
        gauges = {
            "coincide_up": ("Is the run alive?", float(self.ready)),
            "coincide_rules": ("Rules that are enabled.", float(len(self.files.rules.names) - len(self.files.rules.disabled))),
            "coincide_events_waiting": ("Events that wait for their instant to pass.", float(live.waiting)),
            "coincide_posted_backlog_bytes": ("Posted events that were not read yet.", float(self.posted.backlog)),
            "coincide_state_bytes": ("Size of the state as it is kept.", float(self._size())),
        }
        if mark is not None:
            gauges["coincide_lag_seconds"] = ("From the time of the latest event to now.", time.time() - mark / 1e6)
        if self.run.kept_size is not None:
            gauges["coincide_checkpoint_age_seconds"] = ("Since the last checkpoint.", self.run.arrivals.now() - self.run.kept_at)
        counters = {
            "coincide_events_late_total": ("Events that came too late.", float(live.refused)),
            "coincide_events_rejected_total": ("Records that are not events.", float(rejected)),
        }
        return gauges, counters

    def _size(self) -> int:
        if self.run.kept_size is not None:
            return self.run.kept_size
        now = time.monotonic()
        if now - self._measured_at >= MEASURED and not self.ended:
            self._measured_at = now
            self._state_size = self._do(lambda: len(self.run.live.changes(everything=True).data))
        return self._state_size


def live_engine(rules: RuleSet, setup: Setup) -> Live:
    """Rules that name stability policies are detected under them, the others in total order."""
    if not rules.under_policies:
        return LiveEngine(Engine(rules.running, setup.tier), setup.delay)
    return LivePolicies(PolicyEngine(rules.running, StabilityPolicy("delayed", delay=setup.delay), setup.tier))
