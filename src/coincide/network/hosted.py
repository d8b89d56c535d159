"""A detector on a node: what it reads of the stream becomes arrivals, what it detects becomes messages.

All that it does follows from the messages that it reads, in their order: two nodes that read the same make the same, message by
message. So a detector that is moved, or started again after a failure, goes on from any state that was kept, and whatever it
publishes once more is dropped by its number."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from coincide.adapters.mapping import DEFAULT
from coincide.adapters.records import BadRecord, event_of
from coincide.detection.automaton.plan import AutomatonPlan
from coincide.detection.snapshots import carried_key_of, external_event_of, opened, reading_state, sealed, stored_event
from coincide.engines.instance import Instance, StabilityPolicy
from coincide.errors import RunError
from coincide.model.batch import EventBatch
from coincide.model.event import ENDED, HEARTBEAT, NAMED, Event, Place, carries_key, order_of
from coincide.network.broker import Message, Subjects
from coincide.network.directory import Detector, rules_of, types_read
from coincide.network.messages import MARK, Progress, composite_of, composite_record, heartbeat, progress_message
from coincide.ordering import POLICIES
from coincide.stages import NEVER, Moment, Moments

log = logging.getLogger("coincide.network")

VERSION = 1
ITEM = NAMED + 1
"""So many parts of an order key are the item's."""
LATER = 2**63 - 1
"""After every event that ends at the same instant: where timers fire."""


class Feed(msgspec.Struct):
    """What is known of a detector that feeds this one. `received` is the number of its last detection, None before the first word
    of it; `early` are those whose forerunners have not come; `promised` waits for the detections that it speaks of."""

    received: int | None = None
    through: int = 0
    clock: int = NEVER
    early: dict[int, bytes] = {}
    promised: Progress | None = None


class Copies(msgspec.Struct):
    """Detections of copies of one detector: the n-th of one equals the n-th equal one of the other, and is dropped."""

    counts: dict[str, dict[str, int]] = {}

    def is_new(self, copy: str, copies: Sequence[str], content: str) -> bool:
        counts = self.counts.setdefault(content, {})
        before = max(counts.values(), default=0)
        counts[copy] = counts.get(copy, 0) + 1
        if all(counts.get(name, 0) == counts[copy] for name in copies):
            del self.counts[content]
        return counts[copy] > before


class Kept(msgspec.Struct, array_like=True):
    """A detector's state. `placed` is the number of the message that put it where it is, or took it from there."""

    version: int
    since: int
    placed: int
    position: int
    time: int
    number: int
    instance: bytes
    known: list[str]
    feeds: dict[str, Feed]
    copies: dict[str, Copies]
    waiting: list[tuple[tuple[Any, ...], Event | None]]


class Rooted(Instance):
    """Knows of each detection which item completed it."""

    tells_hidden = True
    batch: EventBatch
    first = 0
    consumed = False
    sides: frozenset[str] = frozenset()
    fired_at = NEVER
    companions: Sequence[Event] = ()
    """By arrival: what sides elsewhere have made of the event that comes next."""

    def take_sides(self, sides: frozenset[str]) -> None:
        """Types that sides of its `||` make elsewhere."""
        self.sides = sides
        self._plans = [replace(plan, sides=sides) if isinstance(plan, AutomatonPlan) else plan for plan in self._plans]
        self.use("interpreter")

    def consume(self, batch: EventBatch, moments: Moments) -> None:
        for item in self._items(batch):
            self.first, self.batch = self.state.consumed, item
            super().consume(item, moments)
        self.consumed = True

    def fire(self, due: int, moment: Moment) -> None:
        self.fired_at = due
        super().fire(due, moment)

    def _items(self, batch: EventBatch) -> list[EventBatch]:
        """Where sides run elsewhere, an item and what they have made of it are taken at once."""
        if not self.sides:
            return [batch]
        if self._by_arrival:
            return [EventBatch([*batch.events, *self.companions])]
        items: list[list[Event]] = []
        for event in batch.events:
            if items and event.type in self.sides and order_of(items[-1][0])[:ITEM] == order_of(event)[:ITEM]:
                items[-1].append(event)
            else:
                items.append([event])
        return [EventBatch(item) for item in items]

    def completing(self, detection: Event) -> Event | None:
        """None: a timer."""
        _, kind, number, *_ = detection.place
        return self.batch.events[number - self.first] if kind == 0 else None


@dataclass(frozen=True)
class Made:
    """A detection to be published."""

    number: int
    data: bytes


class Hosted:
    """A running detector. `feeders` are the detectors that it reads, by name, each with the group of copies that it is of."""

    def __init__(self, entry: Detector, feeders: Mapping[str, str], subjects: Subjects) -> None:
        self.entry = entry
        self.subjects = subjects
        self.groups = dict(feeders)
        book = rules_of(entry)
        self.policy = StabilityPolicy.parse(entry.detection)
        self.instance = Rooted(self.policy, book.compiled, book.detectors, self._report)
        if entry.sides:
            self.instance.take_sides(frozenset(entry.sides))
        self.reads = types_read(book)
        self.position, self.time = entry.since, NEVER
        self.number = 0
        self.feeds = {name: Feed() for name in feeders}
        self.copies: dict[str, Copies] = {}
        self.waiting: list[tuple[Place, int, Event | None]] = []  # best effort: what others may still come before
        self.made: list[Made] = []
        self.bad = 0
        self.consumed = 0
        self.delay = 0.0
        self.counts: dict[str, int] = {}
        self.stopped: str | None = None
        self._names = {subject: name for name in feeders for subject in (subjects.detector(name), subjects.progress(name))}
        self._root: Place = ()
        self._last_progress = (NEVER, 0)
        if not self._by_arrival:
            self._know(*dict.fromkeys(feeders.values()), *entry.sources)

    @property
    def _by_arrival(self) -> bool:
        return POLICIES[self.policy.kind].by_arrival

    def wanted(self) -> list[str]:
        """The subjects that it reads."""
        found = [self.subjects.clock, *self._names]
        if self.reads is None:
            return [*found, self.subjects.every_event, self.subjects.every_publisher]
        external = sorted(self.reads - set(self.feeds) - set(self.entry.inputs))
        return found + [subject for name in external for subject in (self.subjects.events(name), self.subjects.publisher(name))]

    # What comes.

    def receive(self, messages: Sequence[Message]) -> None:
        """The next messages of the stream."""
        if self.stopped is not None:
            return
        try:
            for message in messages:
                if message.number > self.position:
                    self.position, self.time = message.number, max(self.time, message.time)
                    self._take(message)
                    self._settle()
        except RunError as error:
            self.stopped = str(error)
            log.warning("%s has to stop: %s", self.entry.name, error)

    def _take(self, message: Message) -> None:
        kind = self.subjects.kind(message.subject)
        if kind == "clock":
            self._arrive(None, message.number)
            return
        try:
            raw = msgspec.json.decode(message.data)
            if kind == "event":
                self._external(event_of(raw, DEFAULT, message.number), message.number)
            elif kind == "publisher":
                self._announced(raw)
            else:
                self._on_feeder(self._names[message.subject], raw, message.data)
        except (BadRecord, ValueError, KeyError, TypeError, msgspec.DecodeError):
            self.bad += 1

    def _external(self, event: Event, number: int) -> None:
        self.counts[event.type] = self.counts.get(event.type, 0) + 1
        event = msgspec.structs.replace(event, arrival=self.time)
        if not self._by_arrival and (event.type != HEARTBEAT or event.source):
            self._know(event.source or "", announced=False)
        self._arrive(event, number)

    def _announced(self, raw: Any) -> None:
        if not self._by_arrival:
            source = str(raw["source"])
            if raw.get("gone"):
                self._forget(source)
            else:
                self._know(source)

    def _know(self, *sources: str, announced: bool = True) -> None:
        """The known sources of guaranteed detection: publishers of what it reads, and the detectors that it reads."""
        stage: Any = self.instance.stage
        if announced or stage.declared:
            new = [source for source in sources if source not in stage.declared]
            heard = sorted(stage.heard) if not stage.declared else []
            if new:
                stage.declared = (*stage.declared, *(name for name in heard if name not in new), *new)

    def _forget(self, source: str) -> None:
        stage: Any = self.instance.stage
        stage.declared = tuple(name for name in stage.declared if name != source)
        stage.heard.discard(source)

    def _on_feeder(self, name: str, raw: Any, data: bytes) -> None:
        """A word of a detector that it reads."""
        feed = self.feeds[name]
        if MARK not in raw:
            progress = msgspec.json.decode(data, type=Progress)
            if feed.received is None:
                feed.received = progress.count
            feed.promised = progress
        else:
            number = int(raw[MARK][0])
            if feed.received is None:
                feed.received = number - 1
            if number > feed.received:
                feed.early[number] = data
        self._in_turn(name, feed)

    def _in_turn(self, name: str, feed: Feed) -> None:
        """Detections in the order of their numbers; then what was said once they were made."""
        assert feed.received is not None
        while (data := feed.early.pop(feed.received + 1, None)) is not None:
            feed.received += 1
            self._composite(name, data)
        promised = feed.promised
        if promised is not None and promised.count <= feed.received:
            feed.promised = None
            feed.through, feed.clock = max(feed.through, promised.through), max(feed.clock, promised.clock)
            if self._by_arrival:
                self._release()
            elif promised.frontier > NEVER:
                self._stage_takes(heartbeat(self.groups[name], promised.frontier, self.time))

    def _composite(self, name: str, data: bytes) -> None:
        raw = msgspec.json.decode(data)
        if raw[MARK][1] <= self.entry.since:  # made before this detector was there
            return
        event = composite_of(raw, self.groups[name])
        self.counts[event.type] = self.counts.get(event.type, 0) + 1
        copies = [other for other, group in self.groups.items() if group == self.groups[name]]
        if len(copies) > 1:
            content = msgspec.json.encode([event.lo, event.hi, event.origin, sorted(event.attributes.items())]).decode()
            if not self.copies.setdefault(self.groups[name], Copies()).is_new(name, copies, content):
                return
        self._arrive(msgspec.structs.replace(event, arrival=self.time), 0)

    # How it is consumed.

    def _arrive(self, event: Event | None, number: int) -> None:
        """An event, or (None) time that has passed."""
        if not self._by_arrival:
            self._stage_takes(event)
            return
        key = event.place if event is not None and carries_key(event) else (self.time, 0, number, 0, _ended(event, self.time))
        if self.feeds:
            heapq.heappush(self.waiting, (key, number, event))
            self._release()
        else:
            self._consume(key, event)

    def _stage_takes(self, event: Event | None) -> None:
        if event is None:
            self.instance.stage.pass_time(self.time)
        else:
            self.consumed += event.type != HEARTBEAT
            self.instance.stage.arrive(event)

    def _release(self) -> None:
        """A composite comes right after the item that completed it. So an item waits until no feeder can make anything that comes
        before it: each has dealt with the messages up to its own."""
        while self.waiting and self._is_next(self.waiting[0][0]):
            key, _, event = heapq.heappop(self.waiting)
            self.instance.companions = self._companions(key) if self.instance.sides and event is not None else ()
            self._consume(key, event)

    def _companions(self, key: Place) -> list[Event]:
        found: list[Event] = []
        while self.waiting and self.waiting[0][0][:ITEM] == key[:ITEM]:
            event = self.waiting[0][2]
            if event is None or event.type not in self.instance.sides:
                break
            found.append(event)
            heapq.heappop(self.waiting)
        return found

    def _is_next(self, key: Place) -> bool:
        through, clock = self._feeders_progress()
        return bool(key[2] <= through if key[1] == 0 else key[0] < clock)

    def _feeders_progress(self) -> tuple[int, int]:
        """How far all feeders have come; of copies, the foremost counts."""
        best: dict[str, tuple[int, int]] = {}
        for name, feed in self.feeds.items():
            group = self.groups[name]
            best[group] = max(best.get(group, (0, NEVER)), (feed.through, feed.clock))
        return min(best.values())

    def _consume(self, key: Place, event: Event | None) -> None:
        """By arrival: at the clock of its key."""
        self._root, self.instance.consumed = key, False
        stage = self.instance.stage
        if event is None:
            stage.pass_time(key[0])
        else:
            self.consumed += event.type != HEARTBEAT
            stage.arrive(msgspec.structs.replace(event, arrival=key[0]))

    def _settle(self) -> None:
        self.instance.stage.settle()

    # What it makes.

    def _report(self, detection: Event, moment: Moment, policy: StabilityPolicy) -> None:
        self.number += 1
        self.delay = max(0.0, (moment[0] - detection.hi) / 1000)
        key = (*self._item_key(detection), self.entry.name, self.number)
        self.made.append(Made(self.number, composite_record(detection, self.entry.name, self.number, self.position, key)))

    def _item_key(self, detection: Event) -> Place:
        """The order key of what completed it."""
        item = self.instance.completing(detection)
        if item is not None:
            return self._root if self._by_arrival else order_of(item)
        time, _, setting, *_ = detection.place
        was_set = setting[0] if isinstance(setting, tuple) else 0
        if not self._by_arrival:
            return time, LATER, was_set, 0, ""
        if self.instance.consumed:  # it was set in the past, and fires right after what set it
            return (*self._root[:3], 1, f"{ENDED}{self.instance.fired_at}")
        return time, 1, was_set, 0, f"{ENDED}{self.instance.fired_at}"

    def progress(self) -> bytes | None:
        """A heartbeat, if it says anything new."""
        through, clock = self.position, self.time
        if self.feeds and self._by_arrival:
            through, clock = min((through, clock), self._feeders_progress())
        frontier = NEVER
        if not self._by_arrival:
            stage: Any = self.instance.stage
            frontier = min((stage.marks.get(source, NEVER) for source in stage.known), default=NEVER)
        progress = (frontier, through)
        if progress == self._last_progress or through <= 0:
            return None
        self._last_progress = progress
        return progress_message(self.entry.name, frontier, through, clock, self.number)

    def taken(self) -> list[Made]:
        made, self.made = self.made, []
        return made

    # State.

    def snapshot(self, placed: int) -> bytes:
        stage: Any = self.instance.stage
        self._settle()
        known = [] if self._by_arrival else list(stage.declared)
        waiting = [(key, None if event is None else stored_event(event)) for key, _, event in sorted(self.waiting, key=_first)]
        state = Kept(
            *(VERSION, self.entry.since, placed, self.position, self.time, self.number, self.instance.encode(), known),
            *(self.feeds, self.copies, waiting),
        )
        return sealed(msgspec.msgpack.encode(state))

    def restore(self, state: Kept) -> None:
        """Raises InputError."""
        with reading_state():
            found = self.instance.decoded(state.instance)
            waiting = [_waiting(key, event) for key, event in state.waiting]
        self.instance.restore(*found)
        self.position, self.time, self.number = state.position, state.time, state.number
        if not self._by_arrival:
            stage: Any = self.instance.stage
            stage.declared = tuple(state.known)
        self.feeds.update({name: feed for name, feed in state.feeds.items() if name in self.feeds})
        self.copies, self.waiting = state.copies, waiting


def _ended(event: Event | None, time: int) -> str:
    return f"{ENDED}{time if event is None else event.hi}"


def _first(waiting: tuple[Place, int, Event | None]) -> Place:
    return waiting[0]


def _waiting(key: tuple[Any, ...], event: Event | None) -> tuple[Place, int, Event | None]:
    own = tuple(key)
    if event is None:
        return own, own[2], None
    return (carried_key_of(own) if carries_key(event) else own), own[2], external_event_of(event)


def read_kept(data: bytes) -> Kept:
    state = msgspec.msgpack.decode(opened(data), type=Kept)
    if state.version != VERSION:
        raise ValueError(f"it is of version {state.version}; this release reads {VERSION}")
    return state
