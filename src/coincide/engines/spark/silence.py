"""What a stream under policies knows of the wall clock: when something came last, and when each source said something last.

A source that has been silent for too long is taken to have sent a heartbeat, so that it does not hold the others; when all of
them are silent, time goes on by the wall (Timing.idle)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from coincide.engines.policies import PolicyEngine
from coincide.model.bounds import Word
from coincide.model.event import HEARTBEAT, Event, primitive
from coincide.stages import Delayed, Guaranteed

NEVER = -(2**63)


class Silence(msgspec.Struct, array_like=True):
    """All of it in microseconds, but for Spark's timer."""

    mark: Word = NEVER  # the latest time of an event
    came: Word | None = None  # the wall clock when something came last
    heard: dict[str, Word] = {}
    wakes: Word | None = None  # the timer of Spark's that is set, in milliseconds

    @property
    def clock(self) -> int | None:
        return None if self.mark == NEVER else self.mark

    def note(self, mark: int, sources: Iterable[str], wall: int | None) -> None:
        self.mark, self.came = max(self.mark, mark), wall
        if wall is not None:
            self.heard.update(dict.fromkeys(sources, wall))

    def heartbeats(self, engine: PolicyEngine, idle: int, wall: int) -> Iterator[Event]:
        """Those that silent sources are taken to have sent."""
        if self.came is None:
            return
        asleep = wall - self.came >= idle
        time = self.mark + (wall - self.came if asleep else 0)
        for source in sorted(known_sources(engine)):
            if asleep or wall - self.heard.setdefault(source, self.came) >= idle:
                yield primitive(HEARTBEAT, time, time, "", {}, source or None)

    def wakes_at(self, engine: PolicyEngine, idle: int, wall: int) -> int | None:
        """When there is something to do even if nothing comes."""
        waiting = [instant for each in engine.instances for instant in _waiting(each.stage)]
        if self.came is None or not waiting:
            return None
        awake = [heard for source in known_sources(engine) if wall - (heard := self.heard.get(source, self.came)) < idle]
        if awake and wall - self.came < idle:
            return min(awake) + idle
        return self.came + max(idle, min(waiting) + 1 - self.mark)


def known_sources(engine: PolicyEngine) -> set[str]:
    """Those that some policy waits for; if none does, the unnamed one."""
    stages = [each.stage for each in engine.instances]
    return {source for stage in stages if isinstance(stage, Guaranteed) for source in stage.known} or {""}


def _waiting(stage: Any) -> Iterator[int]:
    """When the first of what waits in a stage has its turn."""
    consumer, delay = stage.consumer, stage.delay if isinstance(stage, Delayed) else 0
    due = consumer.due() if consumer.timed else None
    first = [event.hi for _, _, event in stage.buffer[:1]]
    yield from (instant + delay for instant in [*first, *([] if due is None else [due])])
