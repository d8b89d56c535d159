"""Detection under stability policies: each policy has its own instance of the detectors that it needs (Opera, section 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

import msgspec

from coincide.detection.base import Detector
from coincide.detection.snapshots import reading_state, sealed
from coincide.engines.instance import IN_ORDER, Instance, StabilityPolicy
from coincide.engines.snapshots import VERSION, PolicySnapshot, read_snapshot
from coincide.errors import InputError, RunError
from coincide.model.batch import EventBatch
from coincide.model.event import Event
from coincide.model.stamp import milliseconds
from coincide.rulebook import Rulebook, RuleSource, rulebook
from coincide.stages import Moment

Turn = tuple[int, int]
"""When something is made: how many records have arrived, and by which instance."""


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
    """What a run under policies gives. `late` holds the events that each policy's stage refused; `clocks` are when detections
    were made, null where no policy says."""

    detections: list[Event] = field(default_factory=list)
    clocks: list[int | None] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    late: dict[StabilityPolicy, list[Event]] = field(default_factory=dict)

    def add(self, detection: Event, clock: int, policy: StabilityPolicy) -> None:
        self.detections.append(detection)
        self.clocks.append(clock if policy.is_one else None)
        if policy.is_one:
            origin = tuple(key[4] for key in detection.origin)
            self.latencies.append(Latency(detection.type, origin, milliseconds(clock - detection.hi), policy))

    def latecomers(self) -> list[tuple[Event, list[StabilityPolicy]]]:
        """Each late event once, with the policies under which it is."""
        found: dict[tuple[object, ...], tuple[Event, list[StabilityPolicy]]] = {}
        for policy, events in self.late.items():
            seen: Counter[tuple[object, ...]] = Counter()  # a record may come twice
            for event in events:
                what = (event.type, event.origin, event.source, event.arrival)
                found.setdefault((what, seen[what]), (event, []))[1].append(policy)
                seen[what] += 1
        return list(found.values())


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
    return engine.take()


def policies_of(rules: Rulebook, default: StabilityPolicy = IN_ORDER) -> dict[str, StabilityPolicy]:
    """The policy of each type of detections."""
    by_policy = _by_policy(rules.detectors, default)
    return {output: policy for policy, own in by_policy.items() for detector in own for output in detector.outputs}


class PolicyEngine:
    """Detects in records that arrive one by one, each policy with its stage and its graph. State can be taken (`snapshot`)
    and given back (`restore`) between any two calls; a policy that the snapshot does not have starts afresh."""

    def __init__(
        self,
        rules: Rulebook | RuleSource | Sequence[RuleSource],
        policy: StabilityPolicy | str | None = None,
        tier: str = "interpreter",
    ) -> None:
        self._default = StabilityPolicy.parse(policy) if isinstance(policy, str) else policy or IN_ORDER
        self.tier = tier
        self._made: list[tuple[Turn, Event, int, StabilityPolicy]] = []
        self.instances: list[Instance] = []
        self.change_rules(rules)

    def change_rules(self, rules: Rulebook | RuleSource | Sequence[RuleSource]) -> None:
        """Other rules from the next record on. Under each policy that there was, definitions whose text is unchanged keep their
        state; a policy that is new begins with the next record."""
        compiled = rulebook(rules).compiled
        known = {each.policy: each for each in self.instances}
        self.instances = []
        for index, (policy, own) in enumerate(_by_policy(compiled.detectors, self._default).items()):
            instance = known.get(policy)
            if instance is None:
                instance = Instance(policy, compiled, own, partial(self._report, index), self.tier)
            else:
                instance.report = partial(self._report, index)
                instance.change(compiled, own)
            self.instances.append(instance)

    def arrive(self, record: Event) -> None:
        for each in self.instances:
            each.stage.arrive(record)

    def arrive_all(self, batch: EventBatch) -> None:
        """The records of a batch, as they stand."""
        if self.tier == "auto":
            self.tier = "as chosen"
            for each in self.instances:
                each.use("auto", len(batch))
        self._each(lambda instance: instance.arrive(batch))

    def settle(self) -> None:
        """Have everything consumed that is stable by now."""
        self._each(lambda instance: instance.stage.settle())

    def finish(self, until: float | None = None) -> None:
        self._each(lambda instance: instance.stage.finish(until))

    def _each(self, act: Callable[[Instance], None]) -> None:
        """Where instances have to stop, the first to do so stops the run, and what the others made after that is dropped."""
        stops: list[tuple[Turn, RunError]] = []
        for index, each in enumerate(self.instances):
            try:
                act(each)
            except RunError as error:
                stops.append(((each.stopped, index), error))
        if stops:
            turn, first = min(stops, key=itemgetter(0))
            self._made = [made for made in self._made if made[0] <= turn]
            raise first

    def process(self, batch: EventBatch) -> Iterator[PolicyRun]:
        """What comes of the arrivals of a batch; if the run has to stop in it, what was detected before, then the error."""
        return self._run_of(lambda: self.arrive_all(batch))

    def end(self, until: float | None = None) -> Iterator[PolicyRun]:
        """The same of the end of input."""
        return self._run_of(lambda: self.finish(until))

    def pass_time(self, clock: int) -> Iterator[PolicyRun]:
        """The same of time that passes without an arrival."""
        return self._run_of(lambda: self._each(lambda instance: instance.stage.pass_time(clock)))

    def settled(self) -> Iterator[PolicyRun]:
        """The same of nothing but what is stable already."""
        return self._run_of(self.settle)

    def _run_of(self, act: Callable[[], None]) -> Iterator[PolicyRun]:
        try:
            act()
        except RunError:
            yield self._gathered()
            raise
        yield self._gathered()

    def take(self) -> PolicyRun:
        """What has come of the arrivals since the last call."""
        self.settle()
        return self._gathered()

    def _gathered(self) -> PolicyRun:
        """Detections in the order in which they were made, over all instances."""
        found = PolicyRun(late={each.policy: [*each.stage.late] for each in self.instances})
        for _, detection, clock, policy in sorted(self._made, key=itemgetter(0)):
            found.add(detection, clock, policy)
        self._made.clear()
        for each in self.instances:
            each.stage.late.clear()
        return found

    def refused(self) -> dict[StabilityPolicy, int]:
        """How many events were late, from the beginning, under each policy."""
        return {each.policy: each.stage.refused for each in self.instances}

    def snapshot(self) -> bytes:
        parts = {str(each.policy): each.encode() for each in self.instances}
        return sealed(msgspec.msgpack.encode(PolicySnapshot(VERSION, parts)))

    def restore(self, snapshot: bytes, *, changed: bool = False) -> None:
        """Goes on from a snapshot. Raises InputError for anything else, and, unless the rules or their policies may have
        `changed`, for a snapshot that has nothing of these."""
        instances = read_snapshot(snapshot, PolicySnapshot).instances
        if not changed and self.instances and not any(str(each.policy) in instances for each in self.instances):
            raise InputError("not a snapshot of these policies: it has none of them")
        with reading_state():
            own = [(each, instances.get(str(each.policy))) for each in self.instances]
            found = [(each, each.decoded(part)) for each, part in own if part is not None]
        for each, state in found:
            each.restore(*state)

    def _report(self, index: int, detection: Event, moment: Moment, policy: StabilityPolicy) -> None:
        clock, number = moment
        self._made.append(((number, index), detection, clock, policy))


def _by_policy(detectors: Sequence[Detector], default: StabilityPolicy) -> dict[StabilityPolicy, list[Detector]]:
    found: dict[StabilityPolicy, list[Detector]] = {}
    for detector in detectors:
        own = default if detector.policy is None else StabilityPolicy(detector.policy.kind, detector.policy.threshold)
        found.setdefault(own, []).append(detector)
    return found
