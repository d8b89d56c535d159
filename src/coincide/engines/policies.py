"""Detection under stability policies: each policy has its own instance of the detectors that it needs (Opera, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from coincide.compile import Compiled
from coincide.compile.graph import feeds
from coincide.detection.base import Detector
from coincide.engines.graph import Graph
from coincide.engines.stopping import up_to_a_stop
from coincide.errors import CoincideError, RunError
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Event
from coincide.model.stamp import milliseconds
from coincide.ordering import NEVER, StageState, stage
from coincide.rulebook import Rulebook, RuleSource, rulebook

VERSION = 1


@dataclass(frozen=True)
class StabilityPolicy:
    """`best-effort`, `guaranteed` or `probabilistic p`."""

    kind: str
    threshold: float = 1.0

    @classmethod
    def parse(cls, text: str) -> StabilityPolicy:
        kind, *rest = text.split() or [""]
        try:
            threshold = float(rest[0]) if rest else 1.0
        except ValueError:
            threshold = 0.0
        known = {"best-effort": 0, "guaranteed": 0, "probabilistic": 1}
        if known.get(kind) != len(rest) or not 0 < threshold <= 1:
            raise CoincideError(f"unknown policy '{text}': best-effort, guaranteed, or probabilistic P with 0 < P <= 1")
        return cls(kind, threshold)

    def __str__(self) -> str:
        return f"{self.kind} {self.threshold:g}" if self.kind == "probabilistic" else self.kind


IN_ORDER = StabilityPolicy("in-order")
"""No policy: the whole input in total order."""


@dataclass(frozen=True)
class Latency:
    """How long after its `hi` a detection was made, in milliseconds; negative where clocks disagree."""

    type: str
    origin: tuple[str, ...]
    milliseconds: int | float
    policy: StabilityPolicy = field(compare=False)

    def record(self) -> dict[str, object]:
        return {"type": self.type, "from": list(self.origin), "latency": self.milliseconds}


@dataclass
class PolicyRun:
    """What a run under policies gives. `late` holds the events that each policy's stage refused."""

    detections: list[Event] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    late: dict[StabilityPolicy, list[Event]] = field(default_factory=dict)

    def add(self, detection: Event, clock: int, policy: StabilityPolicy) -> None:
        self.detections.append(detection)
        if policy != IN_ORDER:
            origin = tuple(key[4] for key in detection.origin)
            self.latencies.append(Latency(detection.type, origin, milliseconds(clock - detection.hi), policy))


def run_with_policy(
    rules: Rulebook | RuleSource | Sequence[RuleSource],
    events: Iterable[Event],
    policy: StabilityPolicy | str | None = "guaranteed",
    until: float | None = None,
) -> PolicyRun:
    """Detections of events that are given in the order of their arrival. `policy` is for definitions that name none."""
    engine = PolicyEngine(rules, policy)
    for event in events:
        engine.arrive(event)
    engine.finish(until)
    return engine.result


def names_policies(rules: Rulebook) -> bool:
    """Does any definition say under which policy it is detected?"""
    return any(getattr(detector.definition, "policy", None) is not None for detector in rules.detectors)


class PolicyEngine:
    """Detects in records that arrive one by one, each policy with its stage and its graph. State can be taken (`snapshot`)
    and given back (`restore`) between any two calls; a policy that the snapshot does not have starts afresh."""

    def __init__(self, rules: Rulebook | RuleSource | Sequence[RuleSource], policy: StabilityPolicy | str | None = None) -> None:
        compiled = rulebook(rules).compiled
        default = StabilityPolicy.parse(policy) if isinstance(policy, str) else policy or IN_ORDER
        self.result = PolicyRun()
        self.instances: list[Instance] = []
        for some, own in _by_policy(compiled.detectors, default).items():
            self.instances.append(Instance(some, compiled, own, self._report))
            self.result.late[some] = self.instances[-1].stage.late

    def arrive(self, record: Event) -> None:
        for each in self.instances:
            each.stage.arrive(record)

    def finish(self, until: float | None = None) -> None:
        for each in self.instances:
            each.stage.finish(until)

    def process(self, batch: EventBatch) -> Iterator[PolicyRun]:
        """What comes of the arrivals of a batch; if the run has to stop in it, what was detected before, then the error."""

        def arrive_all() -> None:
            for event in batch.events:
                self.arrive(event)

        return self._taken(arrive_all)

    def end(self, until: float | None = None) -> Iterator[PolicyRun]:
        """The same of the end of input."""
        return self._taken(lambda: self.finish(until))

    def _taken(self, act: Callable[[], None]) -> Iterator[PolicyRun]:
        try:
            act()
        except RunError:
            yield self.take()
            raise
        yield self.take()

    def take(self) -> PolicyRun:
        """What has come of the arrivals since the last call."""
        found = PolicyRun(self.result.detections, self.result.latencies, {p: [*late] for p, late in self.result.late.items()})
        self.result.detections, self.result.latencies = [], []
        for late in self.result.late.values():
            late.clear()
        return found

    def refused(self) -> dict[StabilityPolicy, int]:
        """How many events were late, from the beginning, under each policy."""
        return {each.policy: each.stage.refused for each in self.instances}

    def snapshot(self) -> bytes:
        return msgspec.msgpack.encode(Snapshot(VERSION, {str(each.policy): each.encode() for each in self.instances}))

    def restore(self, data: bytes) -> None:
        snapshot = msgspec.msgpack.decode(data, type=Snapshot)
        if snapshot.version != VERSION:
            raise ValueError(f"snapshot of version {snapshot.version}; this release reads version {VERSION}")
        for each in self.instances:
            if (kept := snapshot.instances.get(str(each.policy))) is not None:
                each.decode(kept)

    def _report(self, detection: Event, clock: int, policy: StabilityPolicy) -> None:
        self.result.add(detection, clock, policy)


class Snapshot(msgspec.Struct, array_like=True, tag="policies"):
    """The state as it is written: instances by their policies."""

    version: int
    instances: dict[str, bytes]


def _by_policy(detectors: Sequence[Detector], default: StabilityPolicy) -> dict[StabilityPolicy, list[Detector]]:
    found: dict[StabilityPolicy, list[Detector]] = {}
    for detector in detectors:
        given = getattr(detector.definition, "policy", None)
        own = default if given is None else StabilityPolicy(given.kind, given.threshold)
        found.setdefault(own, []).append(detector)
    return found


class Instance:
    """The detectors of one policy with all that feeds them, behind the policy's stage; only its own are reported."""

    def __init__(
        self,
        policy: StabilityPolicy,
        compiled: Compiled,
        own: Sequence[Detector],
        report: Callable[[Event, int, StabilityPolicy], None],
    ) -> None:
        self.policy = policy
        self.report = report
        self.stage = stage(policy.kind, self, sources_of(compiled), policy.threshold)
        self.graph = Graph(())
        self.state = self.graph.initial()
        self.change(compiled, own)

    def change(self, compiled: Compiled, own: Sequence[Detector]) -> None:
        """Other detectors from the next event on; those whose text is unchanged keep their state."""
        kept = None if self.state.start is None else self.graph.encode(self.state)
        self.graph = Graph(compiled.plans_for(_with_feeders(compiled.detectors, own)))
        self.state = self.graph.initial() if kept is None else self.graph.decode(kept)
        self.reported = {detector.order for detector in own}

    @property
    def names(self) -> set[str]:
        """Of all that it detects, reported or not."""
        return {name for plan in self.graph.plans for name in plan.definitions}

    def encode(self) -> bytes:
        return msgspec.msgpack.encode([self.stage.state(), self.graph.encode(self.state)])

    def decode(self, data: bytes) -> None:
        state, graph = msgspec.msgpack.decode(data, type=tuple[StageState, bytes])
        self.state = self.graph.decode(graph)
        self.stage.restore(state)

    def due(self) -> int | None:
        return self.graph.due(self.state)

    def finite(self) -> bool:
        return self.graph.waits(self.state)

    def consume(self, event: Event, clock: int) -> None:
        self._advance(EventBatch([event]), NEVER if self._by_arrival else None, clock)

    def fire(self, due: int, clock: int) -> None:
        self._advance(EMPTY, due + 1, clock)

    @property
    def _by_arrival(self) -> bool:
        return self.policy.kind == "best-effort"

    def _advance(self, batch: EventBatch, bound: int | None, clock: int) -> None:
        step = partial(self.graph.advance, self.state, batch, bound, clock if self._by_arrival else None)
        for made in up_to_a_stop(step):
            for detection in made.events:
                if detection.place[-2] in self.reported:  # a place ends with the definition that made it, and a count
                    self.report(detection, clock, self.policy)


def sources_of(compiled: Compiled) -> list[str]:
    """The sources that rule files name, of any language that can."""
    return [name for _, file in compiled.files for name in getattr(file, "sources", ())]


def _with_feeders(detectors: Sequence[Detector], own: Sequence[Detector]) -> list[Detector]:
    edges = feeds(detectors)
    wanted = {detector.order for detector in own}
    while more := {number for number, readers in edges.items() if wanted & set(readers)} - wanted:
        wanted |= more
    return [detectors[number] for number in sorted(wanted)]
