"""A node: reads the control subjects, keeps the directory, and carries the detectors that the directory puts on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from coincide.detection.snapshots import reading_state
from coincide.distribution.brokers import SPARK
from coincide.distribution.brokers import Broker as Offer
from coincide.distribution.placement import Setting
from coincide.distribution.replacement import replace_description
from coincide.errors import CoincideError
from coincide.network.broker import Broker, Reader, Subjects
from coincide.network.carried import Carrier, Carry, Embedded
from coincide.network.descriptions import Gossip, Resources, graph_of
from coincide.network.directory import Detector, Directory, Member
from coincide.network.hosted import Hosted, Kept, read_kept
from coincide.network.messages import Command, Report, encoded

log = logging.getLogger("coincide.network")

DIRECTORY = "the-directory"


@dataclass(frozen=True)
class Pace:
    """Seconds: how often the clock is told, how often a node speaks, how often states are kept, how long a state that is handed
    over is waited for (of a cluster: `leaving`), how often resources are told, and detectors' heartbeats at most."""

    clock: float = 0.25
    beat: float = 0.5
    keep: float = 5.0
    handover: float = 2.0
    gossip: float = 5.0
    leaving: float = 30.0
    heartbeat: float = 0.02


@dataclass
class Counted:
    """Events by type that a detector had read at an instant, from which rates are measured."""

    at: float
    counts: dict[str, int] = field(default_factory=dict)


class Node:
    """`turn` does what there is to do, without waiting. `now` is any clock of seconds that goes on by itself. `offer` says what
    it may carry, `carry` how: in this process, if nothing else is said."""

    def __init__(
        self,
        name: str,
        broker: Broker,
        subjects: Subjects | None = None,
        pace: Pace | None = None,
        links: Mapping[str, float] | None = None,
        offer: Offer | None = None,
        now: Callable[[], float] = time.monotonic,
        carry: Carry | None = None,
    ) -> None:
        self.name = name
        self.broker = broker
        self.subjects = subjects or Subjects()
        self.pace = pace or Pace()
        self.links = dict(links or {})
        self.offer = offer or Offer()
        self.now = now
        self.directory = Directory(self.subjects)
        self.carried: dict[str, Carrier] = {}
        self._carry = carry or self._embed
        self._counted: dict[str, Counted] = {}
        self.latency = 0.0
        self.resources: dict[str, object] = {}
        self._control: Reader | None = None
        self._waiting: dict[str, float] = {}  # since when a state that is handed over is waited for
        self._beat_at = self._clock_at = self._saved_at = now()
        self._clock_number = 0
        self._gossiped_at = -1e9
        self.gossip = Gossip(name)
        self._measured_at, self._worked, self._share = now(), 0.0, 0.0

    def start(self) -> None:
        """From the directory that was kept last, or from the beginning."""
        if (stored := self.broker.load(DIRECTORY)) is not None:
            self.directory.restore(stored)
        wanted = (*self.subjects.control, self.subjects.gossip(self.name))
        self._control = self.broker.open(wanted, self.directory.state.number)
        self._report()

    def turn(self) -> bool:
        """Was there anything to do?"""
        busy = self._heed()
        self._reconcile()
        for carrier in list(self.carried.values()):
            busy = carrier.run() or busy
        self._speak()
        return busy

    def stop(self) -> None:
        """Leave: states are kept, so that others go on from them."""
        began = time.monotonic()
        for carrier in self.carried.values():
            while not carrier.hand_over(carrier.entry.placed) and time.monotonic() - began < self.pace.leaving:
                carrier.run()
                time.sleep(0.05)
            carrier.close()
        self.carried.clear()
        self.broker.publish(self.subjects.node(self.name), encoded(Report(self.name, self.offer, leaving=True)))
        if self._control is not None:
            self._control.close()

    # Control.

    def _heed(self) -> bool:
        assert self._control is not None
        messages = self._control.take()
        for message in messages:
            if message.subject == self.subjects.clock:
                self._clock_number, self._clock_at = message.number, self.now()
            if message.subject == self.subjects.gossip(self.name):
                self._listen(message.data)
            else:
                self.directory.apply(message)
        answers, self.directory.answers = self.directory.answers, []
        for answer in answers:
            command = msgspec.structs.replace(answer.command, sender=self.name)
            self._publish_command(msgspec.structs.replace(command, target=answer.command.target), f"answer-{answer.number}")
        return bool(messages)

    def _publish_command(self, command: Command, key: str) -> None:
        self.broker.publish(self.subjects.admin, encoded(command), f"{self.subjects.network}-{key}")

    def _reconcile(self) -> None:
        """What runs here becomes what the directory says."""
        placed = self.directory.state.detectors
        read = {feeder for entry in placed.values() for feeder in entry.feeders}
        for name, carrier in list(self.carried.items()):
            entry = placed.get(name)
            if entry is None or entry.node != self.name:
                self._let_go(name, carrier, entry)
            else:
                carrier.is_read = name in read
                if carrier.entry.placed != entry.placed:  # it was to go, and is to stay
                    carrier.entry.placed = entry.placed
                    self._say_taken_up(entry)
        for entry in placed.values():
            if entry.node == self.name and entry.name not in self.carried:
                self._take_up(entry)
        for name in [name for name in self._waiting if name not in placed or placed[name].node != self.name]:
            del self._waiting[name]

    def _let_go(self, name: str, carrier: Carrier, entry: Detector | None) -> None:
        """Destroyed, or moved: then with its state."""
        try:
            if entry is not None and not carrier.hand_over(entry.placed):
                return
        except OSError:
            return  # the broker is away: later
        carrier.close()
        del self.carried[name]
        if entry is None:
            self._publish_command(Command("destroyed", name, self.name, self.name), f"destroyed-{name}-{carrier.entry.placed}")

    def _take_up(self, entry: Detector) -> None:
        try:
            state = self._state_of(entry)
            if state is None and entry.name in self._waiting:
                return
            self.carried[entry.name] = self._carry(msgspec.structs.replace(entry), self.directory.copies(entry), state)
        except (OSError, TimeoutError):
            return  # the broker is away: later
        except CoincideError as error:
            log.warning("%s cannot be carried: %s", entry.name, error)
            return
        self._waiting.pop(entry.name, None)
        self._counted[entry.name] = Counted(self.now())
        self._say_taken_up(entry)

    def _say_taken_up(self, entry: Detector) -> None:
        command = "created" if entry.placed == entry.since else "moved"
        self._publish_command(Command(command, entry.name, self.name, self.name), f"{command}-{entry.name}-{entry.placed}")

    def _embed(self, entry: Detector, feeders: Mapping[str, str], state: Kept | None) -> Carrier:
        hosted = Hosted(entry, feeders, self.subjects)
        if state is not None:
            hosted.restore(state)
        return Embedded(hosted, self.broker, self.subjects, self.pace.keep, self.pace.heartbeat, self.now)

    def _state_of(self, entry: Detector) -> Kept | None:
        """The one that was handed over; if that does not come, the last that was kept; None: it begins, or it is waited for."""
        if entry.placed == entry.since:
            return None
        data = self.broker.load(entry.name)
        with reading_state(f"the state of '{entry.name}'"):
            stored = None if data is None else read_kept(data)
        if stored is not None and stored.since != entry.since:
            stored = None  # of another of that name
        if stored is not None and stored.placed >= entry.placed:
            return stored
        began = self._waiting.setdefault(entry.name, self.now())
        before = self.directory.state.members.get(entry.before)
        if before is not None and before.alive and self.now() - began < self._handover(before):
            return None
        del self._waiting[entry.name]
        return stored

    def _handover(self, before: Member) -> float:
        """For how long a state is waited for: a cluster is at a micro-batch when it is asked."""
        return self.pace.leaving if before.offer.engine == SPARK else self.pace.handover

    # Resources.

    def _listen(self, data: bytes) -> None:
        try:
            message = msgspec.json.decode(data, type=Resources)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        self._pass_on(self.gossip.take(message, self.links))

    def _pass_on(self, messages: Iterable[tuple[str, Resources]]) -> None:
        for neighbour, message in messages:
            self.broker.publish(self.subjects.gossip(neighbour), encoded(message))

    def _monitor(self) -> dict[str, list[str]]:
        """Do the restrictions of the descriptions that run here still hold? Whose do not is moved, to a node that is known."""
        directory = self.directory
        violated: dict[str, list[str]] = {}
        for graph in directory.state.graphs.values():
            own = {cd: name for cd, name in graph.detectors.items() if name in self.carried}
            setting, known = Setting(directory.values()) if own else None, self.gossip.known if self.links else None
            for cd, name in own.items():
                assert setting is not None
                found = replace_description(graph_of(graph.text), setting, cd, directory.assignment(graph), known)
                if found.violated:
                    violated[name] = found.violated
                if found.target is not None:
                    placed = directory.state.detectors[name].placed
                    self._publish_command(Command("migrate", name, found.target, self.name), f"leave-{name}-{placed}")
        return violated

    # Its own words.

    def _speak(self) -> None:
        now = self.now()
        if now - self._beat_at >= self.pace.beat:
            self._report()
        if now - self._clock_at >= self.pace.clock:
            self._clock_at = now
            self.broker.publish(self.subjects.clock, b"{}", f"{self.subjects.clock}-{self._clock_number}")
        if now - self._saved_at >= 60.0:
            self._saved_at = now
            self.broker.store(DIRECTORY, self.directory.snapshot())

    def _report(self) -> None:
        now = self.now()
        if now - self._measured_at >= 1.0:
            worked = sum(carrier.figures.seconds for carrier in self.carried.values())
            self._share = min(1.0, max(0.0, worked - self._worked) / (now - self._measured_at))
            self._measured_at, self._worked = now, worked
        self._beat_at = now
        if now - self._gossiped_at >= self.pace.gossip:
            self._gossiped_at = now
            self._pass_on(self.gossip.own(self.resources, self.links))
        figures = {name: carrier.figures for name, carrier in self.carried.items()}
        delays = {name: round(own.delay, 3) for name, own in figures.items() if own.delay is not None}
        report = Report(
            *(self.name, self.offer, self.links, self.latency, round(self._share, 3), self._rates(now), delays),
            {name: own.size for name, own in figures.items() if own.size},
            *(self.resources, sorted(self.carried), self._monitor()),
        )
        self.broker.publish(self.subjects.node(self.name), encoded(report))

    def _rates(self, now: float) -> dict[str, float]:
        """Of what detectors read."""
        rates: dict[str, float] = {}
        for name, carrier in self.carried.items():
            before, counts = self._counted[name], carrier.figures.counts
            seconds = max(now - before.at, 0.001)
            for type, number in counts.items():
                rates[type] = max(rates.get(type, 0.0), round((number - before.counts.get(type, 0)) / seconds, 3))
            if seconds >= 5.0:
                self._counted[name] = Counted(now, dict(counts))
        return rates
