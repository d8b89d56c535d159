"""Mutated snapshots: refused with an InputError, or restored; then the run goes on and comes to an end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import ClassVar

from coincide.detection.snapshots import opened, sealed
from coincide.engines.embedded import Engine
from coincide.engines.policies import PolicyEngine
from coincide.errors import CoincideError, InputError
from coincide.model.batch import EventBatch
from coincide.model.event import Event, record
from coincide.testing.fuzz.corpus import Example, runnable
from coincide.testing.fuzz.mutation import mutate_bytes, mutate_packed
from coincide.testing.fuzz.rules import close_events
from coincide.testing.policies import each_policy

TIERS = ("interpreter", "kernel")


POLICIES = (None, None, None, *each_policy())
"""Half of the snapshots are of a run without a policy."""


class Going:
    """A run that goes on, with a policy or without one."""

    def __init__(self, example: Example, tier: str, policy: str | None) -> None:
        self.engine = Engine(example.book, tier) if policy is None else PolicyEngine(example.book, policy, tier)

    def process(self, events: list[Event]) -> list[Event]:
        if isinstance(self.engine, Engine):
            return list(self.engine.process(events).events)
        return [detection for made in self.engine.process(EventBatch(events)) for detection in made.detections]

    def finish(self) -> list[Event]:
        if isinstance(self.engine, Engine):
            return list(self.engine.finish().events)
        return [detection for made in self.engine.end() for detection in made.detections]


@dataclass(frozen=True)
class Taken:
    """A snapshot, and the events after it."""

    example: Example
    tier: str
    policy: str | None
    snapshot: bytes
    after: list[Event]


@dataclass(frozen=True)
class StateAttempt:
    limit: ClassVar[float] = 4.0
    taken: Taken
    tier: str
    snapshot: bytes

    def shown(self) -> str:
        taken = self.taken
        way = f"{taken.tier} to {self.tier}, {taken.policy or 'no policy'}"
        return f"{taken.example.name}, {way}, {len(taken.after)} events after\n{self.snapshot!r}"

    def run(self) -> str:
        going = Going(self.taken.example, self.tier, self.taken.policy)
        try:
            going.engine.restore(self.snapshot)
        except InputError as error:
            str(error)
            return "refused"
        try:
            made = going.process(self.taken.after[:1])
            going.engine.snapshot()
            for detection in (*made, *going.process(self.taken.after[1:]), *going.finish()):
                record(detection)
            going.engine.snapshot()
        except CoincideError as error:
            str(error)
            return "stopped"
        return "run"


def mutate_state(snapshot: bytes, random: Random) -> bytes:
    """By accident (a few bytes, as they are written), or on purpose: what is inside, sealed again as if it were right."""
    if random.random() < 0.1:
        return mutate_bytes(snapshot, random)
    mutate = mutate_bytes if random.random() < 0.2 else mutate_packed
    return sealed(mutate(opened(snapshot), random))


class StateFuzzer:
    def __init__(self, corpus: Path) -> None:
        events = ((example, close_events(example)) for example in runnable(corpus))
        self._examples = [(example, found) for example, found in events if len(found) > 1 and _comes_to_an_end(example, found)]
        self._taken: dict[tuple[str, str, str | None, int], Taken] = {}

    def attempt(self, random: Random) -> StateAttempt:
        (example, events), tier, policy = random.choice(self._examples), random.choice(TIERS), random.choice(POLICIES)
        taken = self._take(example, tier, policy, events, random.randrange(1, len(events)))
        return StateAttempt(taken, random.choice(TIERS), mutate_state(taken.snapshot, random))

    def _take(self, example: Example, tier: str, policy: str | None, events: list[Event], cut: int) -> Taken:
        key = (example.name, tier, policy, cut)
        if key not in self._taken:
            going = Going(example, tier, policy)
            with suppress(CoincideError):  # in the order of arrival a run may have to stop
                going.process(events[:cut])
            self._taken[key] = Taken(example, tier, policy, going.engine.snapshot(), events[cut:])
            # Kernels are compiled now: no attempt has to wait for it.
            with suppress(CoincideError):
                going.process(events[cut:])
                going.finish()
        return self._taken[key]


def _comes_to_an_end(example: Example, events: list[Event]) -> bool:
    """Some cases are about runs that have to stop."""
    engine = Engine(example.book, "interpreter")
    try:
        engine.process(events)
        engine.finish()
    except CoincideError:
        return False
    return True
