"""Detection under stability policies: each policy has its own instance of the detectors that it needs (Opera, section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from coincide.compile import Compiled, plans_of
from coincide.compile.graph import feeds
from coincide.detect.base import Detector
from coincide.engines.graph import Graph
from coincide.errors import CoincideError
from coincide.model.batch import EMPTY, EventBatch
from coincide.model.event import Event
from coincide.model.stamp import milliseconds
from coincide.ordering import NEVER, Stage, stage
from coincide.rulebook import Rulebook, RuleSource, rulebook


@dataclass(frozen=True)
class StabilityPolicy:
    """`best-effort`, `guaranteed` or `probabilistic p`."""

    kind: str
    threshold: float = 1.0

    @classmethod
    def parse(cls, text: str) -> StabilityPolicy:
        kind, *rest = text.split()
        try:
            threshold = float(rest[0]) if rest else 1.0
        except ValueError:
            threshold = 0.0
        known = {"best-effort": 0, "guaranteed": 0, "probabilistic": 1}
        if known.get(kind) != len(rest) or not 0 < threshold <= 1:
            raise CoincideError(f"unknown policy '{text}': best-effort, guaranteed, or probabilistic P with 0 < P <= 1")
        return cls(kind, threshold)


@dataclass(frozen=True)
class Latency:
    """How long after its `hi` a detection was made, in milliseconds; negative where clocks disagree."""

    type: str
    origin: tuple[str, ...]
    milliseconds: int | float

    def record(self) -> dict[str, object]:
        return {"type": self.type, "from": list(self.origin), "latency": self.milliseconds}


@dataclass
class PolicyRun:
    """What a run under policies gives. `late` holds the events that each policy's stage refused."""

    detections: list[Event] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    late: dict[StabilityPolicy, list[Event]] = field(default_factory=dict)


def run_with_policy(
    rules: Rulebook | RuleSource | Sequence[RuleSource],
    events: Iterable[Event],
    policy: StabilityPolicy | str = "guaranteed",
    until: float | None = None,
) -> PolicyRun:
    """Detections of events that are given in the order of their arrival. `policy` is for definitions that name none."""
    engine = PolicyEngine(rules, policy)
    for event in events:
        engine.arrive(event)
    engine.finish(until)
    return engine.result


class PolicyEngine:
    """Detects in records that arrive one by one, each policy with its stage and its graph."""

    def __init__(self, rules: Rulebook | RuleSource | Sequence[RuleSource], policy: StabilityPolicy | str) -> None:
        compiled = rulebook(rules).compiled
        default = StabilityPolicy.parse(policy) if isinstance(policy, str) else policy
        self.result = PolicyRun()
        self._stages: list[Stage] = []
        sources = [name for _, file in compiled.files for name in getattr(file, "sources", ())]
        for some, own in _by_policy(compiled.detectors, default).items():
            consumer = _Instance(compiled, own, self.result)
            self._stages.append(stage(some.kind, consumer, sources, some.threshold))
            self.result.late[some] = self._stages[-1].late
            consumer.by_arrival = some.kind == "best-effort"

    def arrive(self, record: Event) -> None:
        for each in self._stages:
            each.arrive(record)

    def finish(self, until: float | None = None) -> None:
        for each in self._stages:
            each.finish(until)


def _by_policy(detectors: Sequence[Detector], default: StabilityPolicy) -> dict[StabilityPolicy, list[Detector]]:
    found: dict[StabilityPolicy, list[Detector]] = {}
    for detector in detectors:
        given = getattr(detector.definition, "policy", None)
        own = default if given is None else StabilityPolicy(given.kind, given.threshold)
        found.setdefault(own, []).append(detector)
    return found


class _Instance:
    """The detectors of one policy with all that feeds them; only the policy's own are reported."""

    def __init__(self, compiled: Compiled, own: Sequence[Detector], result: PolicyRun) -> None:
        self.graph = Graph(plans_of(compiled, _with_feeders(compiled.detectors, own)))
        self.state = self.graph.initial()
        self.reported = {detector.order for detector in own}
        self.result = result
        self.by_arrival = False

    def due(self) -> int | None:
        return self.graph.due(self.state)

    def finite(self) -> bool:
        return self.graph.waits(self.state)

    def consume(self, event: Event, clock: int) -> None:
        bound = NEVER if self.by_arrival else None
        self._advance(EventBatch([event]), bound, clock)

    def fire(self, due: int, clock: int) -> None:
        self._advance(EMPTY, due + 1, clock)

    def _advance(self, batch: EventBatch, bound: int | None, clock: int) -> None:
        made = self.graph.advance(self.state, batch, bound, clock if self.by_arrival else None)
        for detection in made.events:
            if detection.place[-2] in self.reported:  # a place ends with the definition that made it, and a count
                origin = tuple(key[4] for key in detection.origin)
                self.result.detections.append(detection)
                self.result.latencies.append(Latency(detection.type, origin, milliseconds(clock - detection.hi)))


def _with_feeders(detectors: Sequence[Detector], own: Sequence[Detector]) -> list[Detector]:
    edges = feeds(detectors)
    wanted = {detector.order for detector in own}
    while more := {number for number, readers in edges.items() if wanted & set(readers)} - wanted:
        wanted |= more
    return [detectors[number] for number in sorted(wanted)]
