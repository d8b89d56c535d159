"""Publish, subscribe and detect: the service interface that Opera adds to an event middleware (section 6).

    service = CompositeEventService()
    service.create_ce_type("Visit", "[Enter(who = 'Brian')] ; [Enter(who = 'Peter')]")
    service.subscribe("Visit", "reception", None, print)
    service.register_ce_type("Enter", "door-1")
    service.publish(service.create_ce("Enter", who="Brian"), "door-1")

Detectors exist while somebody subscribes to what they make, for each detection policy on its own."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from coincide.engines.embedded import external_event
from coincide.engines.instance import Instance, StabilityPolicy
from coincide.errors import CoincideError
from coincide.model.event import HEARTBEAT, Event, record
from coincide.opera import Pattern, Statement, detect
from coincide.rulebook import Rulebook, load
from coincide.source import SourceText
from coincide.stages import Guaranteed, Moment

Record = Mapping[str, Any]
Callback = Callable[[dict[str, Any]], object]


class UnknownType(CoincideError):
    """A type of events that nobody has created."""


class NotRegistered(CoincideError):
    """A publisher must register a type before it publishes events of it."""


@dataclass(frozen=True)
class QualityOfService:
    """How a subscriber wants detection: `best-effort`, `guaranteed` or `probabilistic p`."""

    detection: str = "best-effort"


@dataclass(frozen=True)
class _Subscription:
    callback: Callback
    policy: StabilityPolicy | None  # None: of a primitive type, whose events are handed on as they come


class CompositeEventService:
    """Types, publishers and subscribers by name. `clock` gives the time (milliseconds) of events that say none."""

    def __init__(self, clock: Callable[[], float] = lambda: time.time() * 1000) -> None:
        self._clock = clock
        self._types: dict[str, str | None] = {HEARTBEAT: None}  # with the statements that detect composite ones
        self._book: Rulebook = load()
        self._publishers: dict[str, set[str]] = {}
        self._subscriptions: dict[tuple[str, str], _Subscription] = {}
        self._instances: dict[StabilityPolicy, Instance] = {}
        self._published: deque[Event] = deque()
        self._made: deque[tuple[Event, StabilityPolicy | None]] = deque()
        self._count = 0
        self._busy = False

    # Types and publishers.

    def create_ce_type(self, name: str, expression: str | Pattern | Statement | None = None) -> str:
        """A type of events; with an expression (core text, or of the fluent binding), one that is detected."""
        if name in self._types:
            raise CoincideError(f"'{name}' is already defined")
        types = {**self._types, name: None if expression is None else _statement(name, expression)}
        book = load(SourceText("types.ce", "".join(f"{text}\n" for text in types.values() if text is not None)))
        if {detector.name for detector in book.detectors} != {n for n, text in types.items() if text is not None}:
            raise CoincideError(f"the expression of '{name}' must be one expression and no statement")
        self._book = book
        self._types = types
        return name

    def register_ce_type(self, type: str, publisher: str) -> None:
        """The publisher will publish events of the type. It is a known source from now on: what is detected for certain
        waits for it (a publisher with nothing to say sends heartbeats)."""
        self._check_known(type)
        self._publishers.setdefault(publisher, set()).add(type)
        self._tell_sources()

    def unregister_ce_type(self, type: str, publisher: str) -> None:
        types = self._publishers.get(publisher, set())
        if type not in types:
            raise NotRegistered(f"'{publisher}' has not registered '{type}'")
        types.remove(type)
        if not types:
            del self._publishers[publisher]
        self._tell_sources()

    # Events.

    def create_ce(self, type: str, **attributes: Any) -> dict[str, Any]:
        """An event of the type: a record. `time` (milliseconds, ISO-8601 or a datetime) is now unless it is given, `id` the
        next number."""
        self._check_known(type)
        self._count += 1
        return {"type": type, "id": f"{type}-{self._count}", "time": self._clock(), **attributes}

    def publish(self, event: Record, publisher: str) -> None:
        """Hands an event (a record with `type`, `time` and attributes) to everyone concerned. From within a callback, it is
        handed on when its cause is dealt with. Raises InputError for a record that is not an event."""
        made = external_event({"source": publisher, **event}, self._count + 1)
        if made.type != HEARTBEAT and made.type not in self._publishers.get(publisher, ()):
            raise NotRegistered(f"'{publisher}' has not registered '{made.type}'")
        self._count += 1
        self._published.append(made)
        self._work()

    def heartbeat(self, publisher: str, time: float | str | datetime | None = None) -> None:
        """The publisher has nothing to say up to this time (milliseconds, ISO-8601 or a datetime)."""
        self.publish({"type": HEARTBEAT, "time": self._clock() if time is None else time}, publisher)

    # Subscribers.

    def subscribe(self, type: str, subscriber: str, qos: QualityOfService | None, callback: Callback) -> None:
        """From now on the callback gets every event of the type, as a record. Without `qos` detection is as the type's statement
        says, or best effort. A subscriber has one subscription to a type."""
        self._check_known(type)
        self._drop(type, subscriber)
        policy = self._policy(type, qos)
        self._subscriptions[type, subscriber] = _Subscription(callback, policy)
        self._arrange()

    def unsubscribe(self, type: str, subscriber: str) -> None:
        """The detectors that nobody needs any more are gone with it."""
        if not self._drop(type, subscriber):
            raise CoincideError(f"'{subscriber}' has not subscribed to '{type}'")
        self._arrange()

    def late(self) -> dict[str, int]:
        """How many events came too late, by detection policy."""
        return {str(policy): instance.stage.refused for policy, instance in self._instances.items()}

    @property
    def detectors(self) -> dict[str, list[str]]:
        """The composite types that are detected now, by detection policy."""
        return {str(policy): sorted(instance.names) for policy, instance in self._instances.items()}

    # How it is done.

    def _check_known(self, type: str) -> None:
        if type not in self._types:
            raise UnknownType(f"unknown event type '{type}': create it first")

    def _policy(self, type: str, qos: QualityOfService | None) -> StabilityPolicy | None:
        definition = next((d.definition for d in self._book.detectors if d.name == type), None)
        if definition is None:
            return None
        own = definition.policy
        if qos is None and own is not None:
            return StabilityPolicy(own.kind, own.threshold)
        return StabilityPolicy.parse((qos or QualityOfService()).detection)

    def _drop(self, type: str, subscriber: str) -> bool:
        return self._subscriptions.pop((type, subscriber), None) is not None

    def _arrange(self) -> None:
        """Instances as the subscriptions want them: detectors that stay keep their state."""
        wanted: dict[StabilityPolicy, set[str]] = {}
        for (type, _), subscription in self._subscriptions.items():
            if subscription.policy is not None:
                wanted.setdefault(subscription.policy, set()).add(type)
        self._instances = {policy: instance for policy, instance in self._instances.items() if policy in wanted}
        for policy, types in wanted.items():
            own = [detector for detector in self._book.detectors if detector.name in types]
            if policy in self._instances:
                self._instances[policy].change(self._book.compiled, own)
            else:
                self._instances[policy] = Instance(policy, self._book.compiled, own, self._report)
        self._tell_sources()

    def _tell_sources(self) -> None:
        for instance in self._instances.values():
            if isinstance(instance.stage, Guaranteed):
                instance.stage.declared = tuple(self._publishers)

    def _report(self, detection: Event, moment: Moment, policy: StabilityPolicy) -> None:
        self._made.append((detection, policy))

    def _work(self) -> None:
        """One event at a time, each with all that it brings about: callbacks may publish, subscribe and unsubscribe."""
        if self._busy:
            return
        self._busy = True
        try:
            while self._published:
                event = self._published.popleft()
                if event.type != HEARTBEAT:
                    self._made.append((event, None))
                for instance in list(self._instances.values()):
                    instance.stage.arrive(event)
                    instance.stage.settle()
                while self._made:
                    self._hand_on(*self._made.popleft())
        finally:
            self._busy = False

    def _hand_on(self, event: Event, policy: StabilityPolicy | None) -> None:
        """A detection to those who asked for its policy; a published event to all, also one that was detected elsewhere."""
        made = record(event)
        for (type, _), subscription in list(self._subscriptions.items()):
            if type == event.type and (policy is None or subscription.policy == policy):
                subscription.callback(made)


def _statement(name: str, expression: str | Pattern | Statement) -> str:
    if isinstance(expression, str):
        return f"detect {name} = {expression}"
    statement = detect(name, expression) if isinstance(expression, Pattern) else expression
    if statement.detect.name != name:
        raise CoincideError(f"the statement detects '{statement.detect.name}', not '{name}'")
    return statement.core()
